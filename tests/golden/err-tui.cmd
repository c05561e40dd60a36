# trainer: none
tui enable
