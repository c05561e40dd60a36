# SPDX-License-Identifier: GPL-3.0-or-later
"""What hermetic.py, by which every test runs, promises."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import harness

DAEMON = "(setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!)"


class Hermetic(unittest.TestCase):
    def setUp(self):
        self.folder = harness.folder_of(self)

    def start(self, script, **env):
        return subprocess.Popen([sys.executable, str(harness.SOURCE / "tests" / "hermetic.py"), "sh", "-c", script],
                                env=dict(os.environ, TMPDIR=str(self.folder), **env), stdout=subprocess.PIPE, text=True)

    def ends(self, script, **env):
        """Output and status of a script; nothing of it is left."""
        with self.start(script, **env) as process:
            out = process.communicate(timeout=2 * harness.DEADLINE)[0]
        self.assertEqual(list(self.folder.iterdir()), [])
        return out, process.returncode

    def assert_gone(self, pid):
        harness.wait_for(f"the end of {pid}", lambda: not pathlib.Path(f"/proc/{pid}").exists())

    def test_what_is_clean_passes(self):
        self.assertEqual(self.ends("echo x > $TMPDIR/others-file"), ("", 0))

    def test_status_is_the_tests_own(self):
        self.assertEqual(self.ends("exit 7")[1], 7)
        self.assertEqual(self.ends("kill -9 $$")[1], 137)

    def test_a_file_of_ours_fails(self):
        out, status = self.ends("touch $TMPDIR/gradb-left")
        self.assertIn("# the test left a file: tmp/gradb-left", out)
        self.assertEqual(status, 1)

    def test_a_daemon_ends_with_a_failed_test(self):
        out, status = self.ends(DAEMON + "; exit 3")
        self.assertEqual(status, 3)
        self.assert_gone(int(out))

    def test_a_daemon_ends_when_the_test_is_ended(self):
        with self.start(DAEMON + "; sleep 1000") as process:
            daemon = int(process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=harness.DEADLINE), 128 + signal.SIGTERM)
        self.assert_gone(daemon)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_another_gradb_is_out_of_sight(self):
        out, _ = self.ends("echo $GRADB_ADDRESS$GRADB_TOKEN$LD_LIBRARY_PATH$MS_DEBUGGER_PORT; echo $HOME $XDG_RUNTIME_DIR",
                           GRADB_ADDRESS="127.0.0.1:1", GRADB_TOKEN="t", LD_LIBRARY_PATH="/x", MS_DEBUGGER_PORT="1")
        first, second = out.splitlines()
        self.assertEqual(first, "")
        for folder in second.split():
            self.assertTrue(folder.startswith(str(self.folder)), folder)


if __name__ == "__main__":
    harness.main()
