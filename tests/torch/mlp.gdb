# A classifier, one optimizer, plain loop: the tour of everything.
info nodes
watch TO on all
step 1
info nodes net/*
info node net/fc2/linear
break net/fc2/linear
continue
backtrace
next
next
finish phase
finish phase
finish phase
delete 2
break backward/net/fc1/linear
continue
backtrace
finish phase
finish phase
print net/fc1/weight[0:2]
print net/fc1/weight.grad[0:2]
print optimizer/SGD/net/out/weight.momentum_buffer[0, 0:4]
info scalars
info watchpoints
delete
continue
