# status: 4
# trainer: --fault fp16-overflow
# Watchpoints from their making to their end.
watch TO on all
trace TR max_min_lt=0.5 on gradients if step > 2
twatch loss > 3.9
watch -step WCL on weights except *.bias
trace 'max > 0.2 && nan == 0' on Default/network/head.weight
condition 2 step > 50
condition 2
condition 2 'step == 24 || loss > 100'
edit 2 max_min_lt=1e-30
edit 2 add type:Mul
edit 2 remove type:LogGrad
edit 5 max > 0.15
ignore 5 2
disable 4
commands 1
  echo in the body\n
  print .
end
exclude type:LogGrad
info breakpoints
info watchpoints
continue
recheck
info watchpoints 2
info scopes Default/network -d 1
enable once 4
set watch-when exact
show watch-when
set evaluate local
continue
info hits
hit
ph
hit next
hit previous
nh
info hits 5
info hits -a
advice
info node .
save watchpoints saved.gdb
delete 1-4
unwatch 5
source saved.gdb
info breakpoints
exclude -d type:LogGrad
save breakpoints saved2.gdb
info watchpoints
