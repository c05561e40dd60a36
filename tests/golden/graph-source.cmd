# Stacks, frames and source files; the spellings of an older debugger. What depends on the lines of
# charlm's own sources is run, and looked at in tests/repl.
tbreak Softmax-op10
continue
node-info
ni Default/network/head.bias
frame 1 > /dev/null
info frame > /dev/null
info stack > /dev/null
info source > /dev/null
sources model > /dev/null
ls > /dev/null
list > /dev/null
annotate model.c > /dev/null
info line model.c:1
list listed.txt:2
list 4,5
list -
/head.bias$/
/Log-op[0-9]+/ in Default/network/loss
run-to Log-op29
until NLLLoss-op30
info watchpoints
info hits
info conditions TL
info conditions > /dev/null
info ranks > /dev/null
rank 1
rank all whatis Default/network/head.bias
rank apply all whatis Default/network/head.bias
info settings > /dev/null
info timing > /dev/null
info log > /dev/null
