# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory snapshots: what `info memory` says equals what a slow replay of the same dict gives."""
import pickle
import pickletools
import random
import unittest
import zipfile

import numpy as np

import harness
import snapshot_writer
import snapshots
from snapshot_writer import Device, snapshot, train


def blocks_of(found, device):
    """The blocks in use, by address: requested bytes and frames."""
    return {block["address"]: (block["requested_size"], block["frames"])
            for segment in found["segments"] if segment["device"] == device for block in segment["blocks"]
            if block["state"] != "inactive"}


def churn(device, seed, steps=800):
    """Random allocations and frees, some of which another stream holds back."""
    generator, live = random.Random(seed), []
    stacks = [name for name in snapshot_writer.STACKS if name != "nothing"]
    for _ in range(steps):
        if live and generator.random() < 0.47:
            device.free(live.pop(generator.randrange(len(live))), pending=generator.random() < 0.02)
        else:
            size = generator.choice((generator.randrange(1, 5000), generator.randrange(1, 3 << 20)))
            live.append(device.alloc(size, generator.choice(stacks)))


class Reports(snapshots.Snapshots):
    def check(self, found, report, device=0):
        """Totals, the peak and what held it."""
        segments = [s for s in found["segments"] if s["device"] == device]
        blocks = [b for s in segments for b in s["blocks"]]
        row = next(d for d in report["devices"] if d["name"] == f"device {device}")
        free = [b["size"] for b in blocks if b["state"] == "inactive"]
        used = [b for b in blocks if b["state"] == "active_allocated"]
        self.assertEqual(row["reserved"], sum(s["total_size"] for s in segments))
        self.assertEqual(row["allocated"], sum(s["allocated_size"] for s in segments))
        self.assertEqual(row["requested"], sum(b["requested_size"] for b in used))
        self.assertEqual((row["segments"], row["blocks"]), (len(segments), len(used)))
        self.assertEqual(row["unused"], sum(free))
        self.assertEqual(row["largest_free"], max(free, default=0))
        self.assertEqual(row["split"], sum(b["size"] for s in segments if len(s["blocks"]) > 1 for b in s["blocks"]
                                           if b["state"] == "inactive"))
        total, event, held = snapshots.replay(found["device_traces"][device], blocks_of(found, device))
        self.assertEqual(report["peak"]["bytes"], total)
        trace = len(found["device_traces"][device])
        self.assertIn(f"event {event} of {trace} " if event else "at the start", report["peak"]["note"])
        self.assertEqual(self.rows(report["peak_nodes"]), snapshots.sums(held))

    def test_random_traces(self):
        for seed, entries in ((1, None), (2, 500), (3, 100), (4, 3)):
            device = Device(entries=entries)
            churn(device, seed)
            found = snapshot(device)
            path = self.put(found, protocol=2 + seed % 4)
            report = self.report(path)
            with self.subTest(seed=seed):
                self.check(found, report)
                self.assertEqual(self.rows(report["nodes"]), snapshots.sums({
                    b["address"]: (b["size"], b["frames"]) for s in found["segments"] for b in s["blocks"]
                    if b["state"] == "active_allocated"}))

    def test_devices(self):
        devices = [Device(0), Device(3)]
        churn(devices[0], 5, 100)
        churn(devices[1], 6, 900)
        found = snapshot(*devices)
        report = self.report(self.put(found))
        self.assertEqual([d["name"] for d in report["devices"]], ["device 0", "device 3"])
        self.check(found, report, 3)  # the peak is the higher one
        self.assertIn("on device 3", report["peak"]["note"])
        self.assertEqual(report["bytes"], sum(d["allocated"] for d in report["devices"]))

    def test_saved_by_torch_save(self):
        """A zip file whose first member is the pickle."""
        device = Device()
        train(device, 4)
        found = snapshot(device)
        path = self.folder / "snapshot.pt"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("snapshot/data.pkl", pickle.dumps(found, protocol=2))
            file.writestr("snapshot/version", "3\n")
        self.check(found, self.report(path))

    def test_kinds_and_growth(self):
        device = Device()
        train(device, 6, leak=100_000)
        report = self.report(self.put(snapshot(device)))
        size = {b["stack"]: 0 for s in device.segments for b in s["blocks"] if b["state"] != "inactive"}
        for segment in device.segments:
            for block in segment["blocks"]:
                if block["state"] != "inactive":
                    size[block["stack"]] += block["size"]
        kinds = {kind: total["bytes"] for kind, total in report["kinds"].items() if total["bytes"]}
        self.assertEqual(kinds, {"weights": size["weights"], "optimizer": size["optimizer"], "other": size["leak"]})
        peak = {row["kind"] for row in report["peak_nodes"]}
        self.assertEqual(peak, {"weights", "gradients", "optimizer", "activations", "inputs", "other"})
        grown, = report["growth"]
        self.assertEqual((grown["name"], grown["where"], grown["per_step"], grown["count"]),
                         ("remember", "/home/me/train.py:50", 100_000, 5))
        self.assertEqual((report["growth_from"], report["growth_to"]), (1, 5))

    def test_nothing_grows(self):
        device = Device()
        train(device, 12)
        report = self.report(self.put(snapshot(device)))
        self.assertEqual((report["growth"], report["growth_from"], report["growth_to"]), ([], 4, 11))
        few = Device()
        train(few, 2, leak=1000)
        report = self.report(self.put(snapshot(few)))
        self.assertNotIn("growth_from", report)
        self.assertRegex("".join(report["notes"]), "fewer than three whole steps")

    def test_a_cache_of_fixed_size(self):
        """It has blocks of each of the last steps, and does not grow: as many older ones went."""
        for keep in (5, 8, 12, 20):
            device = Device()
            train(device, 35, leak=100_000, keep=keep)
            with self.subTest(keep=keep):
                self.assertEqual(self.report(self.put(snapshot(device)))["growth"], [])

    def test_oom(self):
        device = Device()
        train(device, 2)
        device.oom(1 << 20, 1, "weights")
        kept = [device.alloc(5 << 20, "activations") for _ in range(3)]
        device.oom(7 << 30, 5 << 20, "more activations")
        for address in kept:
            device.free(address)
        found = snapshot(device)
        oom = self.report(self.put(found))["oom"]
        self.assertEqual((oom["asked"], oom["free"], oom["where"]), (7 << 30, 5 << 20, "/home/me/train.py:32"))
        self.assertRegex(oom["note"], "the last of 2")
        trace = found["device_traces"][0]
        last = max(i for i, event in enumerate(trace) if event["action"] == "oom")
        before = {}
        for event in trace[:last]:
            if event["action"] == "alloc":
                before[event["addr"]] = (event["size"], event["frames"])
            elif event["action"] == "free_completed":
                del before[event["addr"]]
        self.assertEqual(self.rows(oom["nodes"]), snapshots.sums(before))
        self.assertEqual(oom["held"], sum(size for size, _ in before.values()))

    def test_why(self):
        device = Device()
        train(device, 5, leak=3 << 20)
        quiet = self.run_on(self.put(snapshot(device)), "why")
        self.assertEqual(quiet.returncode, 1)
        self.assertIn("memory did not run out in this snapshot", quiet.stdout + quiet.stderr)
        device.oom(30 << 20, 1 << 20, "activations")
        path = self.put(snapshot(device))
        shown = self.run_on(path, "info memory").stdout
        self.assertRegex(shown, r"Peak: .* MiB, at \w+ \(/home/me/train.py:\d+\)\n  event \d+ of \d+ on device 0, ")
        self.assertNotIn("unknown", shown)
        done = self.run_on(path, "why")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?s)Out of memory on device 0: 30 MiB asked for by forward "
                         r"\(/home/me/train.py:31\), 1 MiB free on the device.*remember  /home/me/train.py:50.*"
                         r"in pieces that were too small, lost to rounding, or in other pools. .*"
                         r"Grows by 3 MiB each step: remember \(/home/me/train.py:50\), 4 blocks")
        why, = harness.records(self.run_on(path, "why", json=True), "oom")
        row, = why["memory"]["devices"]
        self.assertEqual(why["memory"]["oom"]["unheld"], row["reserved"] - row["requested"])

    def test_why_elsewhere(self):
        done = self.run_on(self.put({"a": 1.5}, "values.pkl"), "why")
        self.assertNotIn("snapshot", done.stdout + done.stderr)

    def test_old_snapshots(self):
        device = Device()
        train(device, 5, leak=5000)
        new, old = (self.report(self.put(snapshot(device, old=o))) for o in (False, True))
        self.assertEqual(new, old)
        self.assertEqual(self.report(self.put(snapshot(device, old=True)["segments"]))["nodes"], new["nodes"])

    def test_shared_and_repeated_frames(self):
        device = Device()
        train(device, 4)
        found = snapshot(device)
        expected = self.report(self.put(found))
        for trace in found["device_traces"]:
            for event in trace:
                event["frames"] = [{k: v[:1] + v[1:] if isinstance(v, str) else v for k, v in f.items()}
                                   for f in event["frames"]]
        self.assertEqual(self.report(self.put(found)), expected)
        found = {"device_traces": found.pop("device_traces"), **found}
        self.assertEqual(self.report(self.put(found, protocol=5)), expected)
        self.assertEqual(self.report(self.put(pickletools.optimize(pickle.dumps(found, protocol=4)))), expected)

    def test_written_by_cpp(self):
        device = Device()
        train(device, 5, leak=5000)
        device.free(device.alloc(1000, "batch"), pending=True)
        device.oom(1 << 30, 1, "weights")
        found = snapshot(device)
        data = snapshots.Jit().dumps(found)
        self.assertEqual(pickle.loads(data), found)
        self.assertEqual(self.report(self.put(data)), self.report(self.put(found)))

    def test_without_a_trace(self):
        device = Device()
        train(device, 2)
        found = snapshot(device)
        found["device_traces"] = [[]]
        report = self.report(self.put(found))
        self.assertRegex(report["peak"]["note"], "_record_memory_history")
        self.assertNotIn("bytes", report["peak"])
        self.assertNotIn("peak_nodes", report)

    def test_expandable_segments(self):
        device = Device()
        train(device, 3)
        device.event("segment_map", 2 << 20, "nothing", addr=1 << 40)
        device.event("segment_unmap", 2 << 20, "nothing", addr=1 << 40)
        device.event("workspace_snapshot", 0, "nothing", addr=0)
        report = self.report(self.put(snapshot(device)))
        row, = report["devices"]
        self.assertEqual(row["peak_reserved"], row["reserved"] + (2 << 20))


