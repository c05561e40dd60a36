# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one test program in surroundings of its own: hermetic.py COMMAND [ARGUMENT]...

The program gets an empty HOME, TMPDIR and XDG directories, and none of the variables by which gradb or a loader would
find another gradb. Every process that it starts belongs to it, also one that became a daemon. Processes and files that
are left when it ends are removed; a program that succeeded and left some has failed.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
SECONDS = 20  # what a process may take to end after the test
SCRATCH = "GRADB_TEST_SCRATCH"  # set for the program: it runs in surroundings of its own
FOREIGN = ("GRADB_ADDRESS", "GRADB_TOKEN", "GRADB_JOB", "GRADB_RUN", "GRADB_DISABLE", "GRADB_LIBRARY",
           "ENABLE_MS_DEBUGGER", "MS_DEBUGGER_HOST", "MS_DEBUGGER_PORT", "MS_DEBUGGER_PARTIAL_MEM", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH",
           "PYTHONSTARTUP", "PYTHONHOME", "NO_COLOR", "COLORTERM", "INPUTRC")


def surroundings(scratch):
    """The environment of the test, whose directories exist."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "home/.local/state",
               "XDG_CONFIG_HOME": "home/.config", "XDG_CACHE_HOME": "home/.cache"}
    for name, folder in folders.items():
        path = scratch / folder
        path.mkdir(parents=True, mode=0o700)
        env[name] = str(path)
    return dict(env, **{SCRATCH: str(scratch)})


def descendants():
    """{pid: command line} of all living processes below this one."""
    parent, command = {}, {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, ppid = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, ValueError):
            continue  # it has just ended
        if state not in "ZX":
            parent[int(entry.name)], command[int(entry.name)] = int(ppid), line
    found, fresh = {}, [os.getpid()]
    while fresh:
        fresh = [pid for pid, ppid in parent.items() if ppid in fresh and pid not in found]
        found.update((pid, command[pid]) for pid in fresh)
    return found


def wait(child):
    """The child's exit status. Orphans that have ended are reaped meanwhile."""
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def remaining(seconds):
    """What is still alive once everything had that long to end."""
    end = time.monotonic() + seconds
    while True:
        reap()
        alive = descendants()
        if not alive or time.monotonic() > end:
            return alive
        time.sleep(0.005)


def kill_all():
    for _ in range(1000):
        alive = descendants()
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not remaining(0.05):
            return


def files_left(scratch):
    """Ours; what PyTorch and multiprocessing keep in TMPDIR is theirs."""
    return sorted(str(path.relative_to(scratch)) for path in (scratch / "tmp").glob("gradb*"))


def terminate(number, _frame):
    kill_all()
    sys.exit(128 + number)


def main():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="gradb-test-"))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, terminate)
    try:
        status = wait(subprocess.Popen(sys.argv[1:], env=surroundings(scratch)))
        if status != 0:
            return status if status > 0 else 128 - status
        processes, files = remaining(SECONDS), files_left(scratch)
        for pid, line in processes.items():
            print(f"# left a process behind: {pid} {line}", flush=True)
        for name in files:
            print(f"# left a file behind: {name}", flush=True)
        return 1 if processes or files else 0
    finally:
        kill_all()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
