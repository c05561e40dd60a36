# charlm does not look for overflows: the first command is the last that runs. The PyTorch tests and those of the help
# texts run all of them.
info overflows
catch overflow
tcatch overflow
overflow stop
overflow record 3
overflow off
rerun
