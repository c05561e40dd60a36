# SPDX-License-Identifier: GPL-3.0-or-later
"""compare --as msprobe: the tables that msprobe itself makes of the same dumps, of elements, statistics, checksums."""
import csv
import json
import math
import os
import pathlib
import subprocess
import unittest

import harness
import venvs

HERE = pathlib.Path(__file__).resolve().parent


def table(path):
    """The rows of a CSV file, by the name of the tensor."""
    with open(path, newline="", encoding="utf-8") as file:
        return {row["NPU Name"]: row for row in csv.DictReader(file)}


def same(one, other):
    """Equal texts, or numbers that are equal except for the order of sums."""
    if one.strip() == other.strip():
        return True
    try:
        return math.isclose(float(one.strip().rstrip("%")), float(other.rstrip("%")), rel_tol=1e-6)
    except ValueError:
        return False


@unittest.skipUnless(venvs.python("msprobe"), "no build/msprobe-venv: ./dev makes it where pip can install packages")
class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.folder_of(cls)
        done = subprocess.run([venvs.python("msprobe"), HERE / "probe_tables.py", cls.folder], capture_output=True, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1"), timeout=20 * harness.DEADLINE, check=False)
        if done.returncode:
            if "ModuleNotFoundError" in done.stderr:
                raise unittest.SkipTest(done.stderr.strip().splitlines()[-1])
            raise AssertionError(done.stderr[-3000:])

    def test_tables_are_msprobes(self):
        """Columns, order, every cell; for messages their number and severity."""
        for kind in ("tensor", "statistics", "md5"):
            ours = self.folder / f"{kind}.csv"
            done = harness.run_gradb("-nx", "-q", "--batch", "-ex", f"compare {kind}/npu {kind}/bench --as msprobe "
                                     f"--match name --csv {ours}", cwd=self.folder)
            self.assertEqual(done.returncode, 6, done.stderr)
            (theirs,) = (self.folder / kind).glob("compare_result_*.csv")
            want, got = table(theirs), table(ours)
            self.assertEqual(list(got), list(want), kind)
            for name, row in want.items():
                row.pop("Data_name", None)
                self.assertEqual(list(got[name]), list(row))
                levels = [[text.split(":")[0] for text in json.loads(one.pop("Err_message"))] for one in (got[name], row)]
                self.assertEqual(levels[0], levels[1], (kind, name))
                wrong = {key: (got[name][key], cell) for key, cell in row.items() if not same(cell, got[name][key])}
                self.assertEqual(wrong, {}, (kind, name))


if __name__ == "__main__":
    harness.main()
