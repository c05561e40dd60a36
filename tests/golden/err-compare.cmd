# Only tensors of one type and shape.
step
compare head.bias ln_f.weight
