# What a C program tells of its model, its optimizer and its batch; gradients from its graph.
info gradients | head -1
step 2
info model
info lr
info batch
info gradients
