# SPDX-License-Identifier: GPL-3.0-or-later
"""The flight recorder: what is in its file after a crash of either side, on a full disk, and when it is damaged."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import unittest

import harness

DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
SMALL = ["--data", str(DATA), "--seed", "3", "--threads", "1", *harness.SMALL, "--batch", "4"]
CHARLM = [str(harness.CHARLM), *SMALL, "--steps", "100000"]
RING = 64  # where the header says where the ring begins


def records(*commands, path):
    """Opens the file in batch mode and gives the records of the commands' results, and the exit status."""
    done = harness.run_gradb("-nx", "-q", "--batch", "--json", *harness.typed(*commands), "open", path)
    found = harness.records(done)
    return [record for record in found if record.get("command") != "open"], done


class Recorder(unittest.TestCase):
    def setUp(self):
        self.folder = harness.folder_of(self)
        self.path = self.folder / "record.gdhist"

    def start(self, *before, program=CHARLM, **more):
        """A training whose head is watched; it stands before its first step."""
        gradb = harness.Gradb("-nx", command=["run", "--", *map(str, program)], **more)
        self.addCleanup(gradb.__exit__)
        gradb.expect("Stopped before the first step")
        for line in (f"set history-file {self.path}", "set history-bytes 16 MiB", *before,
                     "trace -step 'update_ratio > 1e30' on head.bias", "trace -step 'max > 1e30' on weights"):
            gradb.send(line)
        gradb.expect("Trace 2")
        return gradb

    def history(self, name, *figures):
        """name's history by step, from the file."""
        (record,), _ = records(" ".join(["info history", name, *figures, "-a"]), path=self.path)
        return record

    def last_step(self, written=False):
        """Of a file that is being written, or was when the writer was killed: then one record at most is half there."""
        (record,), _ = records("info history", path=self.path)
        if not written:
            self.assertLessEqual(record["damaged"], 1)
        return record["last_step"]

    def truth(self, steps):
        """Loss and a figure of head.bias by step of the same training, asked of the process itself."""
        with harness.Gradb("-nx", "--json", command=["run", "--", *CHARLM]) as gradb:
            gradb.expect('"type":"run"')
            loss, mean = {}, {}
            for step in range(1, steps + 1):
                gradb.send("step")
                stop = json.loads(gradb.expect('"type":"stopped"').string)
                loss[step] = stop["scalars"]["loss"]
                gradb.send("stats head.bias")
                mean[step] = json.loads(gradb.expect('"command":"stats"').string)["stats"]["abs_mean"]
        return loss, mean

    def check_against_truth(self):
        steps = 12
        loss, mean = self.truth(steps)
        for name, figure, true in (("loss", "value", loss), ("head.bias", "abs_mean", mean)):
            rows = [row for row in self.history(name)["history"] if row["step"] <= steps]
            self.assertEqual([row["step"] for row in rows], list(range(1, steps + 1)), name)
            for row in rows:
                self.assertAlmostEqual(row[figure], true[row["step"]], delta=1e-6 * abs(true[row["step"]]))

    def test_killed_debugger(self):
        """SIGKILL in the middle of a run: all that had come is in the file, and it is the truth."""
        with self.start() as gradb:
            gradb.run("step 12", "end of step 12")
            gradb.send("continue")
            harness.wait_for("more steps", lambda: self.last_step(written=True) > 20)
            before = self.last_step(written=True)
            gradb.process.kill()
            gradb.process.wait()
        after = self.last_step()
        self.assertGreaterEqual(after, before)
        self.assertEqual(after, self.last_step())  # nobody writes it any more
        (target,), _ = records("info target", path=self.path)
        self.assertEqual(target["state"], "finished")
        self.assertEqual(target["end"], f"recorded by gradb, last step {after}")
        self.assertEqual(target["program"], " ".join(CHARLM))
        self.check_against_truth()

    def test_killed_trainer(self):
        with self.start() as gradb:
            gradb.run("step 12", "end of step 12")
            pid = int(gradb.run("info target", r"pid +(\d+)").group(1))
            gradb.send("continue")
            harness.wait_for("more steps", lambda: self.last_step(written=True) > 20)
            os.kill(pid, signal.SIGKILL)
            gradb.expect("process was lost")
            gradb.run("info history head.bias", r"head\.bias:0: [\d,]+ steps recorded")
            last = int(gradb.run("info history", r"steps 1 to (\d+)").group(1))
            self.assertEqual(last, self.last_step())
        self.assertEqual(last, self.last_step())
        self.check_against_truth()

    def test_not_finite_since(self):
        """A loss that turns into NaN: the file names the step, as the training itself did."""
        program = [harness.CHARLM, *SMALL, "--steps", "400", "--fault", "exploding-lr"]
        with self.start(program=program) as gradb:
            gradb.send("continue")
            gradb.expect("The training ended", deadline=120)
        done = subprocess.run([*map(str, program), "--log-every", "1"], capture_output=True, text=True, check=False,
                              env=dict(os.environ, GRADB_DISABLE="1"), timeout=120)
        bad = [line for line in done.stdout.splitlines() if "nan" in line]
        record = self.history("loss")
        self.assertEqual(record["first_nonfinite_step"], int(bad[0].split()[1]))
        self.assertEqual((record["kept"], record["seen"]), (400, 400))

    def test_statistics_answer(self):
        with self.start("set keep-previous head.bias") as gradb:
            gradb.run("step 5", "end of step 5")
        (now, before, diff, tensor), _ = records("stats head.bias", "stats head.bias prev", "print head.bias",
                                                 "info node head.bias", path=self.path)
        _, mean = self.truth(5)
        self.assertEqual((now["step"], before["step"]), (5, 4))
        self.assertAlmostEqual(now["stats"]["abs_mean"], mean[5], delta=1e-9)
        self.assertAlmostEqual(before["stats"]["abs_mean"], mean[4], delta=1e-9)
        self.assertIsNone(diff["values"])
        self.assertIn("were not recorded", diff["note"])
        self.assertGreater(diff["change"]["mean_abs_delta"], 0)
        self.assertEqual((tensor["node_type"], tensor["kind"]), ("Parameter", "weight"))
        _, done = records("compare head.bias", path=self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("were not recorded", done.stdout)
        for command in ("step", "continue", "kill", "detach"):
            _, done = records(command, path=self.path)
            self.assertEqual(json.loads(done.stdout.splitlines()[-1])["code"], "state", command)

    def test_full_disk(self):
        """No room for the file: told once, and the training is debugged as ever."""
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 * 1024, old[1]))
        try:
            gradb = self.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        with gradb:
            gradb.run("step 3", "no history is kept: no room for 16777216 bytes")
            gradb.expect("end of step 3")
            gradb.run("step 2", "end of step 5")
            gradb.run("info history", "^error: the history is empty")
            self.assertEqual(gradb.text().count("no history is kept"), 1)
        self.assertFalse(self.path.exists())

    def test_full_file_system(self):
        """The same with a file system that is really full."""
        mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                 'mount -t tmpfs -o size=200k none "$1" && shift && exec "$@"', "sh", str(self.folder)]
        if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no file system can be mounted here")
        commands = ["set history-file " + str(self.path), "set history-bytes 1048576",
                    "trace -step 'max > 1e30' on weights", "step 3", "info scalars"]
        done = subprocess.run([*mount, harness.GRADB, "-nx", "-q", "--batch", "--listen", "127.0.0.1:0",
                               *harness.typed(*commands), "run", "--", *CHARLM], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("no history is kept: no room for 1048576 bytes", done.stdout + done.stderr)
        self.assertIn("end of step 3", done.stdout)

    def test_in_the_state_directory(self):
        """By itself it lies there, for the user alone; `set history-bytes 0` keeps none."""
        with self.start("set history-file", "set history-bytes 1 MiB") as gradb:
            gradb.run("step 2", "end of step 2")
            (path,) = pathlib.Path(gradb.home.name, "state", "gradb").glob("history-*.gdhist")
            self.assertRegex(path.name, r"^history-charlm-\d+-\d{8}-\d{6}\.gdhist$")
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            self.assertEqual(path.stat().st_size, 1 << 20)
            gradb.run(f"open {path}", "recorded by gradb, last step 2")
        with self.start("set history-bytes 0") as gradb:
            gradb.run("step 2", "end of step 2")
            gradb.run("info history", "^error: no history is recorded")
            self.assertEqual(list(pathlib.Path(gradb.home.name).glob("state/gradb/history-*")), [])

    def test_damaged_files(self):
        """Garbage, files cut off anywhere and flipped bits: one line, or what is whole."""
        with self.start() as gradb:
            gradb.run("step 6", "end of step 6")
        whole = self.path.read_bytes()
        dice = random.Random(4711)
        cases = [b"", b"\0" * 5000, dice.randbytes(5000), whole[:8], whole[:4096], whole[:-1], b"x" + whole[1:],
                 whole[:8] + struct.pack("<I", 2) + whole[12:]]
        for length in (100, 4095, 5000, len(whole) // 2):
            cases.append(whole[:length])
        for case in cases:
            self.path.write_bytes(case)
            _, done = records("info history", path=self.path)
            error = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual((done.returncode, error["code"]), (1, "protocol"), error)
            self.assertIn("not a gradb history file", error["message"])
        ring = struct.unpack_from("<Q", whole, RING)[0]
        for _ in range(20):
            damaged = bytearray(whole)
            for _ in range(10):
                damaged[dice.choice((dice.randrange(4096, 4096 + 64 * 14), dice.randrange(ring, ring + 232 * 90)))] ^= 1 << dice.randrange(8)
            self.path.write_bytes(damaged)
            (head, *_), done = records("info history -a", "info nodes", "info target", path=self.path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertLessEqual(head["last_step"], 6)
            self.assertGreater(head["damaged"], 0)
        _, done = records("info history", path=self.folder / "nothing")
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["code"], "not_found")

    def test_two_processes(self):
        """Each has a file of its own."""
        with harness.Gradb("-nx", command=("listen",)) as gradb:
            gradb.wait_listening()
            for line in (f"set history-file {self.path}", "set history-bytes 131072"):
                gradb.send(line)
            env = dict(os.environ, GRADB_ADDRESS=f"127.0.0.1:{gradb.port}")
            trainers = [subprocess.Popen([*map(str, CHARLM)], env=env, stdout=subprocess.DEVNULL) for _ in range(2)]
            try:
                for number in (1, 2):
                    gradb.expect(f"training process {number}")
                for number in (1, 2):
                    harness.wait_for("both to stop", lambda row=rf"^\*? +{number} .*":
                                     "stopped" in gradb.run("info ranks", row).group())
                gradb.send("trace -step 'max > 1e30' on head.bias")
                gradb.run("rank all step 3", "end of step 3")
                gradb.expect("end of step 3")
            finally:
                for trainer in trainers:
                    trainer.kill()
                    trainer.wait()
        self.assertEqual(self.last_step(), 3)
        self.path = pathlib.Path(str(self.path) + ".2")
        self.assertEqual(self.last_step(), 3)


if __name__ == "__main__":
    harness.main()
