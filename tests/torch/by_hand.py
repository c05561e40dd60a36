# SPDX-License-Identifier: GPL-3.0-or-later
"""by_hand.py COUNT PORT LIMIT COMMAND...: runs a command as that many ranks of one job, as torchrun does. When one rank
fails, the others, which would wait for it, are ended.

A rank that runs for LIMIT seconds fails by itself (warm.py); the stacks of its threads also go to the file
GRADB_TEST_LATE. With a LIMIT of 0 a rank may take its time, and the others continue when one fails."""
import os
import subprocess
import sys
import tempfile

count, port, limit = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
ranks = {}
for rank in range(count):
    stood = tempfile.TemporaryFile()  # the stacks of the rank's threads at the limit
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1",
               MASTER_PORT=port)
    if limit > 0:
        env.update(GRADB_TEST_LIMIT="%g /proc/%d/fd/%d" % (limit, os.getpid(), stood.fileno()), PYTHONUNBUFFERED="1")
    process = subprocess.Popen(sys.argv[4:], env=env)
    ranks[process.pid] = rank, process, stood
status = 0
while ranks:
    pid, how = os.wait()
    if pid in ranks:
        rank, _, stood = ranks.pop(pid)
        code = os.waitstatus_to_exitcode(how)
        if code != 0 and status == 0:
            status = code if code > 0 else 128 - code
        stood.seek(0)
        text = stood.read().decode()
        if text:  # the others reach their own limit now, and write their stacks
            text = "by_hand.py: rank %d did not end in %g s. %s\n" % (rank, limit, text)
            with open(os.environ.get("GRADB_TEST_LATE", os.devnull), "a", encoding="utf-8") as late:
                late.write(text)
            sys.stderr.write(text)
        elif code != 0 and limit > 0:
            for other in ranks:
                os.kill(other, 15)
sys.exit(status)
