# trainer: none
metric accuracy
catch exception uncaught
metric
