# Residual blocks with in-place operators and batch normalization; the rate is halved after step 10.
watch TO on all
watch WL max_gt=100 on weights
step 1
info nodes model/stage2/0/*
info node model/stage1/0/add_
break model/stage2/0/down/conv2d
continue
backtrace
next 2
finish phase
finish phase
delete 3
print model/stage1/0/bn1/running_mean[0:4]
print model/stage1/0/bn1/num_batches_tracked
catch lr
continue
info scalars
delete
continue
