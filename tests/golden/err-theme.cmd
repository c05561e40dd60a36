# trainer: none
set theme pink
