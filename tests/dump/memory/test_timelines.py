# SPDX-License-Identifier: GPL-3.0-or-later
"""What PyTorch writes about memory beside snapshots: the profiler's memory timelines, and the pages of _memory_viz. Each
is compared with what the file says when Python reads it."""
import base64
import gzip
import json
import subprocess
import unittest

import harness
import venvs

SCRIPT = """
import pickle, sys, torch
from torch.cuda import _memory_viz
from torch.profiler import ProfilerActivity, profile
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(net.parameters())
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True) as profiled:
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
for name in ("line.json", "line.json.gz", "line.raw.json.gz"):
    profiled.export_memory_timeline(name, device="cpu")
snapshot = _memory_viz._profile_to_snapshot(profiled)
with open("snapshot.pickle", "wb") as file:
    pickle.dump(snapshot, file)
for name, page in (("trace.html", _memory_viz.trace_plot(snapshot)), ("segments.html", _memory_viz.segment_plot(snapshot)),
                   ("profile.html", _memory_viz.profile_plot(profiled))):
    with open(name, "w") as file:
        file.write(page)
"""
KINDS = ["weights", "optimizer", "inputs", "other", "activations", "gradients", "other", "other"]


class Timelines(unittest.TestCase):
    def gradb(self, path, status=0):
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(f"open {path}", "info memory"))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1]) if status == 0 else done.stdout + done.stderr

    def kinds(self, sizes):
        """Bytes by gradb's kinds."""
        found = dict.fromkeys(KINDS, 0)
        for kind, size in zip(KINDS, sizes):
            found[kind] += size
        return {kind: size for kind, size in found.items() if size}

    def check(self, memory, end, peak):
        self.assertEqual({kind: one["bytes"] for kind, one in memory["kinds"].items() if one["bytes"]}, self.kinds(end))
        self.assertEqual(memory["peak"]["bytes"], sum(peak))
        found = {}
        for row in memory["peak_nodes"]:
            found[row["kind"]] = found.get(row["kind"], 0) + row["bytes"]
        self.assertEqual(found, self.kinds(peak))

    def test_what_torch_writes(self):
        if venvs.python("torch") is None:
            self.skipTest("no build/torch-venv: ./dev makes it where pip can install packages")
        folder = harness.folder_of(self)
        (folder / "train.py").write_text(SCRIPT)
        done = subprocess.run([venvs.python("torch"), "train.py"], cwd=folder, capture_output=True, text=True, check=False,
                              timeout=8 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, sizes = json.loads((folder / "line.json").read_text())
        rows = [row[1:] for row in sizes]
        self.assertGreater(len(rows), 50)
        peak = max(rows, key=sum)
        self.check(self.gradb(folder / "line.json"), rows[-1], peak)
        self.assertEqual(self.gradb(folder / "line.json.gz")["kinds"], self.gradb(folder / "line.json")["kinds"])
        now, best = [0] * 8, [0] * 8
        for _, _, size, category in json.loads(gzip.decompress((folder / "line.raw.json.gz").read_bytes())):
            now[category] += size
            best = now[:] if sum(now) > sum(best) else best
        raw = self.gradb(folder / "line.raw.json.gz")
        self.check(raw, now, best)
        self.assertEqual(raw["kinds"]["weights"]["count"], 4)
        snapshot = self.gradb(folder / "snapshot.pickle")
        self.assertEqual(snapshot["peak"]["bytes"], sum(best))
        for name in ("trace", "segments", "profile"):
            self.assertEqual(self.gradb(folder / f"{name}.html"), snapshot, name)

    def test_forms_that_look_alike(self):
        """Times of four moments are not an event."""
        folder = harness.folder_of(self)
        (folder / "a.json").write_text(json.dumps([[1000, 2000, 3000, 5000], [[0, 8, 0, 0, 0, 0, 0, 0, 0]] * 3
                                                   + [[0, 8, 4, 0, 0, 0, 0, 0, 0]]]))
        memory = self.gradb(folder / "a.json")
        self.check(memory, [8, 4], [8, 4])
        self.assertIn("0.004 s after the first moment", memory["peak"]["note"])
        (folder / "b.json").write_text(json.dumps([[-1, 1, 64, 0], [7, 2, 32, 4], [9, 4, -32, 4]]))
        self.check(self.gradb(folder / "b.json"), [64], [64, 0, 0, 0, 32])

    def test_broken(self):
        folder = harness.folder_of(self)
        whole = json.dumps([[-1, 1, 64, 0], [7, 2, 32, 4], [9, 4, -32, 4]])
        (folder / "cut.json").write_text(whole[:-12])
        self.check(self.gradb(folder / "cut.json"), [64, 0, 0, 0, 32], [64, 0, 0, 0, 32])
        for text in ('[[1, 2, 3, 99]]', '[[1, 2, 3e99, 0]]', '[[1, 2, 4503599627370497, 0]]', '[[1, 2], "x"]', "[[-1"):
            (folder / "bad.json").write_text(text)
            self.assertRegex(self.gradb(folder / "bad.json", status=1), r'"error"|^error: ', text)
        page = '<!DOCTYPE html>\n<html>\n<script>import {a} from "MemoryViz.js"\nx = [{"base64": "%s'
        for inside, why in (("gASV", "truncated at byte"), ('gA#V"', "not base64 at byte"), ('gASV"}]', "")):
            (folder / "page.html").write_text(page % inside)
            self.assertIn(why, self.gradb(folder / "page.html", status=1))
        (folder / "line.html").write_text("<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title>"
                                          "</head>\n<body>\n  <img src='data:image/png;base64,iVBORw0KGgo='>\n</body></html>")
        (folder / "flame.svg").write_text(
            '<?xml version="1.0" standalone="no"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" '
            '"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<svg version="1.1" width="1200" height="1000" '
            'onload="init(evt)" viewBox="0 0 1200 1000" xmlns="http://www.w3.org/2000/svg" '
            'xmlns:xlink="http://www.w3.org/1999/xlink">\n<!-- Flame graph stack visualization. See '
            'https://github.com/brendangregg/FlameGraph for latest version -->\n</svg>\n')  # as flamegraph.pl begins
        for name in ("line.html", "flame.svg"):
            self.assertIn("is a picture of memory, without its numbers: open the snapshot",
                          self.gradb(folder / name, status=1))
        bad = page % base64.b64encode(b"\x80\x04}\x94\x8c\x08segments\x94cos\nsystem\n.").decode() + '"}]'
        (folder / "page.html").write_text(bad)
        self.assertIn("page.html (the snapshot in it): ", self.gradb(folder / "page.html", status=1))


if __name__ == "__main__":
    harness.main()
