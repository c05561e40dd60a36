# SPDX-License-Identifier: GPL-3.0-or-later
"""`info timing` and its advice on MindSpore scripts that waste time in one way each; what is measured, and that it
changes nothing."""
import json
import signal
import sys

import harness
import minds
import test_ranks

sys.path.insert(0, str(harness.SOURCE / "tests" / "dump" / "trace"))
import perfetto  # noqa: E402


class Timings(minds.Case):
    def timed(self, *arguments, before=("set timing on",), after=()):
        """The record of `info timing` after a run of tuning.py to its end, and what the script printed."""
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(*before, "continue", "info timing",
                                                                            *after, "info log -a"),
                                 "run", "--", *self.words([self.script("tuning.py"), *arguments]),
                                 env=self.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("internal error", done.stdout)
        printed = next(line for line in done.stdout.split("\n") if "total" in line and "weights" in line)
        return harness.records(done, "timing")[-1], printed

    def advice_of(self, expected, *arguments):
        """{rule: text} of that way of wasting time, and the record. The advice follows from measured shares of the time,
        which a busy machine can move: up to three trainings are measured until the rules are the expected ones."""
        for _ in range(3):
            record, _ = self.timed(*arguments)
            self.assertEqual(record["examined_steps"], int(arguments[2]))
            advice = {advice["rule"]: advice.get("place", "") + ": " + advice["text"] for advice in record["advice"]}
            if set(advice) == set(expected):
                break
        self.assertLessEqual(set(expected), set(advice), record["median"])
        self.assertLessEqual(set(advice), {*expected, "graph-mode", "jitter"}, record["median"])
        return advice, record

    def line_of(self, text):
        """tuning.py:LINE of the line with that text."""
        lines = (minds.SCRIPTS / "tuning.py").read_text().split("\n")
        return "tuning.py:%d" % (next(number for number, line in enumerate(lines, 1) if text in line))


@minds.needed
class Exported(Timings):
    """`export trace` of a live training, read by gradb again and by Perfetto's trace processor."""
    def test_both_modes(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                path = self.folder / f"{mode}.json.gz"
                record, _ = self.timed(mode, "none", "12", after=(f"export trace {path}",))
                done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(f"open {path}", "info timing"))
                read, = harness.records(done, "timing")
                self.assertEqual(read["steps_timed"], record["steps_timed"])
                self.assertEqual(list(read["median"]), list(record["median"]))
                for part, seconds in record["mean"].items():
                    self.assertAlmostEqual(read["mean"][part], seconds, delta=1e-5, msg=part)
                steps, operators, errors = perfetto.query(
                    path, "select count(*) from slice where name like 'ProfilerStep#%'",
                    "select count(*) from slice where name like '%MatMul%' or name like '%Dense%'",
                    "select name, value from stats where severity = 'error' and value > 0")
                self.assertEqual((steps, errors), ([[12]], []))
                self.assertEqual(operators[0][0] > 0, mode == "pynative")


