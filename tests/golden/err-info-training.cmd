# status: 1
# What a C program does not tell, and wrong arguments.
set on-error continue
info model
step
info optimizer
info model no_such_module
info model token
info gradients no_such_node
aten on
digest | wc -l
memory | head -1
operators
scale
step-of
training
print epochs
watch head
watch no_such_condition
history loss
history nothing
layout asm
layout src
layout
layout next
layout
set logging file /no/such/folder/log.txt
set logging on
show logging
