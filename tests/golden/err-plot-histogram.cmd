# What has no histogram, and what is recorded only from now on.
set on-error continue
plot --histogram
plot --histogram head.bias
plot --histogram loss
plot --histogram no_such_node
trace histogram on head.bias
plot --histogram head.bias
plot head.bias.histogram
step
plot --histogram head.bias[0]
plot --histogram head.bias:7
plot head.weight.histogram
set history-bytes 0
