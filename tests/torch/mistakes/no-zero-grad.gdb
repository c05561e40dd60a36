# zero_grad() is not called: each step's gradients lie on top of all before.
watch 'cosine > 0.9' on gradients
continue
why
info log
kill
