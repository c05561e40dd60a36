step 2
plot head.bias.norm
