# Four micro-batches a step, under autocast in bfloat16.
watch TO on all
step 1
info nodes model/0/*
break model/2/linear_2
continue
backtrace
print model/2/linear_2[0, 0:4]
next 2
finish phase
delete 2
step 1
print model/4/weight.grad[0, 0:4]
info scalars
delete
continue
