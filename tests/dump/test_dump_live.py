# SPDX-License-Identifier: GPL-3.0-or-later
"""dump: a training's values on disk equal numpy's, and gradb opens them again; steps selected in advance, a
data_dump.json that is obeyed, mistakes in one, a quota, and a gradb that is killed."""
import csv
import json
import pathlib
import re
import shlex
import tempfile
import unittest

import harness
import ms_writer as writer
import numpy as np

TRAINER = [harness.CHARLM, "--layers", "1", "--width", "32", "--context", "16", "--threads", "1", "--seed", "3",
           "--data", harness.SOURCE / "LICENSES" / "MIT.txt"]
NAME = re.compile(r"([^.]+)\.([^.]+)\.0\.0\.(\d{16})\.(input|output)\.(\d+)\.DefaultFormat\.(\w+)\.npy")


def gradb(folder, lines, *options, steps=50, status=0):
    """What gradb prints when the commands are typed while charlm trains."""
    done = harness.run_gradb("--no-tui", "-q", "-nx", *options, "--listen", "127.0.0.1:0", "--batch", "run", "--",
                             *TRAINER, "--steps", steps, cwd=folder, script=[*lines, "kill"])
    if done.returncode != status:
        raise AssertionError(done.stdout[-3000:] + done.stderr[-3000:])
    return done


def files(directory):
    """(escaped name, io, slot): array, of one step."""
    found = {}
    for path in directory.glob("*.npy"):
        kind, name, _, io, slot, dtype = NAME.fullmatch(path.name).groups()
        array = np.load(path)
        if (name, io, int(slot)) in found or dtype != array.dtype.name or not kind:
            raise AssertionError(path.name)
        found[name, io, int(slot)] = array
    return found


