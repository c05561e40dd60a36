# trainer: none
focus diagram
