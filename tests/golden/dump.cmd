# status: 4
# What a training left on the disk: made here of two of its values.
step
save head.bias a.npy
step
save head.bias b.npy
shell mkdir -p dump/rank_0/net/0/1 dump/rank_0/net/0/2
shell cp a.npy dump/rank_0/net/0/1/Add.Default_Add-op1.0.0.1700000000000001.output.0.DefaultFormat.npy
shell cp b.npy dump/rank_0/net/0/2/Add.Default_Add-op1.0.0.1700000000000002.output.0.DefaultFormat.npy
shell cp b.npy dump/rank_0/net/0/2/Add.Default_Add-op1.0.0.1700000000000001.input.0.DefaultFormat.npy
shell cp a.npy dump/rank_0/net/0/2/7.npy
shell touch dump/rank_0/net/0/2/mapping.csv
open dump
info formats
info steps
info node Default_Add-op1
goto 2
stats Default_Add-op1:in0
compare Default_Add-op1
reverse-step
watch count > 1 on Default_Add-op1
continue
info history Default_Add-op1:0 max min
info events
