# Histograms over steps: recorded where they are asked for, drawn, and listed with the history.
set charset utf8
set history-file here.gdhist
set history-bytes 65536
trace histogram on head.bias, ln_f.weight
info watchpoints
step 12
plot --histogram head.bias --rows 10
plot --histogram head.bias --steps 3-6 --log --rows 7 --at 5
plot loss head.bias.histogram --rows 14
info history
advice histogram
