# trainer: none
disconnect
