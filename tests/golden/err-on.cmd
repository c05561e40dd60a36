# Wrong events, conditions and commands of `on` and `catch`; and numbers that are unknown.
set on-error continue
on epoch-emd print loss
catch stepend
on step-end
on step-end every 0 print loss
on step-end if loss print loss
on step-end if loss > print loss
on step-end if mean > 1 print loss
on step-end if loss > 1
on step-end foo
on step-end commands
step
print stall(loss, 3)
print improved(loss)
print mean(loss, 0)
print best(3)
print prev(loss) - loss
print best(nothing)
print loss +
on step-end print nothing_of_that_name
step 2
info breakpoints
on step-end if losss > 3 print loss
watch los < 3
catch epoch-end if best(los) > 2
on step-end if "losss" > 3 print loss
on step-end if loss1 > 3 print loss
metric topk k=0
metric accuracy threshold=x
metric f1 class=-1
kill
