condition 1 max > 3
