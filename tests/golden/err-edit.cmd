edit 3 on weights
