inputs Default/network/head.bias -d 0
