# The ending chooses the format.
step
table run.txt loss
