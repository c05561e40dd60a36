# status: 4
# Catchpoints: what happens to the numbers of the training.
catch
catch skip
catch scale
catch lr
catch loss-spike
catch nan-loss
tcatch skip
tcatch scale
tcatch lr if step > 100
tcatch nan-loss
info breakpoints
continue
delete
catch nan-loss
tcatch loss-spike mean_ratio_gt=0.5 if step > 12
watch loss > prev(loss)
info breakpoints
continue
info hits
delete 12
continue
info breakpoints
save breakpoints catch.save
kill