class Steps(unittest.TestCase):
    """One training, whose steps 2, 4 and 5 are dumped on the way to the fifth."""

    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)
        done = gradb(cls.root, ["dump a --steps 2|4-5 --data full", "step 3", "dump b on weights --io all",
                                "step 2", "save all all.npz", "info dump", "compare a @1", "dump off",
                                "info dump", "step"], "--json")
        cls.records = harness.records(done, mixed=True)
        cls.rank = cls.root / "a" / "rank_0"
        cls.graph = cls.rank / "net" / "0"

    def of_type(self, kind):
        return [record for record in self.records if record["type"] == kind]

    def test_the_steps_and_what_is_told(self):
        self.assertEqual(sorted(path.name for path in self.graph.iterdir()), ["2", "4", "5"])
        dumps = self.of_type("dump")
        self.assertEqual([d.get("step") for d in dumps], [None, 2, 3, 4, 5, None, None, None])
        self.assertEqual([d["armed"] for d in dumps if "armed" in d], [True, True, False, False])
        self.assertEqual([s["step"] for s in self.of_type("stopped")][1:], [3, 5, 6])  # 2 and 4 are passed
        total = sum(path.stat().st_size for path in self.root.glob("[ab]/**/*") if path.is_file())
        self.assertEqual(dumps[-1]["total_bytes"], total)

    def test_values_are_the_trainings(self):
        dumped = files(self.graph / "5")
        with np.load(self.root / "all.npz") as saved:
            expected = {}
            for key in saved.files:
                name, _, slot = key.rpartition(":") if re.search(r":\d+$", key) else (key, "", "0")
                expected[writer.escape(name), "output", int(slot)] = saved[key]
        self.assertGreater(len(expected), 150)
        self.assertEqual(set(dumped), set(expected))
        for key, array in expected.items():
            with self.subTest(key=key):
                self.assertEqual((dumped[key].shape, dumped[key].dtype), (array.shape, array.dtype))
                self.assertEqual(dumped[key].tobytes(), array.tobytes())

    def test_statistics_are_numpys(self):
        dumped = files(self.graph / "5")
        with (self.graph / "5" / "statistic.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(dumped))
        for row in rows:
            array = dumped[row["Op Name"], row["IO"], int(row["Slot"])]
            figures = writer.figures(array)
            with self.subTest(name=row["Op Name"]):
                self.assertEqual(row["Shape"], "(" + ",".join(map(str, array.shape)) + ")")
                self.assertEqual((row["Data Type"], int(row["Data Size"])), (array.dtype.name, array.nbytes))
                for title, value in figures.items():
                    if title in ("Avg Value", "L2Norm Value"):
                        self.assertTrue(np.isclose(float(row[title]), float(value), rtol=1e-5, atol=1e-9), title)
                    elif title != "MD5":
                        self.assertEqual(row[title], value, title)

    def test_it_is_the_same_when_it_is_opened(self):
        [compared] = self.of_type("compare")
        self.assertEqual(compared["differ"], 0)
        self.assertEqual({pair["verdict"] for pair in compared["pairs"]}, {"SAME"})
        self.assertGreater(len(compared["pairs"]), 150)
        done = harness.run_gradb("--batch", "--nx", "--json", "open", self.root / "a", cwd=self.root,
                                 script=["goto 4", "save all again.npz", "info nodes -a", "info steps"])
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        records = {r["type"]: r for r in harness.records(done)}
        self.assertEqual((records["open"]["formats"], records["open"]["left_out"]), (["mindspore-sync"], 0))
        self.assertEqual([s["step"] for s in records["steps"]["steps"]], [2, 4, 5])
        order = (self.rank / "execution_order" / "ms_execution_order_graph_0.csv").read_text().split("\n")[1:-1]
        ran = [n["node"] for n in records["nodes"]["nodes"] if n.get("order") is not None]
        self.assertEqual(ran, order)
        dumped = files(self.graph / "4")
        with np.load(self.root / "again.npz") as saved:
            again = {key: saved[key] for key in saved.files}
        self.assertEqual(sorted(a.tobytes() for a in again.values()), sorted(a.tobytes() for a in dumped.values()))
        steps = (self.rank / "execution_order" / "ms_global_execution_order_graph_0.csv").read_text()
        self.assertEqual(steps, "2\n4\n5\n")

    def test_a_dump_of_some_now(self):
        dumped = files(self.root / "b" / "rank_0" / "net" / "0" / "3")
        self.assertEqual(len(dumped), 18)
        self.assertTrue(all(key[0].endswith(("_weight", "_bias")) for key in dumped))


class Moves(unittest.TestCase):
    """Moves from node to node pass the ends of selected steps: those are dumped, and the moves end where they would
    have ended anyway."""

    MOVES = ("next 3", "next 200", "run-to Default/network/loss/Log-op29", "run-to Default/network/loss/Log-op29",
             "finish phase", "finish phase", "finish phase", "next 7")

    def stops(self, root, *first):
        done = gradb(root, [*first, *self.MOVES, "info dump"], "--json")
        records = harness.records(done, mixed=True)
        return [(r["step"], r.get("node"), r["at_step_end"]) for r in records if r["type"] == "stopped"][1:], records

    def test_they_are_dumped_on_the_way(self):
        with tempfile.TemporaryDirectory(prefix="gradb-dump-") as folder:
            root = pathlib.Path(folder).resolve()
            expected, _ = self.stops(root)
            stops, records = self.stops(root, "dump d on weights,*/Log-op29 --steps 1-4")
            self.assertEqual(stops, expected)
            self.assertEqual(expected[-1][0], 6)
            self.assertEqual([r["step"] for r in records if r["type"] == "dump" and "step" in r], [1, 2, 3, 4])
            graph = root / "d" / "rank_0" / "net" / "0"
            self.assertEqual([len(files(graph / str(step))) for step in (1, 2, 3, 4)], [19] * 4)

    def test_two_ranks_are_dumped_together(self):
        with tempfile.TemporaryDirectory(prefix="gradb-dump-") as folder:
            process = " ".join(map(shlex.quote, map(str, [*TRAINER, "--steps", 50])))
            lines = ["set rank-patience 100", "dump d on weights --steps 2-3",
                     "run-to Default/network/loss/Log-op29", "step 3", "dump off", "set rank-locking on", "step",
                     "set rank-locking off", "dump e on weights", "kill"]
            done = harness.run_gradb("--no-tui", "-q", "-nx", "--batch", *harness.typed(*lines), "--listen",
                                     "127.0.0.1:0", "run", "--", "/bin/sh", "-c", f"RANK=0 {process} & RANK=1 {process}; wait",
                                     env={"WORLD_SIZE": "2"}, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(re.findall(r"Dumped step (\d): (\d+) tensors", done.stdout),
                             [("2", "36"), ("3", "36"), ("4", "18")])
            self.assertIn("1 rank is stopped at another step and is not dumped\n", done.stdout)
            for rank in (0, 1):
                for step in (2, 3):
                    self.assertEqual(len(files(pathlib.Path(folder, "d", f"rank_{rank}", "net", "0", str(step)))), 18)


class OldConfiguration(unittest.TestCase):
    """MindSpore 1.0 to 1.2 take the iteration as a number."""

    def test_iteration_is_a_number(self):
        with tempfile.TemporaryDirectory(prefix="gradb-dump-") as folder:
            path = pathlib.Path(folder, "data_dump.json")
            for iteration, fine in ((0, True), (5, True), ("0|3-5", True), (-1, False), (1.5, False), ([0], False)):
                path.write_text(json.dumps({"common_dump_settings": {
                    "dump_mode": 0, "path": "/absolute_path", "net_name": "ResNet50", "iteration": iteration,
                    "saved_data": "tensor", "input_output": 0, "kernels": ["Default/Conv-op12"],
                    "support_device": [0, 1, 2, 3, 4, 5, 6, 7]}, "e2e_dump_settings": {"enable": True, "trans_flag": True}}))
                done = harness.run_gradb("-q", "--batch", "-ex", f"check-config {path}")
                self.assertEqual(done.returncode == 0, fine, done.stdout)
                self.assertEqual("as in MindSpore 1.0 to 1.2" in done.stdout, fine and isinstance(iteration, int))


WRONG = """{
  "common_dump_settings": {
    "dump_mode": 7,
    "path": "relative",
    "net_name": "a b",
    "iteration": "1|x",
    "saved_data": "tensors",
    "input_output": "0",
    "kernels": [3],
    "support_device": "all",
    "kernel": [],
    "statistic_category": ["max", "median"],
    "trans_flag": true
  },
  "e2e_dump_settings": {"enable": 1}
}
"""


class Configurations(unittest.TestCase):
    """data_dump.json and acl.json."""

    def setUp(self):
        self.root = harness.folder_of(self)

    def check(self, text):
        """The lines of the mistakes, their texts, and the exit status."""
        (self.root / "it.json").write_text(text)
        done = harness.run_gradb("--no-tui", "--batch", "-nx", "--json", script=["check-config it.json"], cwd=self.root)
        [mistakes] = [r["mistakes"] for r in harness.records(done, "check-config")]
        return [m["line"] for m in mistakes], " / ".join(m["text"] for m in mistakes), done.returncode

    def test_mistakes_are_named_with_their_lines(self):
        lines, texts, status = self.check(WRONG)
        self.assertEqual(lines, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15])
        for word in ("dump_mode must be 0, 1 or 2, not 7", "starting with '/'", "\"a b\"", "saved_data must be tensor, statistic",
                     "no key \"kernel\"", "median", "trans_flag belongs in e2e_dump_settings", "true or false"):
            self.assertIn(word, texts)
        self.assertEqual(status, 1)
        lines, texts, status = self.check('{"dump": {"dump_path": "/x", "dump_mode": "none",\n"dump_step": "5-3",\n'
                                          '"dump_debug": "on", "dump_op_switch": "on",\n'
                                          '"dump_list": [{"layers": []}]}}')
        self.assertEqual((sorted(lines), status), ([1, 2, 3, 4], 1))
        lines, texts, status = self.check('{"common_dump_settings": {}}')
        self.assertEqual((lines, status), ([0, 0, 0, 0], 1))
        self.assertIn("lacks net_name", texts)
        lines, texts, status = self.check('{"dump": {"dump_path": "/x", "dump_mode": "all", "dump_step": "0|3-5"}}')
        self.assertEqual((lines, texts, status), ([], "", 0))

    def test_it_is_obeyed(self):
        (self.root / "wrong.json").write_text(WRONG)
        text = json.dumps({
            "common_dump_settings": {"dump_mode": 1, "path": str(self.root / "unused"), "net_name": "charlm",
                                     "iteration": "1|3", "saved_data": "full", "input_output": 0,
                                     "kernels": ["Softmax", "Default/network/loss/Log-op29"],
                                     "statistic_category": ["l2norm", "max", "md5"]},
            "e2e_dump_settings": {"enable": True}}, indent=1)
        (self.root / "good.json").write_text(text)
        done = gradb(self.root, ["set dump-config good.json", "dump d", "step 4"])
        self.assertIn("Dumped step 3", done.stdout)
        rank = self.root / "d" / "rank_0"
        self.assertEqual((rank / ".dump_metadata" / "data_dump.json").read_text(), text)
        graph = rank / "charlm" / "0"
        self.assertEqual(sorted(path.name for path in graph.iterdir()), ["1", "3"])
        dumped = files(graph / "3")
        self.assertEqual({key[1] for key in dumped}, {"input", "output"})
        self.assertTrue(all("Softmax" in key[0] or key[0].endswith("Log-op29") for key in dumped))
        header = (graph / "3" / "statistic.csv").read_text().split("\n")[0]
        self.assertTrue(header.endswith("Shape,L2Norm Value,Max Value,MD5"))
        done = gradb(self.root, ["set dump-config wrong.json"], status=1)
        self.assertIn("wrong.json:3: ", done.stdout)
        self.assertIn("12 errors", done.stderr)


class Limits(unittest.TestCase):
    """What ends a dump."""

    def setUp(self):
        self.root = harness.folder_of(self)

    def test_a_quota_ends_the_dump_and_not_the_training(self):
        done = gradb(self.root, ["set dump-bytes 3 MiB", "dump q --steps all", "step 4", "info dump"])
        said = (done.stdout + done.stderr).count("dump-bytes reached")
        self.assertEqual(said, 1, done.stdout + done.stderr)
        self.assertIn("Stopped at the end of step 4.", done.stdout)
        self.assertIn("No steps will be dumped.", done.stdout)
        total = sum(path.stat().st_size for path in self.root.glob("q/**/*") if path.is_file())
        self.assertTrue(2 << 20 < total <= 3 << 20, total)

    def test_a_step_is_not_dumped_over(self):
        done = gradb(self.root, ["step", "dump x on weights", "dump x on weights"], status=1)
        self.assertIn("a dump of step 1 already exists", done.stderr)
        self.assertEqual(len(files(self.root / "x" / "rank_0" / "net" / "0" / "1")), 18)

    def test_killed_it_leaves_whole_files(self):
        command = ("run", "--", *map(str, TRAINER), "--steps", "100000")
        order = self.root / "k" / "rank_0" / "execution_order" / "ms_global_execution_order_graph_0.csv"
        with harness.Gradb("-nx", command=command, cwd=self.root) as it:
            it.expect("Stopped before the first step")
            it.send("dump k --steps all")
            it.send("continue")
            harness.wait_for("three steps", lambda: order.exists() and len(order.read_text().split()) >= 4)
            it.process.kill()
            it.process.wait()
        graph = self.root / "k" / "rank_0" / "net" / "0"
        whole = order.read_text().split()
        for step in graph.iterdir():
            dumped = files(step)
            if step.name in whole and step.name != "0":
                self.assertEqual(len(dumped), 192)
            others = [p.name for p in step.iterdir() if p.suffix != ".npy"]
            self.assertTrue(all(name.endswith(".part") for name in others) and len(others) <= 1, others)


if __name__ == "__main__":
    harness.main()
