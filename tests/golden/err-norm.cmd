step 2
print grad_norm(nothing)
