# Expressions of numbers only, and suggestions for the beginning of a name.
set on-error continue
print 1
print 2*3
print -1.5, 1/0
print 1 2
print 0/0
print 1e400
step
print 1
print loss * 0
metric acc
catch epo
