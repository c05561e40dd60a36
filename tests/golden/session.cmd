# A session from the first step to a node and back to the values.
set print precision 3
set print threshold 12
set print edge-items 2
set keep-previous Default/network/head.weight
info graph
info types
info scopes Default/network
step
step 3
next
next 3
info node .
whatis .
print .[:2, :2]
print .[0, 3]
print/e .[0, 0, :4]
print $
print $1[0, 0, :2]
inputs
outputs
backtrace
break type:Softmax
tbreak type:GeLU
info breakpoints
continue
print . -s
bt
continue
stats .
info node .
up
down
search Softmax
tensors weights
display .
next
info display
undisplay 1
finish
delete 1
step 2
print Default/network/head.weight[0, :4]
x/4f Default/network/head.weight
step
print Default/network/head.weight[0, :4] prev
print Default/network/head.weight[0, :4] diff
whatis Default/network/head.weight
