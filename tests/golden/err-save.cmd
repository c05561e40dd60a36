step
save Default/network/head.bias /nowhere/at/all.npy
