# The logarithm of a probability that softmax rounds to 0.
watch TO on all
continue
why
delete
kill
