# Values, formats, slices, history, differences, statistics, displays.
set print precision 3
set print threshold 30
set print edge-items 2
set keep-previous Default/network/head.bias, Default/network/ln_f.weight
step 2
whatis Default/network/head.weight
whatis Default/network/head.weight[0, ::2]
ptype Default/network/block0/LayerNorm-op3
print Default/network/head.weight
print Default/network/head.weight -s
print Default/network/head.weight[:2, :3] Default/network/head.weight[0, 0]
print/f Default/network/ln_f.weight[:4]
print/e Default/network/ln_f.weight[:4]
print/x Default/network/ln_f.bias[3:3]
print/d Default/data/input[0, :4]
print Default/network/block0/LayerNorm-op3
print Default/network/block0/LayerNorm-op3:1[0, :4]
print Default/network/head.weight[3:3]
print loss
print $1[0, 0]
print $$2
print $
print $_
x/6 Default/data/input[0, 13]
x
x/2e Default/network/ln_f.weight[:2]
step
print Default/network/head.bias[:4] prev
print Default/network/head.bias[:4] diff
stats Default/network/ln_f.weight diff
stats Default/network/block0/attn/Softmax-op10
find zero Default/network/block0/attn/Softmax-op10[0, 0, :2, :4]
find max Default/network/block0/attn/Softmax-op10[0, 0, 0]
find >= 1 Default/network/block0/attn/Softmax-op10[0, 0, :2]
find nonfinite Default/network/head.weight
display loss
display/f Default/network/ln_f.weight[:2]
display Default/network/head.bias diff
info display
step
undisplay 2
display
undisplay
step
info display
tensor head.bias[:4]
