# SPDX-License-Identifier: GPL-3.0-or-later
"""Long work, a terminal that takes nothing, floods of hits and none: how far it is, Ctrl-C, and what goes on.

The trainer is played here: it sends as much of a value as a test wants, so that what the bar says is known."""
import contextlib
import os
import pathlib
import re
import signal
import sys
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "e2e")]
import harness  # noqa: E402
import fake_mindspore as fake  # noqa: E402
import test_protocol as protocol  # noqa: E402
from terminal import Terminal  # noqa: E402

pb = protocol.pb
MIB = 1 << 20
ROWS = 64  # of one MiB each


class Slow(protocol.Trainer):
    """A trainer whose net/large takes 64 MiB, and that sends them piece by piece."""

    def __init__(self, port):
        super().__init__(port)
        self.fetch = None
        self.sent = 0

    def start(self):
        self.hello()
        self.hear("welcome")
        nodes = [pb.Node(id=1, name="net/large", type="Parameter", kind=pb.KIND_WEIGHT,
                         outputs=[pb.Output(dtype=pb.FLOAT32, shape=[ROWS, MIB // 4])]),
                 pb.Node(id=2, name="net/small", type="Parameter", kind=pb.KIND_WEIGHT,
                         outputs=[pb.Output(dtype=pb.FLOAT32, shape=[3, 4])])]
        self.say(graph=pb.GraphChunk(graph="net", nodes=nodes, commit=True))
        self.stand()

    def begin(self):
        """The next Fetch, which must be of the large tensor, gets its first answer."""
        self.fetch = self.hear("fetch")
        self.sent = 0
        self.say(tensor_begin=pb.TensorBegin(request=self.fetch.request, dtype=pb.FLOAT32, shape=[ROWS, MIB // 4],
                                             bytes=ROWS * MIB, step=1))

    def send(self, rows):
        for _ in range(rows):
            self.say(tensor_data=pb.TensorData(request=self.fetch.request, offset=self.sent * MIB, data=bytes(MIB)))
            self.sent += 1


@contextlib.contextmanager
def slow_session(**options):
    """gradb on a terminal, and a slow trainer that stands."""
    with Terminal(program=False, **options) as t:
        t.expect(r"listening on 127\.0\.0\.1:\d+|Listening on 127\.0\.0\.1:\d+")
        port = int(re.search(r"istening on 127\.0\.0\.1:(\d+)", t.text()).group(1))
        trainer = Slow(port)
        try:
            trainer.start()
            t.expect(r"step 1\b")
            yield t, trainer
        finally:
            trainer.close()


class SlowGraph(fake.FakeMindSpore):
    """A MindSpore process whose graph takes as many pieces as a test wants to let through."""

    PIECES = 8

    def __init__(self, port):
        super().__init__(port, version="2.0.0", backend="Ascend", graphs=[fake.small_graph(padding=4 * MIB)])
        self.allowed = threading.Semaphore(0)

    def send_all_graphs(self):
        data = fake.graph_proto(self.graphs[0], self.version)
        size = -(-len(data) // self.PIECES)

        def pieces():
            for at in range(0, len(data), size):
                self.allowed.acquire()
                yield fake.pb.Chunk(buffer=data[at:at + size])

        self.call("SendGraph", pieces())
        self.note("graphs", 1)

    def let(self, count):
        for _ in range(count):
            self.allowed.release()


class LongGraph(unittest.TestCase):
    """A graph of 4 MiB that comes in eight pieces."""
    SCREENS = ({"cols": 100}, {"cols": 100, "env": {"LC_ALL": "C"}, "term": "vt100"})

    @contextlib.contextmanager
    def session(self, **options):
        with Terminal(program=False, **options) as t:
            t.expect(r"istening on 127\.0\.0\.1:\d+")
            trainer = SlowGraph(int(re.search(r"istening on 127\.0\.0\.1:(\d+)", t.text()).group(1)))
            trainer.start()
            try:
                trainer.let(4)
                yield t, trainer
            finally:
                trainer.let(trainer.PIECES)
                trainer.vanish()

    def test_the_prompt_answers_meanwhile(self):
        with self.session() as (t, trainer):
            t.expect(r"receiving a graph  2\.0 MiB")
            t.command("echo still there", r"^still there$")
            trainer.let(4)
            t.expect_not("receiving")
            t.expect(r"^ gradb .*step 0  stopped")
            t.command("info graph", r"11 nodes")

    def test_ctrl_c_keeps_it_out_until_it_is_wanted(self):
        for options in self.SCREENS:
            with self.subTest(**options), self.session(**options) as (t, trainer):
                t.expect(r"receiving a graph  2\.0 MiB")
                t.send("\x03")
                t.expect_not("receiving")
                trainer.let(4)
                t.expect(r"graph kernel_graph_0 was not loaded: interrupted while it arrived")
                trainer.wait_note("wait")  # it goes on as if the graph were in
                t.send("refresh graph\r")
                t.send("info graph\r")
                t.expect(r"11 nodes")
                t.send("refresh graph\r")
                t.expect(r"all graphs sent by the training process are loaded")
                t.send("step\r")
                trainer.wait_note("run")
                t.expect(r"step 1\b")


class ManyEdges(unittest.TestCase):
    """A gradb.v1 trainer whose graph has more edges than are taken in at once."""
    NODES = 30000

    @contextlib.contextmanager
    def session(self):
        with Terminal(cols=100, program=False) as t:
            t.expect(r"istening on 127\.0\.0\.1:\d+")
            trainer = protocol.Trainer(int(re.search(r"istening on 127\.0\.0\.1:(\d+)", t.text()).group(1)))
            try:
                trainer.hello()
                trainer.hear("welcome")
                nodes = [pb.Node(id=i, name=f"net/n{i}", type="ReLU", inputs=[pb.Input(node=i - 1)] if i > 1 else [])
                         for i in range(1, self.NODES + 1)]
                trainer.say(graph=pb.GraphChunk(graph="net", nodes=nodes))
                yield t, trainer
            finally:
                trainer.close()

    def test_what_follows_the_graph_waits_for_it(self):
        with self.session() as (t, trainer):
            t.expect(r"receiving the graph  30000 nodes")
            trainer.say(graph=pb.GraphChunk(graph="net", commit=True))
            trainer.say(log=pb.Log(lines=["after the graph"]))
            trainer.stand()
            t.expect(r"^ gradb .*step 1 .*stopped")
            t.expect_not("receiving|loading")
            t.command("info graph", r"30[ ,]?000 nodes, 29[ ,]?999 edges")
            t.command("refresh graph", r"all graphs sent by the training process are loaded")

    def test_ctrl_c_leaves_the_edges_out_until_they_are_wanted(self):
        with self.session() as (t, trainer):
            t.expect(r"receiving the graph  30000 nodes")
            t.send("\x03")
            t.expect_not("receiving")
            trainer.say(graph=pb.GraphChunk(graph="net", commit=True))
            trainer.stand()
            t.expect(r"not all edges of the graph were loaded: interrupted after 0 of 29999 edges")
            t.expect(r"^ gradb .*step 1 .*stopped")
            t.command("info graph", r"30[ ,]?000 nodes, 0 edges")
            t.send("refresh graph\rinfo graph\r")
            t.expect(r"30[ ,]?000 nodes, 29[ ,]?999 edges")


class LongWork(unittest.TestCase):
    SCREENS = ({"options": ("--tui",)}, {"options": ("--no-tui",)},
               {"options": ("--tui",), "env": {"LC_ALL": "C"}, "term": "vt100"})

    def each(self):
        for options in self.SCREENS:
            with self.subTest(options), slow_session(**options) as (t, trainer):
                yield t, trainer

    def small_value(self, t, trainer):
        """The session still works: another value comes and is shown."""
        t.send("print net/small[2]\r")
        trainer.answer_fetch(protocol.WEIGHT)
        t.expect(r"\[ *8\.? +9\.? +10\.? +11\.? *\]")

    def test_a_bar_while_a_value_comes(self):
        for t, trainer in self.each():
            t.send("print net/large[63, -1]\r")
            trainer.begin()
            trainer.send(12)
            t.expect(r"fetching large:0 .*\[.*\].* 12\.0 of 64\.0 MiB  \d")
            trainer.send(20)
            t.expect(r" 32\.0 of 64\.0 MiB")
            trainer.send(32)
            t.expect(r"net/large:0\[63, -1\].* = 0|= net/large:0\[63, -1\]")
            t.expect_not("fetching")
            self.small_value(t, trainer)

    def test_ctrl_c_stops_a_fetch(self):
        for t, trainer in self.each():
            t.send("print net/large[0, 0]\r")
            trainer.begin()
            trainer.send(12)
            t.expect(r" 12\.0 of 64\.0 MiB")
            t.send("\x03")
            t.expect(r"interrupted after 12\.0 of 64\.0 MiB")
            t.expect_not("fetching")
            stale = trainer.fetch.request
            trainer.send(1)  # then it is told that the rest is not wanted
            self.assertEqual(trainer.hear("cancel").request, stale)
            self.small_value(t, trainer)
            t.send("print net/large[0, 0]\r")
            trainer.begin()
            trainer.send(64)
            t.expect(r"\$2 = |= net/large:0\[0, 0\]")

    def test_ctrl_c_stops_statistics(self):
        for t, trainer in self.each():
            t.send("stats net/large\r")  # by a trainer that leaves them to us
            trainer.begin()
            trainer.send(5)
            t.expect(r"fetching large:0 .* 5\.0 of 64\.0 MiB")
            t.send("\x03")
            t.expect(r"interrupted after 5\.0 of 64\.0 MiB")
            self.small_value(t, trainer)

    def test_a_comparison_in_pieces_counts_all(self):
        with slow_session(cols=100) as (t, trainer):
            t.send("print net/large\r")
            trainer.begin()
            trainer.send(64)
            t.expect(r"\[0\. 0\. 0\. \.\.\. 0\. 0\. 0\.\]\]")
            t.send("compare $1 $1\r")
            t.expect(r"0 of 16,777,216 elements differ")

    def test_ctrl_c_stops_an_export(self):
        """Into a pipe that is read slowly."""
        for t, trainer in self.each():
            path = t.home.name + "/large.npy"
            os.mkfifo(path)
            t.send(f"save net/large {path}\r")
            trainer.begin()
            trainer.send(64)
            with open(path, "rb") as pipe:
                got, end = 0, time.monotonic() + harness.DEADLINE
                while "saving net/large" not in t.text():
                    got += len(pipe.read(MIB // 4)) if got < 40 * MIB else 0
                    t.read(0.02)
                    self.assertLess(time.monotonic(), end, t.text())
                t.send("\x03")
                drain = threading.Thread(target=pipe.read)
                drain.start()
                t.expect(r"interrupted after \d+\.0 of 64\.0 MiB")
                drain.join()
            self.assertEqual([name for name in os.listdir(t.home.name) if "large" in name], ["large.npy"])
            self.small_value(t, trainer)

    def test_ctrl_c_stops_a_redirection(self):
        """The file is as it was, and nothing lies beside it. gradb gets a sixth of the time, so that no machine is fast
        enough to have printed all before it is seen to print; and C-c comes while it stands still."""
        with slow_session(cols=100) as (t, trainer):
            path = pathlib.Path(t.home.name, "values")
            path.write_text("as it was")
            t.send(f"print -a net/large > {path}\r")
            trainer.begin()
            trainer.send(64)
            end = time.monotonic() + harness.DEADLINE
            while not re.search(r"printing net/large:0 .* of 64\.0 MiB", t.text()):
                self.assertLess(time.monotonic(), end, t.text())
                t.process.send_signal(signal.SIGCONT)
                t.read(0.01)
                t.process.send_signal(signal.SIGSTOP)
                t.read(0.05)
            t.send("\x03")
            t.process.send_signal(signal.SIGCONT)
            t.expect(r"interrupted after \d+\.\d of 64\.0 MiB")
            self.assertEqual(path.read_text(), "as it was")
            self.assertFalse(os.path.exists(f"{path}.part"))
            self.small_value(t, trainer)

    def test_nothing_where_no_terminal_is(self):
        with harness.Gradb("-nx") as gradb:
            gradb.send("info target")
            trainer = Slow(int(gradb.expect(r"127\.0\.0\.1:(\d+)").group(1)))
            self.addCleanup(trainer.close)
            trainer.start()
            gradb.expect("step 1")
            gradb.send("print net/large[0, 0]")
            trainer.begin()
            trainer.send(32)
            threading.Event().wait(1)  # longer than it takes until a bar would be shown
            trainer.send(32)
            line = gradb.expect(r".").string
            self.assertIn("net/large:0[0, 0]", line)


def fill(t, room):
    """Sends NULs, which no terminal shows, until the terminal takes no more than about `room` bytes."""
    fd = os.open(os.ttyname(t.slave), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    full = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            full += os.write(fd, bytes(1024))
    if room:
        left = full
        while left > 0:
            left -= len(os.read(t.master, left))
        sent = 0
        with contextlib.suppress(BlockingIOError):  # gradb sends, too
            while sent < full - room:
                sent += os.write(fd, bytes(min(1024, full - room - sent)))
    os.close(fd)


class Stuck(unittest.TestCase):
    def connected(self, t):
        t.expect(r"listening on 127\.0\.0\.1:\d+")
        return re.search(r"listening on (127\.0\.0\.1:\d+)", t.text()).group(1)

    def test_the_training_goes_on(self):
        """Also where the terminal takes a little: less than a picture."""
        for room in (0, 1000, 3000):
            with self.subTest(room=room), Terminal(rows=60, cols=200, program=False) as t:
                with t.trainer(self.connected(t), "--steps", "200") as trainer:
                    t.expect(r"^ gradb .*step 0  stopped")
                    t.send("trace TL max_gt=-1e9 on all\r")
                    t.expect(r"Trace 1: TL")
                    t.wait("a screen that stands still", t.is_quiet)
                    fill(t, room)
                    t.send("\x0ccontinue\r")
                    trainer.wait(harness.DEADLINE)  # nobody reads the screen meanwhile
                t.expect(r"^ gradb .*  finished")
                t.command("echo still there", r"^still there$")
                t.send("\x0c")
                t.expect(r"graph: \d+ nodes")

    def test_keys_are_heard(self):
        with Terminal(program=False) as t:
            with t.trainer(self.connected(t)):
                t.expect(r"^ gradb .*step 0  stopped")
                t.send("continue\r")
                t.expect(r"running")
                fill(t, 1000)
                t.send("\x0c\x0c\x03")  # stops the training
                t.expect(r"^ gradb .*stopped")


class Flood(unittest.TestCase):
    """Every node of a trainer that runs freely reports after each of its steps: thousands of hits a second."""

    def test_hits_faster_than_a_person_reads(self):
        with Terminal.ready(rows=30, cols=100, rc="set recommend off\nset max-hits 1000\n") as t:
            t.command("trace TL max_gt=-1e9 on all", r"Trace 1")
            t.send("layout watch\rfocus console\rcontinue &\r")
            t.expect(r"running")
            t.expect(r"hits.*, older ones dropped")
            typed = ""
            for letter in "echo this was heard":
                t.send(letter)
                typed += letter
                t.wait("what was typed", lambda: "(gradb) " + typed.rstrip() in t.text())
            t.send("\r")
            t.expect(r"^this was heard$")
            t.send("interrupt\r")
            t.expect(r"  stopped")
            t.command(f"info hits > {t.home.name}/hits", r"^\(gradb\) $|^\(gradb\)$")
            said = pathlib.Path(t.home.name, "hits")
            harness.wait_for("the hits", lambda: said.exists() and "#" in said.read_text())
            self.assertRegex(said.read_text(), r"(?m)^[\d,]+ older hits were dropped \(set max-hits\)$")


class Idle(unittest.TestCase):
    def test_nothing_is_sent_when_nothing_changes(self):
        with Terminal.ready() as t:
            t.wait("a screen that stands still", t.is_quiet)
            mark = len(t.raw)
            for _ in range(4):
                t.read(0.5)
            self.assertEqual(t.raw[mark:], b"")


if __name__ == "__main__":
    harness.main()
