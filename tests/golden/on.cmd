# Commands that run at events, and stops at events.
on
on begin info line trace.c:1
on step-end every 2 if loss < 100 print step
on step end if loss > 1e9 print loss
catch epoch_begin if step > 3
tcatch step-begin if step == 3
commands
  print loss
end
info breakpoints
step
continue
print best(loss, max) - best(loss)
print loss lr
print lr, mean(loss, 2) - loss, head/MatMul-op24[0, :2]
info breakpoints
condition 3 loss > 0
disable 3
step 2
ignore 3 1
enable 3
step 4
delete 3
catch end
info events
save breakpoints on.save
shell cat on.save
on step-end if val > 3 print loss
step
print mean(loss, 2) > 0
print elapsed < 0
display best(loss)
step
kill
