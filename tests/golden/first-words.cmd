# status: 1
# Words of other tools, pipes without the word pipe, and what is suggested for a wrong word.
set on-error continue
until step 2
until step 2
until step zero
info nodes | head -3
info nodes weights|gradients | head -2
search /embed|head/ | sed -n '1,2p'
print/f head.bias | grep -c "\["
pwd | wc -l
cd /
pwd
cd /no/such/place
thread list | wc -l
breakpoint list
process status | head -1
po loss
pp head.bias[:2]
ll
info registers
jump 20
summary
stop
run -f has_inf_or_nan
memry
memory
timng
loss
plotter
info memry
info brakpoints
