# (N,) minus (N, 1) is (N, N): each output is compared with each target.
step 1
why loss
kill
