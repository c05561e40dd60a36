# trainer: none
# levels of MindSpore's log: what is set, and what is refused
set on-error continue
show log-level
set log-level INFO
set log-level parser 0
set log-level VM:critical, DEBUG:info
show log-level
set log-level PARSRE DEBUG
set log-level INFOO
set log-level WARN
set log-level XYZ 1
set log-level PARSER
set log-level PARSER 5
set log-level
show log-level
set log-level default
show log-level
info log -module FOO
info log -level LOUD
info log -module PARSER -level ERROR
