# zero_grad() is not called: each step's gradients lie on top of all before.
step 2
why loss
info log
kill
