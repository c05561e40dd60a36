# SPDX-License-Identifier: GPL-3.0-or-later
"""Offline watchpoints: one scan, an interrupted one, and the parts of many processes give the same hits, which are
those that numpy finds. The dump is made by numpy: two ranks, steps, and every fault at a known place."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import harness
import numpy as np

STEPS, LAYERS, RANKS = 14, 6, 2
WATCHES = ["watch TO", "watch max > 4.5 on layer[0-3] if step > 1", "watch abs_mean(cur-prev) == 0 on layer4",
           "watch norm_ratio > 3 on layer3", "watch GS on all"]
rng = np.random.default_rng(5)


def make(root):
    """Writes the dump by rank and step; returns the NaN or infinite values as (rank, step, layer)."""
    bad = set()
    for rank in range(RANKS):
        for step in range(STEPS):
            folder = root / f"rank_{rank}" / f"step_{step}"
            folder.mkdir(parents=True)
            for layer in range(LAYERS):
                array = rng.standard_normal((60, 40)).astype("f4")
                if layer == 4:
                    array[:] = step // 3
                if layer == 3 and step == 12:
                    array *= 1e4
                if (rank, step, layer) in [(0, 3, 1), (1, 9, 2), (1, 9, 5)]:
                    array[7, 3] = np.nan
                    bad.add((rank, step, layer))
                if (rank, step, layer) == (0, 9, 0):
                    array[59, 39] = -np.inf
                    bad.add((rank, step, layer))
                np.save(folder / f"layer{layer}.npy", array)
    return bad


def records(text):
    """The JSON lines of gradb."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Scan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)
        cls.dump = cls.dir / "dump"
        cls.bad = make(cls.dump)
        cls.state = {"XDG_STATE_HOME": str(cls.dir / "state")}
        cls.whole = cls.gradb("scan")
        cls.hits = cls.hits_of(cls.whole)

    @classmethod
    def gradb(cls, *commands, env=None, watches=None, dump=None):
        """gradb's records for the dump with the watchpoints set; hits of all ranks at the end."""
        lines = [f"open {dump or cls.dump}", *(WATCHES if watches is None else watches), *commands,
                 "info hits -ranks -a"]
        done = harness.run_gradb("-nx", "-q", "--batch", "--json", *harness.typed(*lines),
                                 env={**cls.state, **(env or {})})
        return records(done.stdout)

    @staticmethod
    def of(told, kind):
        found = [one for one in told if one["type"] == kind]
        return found[-1] if found else None

    @classmethod
    def hits_of(cls, told):
        """The `info hits` records, without numbers and stops that depend on the order."""
        hits = cls.of(told, "hits")["hits"]
        return [{key: value for key, value in hit.items() if key not in ("number", "stop")} for hit in hits]

    def error(self, told):
        return self.of(told, "error")["message"]

    def test_finds_what_numpy_finds(self):
        scan = self.of(self.whole, "scan")
        overflow = {(hit["rank"], hit["step"], int(hit["node"][5:]))
                    for hit in self.hits if hit["watchpoint"] == 1}
        self.assertEqual(overflow, self.bad)
        same = {(hit["rank"], hit["step"]) for hit in self.hits if hit["watchpoint"] == 3 and not hit.get("error")}
        self.assertEqual(same, {(r, s) for r in range(RANKS) for s in range(1, STEPS) if s % 3})
        order = [(hit["step"], hit["rank"]) for hit in self.hits]
        self.assertEqual(order, sorted(order))
        self.assertEqual((scan["steps"], scan["ranks"], scan["remembered"], scan["unreadable"]),
                         (STEPS, RANKS, 0, 0))
        self.assertGreater(scan["values"], STEPS * LAYERS * RANKS - 1)
        self.assertEqual(list((self.dir / "state").rglob("*.gdscan")), [])

    def test_is_what_going_through_it_gives(self):
        """The same verdicts as `continue`, which judges each step like a live run."""
        told = self.gradb("set stop-on-hit off", "continue", watches=WATCHES[:3])
        going = self.hits_of(told)
        self.assertEqual(going, [hit for hit in self.hits if hit["step"] > 0 and hit["watchpoint"] <= 3])
        series = [(hit["watchpoint"], hit["rank"], hit["step"], hit["node"]) for hit in self.hits
                  if hit["watchpoint"] > 3 and not hit["error"]]
        self.assertEqual(series, [(4, 0, 12, "layer3"), (5, 0, 12, "all"), (4, 1, 12, "layer3"), (5, 1, 12, "all")])

    def test_again_and_a_part_of_it(self):
        told = self.gradb("scan", "scan")
        self.assertEqual(self.hits_of(told), self.hits)
        told = self.gradb("scan steps 3..9 ranks 1", watches=["watch TO"])
        self.assertEqual([(hit["rank"], hit["step"]) for hit in self.hits_of(told)], [(1, 9), (1, 9)])
        told = self.gradb("scan", "hit 1", "print layer1", "why", watches=["watch TO"])
        self.assertEqual((self.of(told, "hit")["step"], self.of(told, "error")), (3, None))
        self.assertEqual(self.of(told, "tensor")["stats"]["nan"], 1)

    def test_parts(self):
        parts = self.dir / "parts"
        parts.mkdir()
        run = [subprocess.Popen([str(harness.GRADB), "-nx", "-q", "--batch", "-ex", f"open {self.dump}",
                                 *harness.typed(*WATCHES, f"scan --shard auto --out {parts}")],
                                env=dict(os.environ, HOME=str(self.dir), SLURM_PROCID=str(i), SLURM_NTASKS="3"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for i in range(3)]
        for process in run:
            self.assertEqual((process.communicate(timeout=2 * harness.DEADLINE)[1], process.returncode), ("", 0))
        told = self.gradb(f"merge {parts}")
        self.assertEqual(self.hits_of(told), self.hits)
        files = sorted(parts.iterdir())
        self.assertEqual(self.error(self.gradb(f"merge {files[0]} {files[2]}")), "part 2 of 3 is missing")
        self.assertEqual(self.error(self.gradb(f"merge {parts} {files[1]}")), "part 2 of 3 is given twice")
        self.assertIn("other watchpoints", self.error(self.gradb(f"merge {parts}", watches=["watch TO"])))
        other = self.dir / "other"
        shutil.copytree(self.dump / "rank_0" / "step_0", other / "rank_0" / "step_0")
        shutil.copytree(self.dump / "rank_0" / "step_1", other / "rank_1" / "step_77")
        self.assertIn("made from this dump", self.error(self.gradb(f"merge {parts}", dump=other)))
        self.assertIn("contains no part files", self.error(self.gradb(f"merge {other}")))
        whole = files[1].read_bytes()
        for at in range(3, len(whole), len(whole) // 7):
            files[1].write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:])
            self.assertRegex(self.error(self.gradb(f"merge {parts}")), "incomplete|not a scan file|is broken|missing")

    def test_mpirun(self):
        if not shutil.which("mpirun"):
            self.skipTest("mpirun (Open MPI) is not installed")
        parts = self.dir / "mpi"
        parts.mkdir()
        env = dict(os.environ, HOME=str(self.dir), OMPI_MCA_btl="self,vader", OMPI_MCA_plm_rsh_agent="",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", str(harness.GRADB), "-nx", "-q", "--batch",
                               "-ex", f"open {self.dump}", *harness.typed(*WATCHES),
                               "-ex", f"scan --shard auto --out {parts}"], env=env, capture_output=True, text=True,
                              timeout=4 * harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(list(parts.iterdir())), 2)
        self.assertEqual(self.hits_of(self.gradb(f"merge {parts}")), self.hits)

    def test_takes_up_where_it_was(self):
        """A scan resumes from a file truncated anywhere, as after a crash: nothing is lost or scanned twice."""
        kept = self.dir / "kept.gdscan"
        first = self.of(self.gradb(f"scan --out {kept}"), "scan")
        whole = kept.read_bytes()
        told = self.gradb(f"scan --out {kept}")
        self.assertEqual((self.of(told, "scan")["remembered"], self.of(told, "scan")["bytes"]), (first["values"], 0))
        self.assertEqual((self.hits_of(told), kept.read_bytes()), (self.hits, whole))
        for end in [9, len(whole) // 3, 2 * len(whole) // 3, len(whole) - 5]:
            kept.write_bytes(whole[:end])
            told = self.gradb(f"scan --out {kept}")
            self.assertEqual(self.hits_of(told) if end > 9 else self.hits, self.hits, end)
            if end > 9:
                self.assertEqual(kept.read_bytes()[-12:], whole[-12:])
            else:
                self.assertIn("is not overwritten", self.error(told))
        kept.write_bytes(whole)
        changed = self.dump / "rank_0" / "step_5" / "layer0.npy"
        before = changed.stat()
        os.utime(changed, (before.st_atime, before.st_mtime + 10))
        again = self.of(self.gradb(f"scan --out {kept}"), "scan")
        os.utime(changed, (before.st_atime, before.st_mtime))
        self.assertTrue(first["values"] - 3 * LAYERS <= again["remembered"] < first["values"], again)
        self.assertIn("another file", self.error(self.gradb(f"scan --out {kept}", watches=["watch TO"])))
        foreign = self.dir / "precious"
        foreign.write_text("mine\n")
        self.assertIn("not overwritten", self.error(self.gradb(f"scan --out {foreign}")))
        self.assertEqual(foreign.read_text(), "mine\n")

    def test_killed(self):
        """What gradb had found when it was killed is known to the next one."""
        big = self.dir / "big"
        for step in range(3):
            (big / f"step_{step}").mkdir(parents=True)
            for layer in range(150):
                np.save(big / f"step_{step}" / f"layer{layer}.npy", np.zeros(1000, "f4"))
        kept = self.dir / "killed.gdscan"
        with harness.Gradb("-nx", listen=None, command=(), env=self.state) as gradb:
            gradb.run(f"open {big}", "nodes")
            gradb.run("watch mean > 1", "Watchpoint 1")
            gradb.send(f"scan --out {kept}")
            harness.wait_for("something remembered", lambda: kept.exists() and kept.stat().st_size > 500)
            gradb.process.kill()
        told = self.gradb(f"scan --out {kept}", watches=["watch mean > 1"], dump=big)
        self.assertGreater(self.of(told, "scan")["remembered"], 0)
        self.assertEqual(self.of(told, "scan")["values"], 450)

    def test_reads_once(self):
        """A file is read only once, also if several conditions need it, or the next step does."""
        once = self.dir / "once"
        for step in range(12):
            for rank in range(RANKS):
                folder = once / f"rank_{rank}" / f"step_{step}"
                folder.mkdir(parents=True)
                for layer in range(4):
                    array = np.full(1 << 15, step // 5 if layer == 2 else step, "f4")
                    np.save(folder / f"layer{layer}.npy", array)
        size = 12 * 4 * 4 << 16  # the headers were read when it was opened
        watches = ["watch TO", "watch abs_mean(cur-prev) == 0", "watch norm_ratio > 3"]
        with harness.Gradb("-nx", listen=None, command=(), env=self.state) as gradb:
            gradb.run(f"open {once}", "4 nodes")
            for number, watch in enumerate(watches):
                gradb.run(watch, f"Watchpoint {number + 1}")
            io = pathlib.Path(f"/proc/{gradb.process.pid}/io")
            before = int(io.read_text().split()[1])
            gradb.run("scan", r"hits? \(info hits")
            read = int(io.read_text().split()[1]) - before
        self.assertTrue(size <= read < 1.25 * size, (read, size))
        told = self.gradb("scan", watches=watches, dump=once)
        same = [(hit["step"], hit["rank"], hit["node"]) for hit in self.hits_of(told)
                if hit["watchpoint"] == 2 and not hit["error"]]
        self.assertEqual(same, [(step, rank, "layer2") for step in range(1, 12) if step % 5 for rank in range(RANKS)])

    def test_interrupted(self):
        """C-c while scanning files too large to be read at once; gradb answers, and knows how far it got."""
        vast, kept = self.dir / "vast", self.dir / "vast.gdscan"
        vast.mkdir()
        for layer in range(4):
            np.save(vast / f"layer{layer}.npy", np.zeros(1, "f4"))
            head = (vast / f"layer{layer}.npy").read_bytes()[:128]
            count = 1 << 33
            (vast / f"layer{layer}.npy").write_bytes(head.replace(b"(1,), }" + b" " * 10, b"(%d,), }" % count + b" "))
            os.truncate(vast / f"layer{layer}.npy", 128 + 4 * count)
        with harness.Gradb("-nx", listen=None, command=(), env=self.state) as gradb:
            gradb.run(f"open {vast}", "4 nodes")
            gradb.run("watch max > 1", "Watchpoint 1")
            gradb.send(f"scan --out {kept}")
            harness.wait_for("the scan", kept.exists)
            gradb.interrupt()
            gradb.expect(r"interrupted after .*: run the same scan again to continue")
            gradb.run("info watchpoints", "max > 1")

    def test_refusals(self):
        for command, words in [("scan steps 9..3", "empty range"), ("scan steps", "missing after steps"),
                               ("scan --shard 4/3 --out x", "not a part"), ("scan --shard 0/3 --out x", "not a part"),
                               ("scan --shard 1/3", "--out FILE"), ("scan now 1", "unknown option"),
                               ("scan --shard auto", "not started by mpirun or srun"), ("merge", "part files"),
                               ("scan steps 100..", "nothing to scan"), ("scan ranks ,", "needs numbers"),
                               ("merge /dev/null", "regular file"), (f"scan --out {self.dir}/no/x", "No such file")]:
            self.assertIn(words, self.error(self.gradb(command)), command)
        self.assertIn("nothing to scan", self.error(self.gradb("scan", watches=[])))

    def test_unreadable_and_checkpoints(self):
        broken = self.dir / "broken"
        shutil.copytree(self.dump / "rank_0", broken)
        path = broken / "step_2" / "layer2.npy"
        path.write_bytes(path.read_bytes()[:-4])
        scan = self.of(self.gradb("scan", watches=["watch TO"], dump=broken), "scan")
        self.assertEqual(scan["values"] + 1 - scan["unreadable"], STEPS * LAYERS)
        half = struct.pack("<3e", 1, float("nan"), 2)
        head = json.dumps({"w": {"dtype": "F16", "shape": [3], "data_offsets": [0, 6]},
                           "v": {"dtype": "F16", "shape": [1], "data_offsets": [4, 6]}}).replace('[4, 6]', '[6, 8]')
        model = self.dir / "model.safetensors"
        model.write_bytes(struct.pack("<Q", len(head)) + head.encode() + half + half[:2])
        told = self.gradb("scan", "info hits", watches=["watch TO"], dump=model)
        self.assertEqual((self.of(told, "scan")["values"], self.of(told, "scan")["hits"]), (2, 1))


if __name__ == "__main__":
    harness.main()
