step 2
plot losss
