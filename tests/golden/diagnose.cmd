# A C program: outputs that are not finite, and the loss.
diagnose --steps 3
info rules softmax-twice
