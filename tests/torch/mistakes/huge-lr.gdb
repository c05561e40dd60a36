# A learning rate a thousand times too high.
watch WCL on weights
continue
why
kill
