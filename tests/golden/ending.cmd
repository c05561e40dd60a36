# status: 7
# Command files, a checkpoint, a second start, letting go, and the end with a status of its own.
step
source sourced.txt
checkpoint
kill
run
step 2
detach
info target
quit 7
echo never\n
