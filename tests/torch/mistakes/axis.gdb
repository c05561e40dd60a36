# Probabilities that sum to 1 over the batch; a layer that runs under no_grad().
step 2
why loss
why net/fc1/weight.grad
kill
