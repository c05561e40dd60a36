step 2
plot loss --steps 9-3
