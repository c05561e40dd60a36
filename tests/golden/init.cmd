# Initial weights against the usual schemes.
info init
step 2
info init
