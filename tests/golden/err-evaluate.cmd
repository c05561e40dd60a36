# Python code, where the training process runs none.
set on-error continue
step
call len(x)
info locals
info args
call
set evaluate-code on
call len(x)
print len(x)
interact
undo
skip-update
zero-grad
set head.bias[0] = 1
set requires_grad head.bias off
set requires_grad head.bias
