# A layer that is frozen, and one that the optimizer was not given.
watch WNC on weights
continue
why
info node net/fc1/weight
why net/fc2/weight
kill
