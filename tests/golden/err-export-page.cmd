step 2
export html
