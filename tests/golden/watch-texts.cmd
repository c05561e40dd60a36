# What there is to watch for, and what is recommended.
info conditions TL
info conditions weight_not_changed
info conditions > /dev/null
info statistics
advice GV
advice tensor_range
recommend
recommend yes
recommend
recommend no
info watchpoints
step
info hits
delete
info hits 1
