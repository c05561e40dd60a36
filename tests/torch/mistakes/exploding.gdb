# A recurrent weight that makes what it is given longer, step by step.
watch 'norm > 2e18' on gradients
continue
why
kill
