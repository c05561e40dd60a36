# The flight recorder, comparisons, and a training that is over.
set charset utf8
set history-file here.gdhist
set history-bytes 65536
set keep-previous Default/network/head.bias
trace -step 'max > 1e30' on Default/network/head.bias
trace -step 'update_ratio > 1e30' on Default/network/ln_f.weight
step 4
info history
info history loss
info history head.bias -n 2
info history ln_f.weight norm mean update_ratio -n 3
compare head.bias[:3]
compare head.bias[:3] 0.5 -n 1
compare head.bias 1
compare head.bias rtol=1e-3 atol=1e-1
print head.bias[:2]
print ln_f.bias[:2]
compare $1 $2 atol=1
compare $1 $2 -n 1
compare $1 $1
open here.gdhist
info target
info nodes
info history head.bias max -n 2
print head.bias
stats head.bias prev
info scalars
rank 1
