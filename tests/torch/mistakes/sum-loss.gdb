# The losses of a batch are added up, where their mean was meant.
trace UB on weights
step 2
why
kill
