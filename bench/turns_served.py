# SPDX-License-Identifier: MIT
"""The side of turns.py that is in the training process: it trains in blocks of steps that are requested over a socket.
A line `MODE STEPS` is answered by one line with the seconds of each step."""
import socket


def serve(path, version, parameters, run):
    """Connects to the requesting process's socket, and calls run(mode, steps), which returns those seconds, until it
    closes the connection. parameters: how many numbers are trained."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        with asking.makefile("rw") as lines:
            print(version, parameters, file=lines, flush=True)
            for line in lines:
                mode, steps = line.split()
                print(*run(mode, int(steps)), file=lines, flush=True)
