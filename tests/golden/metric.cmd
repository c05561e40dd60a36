# Metrics of a C program: libgradb copies the nodes' values.
metric accuracy
step 1
info metrics
metric accuracy
metric precision average=weighted
metric best = topk k=5 by step
metric mean_loss = loss
metric ppl = perplexity probabilities
metric right = update s += sum(argmax(outputs)), n += count(labels) result s / n of Default/network/loss/Softmax-op27 against Default/data/target
metric confusion
step 3
info metrics
info scalars
watch best > 0.5
step
metric delete best
metric clear
step 1
info metrics
metric delete
info metrics
