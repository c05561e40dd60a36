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
found = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
found.Reload()
scalars = {name: [[e.step, e.value] for e in found.Scalars(name)] for name in found.Tags()["scalars"]}
histograms = {name: [[e.step, e.histogram_value.min, e.histogram_value.max, e.histogram_value.num,
                      list(e.histogram_value.bucket_limit), list(e.histogram_value.bucket)]
                     for e in found.Histograms(name)] for name in found.Tags()["histograms"]}
print(json.dumps(histograms if "histograms" in sys.argv else scalars))
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
        self.open, self.text, self.links, self.curves, self.heats, self.bad = [], "", [], 0, 0, 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "path", "polyline"):
            self.open.append(tag)
        self.curves += ("class", "curve") in attrs
        self.heats += ("class", "heat") in attrs
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
                    "trace -step 'max > -1' on head.bias", "trace histogram on head.bias",
                    "plot --histogram head.bias", "step", "export html one.html", "step 5", "plot --histogram head.bias > bins.csv",
                    "plot --histogram head/bias --steps 3-4", "plot loss head.bias.histogram > mixed.csv",
                    "plot --histogram", "plot --histogram head.weight", "print head.bias",  "plot loss grad_norm > series.csv",
                    "info history head.bias norm max > 'bias.csv'", "info history loss > loss.CSV",
                    "info history loss >> loss.CSV", "print loss > none.csv", "export tensorboard board",
                    "export html page.html", "export tensorboard /dev/null/no", "export html /dev/null/no",
                    "export html", "export html ''",
                    "export trace ''", "export tensorboard ''", "watch loss > 100", "info watchpoints"]
        cls.done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0", *harness.typed(*commands),
                                     cwd=cls.folder)
        records = [json.loads(line) for line in cls.done.stdout.splitlines()]
        cls.records = records
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
        self.assertEqual(count, 1 + self.exported[1]["values"])

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

    def bins(self):
        """step -> [(low, high, count)], of the CSV file."""
        head, *rows = [line.split(",") for line in (self.folder / "bins.csv").read_text().splitlines()]
        self.assertEqual(head, ["tensor", "step", "low", "high", "count"])
        found = {}
        for name, step, low, high, count in rows:
            self.assertEqual(name, "Default/network/head.bias:0")
            found.setdefault(int(step), []).append((float(low), float(high), int(count)))
        return found

    def test_histograms(self):
        """Of each step; the last one as the tensor's values have it."""
        found = self.bins()
        self.assertEqual(list(found), [1, 2, 3, 4, 5, 6])
        values = next(record["values"] for record in self.records if record["type"] == "tensor")
        low, high = min(values), max(values)
        wanted = [0] * 40
        for value in values:
            wanted[min(int((value - low) / (high - low) * 40), 39)] += 1
        self.assertEqual([count for _, _, count in found[6]], wanted)
        self.assertAlmostEqual(found[6][0][0], low, delta=1e-9)
        self.assertAlmostEqual(found[6][-1][1], high, delta=1e-9)
        plots = [record["series"] for record in self.records if record["type"] == "plot"]
        self.assertEqual([series["name"] for series in plots[0]], ["Default/network/head.bias:0"])
        histograms = plots[0][0]["histograms"]
        self.assertEqual([histogram["step"] for histogram in histograms], [3, 4])
        for histogram in histograms:
            rows = found[histogram["step"]]
            self.assertEqual(histogram["counts"], [count for _, _, count in rows])
            self.assertEqual((histogram["low"], histogram["high"]), (rows[0][0], rows[-1][1]))
            self.assertEqual((histogram["nan"], histogram["inf"]), (0, 0))
            below = sum(count for _, high, count in rows if high < histogram["median"])
            self.assertLessEqual(2 * below, len(values))

    def test_histograms_in_tensorboard(self):
        python = venvs.python("tools")
        if not python:
            self.skipTest("no tools-venv")
        done = subprocess.run([python, "-c", TENSORBOARD, str(self.folder / "board"), "histograms"],
                              capture_output=True, text=True, check=False, timeout=4 * harness.DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(list(found), ["Default/network/head.bias:0/histogram"])
        wanted = self.bins()
        for step, low, high, count, limits, buckets in found["Default/network/head.bias:0/histogram"]:
            rows = wanted.pop(step)
            self.assertEqual((low, high, count), (rows[0][0], rows[-1][1], sum(row[2] for row in rows)))
            self.assertEqual(buckets, [row[2] for row in rows])
            for limit, row in zip(limits, rows):
                self.assertAlmostEqual(limit, row[1], delta=1e-12)
        self.assertEqual(wanted, {})

    def test_mindinsight(self):
        self.read_by("mindspore", MINDINSIGHT, self.board())

    def test_page(self):
        text = (self.folder / "page.html").read_text()
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.links, [])
        self.assertNotRegex(text, r"https?:|url\(|@import")
        self.assertEqual(page.curves, self.exported[2]["series"] - 1)  # and one heat map
        self.assertGreater(page.heats, 1)
        self.assertLess(page.text.index("head.bias:0/histogram"), page.text.index("Watchpoints"))
        for part in ("--batch 2", "max > -1", "Why Default/network/head.bias", "loss", "gradb",
                     "Default/network/head.bias:0/max"):
            self.assertIn(part, page.text)
        self.assertNotIn("max > -1", text)  # escaped
        for name, values in self.series().items():
            self.assertRegex(page.text, re.escape(name) + r" [\d.]+ at step 6")
            self.assertEqual(list(values)[-1], 6)

    def test_a_page_after_one_step(self):
        """Each curve is one point, which a browser draws only as a line to itself."""
        points = re.findall('points="([^"]*)"/>', (self.folder / "one.html").read_text())
        self.assertEqual(len(points), self.exported[0]["series"] - 1)
        for place in points:
            self.assertRegex(place, r"^(\S+) \1$")

    def test_errors(self):
        errors = self.errors()
        self.assertEqual(errors.count("export html: specify a file"), 2)
        self.assertIn("export trace: specify a file", errors)
        self.assertIn("export tensorboard: specify a folder", errors)
        self.assertIn("--histogram: name a tensor, such as fc1.weight", errors)
        for name in ("bias", "weight"):  # before the first step; never asked for
            self.assertIn("no histograms of Default/network/head.%s:0 are recorded: start with `trace histogram on "
                          "Default/network/head.%s`, and let the training run" % (name, name), errors)
        self.assertTrue(any("histograms and other series have different columns" in error for error in errors))
        self.assertFalse((self.folder / "mixed.csv").exists())
        self.assertTrue(any("cannot make the folder /dev/null/no" in error for error in errors), errors)
        self.assertTrue(any("/dev/null/no" in error and "folder" not in error for error in errors), errors)
        self.assertFalse((self.folder / "100").exists())  # `>` of an expression is none of a redirection


if __name__ == "__main__":
    harness.main()
