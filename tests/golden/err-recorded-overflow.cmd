# trainer: none
# A dump is stopped, but runs no operators.
shell for i in 1 2 3; do echo "epoch: 1 step: $i, loss is 3.$i"; done > a.log
open a.log
catch overflow
