print/z Default/network/head.bias
