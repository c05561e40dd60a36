# SPDX-License-Identifier: GPL-3.0-or-later
"""What both PyTorch versions write is read bit for bit: types, views, state dicts, optimizers, whole modules."""
import json
import os
import pathlib
import subprocess
import sys
import unittest
import zipfile

import dumptool
import harness
import numpy as np

sys.path.append(str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

WRITER = pathlib.Path(__file__).resolve().parent / "write_torch.py"
GIVEN = ("text", "problem", "same_as", "kind", "trainable", "shape", "dtype", "note")


def as_written(values):
    """NaN of a widened float8 may have any payload: only that it is one counts."""
    return np.frombuffer(bytes.fromhex(values), "<f4")


class Files:
    python = None  # the interpreter that writes the files

    @classmethod
    def setUpClass(cls):
        if not cls.python:
            raise unittest.SkipTest("no PyTorch: python3-torch or build/torch-venv of ./dev is missing")
        cls.dir = harness.folder_of(cls)
        cls.tool = dumptool.Tool()
        cls.addClassCleanup(cls.tool.close)
        subprocess.run([cls.python, WRITER, cls.dir], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
                       timeout=4 * harness.DEADLINE)
        cls.expected = json.loads((cls.dir / "expected.json").read_text())["files"]

    def check(self, path, entries, **options):
        """The file has exactly these entries, in this order."""
        found = self.tool.entries(path, **options)
        self.assertEqual(list(found), list(entries), path)
        for name, want in entries.items():
            got = {key: found[name][key] for key in GIVEN if key in found[name] and key in want}
            self.assertEqual(got, {key: want[key] for key in GIVEN if key in want}, (path, name))
            self.assertEqual("same_as" in found[name], "same_as" in want, (path, name))
            if "hex" in want:
                self.same(self.tool.ask("read", path, name=name, **options), want, (path, name))

    def same(self, got, want, what):
        self.assertEqual((got["dtype"], got["shape"]), (want["dtype"], want["shape"]), what)
        if what[1].startswith("float8"):
            np.testing.assert_array_equal(as_written(got["hex"]), as_written(want["hex"]), str(what))
        else:
            self.assertEqual(got["hex"], want["hex"], what)

    def test_every_file(self):
        for name, entries in self.expected.items():
            self.check(self.dir / name, entries)

    def test_formats_and_notes(self):
        for name, kind, notes in (("types.pt", "torch", []), ("types.legacy", "torch-legacy", []),
                                  ("arrays4.pkl", "pickle", []),
                                  ("module.pt", "torch", ["listed, not created: __main__.Net", "torch.nn.modules.linear.Linear", ", ..."])):
            answer = self.tool.open(self.dir / name)
            self.assertEqual(answer["format"], kind)
            self.assertEqual(len(answer["notes"]), 1 if notes else 0, answer["notes"])
            for word in notes:
                self.assertIn(word, answer["notes"][0])

    def test_slices_of_views(self):
        views = self.dir / "views.pt"
        for name, slice in (("transposed", "[1:4, 2, ::2]"), ("permuted", "[-1, ::-1]"), ("expanded", "[1, :, 2:5]"),
                            ("overlap", "[:, 1]"), ("element", ""), ("part", "[1, 1, 1]")):
            want = self.expected["views.pt"][name]
            array = np.frombuffer(bytes.fromhex(want["hex"]), want["dtype"]).reshape(want["shape"])
            got = self.tool.read(views, name, slice or None)
            picked = eval(f"array{slice}", {"array": array})  # noqa: S307 a slice of this table
            self.assertEqual(got.tobytes(), np.ascontiguousarray(picked).tobytes(), (name, slice))

    def test_key(self):
        path = self.dir / "checkpoint.pt"
        inner = {}
        for name, entry in self.expected["checkpoint.pt"].items():
            if name.startswith("state_dict."):
                inner[name[11:]] = dict(entry)
                if "same_as" in entry:
                    inner[name[11:]]["same_as"] = entry["same_as"][11:]
        self.check(path, inner, key="state_dict")
        self.assertEqual(list(self.tool.entries(path, key="args.lr")), [""])
        with self.assertRaisesRegex(dumptool.Refused, "no key model; the keys are: 'epoch', 'state_dict', 'optimizer'"):
            self.tool.open(path, key="model")

    def test_refused(self):
        with self.assertRaisesRegex(dumptool.Refused, "script.jit is a TorchScript program"):
            self.tool.open(self.dir / "script.jit")

    def test_packed_again(self):
        """Another zip program may have deflated it, and another machine may have the other byte order."""
        with zipfile.ZipFile(self.dir / "types.pt") as source, \
                zipfile.ZipFile(self.dir / "big.pt", "w", zipfile.ZIP_DEFLATED) as target:
            for entry in source.namelist():
                data = source.read(entry)
                if entry.endswith("/byteorder"):
                    continue
                if "/data/" in entry:
                    item = int(entry.rsplit("/", 1)[1])
                    width = (1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 4, 8)[item]
                    data = np.frombuffer(data, f"u{width}").byteswap().tobytes()
                target.writestr("other/" + entry.split("/", 1)[1], data)
            target.writestr("other/byteorder", "big")
        self.check(self.dir / "big.pt", self.expected["types.pt"])


class FilesDebian(Files, unittest.TestCase):
    python = torches.debian()


class FilesPip(Files, unittest.TestCase):
    python = torches.pip()


if __name__ == "__main__":
    harness.main()
