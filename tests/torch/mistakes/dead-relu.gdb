# A bias so low that no unit of the layer is ever on.
trace DU dead_percentage_ge=90 steps=2 on activations
step 2
why
kill
