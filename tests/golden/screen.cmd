# trainer: none
layout
layout watch
layout
focus graph
focus next
winheight 8
winheight +2
winheight usual
refresh
bind
bind F5 continue
bind C-x t layout tensor
bind -p graph Z watch NAN on %n
bind C-x y -
bind
info session
help connect
help screen
help keys
