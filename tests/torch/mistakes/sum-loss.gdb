# The losses of a batch are added up, where their mean was meant.
watch UB on weights
continue
why
kill