class Folders(snapshots.Snapshots):
    def test_recognised_by_content(self):
        device = Device()
        train(device, 2)
        found = snapshot(device)
        self.put(found, "rank_0.pickle")
        self.put(found, "rank_1.pkl")
        self.put({"segments": 3, "weights": [1.5]}, "other.pickle")
        self.put({"segments": [1, 2]}, "numbers.pkl")
        done = self.run_on(self.folder, "info formats", "info sessions")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("a pickle that begins with \"segments\""), 2, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ +\d+ +1 .*stopped")
        path = self.put(found, "of any name")
        self.assertGreater(self.report(path)["bytes"], 0)

    def test_beside_checkpoints(self):
        """The checkpoints stay one dump: their tensors keep the names that tell them apart."""
        device = Device()
        train(device, 2)
        for name in ("one", "two"):
            np.savez(self.folder / f"{name}.npz", weight=np.arange(3))
        def nodes():
            done = self.run_on(self.folder, "info nodes", "session 2", "info memory", json=True)
            return harness.records(done, "nodes")[0], harness.records(done, "memory")

        before, _ = nodes()
        self.put(snapshot(device), "snapshot.pkl")
        self.put(snapshot(device), "snapshot.pt")
        after, memory = nodes()
        self.assertEqual(before, after)
        self.assertEqual({node["node"] for node in after["nodes"]}, {"one/weight", "two/weight"})
        self.assertGreater(memory[0]["bytes"], 0)

    def test_two_of_one_rank(self):
        device = Device()
        train(device, 2)
        for name in ("a.pickle", "b.pickle"):
            self.put(snapshot(device), name)
            train(device, 1)
        done = self.run_on(self.folder, "info memory", "session 2", "info memory", json=True)
        sizes = [record["bytes"] for record in harness.records(done, "memory")]
        self.assertEqual(len(sizes), 2, done.stdout + done.stderr)
        self.assertLess(*sizes)

    def test_other_dumps_have_no_snapshot(self):
        path = self.put({"a": 1.5}, "values.pkl")
        done = self.run_on(path, "info memory")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    harness.main()
