hit 1
