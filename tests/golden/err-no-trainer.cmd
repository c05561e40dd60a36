# trainer: none
step
