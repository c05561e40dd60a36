# SPDX-License-Identifier: GPL-3.0-or-later
"""by_hand.py COUNT PORT LIMIT COMMAND...: a command as that many ranks of a job, started as torchrun does it: when one
of them fails the others, which would wait for it, are ended. One that runs for LIMIT seconds fails by itself
(warm.py), and where its threads stood is told, in the file GRADB_TEST_LATE, too. With a LIMIT of 0 a rank may take its
time, and those that are left when one fails go on."""
import os
import subprocess
import sys
import tempfile

count, port, limit = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
ranks = {}
for rank in range(count):
    stood = tempfile.TemporaryFile()  # where the rank's threads stood at the limit
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
        if text:  # the others come to their own limit now, and tell where they stood
            text = "by_hand.py: rank %d did not end in %g s. %s\n" % (rank, limit, text)
            with open(os.environ.get("GRADB_TEST_LATE", os.devnull), "a", encoding="utf-8") as late:
                late.write(text)
            sys.stderr.write(text)
        elif code != 0 and limit > 0:
            for other in ranks:
                os.kill(other, 15)
sys.exit(status)
