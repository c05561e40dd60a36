# SPDX-License-Identifier: GPL-3.0-or-later
"""by_hand.py COUNT PORT COMMAND...: a command as that many ranks of a job, started as torchrun does it."""
import os
import subprocess
import sys

count, port = int(sys.argv[1]), sys.argv[2]
ranks = [subprocess.Popen(sys.argv[3:], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank),
                                                 WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
         for rank in range(count)]
sys.exit(max(rank.wait() for rank in ranks))
