# Steps of a training on the disk as it passes them.
dump later on *.bias --steps 2-3
step 4
dump now on head.bias
info dump
dump off
run-to Default/network/loss/Log-op29
dump part
info dump
shell echo '{"common_dump_settings": {"dump_mode": 0, "net_name": "n", "iteration": "1", "path": "x"},' > d.json
shell echo '"e2e_dump_settings": {"enable": true}}' >> d.json
shell sed 's-"x"-"/x"-' d.json > good.json
check-config good.json
set dump-config good.json
open later
