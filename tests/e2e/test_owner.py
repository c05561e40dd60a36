# SPDX-License-Identifier: GPL-3.0-or-later
"""Only the owner debugs, only the owner's training processes connect. The hostile neighbour is user nobody: those
cases need root."""
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

import harness

NOBODY = 65534
SMALL = ["--data", str(harness.SOURCE / "COPYING"), *harness.SMALL, "--batch", "2", "--threads", "1"]
# What listens where a training process looks: greets it as HTTP/2 and writes down all that it says.
LISTENER = """
import socket, sys
kind, place = sys.argv[1:]
s = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
s.bind(place if kind == "unix" else ("127.0.0.1", 0))
s.listen()
print(place if kind == "unix" else s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    try:
        c.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        heard = b""
        while b := c.recv(65536):
            heard += b
    except OSError:
        pass
    print(heard.hex(), flush=True)
"""


def as_nobody(argv):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, argv)]


def neighbour_is_there():
    """Why there is none, or an empty string."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "needs root, to act as another user"
    done = subprocess.run(as_nobody([harness.CHARLM, "--help"]), capture_output=True, check=False)
    return "" if done.returncode == 0 else "another user cannot run what was built here"


class Base(unittest.TestCase):
    """A runtime directory of its own, and what runs there."""

    def setUp(self):
        # not in TMPDIR: the neighbour could not go there
        self.folder = tempfile.TemporaryDirectory(prefix="gradb-owner-", dir="/tmp")
        self.addCleanup(self.folder.cleanup)
        self.runtime = pathlib.Path(self.folder.name, "run")
        self.runtime.mkdir(mode=0o700)
        self.env = {"XDG_RUNTIME_DIR": str(self.runtime)}

    def environment(self, **more):
        env = {**os.environ, **self.env, **more}
        return {name: value for name, value in env.items() if value is not None}

    def charlm(self, *args, **more):
        process = subprocess.Popen([harness.CHARLM, *SMALL, *map(str, args)], env=self.environment(**more),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def gradb(self, *command, listen=None):
        gradb = harness.Gradb(listen=listen, command=command, env=self.env)
        self.addCleanup(gradb.__exit__)
        return gradb


class Meeting(Base):
    """Where gradb and a training process of the same user meet."""

    def test_listen_and_a_training_process_without_an_address(self):
        gradb = self.gradb("listen")
        path = self.runtime / "gradb" / "debugger"
        gradb.expect(rf"Listening on .*unix:{path}")
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        trainer = self.charlm("--steps", 3, GRADB_ADDRESS=None)
        gradb.expect("Stopped before the first step")
        gradb.run("continue", "The training ended")
        out, _ = trainer.communicate(timeout=harness.DEADLINE)
        self.assertEqual(trainer.returncode, 0, out)
        told = re.findall(r"(?m)^gradb: stopped by .*", out)
        self.assertEqual(told, [f"gradb: stopped by the debugger at unix:{path} "
                                f"(pid {gradb.process.pid}, uid {os.geteuid()})"])
        gradb.send("quit")
        self.assertEqual(gradb.finish(), 0)
        self.assertFalse(path.exists())

    def test_the_second_listener_is_told_who_the_first_is(self):
        first = self.gradb("listen")
        first.expect("Listening on")
        done = harness.run_gradb("--batch", "-q", "listen", env=self.env)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertRegex(done.stderr, rf"error: another gradb \(pid {first.process.pid}\) is listening on unix:")
        other = self.gradb("listen", listen=f"unix:{self.runtime}/other/socket")
        other.expect(f"Listening on unix:{self.runtime}/other/socket$")

    def test_a_socket_that_was_left_is_taken_over(self):
        for _ in range(2):
            gradb = self.gradb("listen")
            gradb.expect(r"Listening on .*unix:")
            gradb.process.send_signal(signal.SIGKILL)
            gradb.process.wait()
            self.assertTrue((self.runtime / "gradb" / "debugger").exists())

    def test_run_has_a_socket_of_its_own(self):
        listener = self.gradb("listen")
        listener.expect("Listening on")
        left = self.runtime / "gradb" / "run-1-dead"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left))
        script = pathlib.Path(self.folder.name, "script")
        script.write_text('echo "$GRADB_ADDRESS"; exec "$@"\n')
        done = harness.run_gradb("--batch", "-q", "-ex", "shell ls " + str(left.parent), "-ex", "continue",
                                 "-ex", "info log", "run", "--", "sh", script, harness.CHARLM, *SMALL, "--steps", 2,
                                 env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        path = re.search(r"unix:(\S+/run-\d+-\w+)", done.stdout).group(1)
        self.assertEqual(pathlib.Path(path).parent, left.parent)
        self.assertIn(pathlib.Path(path).name, done.stdout.split())
        self.assertNotIn("stopped by the debugger", done.stdout)  # its user started it with that debugger
        self.assertFalse(left.exists())
        self.assertEqual(sorted(os.listdir(left.parent)), ["debugger", "lock"])

    def test_a_directory_that_others_may_enter_is_refused(self):
        (self.runtime / "gradb").mkdir(mode=0o755)
        (self.runtime / "gradb").chmod(0o755)
        done = harness.run_gradb("--batch", "-q", "listen", "unix:" + str(self.runtime / "gradb" / "s"), env=self.env)
        self.assertIn("must be a directory that belongs to you", done.stderr)
        (self.runtime / "gradb").rmdir()
        (self.runtime / "real").mkdir(mode=0o700)
        (self.runtime / "gradb").symlink_to("real")
        done = harness.run_gradb("--batch", "-q", "listen", "unix:" + str(self.runtime / "gradb" / "s"), env=self.env)
        self.assertIn("must be a directory that belongs to you", done.stderr)
        done = harness.run_gradb("--batch", "-q", "listen", "unix:/" + "x" * 120, env=self.env)
        self.assertIn("socket path too long", done.stderr)

    def test_a_runtime_directory_that_is_not_there(self):
        """Then the one in /tmp serves, as in a container."""
        done = harness.run_gradb("--batch", "-q", "-ex", "step 1", "-ex", "shell ls " + self.folder.name, "run", "--",
                                 harness.CHARLM, *SMALL, "--steps", 2, env={"XDG_RUNTIME_DIR": self.folder.name + "/no"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Stopped at the end of step 1", done.stdout)

    def test_an_address_where_nobody_of_ours_can_listen(self):
        """It is told, and not waited for."""
        (self.runtime / "open").mkdir()
        (self.runtime / "open").chmod(0o755)
        for address, words in ((f"unix:{self.runtime}/open/s", "must be a directory that belongs to you"),
                               ("unix:relative", "is not a socket path"), ("nowhere:x", "nowhere:x")):
            trainer = self.charlm("--steps", 2, GRADB_ADDRESS=address)
            out, _ = trainer.communicate(timeout=harness.DEADLINE / 3)
            self.assertEqual(trainer.returncode, 0, out)
            (told,) = re.findall("(?m)^gradb: .*", out)
            self.assertIn(f"not connected to {address}: ", told)
            self.assertIn(words, told)

    def test_explicit_address_of_a_tcp_debugger(self):
        gradb = self.gradb("listen", listen="127.0.0.1:0")
        port = gradb.wait_listening()
        trainer = self.charlm("--steps", 2, GRADB_ADDRESS=f"127.0.0.1:{port}")
        gradb.expect("Stopped before the first step")
        gradb.run("continue", "The training ended")
        out, _ = trainer.communicate(timeout=harness.DEADLINE)
        self.assertIn(f"gradb: stopped by the debugger at 127.0.0.1:{port} (uid {os.geteuid()})\n", out)


@unittest.skipIf(neighbour_is_there(), neighbour_is_there())
class Neighbour(Base):
    """User nobody, on the same machine."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder.name, 0o755)
        self.theirs = pathlib.Path(self.folder.name, "theirs")
        self.theirs.mkdir(mode=0o700)
        os.chown(self.theirs, NOBODY, NOBODY)

    def listener(self, *place):
        process = subprocess.Popen(as_nobody([sys.executable, "-c", LISTENER, *place]), stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def trains_alone(self, listener, **more):
        trainer = self.charlm("--steps", 3, **more)
        out, _ = trainer.communicate(timeout=harness.DEADLINE)
        self.assertEqual(trainer.returncode, 0, out)
        self.assertIn("finished after 3 steps", out)
        listener.kill()
        heard = b"".join(bytes.fromhex(line) for line in listener.stdout)
        self.assertNotIn(b"charlm", heard)  # not even what is trained
        return out

    def test_their_listener_on_our_port_hears_nothing(self):
        listener, port = self.listener("tcp", "")
        out = self.trains_alone(listener, GRADB_ADDRESS=f"127.0.0.1:{port}", GRADB_TOKEN=None)
        self.assertEqual(re.findall("(?m)^gradb: .*", out),
                         [f"gradb: not connected to 127.0.0.1:{port}: the process that listens there belongs to another "
                          f"user (uid {NOBODY})"])

    def test_their_directory_in_place_of_ours(self):
        """As /tmp/gradb-0, which anybody may make first."""
        os.rename(self.theirs, self.runtime / "gradb")
        self.runtime.chmod(0o755)
        os.chmod(self.runtime / "gradb", 0o777)
        listener, _ = self.listener("unix", str(self.runtime / "gradb" / "debugger"))
        out = self.trains_alone(listener, GRADB_ADDRESS=None)
        self.assertNotIn("gradb:", out)
        gradb = self.gradb("listen")
        gradb.expect(r"(error|warning): .*must be a directory that belongs to you")
        done = harness.run_gradb("--batch", "-q", "-ex", "step 1", "run", "--", harness.CHARLM, *SMALL, "--steps", 2,
                                 env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)  # by TCP, where both look at the uid
        self.assertIn("Stopped at the end of step 1", done.stdout)

    def test_their_link_in_place_of_our_socket(self):
        """Even in a directory of ours: a link is not followed, and a socket of theirs is not ours."""
        (self.runtime / "gradb").mkdir(mode=0o700)
        self.theirs.chmod(0o755)
        listener, path = self.listener("unix", str(self.theirs / "s"))
        (self.runtime / "gradb" / "debugger").symlink_to(path)
        self.assertNotIn("gradb:", self.trains_alone(listener, GRADB_ADDRESS=None))

    def test_their_training_process_is_refused(self):
        gradb = self.gradb("listen", listen="127.0.0.1:0")
        port = gradb.wait_listening()
        done = subprocess.run(as_nobody([harness.CHARLM, *SMALL, "--steps", 2]), capture_output=True, text=True,
                              env=self.environment(GRADB_ADDRESS=f"127.0.0.1:{port}", XDG_RUNTIME_DIR=None),
                              timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"gradb: not connected to 127.0.0.1:{port}: the process that listens there belongs to another user "
                      f"(uid {os.geteuid()})\n", done.stderr)
        gradb.expect(rf"refused 127\.0\.0\.1:\d+: it belongs to user \w+ \(uid {NOBODY}\), and only processes of ")
        knock = ("import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
                 "print(len(s.recv(100)))")
        done = subprocess.run(as_nobody([sys.executable, "-c", knock, port]), capture_output=True, text=True,
                              timeout=harness.DEADLINE, check=False)
        self.assertNotRegex(done.stdout, "[1-9]")
        self.assertNotIn("Connected", gradb.text())

    def test_their_training_process_and_its_early_end(self):
        """A socket that was closed belongs to nobody, which is not to be read as root."""
        gradb = self.gradb("listen", listen="127.0.0.1:0")
        port = gradb.wait_listening()
        hello = ("import socket, sys\nfor i in range(50):\n s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                 " s.send(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes(9)); s.close()")
        subprocess.run(as_nobody([sys.executable, "-c", hello, port]), check=True, timeout=harness.DEADLINE)
        trainer = self.charlm("--steps", 2, GRADB_ADDRESS=f"127.0.0.1:{port}")
        gradb.expect("Connected: training process 1")
        gradb.expect("Stopped before the first step")
        self.assertNotIn("closed the connection", gradb.text())
        gradb.run("continue", "The training ended")
        self.assertEqual(trainer.wait(timeout=harness.DEADLINE), 0)


if __name__ == "__main__":
    harness.main()
