step 2
plot loss[a:3]
