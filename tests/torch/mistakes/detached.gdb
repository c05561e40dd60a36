# A detach() in the middle: the first layer gets no gradient.
trace GM on gradients
step
why
kill
