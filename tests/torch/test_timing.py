# SPDX-License-Identifier: GPL-3.0-or-later
"""`info timing` and its advice on scripts that waste time in one way each; what is measured, and that it changes nothing."""
import os
import re
import signal
import subprocess

import harness
import torches

SCRIPT = torches.SCRIPTS / "tuning.py"


class Timings(torches.Folder):
    def timed(self, *program, before=("set timing on",), after=()):
        """gradb's output after a run of the program to its end, and its record of `info timing`."""
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0",
                                 *harness.typed(*before, "continue", "info timing", *after), "run", "--",
                                 *program, env=torches.environment(), cwd=self.folder,
                                 timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done, harness.records(done, "timing")

    def advice_of(self, rule, how, steps):
        """The text of that rule on that way of wasting time (None: there is no advice). The advice follows from measured
        shares of the time, which a busy machine can move: up to three trainings are measured until it is as expected."""
        expected = {rule} if rule else set()
        for _ in range(3):
            _, (record, *_) = self.timed(*torches.warm(self.python), SCRIPT, how, steps)
            self.assertEqual(record["examined_steps"], steps)
            self.assertGreater(record["examined_operators"], 5)
            advice = {advice["rule"]: advice.get("place", "") + ": " + advice["text"] for advice in record["advice"]}
            if set(advice) == expected:
                break
        self.assertLessEqual(expected, set(advice), record["median"])
        self.assertLessEqual(set(advice), {*expected, "jitter"}, record["median"])
        return advice.get(rule)


@torches.newest
class Advice(Timings):
    def test_a_tuned_script_gets_none(self):
        self.assertIsNone(self.advice_of(None, "none", 60))

    def test_a_slow_loader(self):
        advice = self.advice_of("slow-loader", "loader", 30)
        self.assertRegex(advice, r"^tuning\.py:\d+: waiting for data takes \d\d % .*num_workers=0")

    def test_a_queue_that_runs_empty(self):
        advice = self.advice_of("slow-loader", "jitter", 40)
        self.assertIn("num_workers=2, prefetch_factor=2", advice)
        self.assertRegex(advice, r"; \d+ of \d+ requests found no batch ready\)")

    def test_item_in_the_loop(self):
        advice = self.advice_of("synchronization", "item", 60)
        line = SCRIPT.read_text().split("\n").index(
            next(line for line in SCRIPT.read_text().split("\n") if ".item()" in line)) + 1
        self.assertIn("tuning.py:%d: 4 times per step the program reads a value with item()" % line, advice)

    def test_odd_shapes(self):
        advice = self.advice_of("shapes", "shapes", 30)
        self.assertIn("pad 997, 997 to 1000, 1000", advice)

    def test_casts(self):
        if torches.release_of(self.python) < (2, 0):
            self.skipTest("its matrix products take so long that the casts do not matter")
        advice = self.advice_of("casts", "casts", 40)
        self.assertRegex(advice, r"^tuning\.py:\d+: 80 casts and 0 layout changes per step take")


@torches.both
class Buckets(Timings):
    def test_one_large_bucket_and_what_it_predicts(self):
        _, (record, *_) = self.timed(*torches.ranks(self.python, 2, 3 * harness.DEADLINE), torches.SCRIPTS / "bucket.py",
                                     "10", "1000")
        size = (1024 * 1024 + 1024) * 4
        # Before 2.0 the first bucket, that of the last layer, is closed at 1 MiB whatever the limit is.
        self.assertEqual(record["buckets"], [size, 5 * size] if torches.release_of(self.python) < (2, 0) else [6 * size])
        self.assertGreaterEqual(record["tail"]["median"], 0)
        advice = {advice["rule"]: advice["text"] for advice in record["advice"]}
        # Where all processors are busy, computing may hide the reduction of one bucket, too.
        if len(record["buckets"]) == 1 and record["tail"]["median"] > 0.1 * record["spread"]["median"]:
            self.assertRegex(advice["one-bucket"], r"bucket_cap_mb=\d+\) makes \d buckets, how much that hides is not predicted")
        self.assertGreater(record["communication"], 0)
        self.assertLessEqual(0, record["exposed"])
        self.assertLessEqual(record["exposed"], record["communication"])


