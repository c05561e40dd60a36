# A metric of the same name replaces it in all steps: step 1 has no number of the second one.
dump d on Default/network/loss/Softmax-op27, Default/data/target --steps 1-2
step 2
shell rm d/rank_0/*/*/1/*target*
open d
metric x = mae of Default/network/loss/Softmax-op27 against Default/network/loss/Softmax-op27
metric x = accuracy of Default/network/loss/Softmax-op27 against Default/data/target
print x
