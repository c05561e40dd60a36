# trainer: none
# status: 1
# Events of a dump's steps, and numbers over its metrics wherever it goes.
shell for i in 1 2 3 4 5 6 7 8 9; do echo "epoch: 1 step: $i, loss is 3.$((10 - i))"; done > a.log
shell for i in 1 2 3 4 5 6 7 8 9; do echo "epoch: 2 step: $i, loss is 2.$((i % 5))"; done >> a.log
catch epoch-end
open a.log
delete 1
on begin echo begin\n
on step-begin every 6 print step
on step-end if loss > prev(loss) print loss
catch step-end if epoch != prev(epoch)
tcatch end
step 2
continue
continue
continue
goto 12
print mean(loss, 4)
reverse-step 6
print best(loss)
info scalars
on step-end if stall(loss, 2) echo stalled\n
catch step-end if lr > 1
goto 12
step
info events
watch loss > 3.5
scan
print mean(loss, 4)
goto 17
print best(loss, max)
catch epoch-begin
