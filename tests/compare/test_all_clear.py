# SPDX-License-Identifier: GPL-3.0-or-later
"""An "all is well" says how much was checked; if nothing could be checked, it is an error. The origin of NaN is an
operator, not a parameter that was dumped after the update."""
import unittest

import harness
import numpy as np

NODES = (("MatMul", "Default_fc1-Dense_MatMul-op1"), ("Log", "Default_Log-op2"), ("ReLU", "Default_relu-ReLU_ReLU-op3"))
CHARLM = [harness.CHARLM, "--data", harness.SOURCE / "LICENSES" / "MIT.txt", *harness.SMALL, "--batch", "4",
          "--threads", "1", "--steps", "9"]


def gradb(*commands, text=False):
    """Runs the commands; their records (or their text), and the exit status."""
    done = harness.run_gradb("-nx", "-q", "--batch", *([] if text else ["--json"]), *harness.typed(*commands))
    if text:
        return done.stdout + done.stderr, done.returncode
    return harness.records(done), done.returncode


def save(folder, kind, name, at, io, value):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{kind}.{name}.0.0.{1700000000000000 + at}.{io}.0.DefaultFormat.Float32.npy",
            np.asarray(value, np.float32))


def write(root, rank=0, steps=(1, 2), bad_step=None, parameter_at=90, inputs=True, prefix="Default_"):
    """A MindSpore dump in which the logarithm gives -Inf in one step, and the update makes the weight NaN. The weight
    is written at `parameter_at`: operators start at 10."""
    for step in steps:
        folder = root / f"rank_{rank}" / "net" / "0" / str(step)
        value = np.linspace(1, 2, 8)
        for i, (kind, name) in enumerate(NODES):
            name = name.replace("Default_", prefix)
            if inputs:
                save(folder, kind, name, 1000 * step + 10 * i + 10, "input", value)
            value = value * 1.5
            if step == bad_step and kind == "Log":
                value[0] = -np.inf
            if step == bad_step and kind == "ReLU":
                value[:] = np.nan
            save(folder, kind, name, 1000 * step + 10 * i + 11, "output", value)
        weight = np.full(8, np.nan if step == bad_step else 0.5)
        save(folder, "Parameter", f"{prefix.replace('Default_', '')}fc1.weight", 1000 * step + parameter_at, "output",
             weight)


