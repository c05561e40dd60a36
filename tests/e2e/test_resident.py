# SPDX-License-Identifier: GPL-3.0-or-later
"""A session outlives its terminal: the terminal is closed, killed or taken, gradb stays and serves its
training processes, and another terminal goes on where it was."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import pyte

import fake_mindspore
import harness

CHARLM = ["run", "--", harness.CHARLM, *harness.SMALL, "--batch", "2", "--threads", "1", "--steps", "1000000"]
RELU = f"{fake_mindspore.SCOPE}/relu-ReLU/ReLU-op2"
PATIENCE = 2  # seconds after which the MindSpore process of these tests gives its debugger up


class Tty:
    """A program on a terminal of its own, read as text and as a screen."""

    def __init__(self, argv, env, rows=24, cols=80):
        self.master, self.slave = pty.openpty()
        self.name = os.ttyname(self.slave)
        self.screen = pyte.Screen(cols, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.seen = b""
        self.resize(rows, cols)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([str(a) for a in argv], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, env=env, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, cols):
        self.screen.resize(rows, cols)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self):
        if select.select([self.master], [], [], 0.05)[0]:
            data = os.read(self.master, 65536)
            self.seen += data
            self.stream.feed(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def has_color(self, name):
        return any(cell.fg == name for row in self.screen.buffer.values() for cell in row.values())

    def wait(self, what, predicate):
        end = time.monotonic() + harness.DEADLINE
        while not predicate():
            if time.monotonic() > end:
                raise AssertionError(f"never came: {what}; the screen is\n{self.text()}\n{self.seen[-2000:]!r}")
            self.read()

    def expect(self, text):
        """In what came since the last time."""
        self.wait(repr(text), lambda: text.encode() in self.seen)
        self.seen = self.seen.split(text.encode(), 1)[1]

    def expect_screen(self, pattern):
        regex = re.compile(pattern, re.MULTILINE)
        self.wait(repr(pattern), lambda: regex.search(self.text()))

    def send(self, line):
        os.write(self.master, line.encode() + b"\r")

    def keys(self, keys):
        os.write(self.master, keys.encode())

    def wait_exit(self):
        self.wait("the end", lambda: self.process.poll() is not None)
        return self.process.returncode

    def is_as_before(self):
        """The shell has its terminal as it was."""
        return termios.tcgetattr(self.slave) == self.modes

    def close(self):
        for fd in (self.slave, self.master):
            if fd >= 0:
                os.close(fd)
        self.slave = self.master = -1


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="gradb-run-")
        self.addCleanup(self.dir.cleanup)
        os.chmod(self.dir.name, 0o700)
        self.sockets = pathlib.Path(self.dir.name, "gradb")
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir.name, HOME=self.dir.name, TERM="linux", LC_ALL="C.UTF-8",
                        XDG_STATE_HOME=self.dir.name + "/state", XDG_CONFIG_HOME=self.dir.name + "/config")
        for name in ("NO_COLOR", "COLORTERM", "GRADB_ADDRESS", "LINES", "COLUMNS"):
            self.env.pop(name, None)
        self.ttys = []
        self.addCleanup(self.end_all)

    def end_all(self):
        harness.end_all_of(self.dir.name)
        for tty in self.ttys:
            tty.close()
            tty.process.wait()

    def tty(self, *argv, rows=24, cols=80, **env):
        tty = Tty([harness.GRADB, *argv], {**self.env, **env}, rows, cols)
        self.ttys.append(tty)
        return tty

    def gradb(self, *commands, options=(), start=tuple(CHARLM), **size):
        args = harness.typed("set recommend off", "set confirm off", *commands)
        return self.tty("-q", "-nx", *options, *args, "--listen", "127.0.0.1:0", *start, **size)

    def start(self, *commands):
        tty = self.gradb(*commands)
        tty.expect("(gradb) ")
        return tty

    def run_sessions(self, *args):
        return subprocess.run([harness.GRADB, "sessions", *args], env=self.env, capture_output=True, text=True,
                              check=False, timeout=harness.DEADLINE)

    def sessions(self):
        return [json.loads(line) for line in self.run_sessions("--json").stdout.splitlines()]

    def wait_session(self, **wanted):
        found = []

        def is_there():
            found[:] = self.sessions()
            return len(found) == 1 and all(found[0][key] == value for key, value in wanted.items())
        harness.wait_for(f"a session with {wanted}, there is {found}", is_there)
        return found[0]

    def lose(self, tty):
        tty.close()
        return self.wait_session(terminal="")

    def wait_end(self, tty, status=0):
        self.assertEqual(tty.process.wait(harness.DEADLINE), status)


class Attach(Case):
    def test_terminal_lost_at_a_stop(self):
        first = self.start()
        facts = self.lose(first)
        self.assertEqual(facts["pid"], first.process.pid)
        self.assertEqual(facts["state"], "stopped")
        self.assertEqual(stat.S_IMODE(self.sockets.stat().st_mode), 0o700)
        self.assertEqual([stat.S_IMODE(s.stat().st_mode) for s in self.sockets.iterdir()], [0o600])
        second = self.tty("attach")
        second.expect("(gradb) ")
        second.send("step")
        second.expect("step 1")
        second.expect("(gradb) ")
        second.send("disconnect")
        second.expect("disconnected")
        self.assertEqual(second.wait_exit(), 0)
        self.assertTrue(second.is_as_before())
        third = self.tty("attach")
        third.expect("(gradb) ")
        third.send("quit")
        self.wait_end(first)
        self.assertEqual(third.wait_exit(), 0)
        self.assertEqual(self.sessions(), [])
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_no_terminal_controls_it_any_more(self):
        first = self.start()
        self.lose(first)
        fields = pathlib.Path(f"/proc/{first.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        self.assertEqual(fields[4], "0")  # tty_nr
        self.assertEqual(os.readlink(f"/proc/{first.process.pid}/fd/2"), "/dev/null")

    def test_the_last_lines_are_shown_again(self):
        first = self.start()
        first.send("echo what was said\\n")
        first.expect("what was said\r\n")
        first.send("watch TO on *")
        first.expect("atchpoint 1")
        self.lose(first)
        second = self.tty("attach", rows=30, cols=100, TERM="vt100")
        second.expect_screen(r"^\(gradb\) echo what was said")
        second.expect_screen(r"^what was said$")
        second.send("info watchpoints")
        second.expect("TO ")
        second.send("info session")
        second.expect_screen(rf"^  terminal +{second.name}$")
        second.expect_screen(r"^  on-hangup +hold$")

    def test_the_new_terminal_says_what_it_can(self):
        first = self.gradb(options=("--tui",), TERM="xterm-256color", COLORTERM="truecolor")
        first.expect_screen("stopped")
        first.wait("colours", lambda: b"\x1b[3" in first.seen)
        self.lose(first)
        second = self.tty("attach", rows=30, cols=100, NO_COLOR="1", LC_ALL="C", TERM="vt220")
        second.expect_screen(r"^\(gradb\)")
        second.expect_screen("----")
        self.assertNotIn("─".encode(), second.seen)
        self.assertNotRegex(second.seen, rb"\x1b\[[0-9;]*3[0-7]m")

    def test_panes_are_as_they_were(self):
        first = self.gradb(options=("--tui",))
        first.expect_screen("stopped")
        first.expect_screen(r"^\(gradb\)")
        first.send("layout split")
        first.send("node Default/network/head.bias")
        first.expect_screen(r"^\(gradb\) node Default")
        first.send("echo before it went\\n")
        first.expect_screen("^before it went")
        self.lose(first)
        second = self.tty("attach", rows=30, cols=100)
        second.expect_screen("^before it went")
        second.expect_screen("head.bias")
        second.send("layout")
        second.expect_screen("^split")
        second.resize(24, 90)
        second.expect_screen(r"\n.{89}\S?\Z")
        second.keys("\x18d")
        second.expect("disconnected")
        self.assertEqual(second.wait_exit(), 0)
        self.assertTrue(second.is_as_before())

    def test_the_plain_prompt_of_panes_stays_plain(self):
        first = self.gradb(options=("--tui",))
        first.expect_screen(r"^\(gradb\)")
        first.keys("\x18a")
        first.expect("The panes are hidden")
        self.lose(first)
        second = self.tty("attach")
        second.expect("The panes are hidden")
        second.send("echo still plain\\n")
        second.expect("still plain\r\n")

    def test_ctrl_c_stops_the_training(self):
        first = self.start()
        self.lose(first)
        second = self.tty("attach")
        second.expect("(gradb) ")
        second.send("continue")
        self.wait_session(state="running")
        second.keys("\x03")
        second.expect("(gradb) ")
        self.wait_session(state="stopped")
        self.assertIsNone(second.process.poll())

    def test_ctrl_z_stops_attach_alone(self):
        for options in ((), ("--tui",)):
            with self.subTest(options=options):
                first = self.gradb(options=options)
                first.expect_screen(r"^\(gradb\)")
                self.lose(first)
                second = self.tty("attach")
                second.expect_screen(r"^\(gradb\)")
                second.keys("\x1a")
                harness.wait_for("attach to stop", lambda: os.waitid(os.P_PID, second.process.pid, os.WSTOPPED |
                                                                      os.WNOHANG | os.WNOWAIT) is not None)
                self.assertTrue(second.is_as_before())
                self.assertEqual(self.sessions()[0]["state"], "stopped")  # it answers
                os.kill(second.process.pid, signal.SIGCONT)
                second.seen = b""
                second.send("echo back again\\n")
                second.expect_screen("^back again")
                second.send("quit")
                self.wait_end(first)
                second.wait_exit()

    def test_killed_attach_leaves_it_resident(self):
        first = self.start()
        self.lose(first)
        for signum in (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM):
            other = self.tty("attach")
            other.expect("(gradb) ")
            other.process.send_signal(signum)
            other.process.wait(harness.DEADLINE)
            self.wait_session(terminal="")
            other.wait("the terminal as it was", other.is_as_before)

    def test_killed_session_gives_the_terminal_back(self):
        first = self.gradb(options=("--tui",))
        first.expect_screen("stopped")
        self.lose(first)
        second = self.tty("attach")
        second.expect_screen(r"^\(gradb\)")
        first.process.kill()
        self.assertEqual(second.wait_exit(), 1)
        second.expect("error: connection to the session lost")
        self.assertTrue(second.is_as_before())
        first.process.wait(harness.DEADLINE)  # until then its socket takes connections
        for name in ("gradb-1.sock", "gradb-2.sock"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
                dead.bind(str(self.sockets / name))
        done = self.run_sessions()
        self.assertRegex(done.stderr, r"^Removed 3 sockets of dead sessions from \S+\n$")
        self.assertEqual(self.run_sessions().stderr, "")
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_taken_from_a_living_terminal(self):
        first = self.gradb(options=("--tui",))
        first.expect_screen("stopped")
        second = self.tty("attach")
        second.expect("Take it from there? (y or n) ")
        second.send("n")
        second.expect("error: not attached")
        self.assertEqual(second.wait_exit(), 1)
        second = self.tty("attach", "--take")
        first.expect(f"taken over by {second.name}, process {second.process.pid}")
        first.wait("the modes of before", first.is_as_before)
        second.expect_screen(r"^\(gradb\)")
        third = self.tty("attach", "--take")
        second.expect(f"taken over by {third.name}, process {third.process.pid}")
        self.assertEqual(second.wait_exit(), 0)
        self.assertTrue(second.is_as_before())
        third.expect_screen(r"^\(gradb\)")
        third.send("quit")
        self.wait_end(first)

    def test_who_looks_on_sees_the_panes_and_changes_nothing(self):
        first = self.gradb(options=("--tui",))
        first.expect_screen("stopped")
        viewer = self.tty("attach", "--read-only", rows=24, cols=80)
        viewer.expect_screen(r"^\(gradb\)")
        self.wait_session(viewers=1)
        first.send("echo for all\\n")
        first.expect_screen("^for all")
        viewer.expect_screen("^for all")
        viewer.wait("the same picture", lambda: first.read() or viewer.text() == first.text())
        self.assertFalse(viewer.has_color("blue"))
        first.send("set theme light")
        viewer.wait("the light theme's scopes", lambda: viewer.has_color("blue"))
        viewer.send("quit"[1:])
        viewer.resize(20, 70)
        viewer.expect_screen("^for all")
        viewer.keys("\x03")
        self.assertEqual(viewer.wait_exit(), 0)
        self.assertTrue(viewer.is_as_before())
        self.wait_session(viewers=0)
        self.assertIsNone(first.process.poll())

    def test_who_looks_on_without_a_terminal_gets_lines(self):
        first = self.start()
        viewer = subprocess.Popen([harness.GRADB, "attach", "--read-only"], env=self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True)
        self.wait_session(viewers=1)
        first.send("echo for all\\n")
        for line in viewer.stdout:
            if line == "for all\n":
                break
        first.send("quit")
        viewer.communicate(timeout=harness.DEADLINE)
        self.assertEqual(viewer.returncode, 0)


class Hangup(Case):
    """What becomes of trainings, by every way in which a terminal goes."""

    def lost_by(self, how, *commands):
        first = self.start(*commands)
        first.send("continue")
        self.wait_session(state="running")
        how(first)
        return first

    def test_hold(self):
        for how in (Tty.close, lambda tty: tty.process.send_signal(signal.SIGHUP)):
            first = self.lost_by(how)
            self.wait_session(state="stopped", terminal="")
            self.assertIsNone(first.process.poll())
            first.process.kill()
            first.process.wait()
            self.sessions()

    def test_continue(self):
        first = self.start("set on-hangup continue")
        first.close()
        self.wait_session(state="running", terminal="")
        second = self.tty("attach")
        second.expect("on-hangup continue")
        second.expect("(gradb) ")
        second.send("interrupt")
        self.wait_session(state="stopped")

    def test_detach(self):
        first = self.start("set on-hangup detach")
        facts = self.sessions()[0]
        children = pathlib.Path(f"/proc/{facts['pid']}/task/{facts['pid']}/children").read_text(encoding="utf-8").split()
        self.assertEqual(len(children), 1)
        first.close()
        self.wait_end(first)
        self.assertEqual(self.sessions(), [])
        os.kill(int(children[0]), 0)  # the training goes on
        os.kill(int(children[0]), signal.SIGKILL)

    def test_nothing_to_stay_for(self):
        first = self.gradb(start=())
        first.expect("(gradb) ")
        first.close()
        self.wait_end(first)

    def test_all_training_processes_are_held(self):
        first = self.gradb(start=("listen",))
        first.expect("istening on 127.0.0.1:")
        first.expect("(gradb) ")
        first.send("info target")
        port = self.port_of(first)
        trainers = [subprocess.Popen([str(a) for a in CHARLM[2:]], env=dict(self.env, GRADB_ADDRESS=f"127.0.0.1:{port}"),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for _ in range(2)]
        try:
            first.expect("raining process 2")
            harness.wait_for("both processes to stand", lambda: self.are_stopped(first))
            first.send("rank all continue &")
            self.wait_session(state="running")
            first.close()
            self.wait_session(state="stopped", terminal="")
            second = self.tty("attach", cols=160)
            second.expect("(gradb) ")
            second.send("info ranks")
            second.wait("both stopped", lambda: len(re.findall(r"stopped", second.text())) >= 2)
            self.assertNotIn("running", second.text().rpartition("info ranks")[2])
        finally:
            for trainer in trainers:
                trainer.kill()
                trainer.wait()

    def are_stopped(self, tty):
        mark = len(tty.seen)
        tty.send("info ranks")
        tty.wait("the ranks", lambda: tty.seen.find(b"charlm", mark) > 0 and tty.seen.endswith(b"(gradb) "))
        return len(re.findall(rb"stopped", tty.seen[mark:])) >= 2

    def port_of(self, tty):
        tty.send("show listen")
        found = []

        def is_there():
            found[:] = re.findall(rb"127\.0\.0\.1:(\d+)", tty.seen)
            return found
        tty.wait("the port", is_there)
        return int(found[0])

    def test_without_a_terminal_it_lets_go_and_ends(self):
        with harness.Gradb(env={"XDG_RUNTIME_DIR": self.dir.name}, command=CHARLM) as gradb:
            gradb.expect("Stopped before the first step")
            child = pathlib.Path(f"/proc/{gradb.process.pid}/task/{gradb.process.pid}/children").read_text(
                encoding="utf-8").split()[0]
            self.assertEqual(self.sessions(), [])
            gradb.process.send_signal(signal.SIGHUP)
            gradb.process.wait(harness.DEADLINE)  # the end of its input must not come first
            self.assertEqual(gradb.finish(), 129)
            os.kill(int(child), 0)
            os.kill(int(child), signal.SIGKILL)


class MindSpore(Case):
    """Its process ends itself when its debugger does not stir."""

    def setUp(self):
        super().setUp()
        self.first = self.gradb(start=("listen",))
        self.first.expect("istening on 127.0.0.1:")
        self.first.wait("the port", lambda: re.match(rb"\d+\D", self.first.seen))
        port = int(re.match(rb"\d+", self.first.seen).group())
        self.trainer = fake_mindspore.FakeMindSpore(port, version="1.9.0", steps=100000, patience=PATIENCE)
        self.addCleanup(self.trainer.vanish)

    def begin(self, *commands):
        self.trainer.start()
        self.trainer.wait_note("wait")
        self.first.expect("Stopped before the first step")
        self.first.expect("(gradb) ")
        for command in commands:
            self.first.send(command)
            self.first.expect("(gradb) ")

    def serve_long(self):
        """Several times as long as the process would bear without an answer."""
        self.trainer.join(4 * PATIENCE)
        self.assertTrue(self.trainer.is_alive(), self.trainer.log[-5:])

    def test_held_for_long(self):
        self.begin(f"watch TO on {RELU}")
        self.lose(self.first)
        self.serve_long()
        second = self.tty("attach")
        second.expect("(gradb) ")
        second.send("step")
        second.expect("end of step 1")
        second.send("info watchpoints")
        second.expect("TO ")
        self.assertEqual(self.trainer.bad_replies, [])

    def test_continues(self):
        self.begin("set on-hangup continue")
        self.first.close()
        self.trainer.wait_note("run")
        self.trainer.wait_note("step", count=20)
        self.assertTrue(self.trainer.is_alive())
        self.wait_session(terminal="")

    def test_detached_is_served_to_its_end(self):
        self.begin("set on-hangup detach")
        self.first.close()
        self.trainer.wait_note("step", count=20)
        self.assertIsNone(self.first.process.poll())  # for the process that needs it
        self.trainer.vanish()
        self.wait_end(self.first)

    def test_tmux_is_killed(self):
        self.first.send("quit")
        self.wait_end(self.first)
        tmux = ["tmux", "-S", self.dir.name + "/tmux", "-f", "/dev/null"]

        def run(*args):
            return subprocess.run([*tmux, *args], env=self.env, check=True, capture_output=True, text=True,
                                  timeout=harness.DEADLINE).stdout
        run("new-session", "-d", "-x", "80", "-y", "24", str(harness.GRADB), "-q", "-nx", "--tui", "-ex",
            "set recommend off", "--listen", "127.0.0.1:0", "listen")
        self.addCleanup(lambda: subprocess.run([*tmux, "kill-server"], capture_output=True, check=False))
        port = harness.wait_for("the address", lambda: re.search(r"127\.0\.0\.1:(\d+)", run("capture-pane", "-p")))
        self.trainer = fake_mindspore.FakeMindSpore(int(port.group(1)), version="1.9.0", steps=100000,
                                                    patience=PATIENCE)
        self.addCleanup(self.trainer.vanish)
        self.trainer.start()
        self.trainer.wait_note("wait")
        run("kill-server")
        pid = self.wait_session(terminal="")["pid"]
        self.addCleanup(lambda: os.kill(pid, signal.SIGKILL))
        self.serve_long()
        second = self.tty("attach", rows=40, cols=120)
        second.expect_screen("stopped")
        second.expect_screen(r"^\(gradb\)")


class Socket(Case):
    """What comes over the socket is not trusted, nor is the place where it lies."""

    FORMAT = "=III64s64s64s32s32s"
    STATUS, ATTACH, VIEW = 1, 2, 3

    def hello(self, wish, version=2, take=0):
        return struct.pack(self.FORMAT, version, wish, take, b"a" * 64, b"xterm", b"C", b"", b"")

    def say(self, message, fds=()):
        """The first answer; b"" when it hangs up."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(harness.DEADLINE)
            peer.connect(str(next(self.sockets.iterdir())))
            socket.send_fds(peer, [message], list(fds))
            try:
                return peer.recv(65536)
            except ConnectionResetError:
                return b""

    def test_bad_greetings(self):
        self.lose(self.start())
        master, slave = pty.openpty()
        with open(os.devnull, encoding="utf-8") as null:
            good = [slave] * 3
            for message, fds in ((b"x", ()), (b"x" * 5000, ()), (b"", ()), (self.hello(self.STATUS)[:-1], ()),
                                 (self.hello(self.STATUS) + b"x", ()), (self.hello(self.STATUS, version=1), ()),
                                 (self.hello(9), ()), (self.hello(0), ()), (self.hello(self.STATUS), good),
                                 (self.hello(self.ATTACH), ()), (self.hello(self.ATTACH), good[:2]),
                                 (self.hello(self.ATTACH), good * 2), (self.hello(self.ATTACH), good * 20),
                                 (self.hello(self.ATTACH), [slave, null.fileno(), slave]), (b"", good),
                                 (self.hello(self.VIEW), good)):
                answer = self.say(message, fds)
                self.assertIn(answer[:1], (b"e", b""), (message[:16], len(fds), answer))
        self.assertEqual(self.say(self.hello(self.STATUS))[:1], b"s")
        held = pathlib.Path(f"/proc/{self.sessions()[0]['pid']}/fd")
        open_fds = len(os.listdir(held))
        self.say(self.hello(self.ATTACH), [slave] * 20)
        harness.wait_for("the descriptors to be closed", lambda: len(os.listdir(held)) <= open_fds)
        os.close(master)
        os.close(slave)

    def test_many_silent_peers(self):
        self.lose(self.start())
        peers = []
        for _ in range(40):
            peers.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            peers[-1].connect(str(next(self.sockets.iterdir())))
        self.wait_session(state="stopped")
        for peer in peers:
            peer.close()

    def test_a_directory_of_others_is_refused(self):
        self.sockets.mkdir(mode=0o700)
        self.sockets.chmod(0o755)
        done = self.run_sessions()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: \S+/gradb must be a directory that belongs to you and has mode 0700\n$")
        tty = self.gradb(start=())
        tty.expect("warning: this session cannot survive the loss of its terminal: ")
        tty.expect("(gradb) ")
        tty.close()
        self.assertIn(tty.process.wait(harness.DEADLINE), (0, 129))  # the end of input, or the hangup

    def test_without_a_runtime_directory_there_is_another(self):
        self.env["XDG_RUNTIME_DIR"] = self.dir.name + "/missing"
        first = self.start("set height 0")  # other sessions of this user may have left much there
        facts = [one for one in self.sessions() if one["pid"] == first.process.pid]
        self.assertEqual(len(facts), 1)
        first.send("info session")
        first.expect_screen(rf"^  socket +(/run/user/\d+/gradb|/tmp/gradb-\d+)/gradb-{first.process.pid}\.sock$")
        first.send("quit")
        self.wait_end(first)

    def test_there_is_none(self):
        tty = self.tty("attach")
        tty.expect("error: no gradb session is running")
        self.assertEqual(tty.wait_exit(), 1)
        self.assertRegex(self.run_sessions().stdout, "^No session")

    def test_several(self):
        one, two = self.start(), self.start()
        tty = self.tty("attach")
        tty.expect("error: 2 sessions are running: gradb attach NAME")
        self.assertEqual(tty.wait_exit(), 1)
        tty = self.tty("attach", "--take", f"gradb-{one.process.pid}")
        tty.expect("(gradb) ")
        self.assertEqual(len([line for line in self.run_sessions().stdout.splitlines() if two.name in line]), 1)
        tty = self.tty("attach", "nobody")
        tty.expect('error: no session is named "nobody"')


if __name__ == "__main__":
    harness.main()
