# charlm offers set-lr, and chooses the place of a checkpoint itself.
step
set lr = lr / 2
info events
step
checkpoint here.bin