class AllClear(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = harness.folder_of(cls)
        for rank in range(2):
            write(cls.root / "good", rank)
            write(cls.root / "second", rank, bad_step=2 if rank else None)
        write(cls.root / "late", bad_step=2)
        write(cls.root / "outputs", bad_step=2, inputs=False)
        write(cls.root / "other", prefix="Other_")

    def test_parameters_are_written_after_the_update(self):
        for name in ("late", "outputs"):
            [record], status = gradb(f"first-nonfinite {self.root / name}")
            self.assertEqual((record["node"], record["step"], record["found"], status),
                             ("Default_Log-op2", 2, True, 6), record)
            self.assertNotIn("after_step", record)
        self.assertEqual(gradb(f"first-nonfinite {self.root / 'late'}")[0][0]["kind"], "throw-point")

    def test_a_parameter_alone_is_named(self):
        """No operator of the step is bad: the value is the one after the step."""
        root = self.root / "alone"
        write(root)
        save(root / "rank_0" / "net" / "0" / "2", "Parameter", "fc2.weight", 2900, "output", [np.nan, 1])
        [record], status = gradb(f"first-nonfinite {root}")
        self.assertEqual((record["node"], record["after_step"], status), ("fc2.weight", True, 6))

    def test_all_ranks_of_the_session(self):
        for target in ([f"first-nonfinite {self.root / 'second'}"],
                       [f"open {self.root / 'second'}", "first-nonfinite"]):
            records, status = gradb(*target)
            self.assertEqual((records[-1]["node"], records[-1]["rank"], status), ("Default_Log-op2", 1, 6))
        records, status = gradb(f"open {self.root / 'second'}", "first-nonfinite @1")
        self.assertEqual((records[-1]["found"], records[-1]["ranks"], status), (False, 1, 0))
        self.assertIn("other ranks", records[-1]["left_out"])

    def test_finite_says_how_many(self):
        records, status = gradb(f"open {self.root / 'good'}", "first-nonfinite")
        self.assertEqual(({key: records[-1][key] for key in ("found", "checked", "not_checked", "steps", "ranks")},
                          status), ({"found": False, "checked": 16, "not_checked": 0, "steps": 2, "ranks": 2}, 0))
        text, _ = gradb(f"first-nonfinite {self.root / 'good'}", text=True)
        self.assertIn("No NaN or infinity: 16 tensors checked; 2 steps, 2 ranks.", text)
        path = next((self.root / "other" / "rank_0").rglob("*/1/Log*output*.npy"))
        path.write_bytes(b"not a tensor")
        [record], status = gradb(f"first-nonfinite {self.root / 'other'}")
        self.assertEqual((record["checked"], record["not_checked"], status), (7, 1, 0))
        self.assertTrue(record["why_not_checked"])

    def test_values_of_the_step_before_do_not_count(self):
        """Within a step, what has not run yet still has its old value."""
        done = harness.run_gradb("-nx", "-q", "--batch", "--json", "-ex", "step 2", "-ex", "first-nonfinite", "-ex",
                                 "next 5", "-ex", "first-nonfinite", "-ex", "kill", "run", "--", *CHARLM)
        whole, part = harness.records(done, "first-nonfinite")
        self.assertEqual(whole["not_checked"], 0)
        self.assertGreater(part["not_checked"], 50)
        self.assertEqual(part["checked"] + part["not_checked"], whole["checked"])
        self.assertEqual(part["why_not_checked"], "its value is of step 2")

    def test_a_session_is_compared_in_its_step(self):
        """What has not run yet is left out, and counted."""
        path = self.root / "step.npz"
        done = harness.run_gradb("-nx", "-q", "--batch", "--json", "-ex", "step 2", "-ex", f"save all {path}", "-ex",
                                 f"compare @1 {path}", "-ex", "next 5", "-ex", f"compare @1 {path}", "-ex",
                                 f"compare @1 {path} --on head.bias", "-ex", "kill", "run", "--", *CHARLM)
        whole, part = harness.records(done, "compare")[:2]
        self.assertEqual(whole["of_other_steps"], 0)
        self.assertGreater(part["of_other_steps"], 50)
        self.assertEqual(part["compared"] + part["of_other_steps"], whole["compared"])
        self.assertIn("not compared: their values are of an earlier step", harness.run_gradb(
            "-nx", "-q", "--batch", "-ex", "step 2", "-ex", "next 5", "-ex", f"compare @1 {path}", "-ex", "kill", "run",
            "--", *CHARLM).stdout)

    def test_what_was_not_compared_does_not_agree(self):
        """There are only gradients: nothing is said about the forward pass."""
        for name, factor in (("grad_a", 1), ("grad_b", 2)):
            (self.root / name).mkdir(exist_ok=True)
            for number in range(2):
                np.save(self.root / name / f"grad_fc{number}.npy", np.arange(4 + number, dtype=np.float32) * factor)
        text, status = gradb(f"first-divergence {self.root / 'grad_a'} {self.root / 'grad_b'}", text=True)
        self.assertEqual(status, 6)
        self.assertIn("the forward pass was not compared", text)

    def test_nothing_checked_is_an_error(self):
        root = self.root / "broken"
        write(root, steps=(1,))
        for path in root.rglob("*.npy"):
            path.write_bytes(b"not a tensor")
        [record], status = gradb(f"first-nonfinite {root}")
        self.assertEqual((record["type"], status), ("error", 1))
        self.assertIn("no tensor was checked: 4 could not be", record["message"])

    def write_npz(self, name, **values):
        np.savez(self.root / f"{name}.npz", **values)
        return self.root / f"{name}.npz"

    def test_tensors_without_elements_are_not_checked(self):
        some, empty = np.arange(4, dtype=np.float32), np.zeros((0, 4), np.float32)
        none, part = self.write_npz("none", a=empty, b=empty), self.write_npz("part", a=some, b=empty)
        for command in (f"compare {none} {none}", f"first-divergence {none} {none}", f"first-nonfinite {none}",
                        f"check params {none}"):
            text, status = gradb(command, text=True)
            self.assertRegex(text, r"error: (nothing was compared|no tensor was (compared|checked)): .*2 ", command)
            self.assertEqual(status, 1, command)
        for command in (f"compare {part} {part}", f"first-divergence {part} {part}", f"first-nonfinite {part}",
                        f"check params {part}"):
            text, status = gradb(command, text=True)
            self.assertRegex(text, r"1 (compared|tensors? compared|tensor checked), 1 not", command)
            self.assertEqual(status, 0, command)

    def test_numbers_of_what_is_not_finite_are_not_made_up(self):
        nan, some = (self.write_npz(name, a=np.full(4, value, np.float32)) for name, value in (("nan", np.nan), ("some", 1)))
        text, status = gradb(f"compare {nan} {some}", f"check params {nan}", text=True)
        self.assertRegex(text, r"NONFINITE  a  .*  0\.00%  +-  +-  +-  name")
        self.assertRegex(text, r"float32  param +-  +-  +-  +-  not finite")
        for command in (f"compare {nan} {some}", f"first-divergence {nan} {some}"):
            [record], status = gradb(command)
            pair = record.get("pairs", [record])[0]
            self.assertEqual((pair["verdict"], pair["close"], status), ("NONFINITE", 0, 6))
            self.assertFalse({"max_abs", "rel_l2", "cosine"} & set(pair))
        for command in (f"check params {nan}", f"check params {nan} {some}"):
            self.assertEqual(gradb(command)[1], 6, command)

    def test_integers_cannot_be_nan(self):
        [record], status = gradb(f"first-nonfinite {self.write_npz('whole', a=np.arange(4))}")
        self.assertEqual((record["message"], status), ("no tensor was checked: there are no floating-point tensors", 1))

    def test_nothing_matched_is_an_error(self):
        good = self.root / "good" / "rank_0" / "net" / "0" / "1"
        for name, values in (("left", {"a": 2, "c": 4}), ("right", {"b": 3, "d": 5})):
            (self.root / name).mkdir(exist_ok=True)
            for key, size in values.items():
                np.save(self.root / name / f"{key}.npy", np.zeros(size, np.float32))
        for command in ("compare", "first-divergence", "check params"):
            [record], status = gradb(f"{command} {self.root / 'left'} {self.root / 'right'} --match name")
            self.assertEqual((command, record["type"], status), (command, "error", 1))
        records, status = gradb(f"open {self.root / 'good'}", f"compare @1 {good} --on nothing_is_called_so")
        self.assertEqual((records[-1]["type"], status), ("error", 1))

    def test_agreement_says_how_many(self):
        write(self.root / "short", steps=(1,))
        [record], status = gradb(f"compare {self.root / 'short'} {self.root / 'good'}")
        self.assertEqual((record["compared"], record["not_compared"], record["steps_left_out"], status), (14, 0, 2, 0))
        [record], _ = gradb(f"first-divergence {self.root / 'short'} {self.root / 'good'} --rank 0")
        self.assertEqual((record["found"], record["tensors"], record["not_compared"], record["steps_left_out"]),
                         (False, 4, 0, 1))
        text, _ = gradb(f"first-divergence {self.root / 'short'} {self.root / 'good'} --rank 0", text=True)
        self.assertIn("4 tensors compared; 1 step, 1 more on one side only.", text)

    def test_losses_without_a_pair(self):
        (self.root / "a.log").write_text("step: 1, loss: 2.5\nstep: 2, loss: nan\nstep: 3, loss: 2.0\n")
        (self.root / "b.log").write_text("step: 7, loss: 2.5\n")
        [record], status = gradb(f"compare loss {self.root / 'a.log'} {self.root / 'b.log'}")
        self.assertEqual((record["type"], status), ("error", 1))
        (self.root / "b.log").write_text("step: 1, loss: 2.5\nstep: 2, loss: nan\n")
        text, status = gradb(f"compare loss {self.root / 'a.log'} {self.root / 'b.log'}", text=True)
        self.assertEqual(status, 0)
        self.assertIn("The losses agree within 0.001 in 2 pairs, 1 of them NaN or infinite on both sides; "
                      "without a counterpart: 1 and 0.", text)

    def test_watchpoints_count_what_they_could_not_check(self):
        late = f"open {self.root / 'late'}"
        records, status = gradb(late, "watch TL abs_mean_gt=1e9 on all", "scan", "info hits")
        # -Inf of the logarithm, NaN below it and in the weight, each in one step
        self.assertEqual({key: records[-2][key] for key in ("hits", "checks", "unclear", "why_unclear")},
                         {"hits": 0, "checks": 10, "unclear": 4, "why_unclear": "NaN, Inf"}, records[-2])
        self.assertEqual((records[-1]["watchpoints"], records[-1]["unclear"], status), (1, 4, 0))
        text, _ = gradb(late, "watch TL abs_mean_gt=1e9 on all", "scan", text=True)
        self.assertIn("No watchpoint fired: 10 checks, 4 more could not be made: NaN, Inf.", text)
        text, _ = gradb(late, "watch TL abs_mean_gt=1e9 on all", "step", "recheck", text=True)
        self.assertIn("No watchpoint fires on these values: 3 checks, 4 more could not be made: NaN, Inf.", text)

    def test_watchpoints_that_could_check_nothing(self):
        late = f"open {self.root / 'late'}"
        for command, watch, said in (
                ("scan steps 2", "TL abs_mean_gt=1e9 on fc1.weight", "1 check could not be made: NaN"),
                ("recheck", "TL abs_mean_gt=1e9 on fc1.weight", "1 check could not be made: NaN"),
                ("recheck", "TL abs_mean_gt=1e9 on all if step > 100", "never true")):
            records, status = gradb(late, "step", f"watch {watch}", command)
            self.assertEqual((command, records[-1]["type"], status), (command, "error", 1))
            self.assertIn(said, records[-1]["message"])

    def test_empty_tensors_do_not_agree(self):
        np.save(self.root / "none.npy", np.zeros((0, 3), np.float32))
        records, status = gradb(f"open {self.root / 'none.npy'}", "compare none none rtol=1")
        self.assertEqual((records[-1]["type"], status), ("error", 1), records)


if __name__ == "__main__":
    harness.main()
