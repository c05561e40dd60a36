# trainer: none
# What was recorded measures nothing, and has no learning rate to change.
shell for i in 1 2 3; do echo "epoch: 1 step: $i, loss is 3.$i"; done > a.log
open a.log
set timing on
set lr = 0.1
