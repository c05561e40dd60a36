# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen where operators are not: compiled code that cannot be rehearsed is looked into by taps at its cells, and before
MindSpore 2.9 cells are the nodes of a step. The weights are the same bit for bit."""
import functools
import re
import signal

import harness
import minds
import test_identity
import test_ranks

STEP = "step 1 is compiled: its cells are watched by taps in the compiled code (# s to compile it), because of a test\n"
MOVES = """\
Stopped at the end of step 2.
loss = #, lr = 0.05
step 3, forward, net/conv/Conv2d.input (Value)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
step 3, forward, net/conv/Conv2d (Conv2d)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
step 3, forward, net/norm/BatchNorm2d (BatchNorm2d)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
Temporary breakpoint 1 at net/fc2/Dense (Dense)
Continuing.
Temporary breakpoint 1, step 3, forward, net/fc2/Dense (Dense)
styles.py:#\t        return self.fc2(self.relu(self.fc1(self.flatten(x))))
"""
SINGLE = """\
step 1 is compiled: its cells are watched by taps in a compiled rehearsal (# s to compile it), because it cannot run uncompiled \
(RuntimeError: this network only compiles)
Watchpoint 1: tensor_overflow (TO), step 4
  net/log/Log:0
Watchpoint 1, step 4, forward, net/log/Log (Log)
taps.py:#\t        ignored = ops.select(aside > 0, self.log(aside), ops.zeros_like(aside))
"""
NAN = """\
[rank 1] Watchpoint 1: tensor_overflow (TO), step 4
  net/log/Log:0
[rank 1] Watchpoint 1, step 4, forward, net/log/Log (Log)
"""
WHY = "net/log/Log (Log) takes the logarithm of negative numbers: all 3 elements of\nnet/log/Log.input are below 0"


def plain(text):
    """Without seconds."""
    return re.sub(r"\(\d+\.\d\d s to", "(# s to", text)


@functools.lru_cache(maxsize=None)
def expected():
    """The digest of taps.py without gradb."""
    case = Compiled()
    try:
        case.setUp()
        case.bare(case.script("taps.py"), case.folder / "digest")
        return case.digest()
    finally:
        case.doCleanups()


class Forced(minds.Case):
    """Scripts that gradb cannot look into otherwise."""

    def forced(self, how, script, *words):
        return [self.script("forced.py"), how, self.script(script), *words]

    def hit(self, program):
        """What is said when a watchpoint finds the NaN of taps.py."""
        done = self.gradb(program, "watch TO on all", "continue", "why", "delete 1", "continue")
        self.assertEqual((done.returncode, done.stderr), (4, ""), done.stdout + done.log)
        return plain(re.sub(r"(?m)^\S*/(\w+\.py):\d+\t", r"\1:#\t", done.stdout))

    def digest(self):
        return minds.digests((self.folder / "digest0").read_text())


@minds.needed
class Identity(Forced):
    """All styles of training, tapped in each step."""

    def check(self, how):
        done = self.gradb(self.forced(how, "styles.py", "graph", ",".join(test_identity.STYLES)), "agent operators on",
                          "watch 'std < 0' on all", "continue")
        self.assertEqual(done.stderr, "", done.stdout + done.log)
        self.assertIn("its cells are watched by taps in", done.stdout)
        self.assertEqual(minds.digests(done.log), test_identity.expected("graph"), done.stdout)

    def test_the_step_itself(self):
        self.check("step")

    def test_a_rehearsal(self):
        self.check("rehearsal")


@minds.needed
class Compiled(Forced):
    """What is seen in tapped steps."""

    def test_moves(self):
        for style in ("cell", "jitted"):
            with self.subTest(style=style):
                said = plain(self.said(self.forced("step", "styles.py", "graph", style), "agent operators on", "step 2",
                                       "next", "next", "next", "tbreak net/fc2/Dense", "continue", "info node",
                                       "print net/fc2/bias", "bt", "agent digest net/fc2/bias", "agent training", "finish phase", "step",
                                       "print net/fc2/bias.grad", "info node backward/net/fc1/Dense", "continue"))
                self.assertIn(STEP + MOVES, said)
                self.assertRegex(said, r"\n  input +net/fc2/weight \(Parameter\)\n  input +net/fc2/bias \(Parameter\)\n"
                                       r"  input +net/relu/ReLU_1 \(ReLU\)\n")
                self.assertRegex(said, r"\$1 = net/fc2/bias:0, of step 2 \(now at step 3\)\nfloat32 \(3,\) ")
                self.assertRegex(said, rf"(?m)^#0 +styles\.py:\d+ in construct\n.*\n#\d +styles\.py:\d+ in {style}$")
                self.assertRegex(said, r"(?m)^\w{16} net/fc2/bias$")
                self.assertNotRegex(said, "(?m)^followed")  # operators are not seen
                self.assertRegex(said, r"(?m)^Stopped at the end of the forward phase, step 3")
                self.assertRegex(said, r"\$2 = net/fc2/bias\.grad:0\nfloat32 \(3,\) ")
                self.assertRegex(said, r"\n  output :0 +float32 \(4, 108\)")
                self.assertRegex(said, r"\n  input +backward/net/relu/ReLU_1 \(ReLUBackward\)\n")

    def test_a_call_that_only_compiles(self):
        said = self.hit([self.script("taps.py"), self.folder / "digest", "compiled"])
        self.assertIn(SINGLE, said)
        self.assertIn(WHY, said)
        self.assertEqual(self.digest(), expected())

    def test_random_numbers_are_left_alone(self):
        """Another compilation would take some of them. (MindSpore's Dropout differs from run to run, so weights cannot tell.)"""
        for how in ("step", "rehearsal"):
            done = self.gradb([*self.forced(how, "taps.py"), self.folder / "digest", "dropout"], "agent operators on", "continue")
            self.assertIn("no taps, because Dropout draws random numbers: ", done.stdout)
            self.assertNotIn("watched by taps", done.stdout)

    def check_gone(self, style, goodbye):
        """gradb goes while the training is stopped at a tap."""
        written = self.folder / "digest"
        gradb, pid = self.live(self.forced("step", "styles.py", "graph", style, "8", str(written)))
        gradb.run("watch TO on all", "^Watchpoint 1")
        gradb.run("step 2", "^Stopped at the end of step 2")
        gradb.run("next 3", r"^step 3, (?:\w+, )?\S+ \(")
        goodbye(gradb)
        harness.wait_for("the digest", lambda: written.exists() and written.read_text().endswith("\n"))
        self.assertEqual(minds.digests(written.read_text()), {style: test_identity.expected("graph")[style]})
        harness.wait_for("the script's end", lambda: not test_identity.is_alive(pid))

    def test_gradb_is_killed_at_a_tap(self):
        self.check_gone("jitted", lambda gradb: gradb.process.send_signal(signal.SIGKILL))

    def test_gradb_detaches_at_a_tap(self):
        self.check_gone("cell", lambda gradb: gradb.run("detach", "^Detached: training process 1 continues"))

    def test_kill_at_a_tap(self):
        written = self.folder / "digest"
        done = self.gradb(self.forced("step", "styles.py", "graph", "jitted", "8", written), "agent operators on", "step 2",
                          "next 3", "kill")
        self.assertIn("\nThe training process has ended.\n", done.stdout)
        self.assertFalse(written.exists())


@minds.needed
class Cells(Forced):
    """MindSpore does not report operators."""

    def test_moves(self):
        for mode, style in (("pynative", "own"), ("graph", "cell")):
            with self.subTest(mode=mode):
                said = self.said(self.forced("cells", "styles.py", mode, style), "agent operators on", "step 2", "next", "next",
                                 "next", "tbreak net/fc2/Dense", "continue", "info node", "print", "continue")
                moves = MOVES.replace("0.05", "0.01") if style == "own" else MOVES
                self.assertIn(moves, said)
                self.assertRegex(said, r"\n  input +net/relu/ReLU_1 \(ReLU\)\n")
                self.assertRegex(said, r"\$1 = net/fc2/Dense:0\nfloat32 \(4, 3\) ")

    def test_a_watchpoint_finds_the_cell(self):
        said = self.hit([*self.forced("cells", "taps.py"), self.folder / "digest"])
        self.assertIn("\nWatchpoint 1, step 4, forward, net/log/Log (Log)\ntaps.py:#\t        ignored = ", said)
        self.assertIn(WHY, said)
        self.assertEqual(self.digest(), expected())


@minds.needed
class Ranks(test_ranks.Ranks):
    """A graph of two ranks, whose collectives must run once."""

    def program(self, mode):
        return [self.script("taps.py"), self.folder / "digest", "ranks"]

    def test_nan_in_one_rank(self):
        self.bare(*self.program("graph"))
        bare = self.digests()
        done = self.gradb(self.program("graph"), "watch TO on all", "continue", "why", "delete 1", "step", "rank check *weight",
                          "rank all print net/out/bias.grad", "continue")
        self.assertEqual((done.returncode, done.stderr), (4, ""), done.stdout)  # a watchpoint was hit
        self.assertIn("because in a job of several ranks, a rehearsal would run its collectives a second time\n", done.stdout)
        self.assertIn(NAN, done.stdout)
        self.assertIn(WHY, done.stdout)
        self.assertIn("2 tensors agree on 2 ranks.\n", done.stdout)
        self.assertEqual(done.stdout.count(" = net/out/bias.grad:0\nfloat32 (3,) "), 2, done.stdout)
        self.assertEqual((len(bare), self.digests()), (2, bare))


if __name__ == "__main__":
    harness.main()
