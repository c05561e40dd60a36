# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a test program in an isolated environment: hermetic.py COMMAND [ARGUMENT]...

The program gets an empty HOME, TMPDIR and XDG directories, and no variable that could lead it to another gradb. When it
ends, the processes that it started (daemons, too) and its files are removed. If it left any, the test fails.
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
SECONDS = 20  # how long processes may need to end after the test
SCRATCH = "GRADB_TEST_SCRATCH"  # tells the program that it is isolated
FOREIGN = ("GRADB_ADDRESS", "GRADB_TOKEN", "GRADB_JOB", "GRADB_RUN", "GRADB_DISABLE", "GRADB_LIBRARY",
           "ENABLE_MS_DEBUGGER", "MS_DEBUGGER_HOST", "MS_DEBUGGER_PORT", "MS_DEBUGGER_PARTIAL_MEM", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH",
           "PYTHONSTARTUP", "PYTHONHOME", "NO_COLOR", "COLORTERM", "INPUTRC")


def surroundings(scratch):
    """Makes the directories; returns the environment of the test."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "home/.local/state",
               "XDG_CONFIG_HOME": "home/.config", "XDG_CACHE_HOME": "home/.cache"}
    for name, folder in folders.items():
        path = scratch / folder
        path.mkdir(parents=True, mode=0o700)
        env[name] = str(path)
    return dict(env, **{SCRATCH: str(scratch)})


def descendants():
    """{pid: command line} of all live descendants of this process."""
    parent, command = {}, {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, ppid = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, ValueError):
            continue  # the process has just ended
        if state not in "ZX":
            parent[int(entry.name)], command[int(entry.name)] = int(ppid), line
    found, fresh = {}, [os.getpid()]
    while fresh:
        fresh = [pid for pid, ppid in parent.items() if ppid in fresh and pid not in found]
        found.update((pid, command[pid]) for pid in fresh)
    return found


def wait(child):
    """Returns the child's exit status. Reaps orphans until then."""
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
    """Waits until all descendants have ended, at most `seconds`; returns those that are still alive."""
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
    """Files of gradb in TMPDIR. PyTorch and multiprocessing may leave theirs."""
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
            print(f"# the test left a process: {pid} {line}", flush=True)
        for name in files:
            print(f"# the test left a file: {name}", flush=True)
        return 1 if processes or files else 0
    finally:
        kill_all()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
