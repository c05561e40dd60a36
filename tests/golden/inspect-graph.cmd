# The graph from every side, before the first step and after one.
set list-lines 3
info graph
info types
info scopes
info scopes Default/network -r
info params
info nodes Default/network/block0/attn
info nodes type:Softmax, type:GeLU
info nodes gradients
info node Default/network/block0/attn/MatMul-op4
info node Default/network/head.weight
search attn.softmax
search softmax
search /Softmax-op[0-9]+$/
/head/
search type:matmul in Default/network
search nothing-like-it
inputs Default/network/block0/attn/Softmax-op10 -d 3
inputs Default/network/block0/attn/Softmax-op10
outputs Default/network/head.weight
li Default/network/loss/NLLLoss-op30 -d 2 -c
scope Default/network/block0
scope /
node Default/network/loss/NLLLoss-op30
node
ni
step
info target
info scalars
tensors Default/network/loss
tensors Default/network/loss -s