@torches.both
class Collectives(Timings):
    """Those that the program calls itself: counted, with the time that its thread spends in them."""
    def reduced(self, how, *commands, steps=24):
        """(what the ranks print at the end, the records of `info timing` and of `info timing operators`)."""
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0",
                                 *harness.typed(*commands, "continue", "info timing", "info timing operators"), "run", "--",
                                 *torches.ranks(self.python, 2, 3 * harness.DEADLINE),
                                 torches.SCRIPTS / "collectives.py", how, steps, env=torches.environment(), cwd=self.folder,
                                 timeout=4 * harness.DEADLINE)
        lines = sorted(re.findall(r"rank \d weights .*methods of \w+", done.stdout + done.stderr))
        return lines, harness.records(done, "timing"), done.stdout + done.stderr

    def plainly(self, how, steps=24):
        """What the ranks print without gradb."""
        done = subprocess.run([*map(str, torches.ranks(self.python, 2, 3 * harness.DEADLINE)),
                               str(torches.SCRIPTS / "collectives.py"), how, str(steps)], capture_output=True, text=True,
                              env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE, check=True)
        return sorted(line for line in done.stdout.splitlines() if " weights " in line)

    def line_of(self, code):
        return 1 + (torches.SCRIPTS / "collectives.py").read_text().split("\n").index(code)

    def test_calls_that_wait_at_once(self):
        _, (record, operators), text = self.reduced("each", "set timing on")
        found = record["program_communication"]
        self.assertEqual((found["calls"], found["bytes"], found["launched"]), (48, 24 * (16 * 16 + 16) * 4, False), text)
        self.assertNotIn("begun", found)
        self.assertLess(0, found["seconds"])
        self.assertLess(found["seconds"], found["step_seconds"])
        row, = operators["collectives"]
        self.assertEqual((row["kind"], row["place"], row["calls"]),
                         ("all_reduce", "collectives.py:%d" % self.line_of("        dist.all_reduce(parameter.grad)"), 48))
        self.assertGreaterEqual(row["steps"], 8)
        advice = {advice["rule"]: advice for advice in record["advice"]}
        if found["seconds"] > 0.11 * found["step_seconds"]:
            self.assertIn("48 calls of all_reduce, of 544 B each", advice["small-collectives"]["text"])
        self.assertNotIn("blocking-collectives", advice)

    def test_calls_that_are_waited_for_later(self):
        _, (record, operators), text = self.reduced("ahead", "set timing on")
        found = record["program_communication"]
        self.assertEqual((found["calls"], found["begun"]), (48, 48), text)
        self.assertGreater(found["ahead"], 0)
        self.assertEqual([(row["kind"], row["begun"]) for row in operators["collectives"]],
                         [("all_reduce", 48 * operators["collectives"][0]["steps"])])

    def test_one_large_call(self):
        lines, (record, _), text = self.reduced("whole", "set timing on")
        found = record["program_communication"]
        self.assertEqual((found["calls"], found["bytes"]), (1, 4 * (1024 * 1024 + 1024) * 4), text)
        advice = {advice["rule"]: advice for advice in record["advice"]}
        if found["seconds"] > 0.11 * found["step_seconds"]:
            self.assertIn("async_op=True", advice["blocking-collectives"]["text"])
        self.assertEqual([line.rpartition(", ")[0] for line in lines],
                         [line.rpartition(", ")[0] for line in self.plainly("whole")])

    def test_off_replaces_nothing(self):
        """Neither without `set timing`, nor after it was switched off."""
        plain = self.plainly("each")
        lines, (record, *_), text = self.reduced("each", "set timing on", "step 12", "set timing off")
        self.assertEqual(lines, plain, text)
        self.assertIn("program_communication", record)


