# Two ranks of one job.
set rank-patience 3600
step 2
rank all print loss
info nodes model/0/*
rank check
rank check gradients
rank 1
break model/0/linear
continue
backtrace
delete
print model/0/linear[0, 0:4]
step
rank all print model/0/weight.grad[0, 0:4]
watch 'max > 1e9' on weights
catch divergence
step 3
info hits -ranks
rank check */bias
kill
