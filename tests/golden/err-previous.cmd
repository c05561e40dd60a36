step
print Default/network/head.bias prev
