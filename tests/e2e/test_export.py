# SPDX-License-Identifier: GPL-3.0-or-later
"""export tensorboard and export html, and tables in CSV files: read back by others, equal to what gradb has."""
import html.parser
import json
import re
import struct
import subprocess
import unittest

import harness
import venvs

# Reads a folder as TensorBoard does: {name: [[step, value], ...]}.
TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing import event_accumulator
found = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
print(json.dumps({name: [[e.step, e.value] for e in found.Scalars(name)] for name in found.Tags()["scalars"]}))
"""
# The same as MindInsight, with MindSpore's own messages.
MINDINSIGHT = """
import json, struct, sys
from mindspore.train import summary_pb2
found, at, data = {}, 0, open(sys.argv[1], "rb").read()
while at < len(data):
    size, = struct.unpack_from("<Q", data, at)
    event = summary_pb2.Event.FromString(data[at + 12:at + 12 + size])
    at += 16 + size
    for value in event.summary.value:
        found.setdefault(value.tag, []).append([event.step, value.scalar_value])
print(json.dumps(found))
"""


def checksum(data):
    """TFRecord's."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


class Page(html.parser.HTMLParser):
    """What matters of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.links, self.curves, self.bad = [], "", [], 0, 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "path", "polyline"):
            self.open.append(tag)
        self.curves += ("class", "curve") in attrs
        self.bad += ("class", "bad") in attrs
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.folder_of(cls)
        program = " ".join([str(harness.CHARLM), *harness.SMALL, "--batch", "2", "--threads", "1", "--steps", "9"])
        commands = ["set on-error continue", "run -- " + program, "trace -step 'max > 1e30' on head.bias",
                    "trace -step 'max > -1' on head.bias", "step 6", "plot loss grad_norm > series.csv",
                    "info history head.bias norm max > 'bias.csv'", "info history loss > loss.CSV",
                    "info history loss >> loss.CSV", "print loss > none.csv", "export tensorboard board",
                    "export html page.html", "export tensorboard /dev/null/no", "export html /dev/null/no",
                    "export html", "watch loss > 100", "info watchpoints"]
        cls.done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0", *harness.typed(*commands),
                                     cwd=cls.folder)
        records = [json.loads(line) for line in cls.done.stdout.splitlines()]
        cls.exported = [record for record in records if record["type"] == "exported"]

    def errors(self):
        return [json.loads(line)["message"] for line in (self.done.stdout + self.done.stderr).splitlines()
                if line.startswith('{"v":1,"type":"error"')]

    def series(self):
        """Name -> {step: value}, of the CSV file."""
        head, *rows = [line.split(",") for line in (self.folder / "series.csv").read_text().splitlines()]
        return {name: {int(row[0]): float(row[i]) for row in rows} for i, name in enumerate(head) if i}

    def board(self):
        found = list((self.folder / "board").iterdir())
        self.assertEqual(len(found), 1)
        return found[0]

    def test_csv(self):
        series = self.series()
        self.assertEqual(set(series), {"loss", "grad_norm"})
        self.assertEqual(list(series["loss"]), [1, 2, 3, 4, 5, 6])
        loss = (self.folder / "loss.CSV").read_text().splitlines()
        self.assertEqual(loss[0], "Step,value")
        self.assertEqual([float(line.split(",")[1]) for line in loss[1:]], 2 * list(series["loss"].values()))
        self.assertRegex((self.folder / "bias.csv").read_text(), r"^Step,norm,max\n1,[\d.e-]{12,},")
        self.assertFalse((self.folder / "none.csv").exists())
        self.assertIn("print printed no table, and a .csv file gets only tables", self.errors())

    def test_records(self):
        """Framing, checksums, and names that both programs look for."""
        data, at, count = self.board().read_bytes(), 0, 0
        self.assertRegex(self.board().name, r"tfevents.*summary\.\d+")
        while at < len(data):
            size, crc = struct.unpack_from("<QI", data, at)
            self.assertEqual(crc, checksum(data[at:at + 8]))
            body = data[at + 12:at + 12 + size]
            self.assertEqual(struct.unpack_from("<I", data, at + 12 + size)[0], checksum(body))
            at, count = at + 16 + size, count + 1
        self.assertEqual(count, 1 + self.exported[0]["values"])

    def read_by(self, venv, program, path):
        python = venvs.python(venv)
        if not python:
            self.skipTest("no " + venv)
        done = subprocess.run([python, "-c", program, str(path)], capture_output=True, text=True, check=False,
                              timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        for name, values in self.series().items():
            self.assertEqual([step for step, _ in found[name]], list(values))
            for step, value in found[name]:
                self.assertEqual(value, struct.unpack("f", struct.pack("f", values[step]))[0])
        self.assertEqual(len(found["Default/network/head.bias:0/max"]), 6)

    def test_tensorboard(self):
        self.read_by("tools", TENSORBOARD, self.folder / "board")

    def test_mindinsight(self):
        self.read_by("mindspore", MINDINSIGHT, self.board())

    def test_page(self):
        text = (self.folder / "page.html").read_text()
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.links, [])
        self.assertNotRegex(text, r"https?:|url\(|@import")
        self.assertEqual(page.curves, self.exported[1]["series"])
        for part in ("--batch 2", "max > -1", "Why Default/network/head.bias", "loss", "gradb",
                     "Default/network/head.bias:0/max"):
            self.assertIn(part, page.text)
        self.assertNotIn("max > -1", text)  # escaped
        for name, values in self.series().items():
            self.assertRegex(page.text, re.escape(name) + r" [\d.]+ at step 6")
            self.assertEqual(list(values)[-1], 6)

    def test_errors(self):
        errors = self.errors()
        self.assertIn("export html: specify a file", errors)
        self.assertTrue(any("cannot make the folder /dev/null/no" in error for error in errors), errors)
        self.assertTrue(any("/dev/null/no" in error and "folder" not in error for error in errors), errors)
        self.assertFalse((self.folder / "100").exists())  # `>` of an expression is none of a redirection


if __name__ == "__main__":
    harness.main()
