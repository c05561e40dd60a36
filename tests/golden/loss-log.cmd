# status: 6
# The output of a training with LossMonitor: metrics by step; messages of MindSpore by submodule and level.
shell printf 'start\nepoch: 1 step: 1, loss is 2.5\nepoch: 1 step: 2, loss is 2.25\n[WARNING] ME(1:2,M):2024-05-01-10:20:30.123.456 [a.py:1] slow\n[INFO] PARSER(1,7f,python):2024-05-01-10:20:31.123.456 [b.cc:2] F] parsed\nTrain epoch time: 300.000 ms, per step time: 100.000 ms\nepoch: 2 step: 1, loss is 2.0\nepoch: 2 step: 3, loss is nan\n' > a.log
shell printf 'epoch: 1 step 1, loss is 2.5\nepoch: 1 step 2, loss is 2.24\nepoch: 1 step 3, loss is 2.1\nepoch time: 30.0 ms, per step time: 10.0 ms\nepoch: 2 step 1, loss is 2.0\n' > b.log
open a.log
info steps
info scalars
goto 4
info scalars
continue
info scalars
info log -level WARNING
info log -module parser
info log 2
info history loss
shell ln -s b.log link.log
open link.log
info steps
goto 4
info scalars
compare loss a.log b.log
