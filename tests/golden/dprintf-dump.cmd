# dprintf in a dump: prints as the dump is stepped through
step
save head.bias a.npy
step
save head.bias b.npy
shell mkdir -p dump/rank_0/net/0/1 dump/rank_0/net/0/2
shell cp a.npy dump/rank_0/net/0/1/Add.Default_Add-op1.0.0.1700000000000001.output.0.DefaultFormat.npy
shell cp b.npy dump/rank_0/net/0/2/Add.Default_Add-op1.0.0.1700000000000002.output.0.DefaultFormat.npy
shell cp b.npy dump/rank_0/net/0/2/Add.Default_Add-op1.0.0.1700000000000001.input.0.DefaultFormat.npy
open dump
dprintf Default_Add-op1,"step %d, max %.4f, input %s",step,max(.),in0[:3]
dprintf Default_Add-op1 if max > 0.0001
goto 1
dprintf type:Add,"again"
continue
info breakpoints
