# Names with dots, typed and printed; modules as places.
step
print network.head.weight[0, :2]
break network.block0.attn
info breakpoints
continue
finish network.block0.attn
run-to network.head
delete
set name-style dots
node head.weight
info scopes network.block0
set name-style slashes
node head.weight
