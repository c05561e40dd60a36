# What is around a node, in a scope; the relations of tensors; what cannot be drawn.
watch max > -100 on type:Split
next 6
picture
picture -d 2
picture Log-op29:0
picture Log-op29 -nodes -d 1
picture -open Gradients
picture Log-op29
picture -fold Gradients
picture Default/network/
picture Default/network/block0
picture network.block0.mlp
