# SPDX-License-Identifier: GPL-3.0-or-later
"""A MindSpore training under gradb computes the same, bit for bit: each style in both modes, looked at in each way."""
import functools
import signal
import subprocess

import harness
import minds

STYLES = ("model", "cell", "own", "jitted", "accumulate", "gan", "amp", "transformer")
# Every step is watched at first; then operator by operator, up to one operator, and at full speed to the end.
LOOKED_AT = ("watch TO on all", "step 2", "next 3", "delete 1", "tbreak type:MatMul", "continue", "finish phase", "step",
             "continue")
STEPS_ONLY = ("set timing on", "step", "step 3", "print type:Parameter", "print type:State", "continue")


@functools.lru_cache(maxsize=None)
def expected(mode):
    """Style -> digest of a training without gradb. All styles in one process: importing MindSpore takes a second."""
    case = minds.Case()
    try:
        case.setUp()
        return minds.digests(case.bare(case.script("styles.py"), mode, ",".join(STYLES)))
    finally:
        case.doCleanups()


class Styles(minds.Case):
    def check(self, style, mode, commands):
        with self.subTest(style=style):
            done = self.gradb([self.script("styles.py"), mode, style], *commands)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.log)
            self.assertTrue(done.stdout.endswith("The training ended.\n"), done.stdout)
            self.assertEqual(minds.digests(done.log), {style: expected(mode)[style]}, done.stdout)
            self.assertEqual("the loss scaler skipped step 4" in done.log, style == "amp", done.log)
            return done.stdout


@minds.needed
class Looked(Styles):
    """Operators of steps are watched and stopped at."""

    def check_all(self, mode):
        for style in STYLES:
            said = self.check(style, mode, LOOKED_AT) or ""
            self.assertIn("Stopped at the end of step 2.\nloss = ", said)
            self.assertRegex(said, r"\nstep 3, (?:\w+, )?\S+ \(\w+\)\n")
            self.assertRegex(said, r"\nTemporary breakpoint 2, step 3, forward, \S+/MatMul(_1)? \(MatMul\)\n")
            self.assertIn("\nStopped at the end of the forward phase, step 3, ", said)
            self.assertIn("\nStopped at the end of step 3.\n", said)

    def test_pynative(self):
        self.check_all("pynative")

    def test_graph(self):
        self.check_all("graph")


@minds.needed
class StepsOnly(Styles):
    """Only the ends of steps are seen, and the times of operators in a few of them."""

    def check_all(self, mode):
        for style in ("model", "own", "jitted", "gan"):
            said = self.check(style, mode, STEPS_ONLY) or ""
            for step in (1, 4):
                self.assertIn(f"Stopped at the end of step {step}.\n", said)

    def test_pynative(self):
        self.check_all("pynative")

    def test_graph(self):
        self.check_all("graph")


@minds.needed
class GradbGone(Styles):
    """gradb is killed or detaches in the middle of a step: the training continues to the same result."""

    def end(self, mode, goodbye):
        written = self.folder / "digest"
        gradb, pid = self.live([self.script("styles.py"), mode, "own", "8", str(written)])
        gradb.run("watch TO on all", "^Watchpoint 1")
        gradb.run("step 2", "^Stopped at the end of step 2")
        gradb.run("next 3", r"^step 3, (?:\w+, )?\S+ \(")
        goodbye(gradb)
        harness.wait_for("the digest", lambda: written.exists() and written.read_text().endswith("\n"))
        self.assertEqual(minds.digests(written.read_text()), {"own": expected(mode)["own"]})
        harness.wait_for("the script's end", lambda: not is_alive(pid))

    def test_killed(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                self.end(mode, lambda gradb: gradb.process.send_signal(signal.SIGKILL))

    def test_detached(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                self.end(mode, lambda gradb: gradb.run("detach", "^Detached: training process 1 continues"))


def is_alive(pid):
    """Whether a process runs; one that has ended and has no parent that asks is none."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


if __name__ == "__main__":
    harness.main()
