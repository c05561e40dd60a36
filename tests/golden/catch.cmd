# status: 4
# Catchpoints: what happens to the numbers of the training.
catch
catch nan-loss
tcatch loss-spike mean_ratio_gt=0.5 if step > 12
watch loss > prev(loss)
info breakpoints
continue
info hits
delete 3
continue
info breakpoints
save breakpoints catch.save
kill
