# Metrics over a dump, equal to those of the training that wrote it.
dump d on Default/network/loss/Softmax-op27, Default/data/target --steps 1-3
metric accuracy
metric best = topk k=5 by step
step 3
info metrics
open d
metric accuracy of Default/network/loss/Softmax-op27 against Default/data/target
metric best = topk k=5 of Default/network/loss/Softmax-op27 against Default/data/target by step
metric ppl = perplexity probabilities of Default/network/loss/Softmax-op27 against Default/data/target
info scalars
