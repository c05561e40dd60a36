# trainer: none
bind F99 continue
