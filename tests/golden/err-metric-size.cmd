# A tensor that is not read is not one that was not dumped.
dump d on Default/network/loss/Softmax-op27, Default/data/target --steps 1-2
step 2
open d
set max-tensor 1 KiB
metric accuracy of Default/network/loss/Softmax-op27 against Default/data/target