@torches.both
class Measuring(Timings):
    def test_operators_add_up(self):
        _, (record, modules) = self.timed(*torches.warm(self.python), SCRIPT, "none", "60",
                                          after=("info timing modules",))
        types = {row["type"]: row for row in record["types"]}
        count = record["measured_steps"]
        self.assertGreaterEqual(count, 1)
        self.assertEqual(types["linear"]["calls"], 2 * count)
        self.assertEqual(types["relu"]["calls"], count)
        self.assertNotIn("Input", types)
        self.assertNotIn("SGD", types)
        flops = 2 * 64 * 256 * 256 + 2 * 64 * 256 * 16
        self.assertEqual(types["linear"]["flops"], flops * count)
        self.assertEqual(types["AddmmBackward0"]["flops"], 2 * flops * count)
        keys = {row["key"] for row in modules["modules"]}
        self.assertLessEqual({"net/fc1", "net/fc2"}, keys)
        self.assertAlmostEqual(sum(row["seconds"] for row in modules["modules"]), record["operator_seconds"], 6)
        self.assertEqual(record["first"]["step"], 1)
        self.assertLess(record["operator_seconds"] / count, record["first"]["total"])

    def test_off_measures_nothing(self):
        _, (record, *_) = self.timed(*torches.warm(self.python), SCRIPT, "none", "60",
                                     before=("set timing on", "set timing off"))
        self.assertEqual((record["steps_timed"], record["operators"]), (60, []))
        self.assertNotIn("measured_steps", record)

    def test_set_before_the_run_it_reaches_all_ranks(self):
        program = [*torches.ranks(self.python, 2, 3 * harness.DEADLINE), torches.SCRIPTS / "bucket.py", "12", "25"]
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0",
                                 *harness.typed("set timing on", "set memory-metrics on",
                                                "run -- " + " ".join(map(str, program)), "step 8", "info events",
                                                "info timing", "info scalars", "session 2", "info timing",
                                                "info scalars", "continue"),
                                 env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([record["measured_steps"] for record in harness.records(done, "timing")
                          if "measured_steps" in record], [2, 2])
        self.assertEqual([[row["name"] for row in record["scalars"]].count("memory_rss")
                          for record in harness.records(done, "scalars")], [1, 1], done.stdout)
        self.assertNotIn("warning: set timing", done.stdout + done.stderr)
        self.assertNotIn("graph-changed", done.stdout)  # x and target live through all steps

    def test_the_old_command_says_what_to_type(self):
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed("set on-error continue", "info timing", "agent timing on", "step",
                                                "info timing", "continue"), "run", "--",
                                 *torches.warm(self.python), SCRIPT, "none", "3",
                                 env=torches.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        self.assertIn("error: use `set timing on` or `set timing off`", done.stdout + done.stderr)
        self.assertIn("Operators: not measured; type `set timing on`", done.stdout)

    def test_it_changes_no_result(self):
        bare = subprocess.run([*map(str, torches.warm(self.python)), SCRIPT, "item", "60"], capture_output=True, text=True,
                              env=torches.environment(GRADB_DISABLE="1"), check=True, timeout=2 * harness.DEADLINE)
        done, _ = self.timed(*torches.warm(self.python), SCRIPT, "item", "60")
        self.assertIn("total", bare.stdout)
        self.assertIn(bare.stdout.strip(), done.stdout + done.stderr)

    def test_a_killed_gradb_does_no_harm(self):
        command = [*map(str, torches.warm(self.python)), SCRIPT, "item", "2000"]
        bare = subprocess.run(command, capture_output=True, text=True, env=torches.environment(GRADB_DISABLE="1"),
                              check=True, timeout=2 * harness.DEADLINE)
        with harness.Gradb() as gradb:
            port = gradb.wait_listening()
            program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       env=torches.environment(GRADB_ADDRESS="127.0.0.1:%d" % port,
                                                               GRADB_LIBRARY=torches.library(),
                                                               PYTHONPATH=str(torches.PACKAGE / "gradb" / "_boot")))
            self.addCleanup(program.kill)
            gradb.expect("Stopped before the first step")
            gradb.send("set timing on")
            gradb.send("step 8")
            gradb.expect("at the end of step 8")
            gradb.run("info timing", "measured in 2 steps")
            gradb.send("continue &")
            os.kill(gradb.process.pid, signal.SIGKILL)
            self.assertEqual(program.communicate(timeout=2 * harness.DEADLINE)[0], bare.stdout)
            self.assertEqual(program.returncode, 0)


if __name__ == "__main__":
    harness.main()
