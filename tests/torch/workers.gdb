# Data loaded by two processes, two epochs: only the process that trains is seen.
watch TO on all
step 1
info nodes model/*
info nodes input/*
break model/1/relu
continue
backtrace
delete 2
finish phase
finish phase
finish phase
step 6
print model/2/bias
info scalars
info ranks
delete
continue
