# trainer: none
recheck
