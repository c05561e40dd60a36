# dprintf: what is refused when it is set; nothing is set
set on-error continue
dprintf
dprintf head,"%d"
dprintf head,"%d %d",1
dprintf head,"text %d","text"
dprintf head,"%q",1
dprintf head,"%*d",1,2
dprintf head,"%99999d",1
dprintf head,"%d,1
dprintf head,mean(head
dprintf head,,1
dprintf head,"%d",
dprintf MatMul-op24 if step >
dprintf network/head.weight
dprintf head.weigth,"%g",1
info breakpoints
condition 1 step > 1
