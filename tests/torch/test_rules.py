# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule of `diagnose` finds its mistake, at its line, and is silent where there is none.

diagnose/RULE.py trains correctly, and with the argument `mistake` makes one; what comes after a dot in the name tells
scripts of one rule apart (RULE.other.py). The line that a finding must name ends in `# <- here`; without such a line,
none is expected."""
import harness
import torches
from test_diagnose import SCRIPTS, Diagnoses


def line_of(script):
    """The number of the line with the mark; 0: there is none."""
    lines = script.read_text(encoding="utf-8").split("\n")
    return next((number for number, line in enumerate(lines, 1) if line.endswith("# <- here")), 0)


class Mistakes(Diagnoses):
    """The oldest PyTorch runs the first script of every fourth rule only, for the sake of time."""
    which = staticmethod(lambda: torches.pip() or torches.debian())

    def scripts(self):
        return sorted(SCRIPTS.glob("*.py"))

    def test_each_is_found(self):
        for script in self.scripts():
            with self.subTest(script=script.stem):
                record = self.diagnosed(script, "mistake", status=(4, 5))
                self.assertEqual(record["looked_at"]["failed"], [])
                rule = script.stem.split(".")[0]
                found = [one for one in record["findings"] if one["rule"] == rule]
                self.assertTrue(found, record["findings"])
                self.assertIn(found[0]["verdict"], ("fault", "suspect"))
                line = line_of(script)
                if line:
                    self.assertIn(line, [place.get("line") for one in found for place in one["where"]])


class MistakesDebian(Mistakes):
    which = staticmethod(torches.debian)

    def scripts(self):
        first = {script.stem.split(".")[0]: script for script in reversed(super().scripts())}
        return list(first.values())[::4]


class Correct(Diagnoses):
    """On the newest PyTorch only, for the sake of time."""
    which = staticmethod(lambda: torches.pip() or torches.debian())

    def test_none_speaks(self):
        for script in sorted(SCRIPTS.glob("*.py")):
            with self.subTest(script=script.stem):
                record = self.diagnosed(script, "correct")
                self.assertEqual([one for one in record["findings"] if one["verdict"] != "note"], [])
                self.assertEqual(record["looked_at"]["failed"], [])
                self.assertGreater(record["looked_at"]["operators"], 0)


if __name__ == "__main__":
    harness.main()
