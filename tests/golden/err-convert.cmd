# trainer: none
# There is no such file, and nothing is written.
convert nothere npy
