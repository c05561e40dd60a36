# Metrics from the first step on, statistics of a traced tensor, and parts of them.
set charset utf8
set history-file here.gdhist
set history-bytes 65536
trace -step 'max > 1e30' on head.bias
step 12
plot loss lr --rows 14
plot loss[5:9] --rows 6
plot lr --steps 3-6 --log --rows 7 --at 5
plot head.bias.norm head.bias.max --smooth 0.6 --rows 12
plot head.bias --rows 6
plot --rows 6
plot loss[-4:] --rows 6
