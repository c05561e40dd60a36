# status: 6
# Values of two steps, as files, against each other and against the training.
step
save head.bias a.npy
shell mkdir steps && cp a.npy steps/head.bias.npy
step
save head.bias b.npy
compare a.npy a.npy
compare a.npy b.npy --limit 1
compare head.bias b.npy
compare @1 steps --profile strict --limit 1
compare a.npy b.npy --as troubleshooter
compare a.npy b.npy rtol=1 atol=1 --limit 1
first-divergence steps @1
check params steps
first-nonfinite steps
