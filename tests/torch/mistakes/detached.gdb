# A detach() in the middle: the first layer gets no gradient.
watch GM on gradients
continue
why
kill
