# trainer: none
tensor -to 3,17
