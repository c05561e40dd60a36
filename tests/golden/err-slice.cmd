step
print Default/network/head.weight[99, 0]
