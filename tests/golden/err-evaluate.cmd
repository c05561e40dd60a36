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
