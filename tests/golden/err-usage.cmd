step 1 2
