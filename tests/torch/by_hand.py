# SPDX-License-Identifier: GPL-3.0-or-later
"""by_hand.py COUNT PORT COMMAND...: a command as that many ranks of a job, started as torchrun does it: when one of
them fails the others, which would wait for it, are ended."""
import os
import subprocess
import sys

count, port = int(sys.argv[1]), sys.argv[2]
ranks = {}
for rank in range(count):
    process = subprocess.Popen(sys.argv[3:], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                                                      WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
    ranks[process.pid] = process
status = 0
while ranks:
    pid, how = os.wait()
    if pid in ranks:
        del ranks[pid]
        code = os.waitstatus_to_exitcode(how)
        if code != 0 and status == 0:
            status = code if code > 0 else 128 - code
            for other in ranks.values():
                os.kill(other.pid, 15)
sys.exit(status)
