# Two networks and two optimizers: a step is one of the critic's.
watch TO on all
step 1
info nodes generator/*
info nodes critic/*
break generator/2/linear
continue
backtrace
finish phase
finish phase
finish phase
delete 2
break critic/2/linear_2
continue
backtrace
delete 3
step 1
print critic/0/weight[0:1]
print critic/0/weight.grad[0:1]
info scalars
info watchpoints
delete
continue
