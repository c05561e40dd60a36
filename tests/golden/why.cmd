# Where a value came from, and what lies around a node.
step
why Default/network/embed/Gather-op1
why Default/network/embed/Gather-op1 -a
node Default/network/embed/Gather-op1
why
tensor-graph Default/network/embed/Gather-op1
