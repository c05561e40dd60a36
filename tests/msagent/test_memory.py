# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds the memory of a MindSpore training (scripts/oom.py): `info memory`, what grows, `catch oom`, `why`."""
import json

import harness
import minds

TRIES = 5
FLOAT = 4
SCRIPT = minds.SCRIPTS / "oom.py"


def line_of(text):
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    number, = [number for number, line in enumerate(lines, 1) if text in line]
    return f"oom.py:{number}"


@minds.needed
class Memory(minds.Case):
    def records(self, kind, where, batches, *commands):
        """The records of one type after these commands."""
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(*commands), "run", "--",
                                 *self.words([self.script("oom.py"), where, batches]), env=self.environment(),
                                 cwd=self.folder, timeout=4 * harness.DEADLINE)
        self.assertNotIn("internal error", done.stdout + done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = [line for line in lines if line["type"] == kind]
        self.assertTrue(found, done.stdout[-3000:] + done.stderr)
        return found

    def test_bytes_are_real(self):
        for commands in ((), ("catch oom",)):
            first, second = self.records("memory", "none", "16," * 6 + "16", *commands, "step 2", "info memory", "step 3",
                                         "info memory")
            weights = FLOAT * (64 * 256 + 256 + 256 * 8 + 8)
            kinds = {kind: total["bytes"] for kind, total in first["kinds"].items()}
            self.assertEqual(kinds["gradients"], weights)
            self.assertEqual(kinds["optimizer"] // weights, 2)  # the moments, and some scalars
            self.assertEqual(kinds["weights"] // weights, 1)
            rows = {row["name"]: row for row in first["nodes"]}
            self.assertEqual(rows["net/first/weight"]["bytes"], FLOAT * 64 * 256)
            self.assertEqual(rows["net/first/weight"]["where"], line_of("ops.tanh"))
            self.assertGreater(first["rss"], first["bytes"])
            self.assertIn("Python does not see it", " ".join(first["notes"]))
            self.assertEqual((second["growth_from"], second["growth"]), (2, []))

    def test_leak(self):
        for commands in ((), ("catch oom",)):
            report = self.records("memory", "leak", "16," * 7 + "16", *commands, "step 2", "info memory", "step 4",
                                  "info memory")[1]
            leak, = report["growth"]
            self.assertEqual((leak["name"], leak["where"]), ("net/Tanh", line_of("ops.tanh")))
            self.assertEqual((leak["per_step"], leak["count"]), (FLOAT * 16 * 256, 4))
            self.assertEqual(leak["holder"], "KEPT[...] (list of 6 items) in oom.py")

    def first_answer(self, where):
        """The record of `why`. MindSpore itself often crashes after a refused allocation, also without gradb."""
        for _ in range(TRIES):
            try:
                answer, = self.records("oom", where, "16,32,64", "catch oom", "continue", "why", "continue")
                return answer
            except AssertionError as error:
                if '"type":"exited","signal":' not in str(error) or "malloc memory failed" not in str(error):
                    raise
        return self.skipTest("MindSpore crashed %d times after a refused allocation" % TRIES)

    def test_out_of_memory(self):
        asked = FLOAT * 64 * 256 << 16
        for where, node, line, size in (("forward", "net/Tile", "# more than there is", asked),
                                        ("graph", "net/Tile", "# more than there is", asked),
                                        ("backward", "backward/CellCustomBackward", "1 << 15", None),
                                        ("optimizer", "optimizer/Adam", "KEPT.append(ops.tile", None)):
            with self.subTest(where=where):
                answer = self.first_answer(where)
                self.assertEqual((answer["node"], answer["where"], answer["phase"], answer["step"]),
                                 (node, line_of(line), "forward" if where == "graph" else where, 3))
                self.assertRegex(answer["error"], "Allocate memory failed|Memory not enough")
                if size:
                    self.assertEqual(answer["asked"], size)
                    self.assertIn("earlier steps do not explain it", answer["fit"]["refused"])
                self.assertNotIn("fits", answer["fit"])
                self.assertEqual(answer["memory"]["kinds"]["optimizer"]["bytes"] // (FLOAT * 64 * 256), 2)

    def test_metrics(self):
        done = self.gradb([self.script("oom.py"), "none", "16,16,16,16"], "set memory-metrics on",
                          "watch memory_rss > 1e6 && memory_allocated > 1e3 && memory_peak >= memory_rss", "step", "delete",
                          "continue")
        self.assertIn("Watchpoint 1, at the end of step 1.", done.stdout, done.stderr)

    def test_results_are_the_same(self):
        script = self.script("oom.py")
        bare = minds.digests(self.bare(script, "none", "16,16,16,16"))
        self.assertEqual(len(bare), 1)
        done = self.gradb([script, "none", "16,16,16,16"], "catch oom", "step", "info memory", "step", "info memory",
                          "catch oom off", "continue")
        self.assertEqual(minds.digests(done.log), bare)

    def test_a_caught_one_is_not_kept(self):
        """Each of two attempts in one step stops the run, and afterwards nothing of it is referenced."""
        kept = self.folder / "kept"
        done = self.gradb([self.script("caught.py"), str(kept)], "catch oom", "continue", "continue", "continue")
        self.assertEqual(done.stdout.count("Exception, step 2"), 2, done.stdout + done.stderr)
        self.assertEqual(kept.read_text().splitlines(), ["6 [False, False]", "5 [False, False]"])

    def test_bad_input(self):
        done = self.gradb([self.script("oom.py"), "none", "16,16"], "set on-error continue", "agent oom maybe",
                          "agent memory-report later", "continue")
        for text in ("oom takes 'on' or 'off', not 'maybe'", "memory-report takes 'end' or nothing, not 'later'"):
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    harness.main()
