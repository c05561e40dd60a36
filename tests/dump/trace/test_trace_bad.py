# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces that are truncated, wrong, hostile or unusual: one clear line each, or what could be read."""
import gzip
import json
import pathlib
import random
import resource
import tempfile
import unittest

import harness


def event(name, start, duration, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, **more}


class Bad(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradb-trace-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, text, *commands, name="bad.pt.trace.json", status=0):
        path = self.folder / name
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {path}", *commands),
                                 timeout=2 * harness.DEADLINE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def refused(self, text, pattern, **how):
        told = self.open(text, status=1, **how)
        self.assertEqual(len(told.splitlines()), 1, told)
        self.assertRegex(told, "^error: .*" + pattern)

    def operators(self, events, what="info timing operators"):
        path = self.folder / "odd.pt.trace.json"
        path.write_text(json.dumps({"traceEvents": events}))
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(f"open {path}", what))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])["operators"]
        return {op["type"]: (op["calls"], round(op["seconds"] * 1e6, 3)) for op in found}

    def test_truncated(self):
        events = [event(f"aten::op{i}", 10 * i, 5.5) for i in range(1000)]
        whole = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
        told = self.open(whole[:40000])
        self.assertRegex(told, r"bad\.pt\.trace\.json: SUSPICIOUS: the file is truncated at byte 40000; the events before")
        packed = gzip.compress(whole)
        told = self.open(packed[:len(packed) // 2], name="bad.json.gz")
        self.assertRegex(told, f"truncated at byte {len(packed) // 2};")
        self.refused(whole[:60], "the JSON ends unexpectedly")
        self.refused(b"", "empty", name="empty.trace.json")

    def test_a_list_needs_no_last_bracket(self):
        """Chrome's format lets writers omit it; a list that ends inside an event is truncated."""
        text = json.dumps([event(f"aten::op{i}", 10 * i, 5) for i in range(50)])[:-1]
        for ending in ("", ",", ",\n"):
            for name, data in (("a.trace.json", (text + ending).encode()),
                               ("a.trace.json.gz", gzip.compress((text + ending).encode()))):
                told = self.open(data, "info timing", name=name)
                self.assertNotIn("SUSPICIOUS", told)
                self.assertIn("aten::op49", told + self.open(data, "info timing operators -a", name=name))
        self.assertIn("truncated at byte %d;" % (len(text) - 1), self.open(text[:-1].encode(), name="a.trace.json"))
        self.assertIn("truncated", self.open('{"traceEvents": ' + text, name="a.trace.json"))
        packed = gzip.compress(text.encode())  # the end of its data is missing, although the events are there
        self.assertIn("truncated", self.open(packed[:-8], name="a.trace.json.gz"))

    def test_zeros_after_a_gzip_file(self):
        """gzip itself ignores them, between members, too."""
        text = json.dumps([event(f"aten::op{i}", 10 * i, 5) for i in range(50)]).encode()
        packed = gzip.compress(text[:200]) + bytes(300_000) + gzip.compress(text[200:]) + bytes(512)
        self.assertNotIn("SUSPICIOUS", self.open(packed, "info timing", name="a.trace.json.gz"))
        self.refused(gzip.compress(text)[:40] + bytes(600), "damaged gzip", name="a.trace.json.gz")

    def test_more_rows_than_are_shown(self):
        events = {"traceEvents": [event(f"aten::op{i}", 10 * i, 5) for i in range(30)]}
        for command, shown in (("info timing", 5), ("info timing types", 20), ("info timing operators", 20)):
            told, full = self.open(events, command), self.open(events, command + " -a")
            self.assertEqual((told.count("aten::op"), full.count("aten::op")), (shown, 30))
            self.assertRegex(told, rf"\({30 - shown} more: info timing \w+ -a\)")
            self.assertNotIn(" more: ", full)

    def test_wrong(self):
        self.refused('{"traceEvents": [{"ph": "X", "name": "a" "ts": 1}]}', "invalid JSON at byte 41: expected ','")
        self.refused('{"schemaVersion": 1}', 'is not a trace: it has no "traceEvents"')
        self.refused('"text"', "is not a trace: it is not a list of events")
        self.refused({"traceEvents": []}, "a trace without events that take time")
        self.refused({"traceEvents": [1, None, "x", [[]]]}, "a trace without events that take time")
        self.refused('{"traceEvents": [{"args": ' + "[" * 5000 + "]" * 5000 + "}]}", "nested deeper than 64 levels")
        self.refused(gzip.compress(b"[" * 100)[:-8] + b"12345678", "damaged gzip|nested deeper|unexpectedly",
                     name="bad.trace.json.gz")

    def test_wrong_types_and_numbers(self):
        odd = [event("good", 1, 2), event("none", None, 2), event("text", "x", 2), event("late", 1e300, 2),
               event("back", 1, -2), event("nan", float("nan"), 2), event("list", [], {}), event({}, 5, 1),
               event("args", 10, 1, args=[1, 2]), event("deep", 12, 1, args={"Input Dims": [[[[1]], "x"], {"a": 1}]}),
               event("huge id", 14, 1, args={"External id": 10 ** 30, "Sequence number": -1})]
        self.assertEqual(self.operators(odd), {"good": (1, 2.0), "args": (1, 1.0), "deep": (1, 1.0), "huge id": (1, 1.0)})
        told = self.open({"traceEvents": odd}, "info target")
        self.assertRegex(told, "events left out +6 with an impossible time, 0 without an end")

    def test_long_strings(self):
        """Of 10 MB: bounded memory, the name is cut."""
        path = self.folder / "long.trace.json"
        path.write_text(json.dumps([event("x" * 10_000_000, 1, 2), event("y", 1, 2, args={"note": "z" * 10_000_000})]))
        done = harness.run_gradb("-nx", "--batch", *harness.typed(f"open {path}", "info timing operators"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLess(len(done.stdout), 5000)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 400 << 10)

    def test_nesting(self):
        """In any order, with fractions as numbers or text; an overlap is not a call."""
        events = [event("outer", "100.001", "50"), event("inner", 110.5, 10.25), event("innermost", 111, 2),
                  event("inner", 130, 5), event("other", 145, 20),
                  {**event("thread", 105, 100), "tid": 2},
                  {"ph": "B", "name": "paired", "pid": 1, "tid": 3, "ts": 1}, {"ph": "E", "pid": 1, "tid": 3, "ts": 4.5},
                  {"ph": "B", "name": "endless", "pid": 1, "tid": 3, "ts": 5}]
        expected = {"outer": (1, 34.75), "inner": (2, 13.25), "innermost": (1, 2.0), "other": (1, 20.0),
                    "thread": (1, 100.0), "paired": (1, 3.5)}
        for seed in range(5):
            random.Random(seed).shuffle(events)
            events.sort(key=lambda e: e["ph"] == "E")
            self.assertEqual(self.operators(events), expected)

    def test_longest_times(self):
        """Their sum exceeds 64 bits of nanoseconds."""
        events = [{**event("slow", 0, 4.5e15), "tid": thread} for thread in range(4)]
        self.assertEqual(self.operators(events), {"slow": (4, 1.8e16)})

    def test_kernels(self):
        """Kernels belong to what launched them; communication that no kernel covers is exposed."""
        events = [event("ProfilerStep#7", 0, 100, cat="user_annotation"),
                  event("aten::mm", 10, 5, args={"External id": 3, "Input Dims": [[4, 8], [8, 2]],
                                                 "Input type": ["c10::Half", "c10::Half"]}),
                  event("gemm", 20, 30, cat="kernel", tid=7, args={"External id": 3, "stream": 7}),
                  event("Memcpy HtoD", 2, 3, cat="gpu_memcpy", tid=7),
                  event("ncclDevKernel_AllReduce", 40, 25, cat="kernel", tid=9)]
        path = self.folder / "gpu.pt.trace.json"
        path.write_text(json.dumps({"distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": events}))
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(
            f"open {path}", "info timing operators", "info node aten::mm", "info timing steps", "info target"))
        _, operators, node, steps, target = harness.records(done)
        lanes = {op["type"]: (op["lane"], round(op["seconds"] * 1e6, 3), op["shape"]) for op in operators["operators"]}
        self.assertEqual(lanes, {"aten::mm": ("host", 5, "float16 (4, 8) x (8, 2)"), "gemm": ("device", 30, ""),
                                 "Memcpy HtoD": ("device", 3, ""),
                                 "ncclDevKernel_AllReduce": ("communication", 25, "")})
        self.assertEqual(node["attributes"]["device us"], "30.000")
        step = steps["steps"][0]
        self.assertEqual((step["step"], round(step["communication"] * 1e6), round(step["exposed"] * 1e6)), (7, 25, 15))
        self.assertEqual(target["rank"], 3)


if __name__ == "__main__":
    harness.main()
