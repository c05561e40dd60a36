# trainer: none
winheight tall
