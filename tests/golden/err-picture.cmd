picture Softmax-op10 -d 11
