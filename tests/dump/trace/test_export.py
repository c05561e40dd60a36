# SPDX-License-Identifier: GPL-3.0-or-later
"""export trace: of an opened trace and of several ranks; what it writes is valid, and reads back as it was."""
import json
import pathlib
import random
import tempfile
import unittest

import chrome
import harness
import perfetto


def event(name, start, duration, cat="cpu_op", **more):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, **more}


EVENTS = [event("ProfilerStep#4", 0, 100.5, "user_annotation"), event("ProfilerStep#5", 120, 100, "user_annotation"),
          event("aten::linear", 5, 20, args={"Input Dims": [[2, 3], [4, 3]], "Input type": ["float", "float"],
                                             "Call stack": "model.py(12): forward;train.py(3): <module>"}),
          event("aten::addmm", 6.125, 10.25), event("odd \"name\" \\ \u00fc\u0001", 30, 5),
          event("autograd::engine::evaluate_function: AddmmBackward0", 50, 10,
                args={"Sequence number": 3, "Fwd thread id": 1}),
          event("Optimizer.step#SGD.step", 70, 20, "user_annotation"), event("aten::add_", 72, 4),
          event("gemm", 40, 30, "kernel", tid=7, args={"External id": 3}), event("aten::relu", 130, 4.5),
          {"ph": "C", "name": "loss", "pid": 1, "tid": 1, "ts": 80, "args": {"value": 0.125}}]


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradb-export-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, events, **more):
        (self.folder / name).write_text(json.dumps({**more, "traceEvents": events}))
        return self.folder / name

    def gradb(self, *commands, status=0):
        done = harness.run_gradb("-nx", "--batch", "--json", *harness.typed(*commands))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return list(map(json.loads, done.stdout.splitlines()))

    def operators(self, path):
        found = self.gradb(f"open {path}", "info timing operators")[-1]["operators"]
        return sorted((op["type"], op["calls"], round(op["seconds"] * 1e9), op["shape"], op["place"]) for op in found)

    def test_round_trip(self):
        events = EVENTS[:]
        random.Random(1).shuffle(events)
        given = self.write("in.trace.json", events, schemaVersion=1, baseTimeNanoseconds=1790857026000000000)
        for name in ("out.json", "out.json.gz"):
            written = self.gradb(f"open {given}", f"export trace {self.folder}/{name}")[-1]
            self.assertEqual([written[key] for key in ("type", "ranks", "steps", "operators", "metrics", "starts_measured")],
                             ["exported", 1, 2, 7, 1, True])
            trace = chrome.load(self.folder / name)
            self.assertEqual(chrome.problems(trace), [])
            self.assertEqual(trace["baseTimeNanoseconds"], 1790857026000000000)
            self.assertEqual(self.operators(self.folder / name), self.operators(given))
            mine, theirs = (self.gradb(f"open {path}", "info timing steps")[-1]["steps"]
                            for path in (given, self.folder / name))
            self.assertEqual(mine, theirs)
            self.assertEqual(self.gradb(f"open {self.folder}/{name}", "info scalars")[-1]["scalars"][0]["value"], 0.125)

    def test_parts_of_a_compiled_training(self):
        """As export trace writes them: nothing but these parts, so that those of two steps must not become one."""
        events = []
        for step in range(3):
            begin = 100.0 * step
            events += [event("ProfilerStep#%d" % (step + 1), begin, 100, "user_annotation"),
                       event("compiled", begin, 60, "user_annotation"), event("rest", begin + 60, 40, "user_annotation")]
        given = self.write("compiled.trace.json", events)
        steps = self.gradb(f"open {given}", "info timing steps")[-1]["steps"]
        self.assertEqual([(step["step"], round(1e6 * step["compiled"]), round(1e6 * step["rest"])) for step in steps],
                         [(1, 60, 40), (2, 60, 40), (3, 60, 40)])

    def test_perfetto_reads_it(self):
        """Perfetto's trace processor finds each slice where it was, with its duration, and each value."""
        given = self.write("in.trace.json", EVENTS, schemaVersion=1)
        self.gradb(f"open {given}", f"export trace {self.folder}/out.json.gz")
        slices = "select name, ts, dur, depth from slice order by ts, dur desc"
        found, values, errors = perfetto.query(
            self.folder / "out.json.gz", slices, "select name, value from counter join track on track.id = track_id",
            "select name, value from stats where severity = 'error' and value > 0")
        self.assertEqual((values, errors), ([["loss value", 0.125]], []))
        first = min(start for _, start, _, _ in found)
        placed = {(name, start - first, duration) for name, start, duration, _ in found}
        for name, start, duration in (("ProfilerStep#4", 0, 100500), ("aten::linear", 5000, 20000),
                                      ("aten::addmm", 6125, 10250), ("aten::relu", 130000, 4500)):
            self.assertIn((name, start, duration), placed)
        depth = {name: depth for name, _, _, depth in found}
        self.assertEqual(depth["aten::addmm"], depth["aten::linear"] + 1)

    def test_ranks(self):
        """Of a job: each rank is a process, and their clocks agree."""
        for rank in range(2):
            self.write(f"r{rank}.pt.trace.json", EVENTS[:3], distributedInfo={"rank": rank, "world_size": 2},
                       baseTimeNanoseconds=1790857026000000000 + 5000 * rank)
        written = self.gradb(f"open {self.folder}", f"export trace {self.folder}/all.json")[-1]
        self.assertEqual((written["ranks"], written["steps"]), (2, 4))
        trace = chrome.load(self.folder / "all.json")
        self.assertEqual(chrome.problems(trace), [])
        starts = {e["pid"]: e["ts"] for e in trace["traceEvents"] if e["name"] == "ProfilerStep#4"}
        self.assertEqual(starts, {0: 0, 1: 5})

    def test_a_trace_has_no_memory(self):
        error = self.gradb("open \"%s\"" % self.write("run.pt.trace.json", EVENTS), "info memory", status=1)[-1]
        self.assertEqual(error["message"], "the memory is unknown: a trace of times does not say who holds memory")

    def test_refused(self):
        given = self.write("in.trace.json", EVENTS)
        for commands, code in ((["export trace x.json"], "state"), ([f"open {given}", "export"], "usage"),
                               ([f"open {given}", "export trace"], "usage"),
                               ([f"open {given}", "export pdf x"], "not_found"),
                               ([f"open {given}", "export trace /nonexistent/x.json"], "io")):
            last = self.gradb(*commands, status=1)[-1]
            self.assertEqual((last["type"], last["code"]), ("error", code), last)


if __name__ == "__main__":
    harness.main()
