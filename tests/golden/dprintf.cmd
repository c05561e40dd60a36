# dprintf: prints without stopping
dprintf attn/Softmax-op10,"step %d, %s: max %.3f, row sum %5.1f|%-6s|\n",step,"softmax",max,in0[0,0,0,0],lr
dprintf type:gelu,.[0,0,:3],.[0,:2,:2]
dprintf head/MatMul-op24,"weights and 100%% more:",network/ln_f.weight[:2],"bias",network/ln_f.bias[0],min(network/ln_f.weight),7
info breakpoints
step
condition 1 step > 2 && max > 0.5
ignore 2 2
disable 3
step 2
enable once 3
dprintf head/MatMul-op24 if std > 1e9
step
info breakpoints
save breakpoints > -
delete 1 2
condition 4
break head/MatMul-op24
tbreak type:softmax
next 3
continue
delete 5
dprintf head/MatMul-op24,"%d %s",nothing,mean(nothing)
dprintf head/MatMul-op24,"%s",prev(loss)
dprintf head/MatMul-op24,"%.4f %.4f mean %s %s, %d %d, epoch %d, batch %d",best(loss),best(loss, max),mean(loss, 2),mean(loss, 99),improved(loss),stall(loss, 1),epoch,batch
condition 9 elapsed > 0 && best(loss) < best(loss, max)
dprintf head/MatMul-op24,"%s",best(nothing)
dprintf head/MatMul-op24,"%d",min(elapsed, 0)
delete 4
step
