# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ranks of a MindSpore training under msrun: moved, compared and watched together, with the same weights as without
gradb."""
import functools
import os
import pathlib
import re
import shlex
import signal
import subprocess

import harness
import minds
import test_identity
import warmed

BIN = pathlib.Path(minds.PYTHON or "").parent

MOVES = ("step", "info ranks", "rank", "rank check", "rank 1", "watch loss > 4", "continue", "info hits -ranks", "delete 1",
         "step", "rank check *weight")
SAID = """\
[rank 0] Stopped at the end of step 1.
loss = 1.119, lr = 0.05
All 2 ranks are stopped at the end of step 1.
* 0 of 2
  1 of 2
[Training process #, rank 0 of 2, stopped]
8 tensors agree on 2 ranks.
[Training process #, rank 1 of 2, stopped]
Watchpoint 1: 'loss > 4' on loss
Continuing.
[rank 1] Watchpoint 1: loss > 4, step 4: loss=4.678
[rank 1] Watchpoint 1, at the end of step 4.
loss = 4.678, lr = 0.05
All 2 ranks are stopped at the end of step 4.
[rank 1] #1   step 4  watchpoint 1 (loss > 4)  loss
        loss = 4.678
[rank 1] Stopped at the end of step 5.
loss = 1.372, lr = 0.05
All 2 ranks are stopped at the end of step 5.
"""
INSIDE = """\
[rank 1] Watchpoint 2, step 6, forward, Log (Log)
ranks.py:#\t        ops.log(aside)
Rank 0 is running: it may be waiting in a collective for those that are stopped.
MindSpore ends a job in which a rank waits for 30 s: before that, gradb lets all ranks finish the step.
Rank 1 is stopped in step 6.
[rank 1] Stopped at the end of step 6.
loss = 1.403, lr = 0.05
All 2 ranks are stopped at the end of step 6.
[rank 1] step 7, forward, Log (Log)
ranks.py:#\t        ops.log(aside)
All 2 ranks are stopped in step 7.
Continuing.
"""


class Ranks(minds.Case):
    """Scripts below msrun, which starts the `python` of the path for each rank. All of them are forks of a process that
    has imported MindSpore."""
    maxDiff = None

    def warm(self):
        """What replaces an interpreter. With a MALLOC_PERTURB_, as meson sets it, MindSpore's ranks fail at their end."""
        return warmed.command(minds.PYTHON, "mindspore",
                              super().environment(OPENBLAS_NUM_THREADS="1", MALLOC_PERTURB_="0"))

    def words(self, program):
        return [*self.warm(), BIN / "msrun", "--worker_num=2", "--local_worker_num=2",
                f"--master_port={harness.free_port()}", "--log_dir=logs", "--join=True", *map(str, program)]

    def environment(self, **more):
        """`python` is what msrun starts each rank with."""
        python = self.folder / "bin" / "python"
        if not python.exists():
            python.parent.mkdir()
            python.write_text('#!/bin/sh\nexec %s "$@"\n' % shlex.join(self.warm()), encoding="utf-8")
            python.chmod(0o755)
        return super().environment(PATH=f"{python.parent}:{BIN}:{os.environ['PATH']}", MALLOC_PERTURB_="0", **more)

    def program(self, mode):
        """A training, whose digests `digests` finds."""
        return [self.script("ranks.py"), mode, self.folder / "digest"]

    def digests(self):
        """The digests that both ranks have written."""
        written = [self.folder / f"digest{rank}" for rank in range(2)]
        return minds.digests("".join(path.read_text() for path in written if path.exists()))


@functools.lru_cache(maxsize=None)
def all_expected():
    """The digests of both modes without gradb."""
    case = Ranks()
    try:
        case.setUp()
        case.bare(*case.program("graph,pynative"))
        return case.digests()
    finally:
        case.doCleanups()


def expected(mode):
    """The digests of both ranks in a mode without gradb, which are equal."""
    found = {name: digest for name, digest in all_expected().items() if name.startswith(mode)}
    assert (len(found), len(set(found.values()))) == (2, 1), found
    return found


@minds.needed
class Together(Ranks):
    """From a command line."""

    def check(self, mode, *more):
        """The moves, and what else is said."""
        done = self.gradb(self.program(mode), *MOVES, *more, "continue")
        self.assertEqual((done.returncode, done.stderr), (4, ""), done.stdout)  # a watchpoint was hit
        self.assertEqual(self.digests(), expected(mode))
        first = SAID.partition("\n")[0]  # before it: who connected, and who has stopped by then
        self.assertIn(first, done.stdout)
        said = done.stdout[done.stdout.index(first):].replace(str(self.folder) + os.sep, "")
        for pattern, instead in ((r"   Num .*\n", ""), (r"([* ]) +\d  (\d of 2) .* cpu .*", r"\1 \2"),
                                 (r"(process) \d", r"\1 #"), (r"(?m)^(\w+\.py):\d+\t", r"\1:#\t"),
                                 (r"(\d\.\d{3})\d+", lambda found: "%.3f" % float(found.group()))):
            said = re.sub(pattern, instead, said)
        self.assertEqual(said[:len(SAID)], SAID)
        return said[len(SAID):]

    def test_pynative(self):
        """Rank 1 stops inside a step, whose collective rank 0 waits in; then both go to the next operator."""
        said = self.check("pynative", "rank all print net/0/bias.grad", "watch TO on Log", "continue", "step", "next")
        self.assertEqual(said.count(" = net/0/bias.grad:0\nfloat32 (8,) "), 2, said)
        self.assertIn("2 tensors agree on 2 ranks.\n", said)
        self.assertIn(INSIDE, said)

    def test_graph(self):
        said = self.check("graph")
        self.assertEqual(said.count("agree on 2 ranks"), 1, said)


DIGESTS = """
import hashlib, sys
import mindspore
for name in sys.argv[1:]:
    held = mindspore.load_checkpoint(name)
    print(hashlib.sha256(b"".join(held[key].asnumpy().tobytes() for key in held if key.startswith("net.")
                                  or key.split(".")[0].isdigit())).hexdigest()[:16], int(held["step_num"].asnumpy()))
"""
EVENTS = """\
On 1: step-end every 2: print step
Catchpoint 2: step-end if step == 5
"""


@minds.needed
class Events(Ranks):
    """Commands at events of rank 0, and what they do to both ranks: without a learning rate, the weights stay those of
    the checkpoints."""

    def check(self, mode):
        done = self.gradb(self.program(mode), "step 2", "set lr = 0", "checkpoint at-{step}", "on step-end every 2 print step",
                          "catch step-end if step == 5", 'dprintf type:relu,"relu of %d: %g\\n",step,max', "continue", "delete 3",
                          "continue", "info events")
        said = done.stdout.replace(str(self.folder.resolve()) + os.sep, "")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("lr of Momentum: 0.05 -> 0\n2 ranks changed.\n", said)
        for rank in range(2):
            self.assertRegex(said, r"(?m)^\[rank %d\] checkpoint of step 2: at-2.rank%d.ckpt \(.*, Momentum, step_num\)$"
                             % (rank, rank))
            self.assertEqual(re.findall(r"(?m)^\[rank %d\] relu of (\d): [.\d]+$" % rank, said), ["3", "4", "5"], said)
        self.assertIn(EVENTS, said)
        self.assertEqual(re.findall(r"(?m)^step = (\d) ", said), ["4", "6", "8"], said)
        self.assertIn("[rank 0] Catchpoint 2 (step-end), at the end of step 5.\n", said)
        self.assertIn("All 2 ranks are stopped at the end of step 5.\n", said)
        files = sorted(path.name for path in self.folder.glob("at-*"))
        self.assertEqual(files, ["at-2.rank0.ckpt", "at-2.rank1.ckpt"])
        kept = subprocess.run([minds.PYTHON, "-c", DIGESTS, *files], cwd=self.folder, capture_output=True, text=True,
                              env=self.environment(GRADB_DISABLE="1"), timeout=4 * harness.DEADLINE, check=True).stdout
        weights = set(self.digests().values())
        self.assertEqual(len(weights), 1)
        self.assertEqual(kept.splitlines(), ["%s 2" % weights.pop()] * 2)

    def test_pynative(self):
        self.check("pynative")

    def test_graph(self):
        self.check("graph")


@minds.needed
class GradbGone(Ranks):
    """gradb is killed while the ranks are stopped: they train to the same result."""

    def check(self, mode, *moves):
        gradb, pid = self.live(self.program(mode))
        for command, answer in moves:
            gradb.run(command, answer)
        gradb.process.send_signal(signal.SIGKILL)
        harness.wait_for("the script's end", lambda: not test_identity.is_alive(pid))
        harness.wait_for("the digests", lambda: len(self.digests()) == 2)
        self.assertEqual(self.digests(), expected(mode))

    def test_inside_a_step(self):
        self.check("pynative", ("step 2", r"^\[rank 0\] Stopped at the end of step 2"),
                   ("next 2", r"^All 2 ranks are stopped in step 3"))

    def test_between_steps(self):
        self.check("graph", ("watch TO on all", "^Watchpoint 1"), ("step 2", "^All 2 ranks are stopped at the end of step 2"))


if __name__ == "__main__":
    harness.main()
