step 2
plot loss --smooth 1.5
