# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs Python programs with torch or mindspore imported once for all of them: most cases are shorter than that import.

warmed.command() starts `PYTHON warm.py SOCKET CACHE MODULE` with a listening socket and gives the command that replaces
the interpreter (stand_in.py). The server forks a child for each program, which is what `PYTHON SCRIPT` would be:
arguments, folder, environment, process group and the first three files are the stand-in's, the environment's
sitecustomize has run, the script is __main__. Only the module was imported before all that, and at the end it
is not cleared. The server ends with the tests, when its input does.
"""
import array
import atexit
import ctypes
import faulthandler
import gc
import marshal
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
import types

MAX_REQUEST = 1 << 20
RIGHTS_BYTES = 256
CACHE, MODULE = sys.argv[2:]


class Request:
    """What a stand-in wants: a program, and what it runs with."""

    def __init__(self, connection):
        data, rights, _, _ = connection.recvmsg(MAX_REQUEST, RIGHTS_BYTES)
        self.files = array.array("i")
        for _, _, numbers in rights:
            self.files.frombytes(numbers)
        self.complete = bool(data)
        if self.complete:
            self.arguments, self.folder, self.environment, self.group = marshal.loads(data)

    def close(self):
        for file in self.files:
            os.close(file)

    def become(self):
        """In the child: takes over the stand-in's arguments, files and environment."""
        try:
            os.setpgid(0, self.group)  # what ends the stand-in's group also ends this process
        except OSError:
            pass  # it is of another session; the server ends what its stand-in leaves
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        self.close()
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        if os.environ.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(line_buffering=True)
        limit, _, stood = os.environ.pop("GRADB_TEST_LIMIT", "").partition(" ")  # of a rank's time (by_hand.py)
        if limit:
            faulthandler.dump_traceback_later(float(limit), exit=True, file=open(stood, "wb", buffering=0))

    def program(self):
        """In the child: the program's code and the names of its __main__, after what runs before it."""
        name = self.arguments[0]
        main = types.ModuleType("__main__")
        main.__builtins__ = __builtins__
        if name == "-c":
            sys.argv, source, name, sys.path[0] = ["-c", *self.arguments[2:]], self.arguments[1], "<string>", ""
        else:
            sys.argv, sys.path[0], main.__file__ = self.arguments, os.path.dirname(os.path.abspath(name)), name
            with open(name, "rb") as file:
                source = file.read()
        sys.path[1:1] = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        sys.dont_write_bytecode, sys.pycache_prefix = False, CACHE
        sys.modules.pop("sitecustomize", None)
        try:
            __import__("sitecustomize")
        except ImportError:
            pass  # there may be none
        sys.modules["__main__"] = main
        return compile(source, name, "exec"), main.__dict__


class Server:
    """Forks a child for each connection, sends its status back, and ends those whose stand-in is gone."""

    def __init__(self, listener):
        self.listener = listener
        self.connections = {}  # pid of a child -> connection to its stand-in
        self.child_ended, self.waken = socket.socketpair()
        self.waken.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.waken.fileno(), warn_on_full_buffer=False)
        self.selector = selectors.DefaultSelector()
        for file, then in ((sys.stdin, self.end), (self.child_ended, self.reap), (listener, self.start)):
            self.selector.register(file, selectors.EVENT_READ, then)

    def serve(self):
        """Returns only in a child: its Request."""
        while True:
            for key, _ in self.selector.select():
                request = key.data()
                if request is not None:
                    return request

    def end(self):
        """The tests have ended, and with them the only writer of our input."""
        for pid in self.connections:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ignore_errors=True)
        os._exit(0)

    def start(self):
        connection = self.listener.accept()[0]
        request = Request(connection)
        pid = os.fork() if request.complete else -1
        if pid == 0:
            connection.close()
            self.forget()
            request.become()
            return request
        request.close()
        if pid > 0:
            self.connections[pid] = connection
            self.selector.register(connection, selectors.EVENT_READ, lambda: self.abandon(pid))
        return None

    def abandon(self, pid):
        """The stand-in sends nothing; it has gone."""
        connection = self.connections.get(pid)
        if connection is not None:  # else its program ended at the same time, and was reaped before
            self.selector.unregister(connection)
            os.kill(pid, signal.SIGKILL)

    def reap(self):
        self.child_ended.recv(4096)
        while self.connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self.connections.pop(pid)
            if connection in self.selector.get_map():
                self.selector.unregister(connection)
            try:
                connection.send(marshal.dumps(os.waitstatus_to_exitcode(status)))
            except OSError:
                pass  # the stand-in went first
            connection.close()

    def forget(self):
        """In the child: the server is gone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        for held in (self.child_ended, self.waken, self.listener, *self.connections.values()):
            held.close()


def warm_up():
    """Imports the module, and whatever making an optimizer of torch imports."""
    __import__(MODULE)
    if MODULE == "torch":
        torch = sys.modules["torch"]
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, device="cpu"))], lr=0.1)
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit("warm.py: importing %s has started threads, which a fork loses" % MODULE)
    gc.collect()
    gc.freeze()  # so that a child's collections do not write to shared memory


def serve(number):
    """Returns only in a child: what to run."""
    warm_up()
    return Server(socket.socket(fileno=number)).serve().program()


def run(code, names):
    """Runs the program, and returns the status that Python would end with."""
    try:
        exec(code, names)
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception as raised:
        error = raised.with_traceback(raised.__traceback__.tb_next)  # which begins at the program
    report(type(error), error, error.__traceback__)
    return 1


def report(*error):
    """What Python does with an uncaught exception."""
    sys.last_type, sys.last_value, sys.last_traceback = error
    sys.audit("sys.excepthook", sys.excepthook, *error)
    sys.excepthook(*error)


def leave(status):
    """Ends the process as Python does, but without clearing what the module has made: that takes longer than most
    programs run."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(status)


leave(run(*serve(int(sys.argv[1]))))
