# A layer that is frozen, and one that the optimizer was not given.
trace WNC on weights
step 2
why
info node net/fc1/weight
why net/fc2/weight
kill
