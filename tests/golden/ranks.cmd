# One process: what is said of several is said of it.
info ranks > /dev/null
rank
rank 1
session
session 1
rank all whatis Default/network/head.bias
step
rank all echo done\n
catch divergence
tcatch divergence
step
info breakpoints
delete
show rank-locking
show rank-patience
set rank-locking off
next
set rank-locking on
next
info ranks > /dev/null
