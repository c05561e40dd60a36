# The critic's gradients are set back, the generator's are not.
step 3
why loss
info log
kill
