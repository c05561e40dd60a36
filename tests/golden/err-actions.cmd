# charlm offers no commands: the training process must be able to carry these out.
step
set lr = 0.1
