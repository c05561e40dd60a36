# SPDX-License-Identifier: GPL-3.0-or-later
"""`PYTHON -I -S stand_in.py SOCKET SCRIPT ARGUMENT...` replaces `PYTHON SCRIPT ARGUMENT...` or `PYTHON -c CODE`: lets a
process that has imported a framework already (warm.py) run the program, and ends as that one ends.

It sends one packet: (arguments, folder, environment, process group) by marshal, with the first three files. It receives
one: the exit status, negative for a signal. It imports next to nothing, because it starts before every program."""
import _socket
import array
import marshal
import os
import sys

FILES = 3
ANSWER_BYTES = 64


def ask(path, arguments):
    """Lets the program run. Returns its status."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.connect(path)
    request = marshal.dumps((arguments, os.getcwd(), dict(os.environ), os.getpgrp()))
    connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", range(FILES)))])
    answer = connection.recv(ANSWER_BYTES)
    if not answer:
        sys.exit("stand_in.py: the process that has imported the framework is gone")
    return marshal.loads(answer)


def end_as(status):
    """Ends this process with a status, or by a signal where it is negative."""
    if status < 0:
        import signal
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


end_as(ask(sys.argv[1], sys.argv[2:]))
