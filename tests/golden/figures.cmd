# status: 1
# Statistics of named tensors in expressions.
set on-error continue
watch block0.attn.qkv.weight.max > 100
break train.py:3 if head.weight.max > 1
step
info watchpoints
print head.weight.max
print head.weight.max > 1
print head.weight.max >= -1
print head/weight.max
print network.head.weight.max - network.head.weight.min + step * 0
print head.weight.max + nosuch
print head.weight.cosine
watch head.weight.max > 1 && head.weight.min < -1
watch head.weight.max > 1 on network/head.weight
watch head.weight.max > 1 on head.bias
watch head.weight.max > head.bias.max
watch loss > 1 if head.weight.max > 1
catch step-end if head.weight.max > 1
break head if head.weight.max > 1
break block0.attn.softmax if block0.attn.qkv.weight.max > 1
watch head.weight.nosuch > 1
display head.bias.max
step
print loss > 1
