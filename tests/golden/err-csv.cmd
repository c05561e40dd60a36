step 2
print loss > none.csv