@minds.needed
class Advice(Timings):
    def test_python_in_the_passes(self):
        advice, _ = self.advice_of(["graph-mode"], "pynative", "python", "12")
        self.assertRegex(advice["graph-mode"], r": PyNative mode: the \d+ operators of a step compute for .*; the rest is Python")

    def test_a_tuned_script_gets_none(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                _, record = self.advice_of([], mode, "none", "20")
                parts = {"pynative": ["forward", "backward", "optimizer"], "graph": ["compiled", "optimizer"]}[mode]
                self.assertEqual(list(record["median"]), [*parts, "rest", "total"])
                self.assertEqual(record["examined_operators"] > 20, mode == "pynative")

    def test_a_slow_dataset(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                advice, record = self.advice_of(["slow-loader"], mode, "loader", "12")
                self.assertRegex(advice["slow-loader"], r"^tuning\.py:\d+: waiting for data takes \d\d % .* the dataset is "
                                 r"too slow: it is GeneratorDataset \(num_parallel_workers=1, python_multiprocessing=True\), "
                                 r"batch \(num_parallel_workers=\d+\), with queues of prefetch_size=2: raise")
                self.assertIn("data", record["median"])

    def test_asnumpy_in_the_loop(self):
        for mode, says in (("pynative", "each one waits for all work"), ("graph", "on this CPU it costs no more")):
            with self.subTest(mode=mode):
                advice, _ = self.advice_of(["synchronization"], mode, "item", "24")
                text = advice["synchronization"]
                self.assertIn(self.line_of("asnumpy())") + ": once per step the program reads a value with asnumpy()", text)
                self.assertIn(says, text)

    def test_odd_shapes(self):
        advice, _ = self.advice_of(["shapes"], "pynative", "shapes", "12")
        self.assertIn("pad 1997, 1997 to 2000, 2000", advice["shapes"])

    def test_casts(self):
        advice, _ = self.advice_of(["casts"], "pynative", "casts", "12")
        self.assertRegex(advice["casts"], r"^tuning\.py:\d+: 80 casts and \d layout changes per step take")

    def test_inputs_that_change_shape(self):
        advice, record = self.advice_of(["compiles"], "graph", "compiles", "12")
        self.assertRegex(advice["compiles"], r"forward was compiled 6 times, 4 of them after step 2 \(.* in all\): its "
                         "inputs had 6 different shapes or types")
        again = [one["step"] for one in record["compilations"] if one["name"] == "forward"]
        self.assertEqual(again, [1, 2, 3, 4, 5, 6])
        self.assertAlmostEqual(record["compile_seconds"], sum(one["seconds"] for one in record["compilations"]), 6)


@minds.needed
class Measuring(Timings):
    def test_operators_add_up(self):
        record, _ = self.timed("pynative", "none", "20")
        types = {row["type"]: row for row in record["types"]}
        count = record["measured_steps"]
        self.assertGreaterEqual(count, 2)
        self.assertEqual(types["MatMul"]["calls"], 2 * count)
        self.assertEqual(types["MatMulBackward"]["calls"], 2 * count)
        flops = 2 * 512 * 1024 * 1024 + 2 * 512 * 1024 * 16
        self.assertEqual(types["MatMul"]["flops"], flops * count)
        self.assertNotIn("SGD", types)
        self.assertGreater(types["MatMul"]["seconds"], 0)
        self.assertLess(record["operator_seconds"] / count, record["first"]["total"])

    def test_parts_without_measuring(self):
        record, _ = self.timed("jit", "none", "12", before=())
        self.assertEqual((record["steps_timed"], record["operators"], record["advice"]), (12, [], []))
        self.assertNotIn("measured_steps", record)
        self.assertEqual(list(record["median"]), ["compiled", "rest", "total"])
        self.assertIn("compiled is the time of calls of compiled code", record["note"])
        self.assertEqual([one["name"] for one in record["compilations"]], ["train"])
        self.assertLessEqual(record["compilations"][0]["seconds"], record["first"]["total"])

    def test_it_changes_no_result(self):
        for mode in ("pynative", "jit"):
            with self.subTest(mode=mode):
                bare = self.bare(self.script("tuning.py"), mode, "item", "30").strip()
                self.assertIn("total", bare)
                self.assertIn(json.dumps(bare)[1:-1], self.timed(mode, "item", "30")[1])

    def test_a_killed_gradb_does_no_harm(self):
        written = self.folder / "result"
        program = [self.script("tuning.py"), "pynative", "item", "60", str(written)]
        gradb, _ = self.live(program)
        gradb.send("set timing on")
        gradb.run("step 12", "at the end of step 12")
        gradb.run("info timing", "measured in . steps")
        gradb.send("continue &")
        gradb.process.send_signal(signal.SIGKILL)
        harness.wait_for("the result", lambda: written.exists() and written.read_text().endswith("\n"))
        self.assertEqual(written.read_text(), self.bare(*program[:4]))


@minds.needed
class Ranked(test_ranks.Ranks):
    def test_the_reducer_is_the_tail(self):
        done = self.gradb(self.program("pynative"), "set timing on", "continue", "info timing")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + done.log)
        said = done.stdout + done.log  # the rank that ends first ends what is in stdout
        self.assertRegex(said, r"\n2 compilations, .*: \S*DistributedGradReducer in step 1 \(")
        self.assertRegex(said, r"\nTail: [\d.]+ [mu]?s after the last gradient, .*; DistributedGradReducer, 2 ranks\n")
        self.assertEqual(self.digests(), test_ranks.expected("pynative"))


if __name__ == "__main__":
    harness.main()
