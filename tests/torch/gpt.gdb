# Attention from matmul and softmax, tied weights, clipped gradients.
watch TO on all except type:masked_fill
step 1
info nodes gpt/blocks/0/*
info node gpt/blocks/1/attn/softmax
break gpt/blocks/1/attn/softmax
continue
backtrace
print gpt/blocks/1/attn/softmax[0, 0, 0:2, 0:3]
next 2
delete 2
break backward/gpt/blocks/0/attn/softmax
continue
backtrace
finish phase
finish phase
print gpt/token/weight.grad[0:2, 0:3]
step 1
info scalars
delete
continue
