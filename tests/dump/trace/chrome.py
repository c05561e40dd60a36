# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a trace by the documentation of the Trace Event Format, as Perfetto's importer reads it: what each phase must
have, tracks in which slices nest, numbers."""
import collections
import gzip
import json
import math


def load(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def problems(trace):
    """What is wrong with a trace; [] if nothing is."""
    found, tracks = [], collections.defaultdict(list)
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["not an object with the list traceEvents"]
    for event in trace["traceEvents"]:
        phase, name = event.get("ph"), event.get("name")
        if phase not in ("X", "M", "C") or not isinstance(name, str) or not name:
            found.append(f"phase or name: {event}")
        if not isinstance(event.get("pid"), int) or not isinstance(event.get("tid"), int):
            found.append(f"pid or tid: {event}")
        if phase == "M" and (name not in ("process_name", "thread_name", "process_sort_index", "thread_sort_index")
                             or list(event["args"]) != [name.split("_", 1)[1]]):
            found.append(f"metadata: {event}")
        if phase in "XC" and not (isinstance(event.get("ts"), (int, float)) and math.isfinite(event["ts"])):
            found.append(f"ts: {event}")
        if phase == "X" and not (isinstance(event.get("dur"), (int, float)) and event["dur"] >= 0):
            found.append(f"dur: {event}")
        if phase == "C" and not all(isinstance(value, (int, float)) for value in event["args"].values()):
            found.append(f"counter: {event}")
        if phase == "X":
            tracks[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round(event["dur"] * 1000), name))
    for track, slices in tracks.items():
        stack = []
        for start, duration, name in sorted(slices, key=lambda s: (s[0], -s[1])):
            while stack and start >= stack[-1]:
                stack.pop()
            if stack and start + duration > stack[-1]:
                found.append(f"{name} of track {track} overlaps")
            stack.append(start + duration)
    return found
