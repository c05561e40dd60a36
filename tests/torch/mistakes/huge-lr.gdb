# A learning rate a thousand times too high.
trace WCL on weights
step 2
why
kill
