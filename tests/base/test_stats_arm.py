# SPDX-License-Identifier: GPL-3.0-or-later
"""The vector code for ARM (src/base/stats_neon.c), compiled for it and run by QEMU: what test_stats_levels.c compares."""
import shutil
import subprocess
import unittest

import harness

COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64"
TESTS = harness.SOURCE / "tests" / "base"
BASE = harness.SOURCE / "src" / "base"


class Arm(unittest.TestCase):
    def test_levels(self):
        for program in (COMPILER, EMULATOR):
            if not shutil.which(program):
                self.skipTest(f"there is no {program}")
        program = harness.folder_of(self) / "levels"
        done = subprocess.run([COMPILER, "-std=gnu11", "-O2", "-ffp-contract=off", "-D_GNU_SOURCE", "-static",
                               "-I", TESTS / "arm", "-I", BASE.parent, "-o", program, TESTS / "test_stats_levels.c",
                               TESTS / "stats_reference.c", *sorted(BASE.glob("*.c")), "-lm", "-lpthread"],
                              capture_output=True, text=True, check=False, timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([EMULATOR, program], capture_output=True, text=True, check=False,
                              timeout=10 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        passed = done.stdout.splitlines()
        self.assertEqual(len(passed), (TESTS / "test_stats_levels.c").read_text().count("cmocka_unit_test("), passed)


if __name__ == "__main__":
    harness.main()
