# SPDX-License-Identifier: MIT
"""python -m gradb.rerun FOLDER...: repeats calls that `overflow record` or `save overflow` wrote, on the CPU, in
float32 and float64, and says whether the overflow comes from the values, the type or the device. FOLDER may contain
several calls. With --json it writes one object per line.

Exit status: 0 when all calls were repeated, 1 when one could not be read or repeated, 2 for wrong usage.
"""
import json
import os
import sys

USAGE = "usage: python -m gradb.rerun [--json] FOLDER..."
_WORDS = {"inherent": "inherent", "dtype": "specific to the type", "device": "specific to the device",
          "unknown": "unknown"}


def _folders(path):
    """The folder of one call, or the folders of the calls in it, by number."""
    if os.path.exists(os.path.join(path, "overflow.json")):
        return [path]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return [path]
    found = [os.path.join(path, name) for name in names
             if os.path.exists(os.path.join(path, name, "overflow.json")) and not name.endswith(".part")]
    return sorted(found, key=_number) or [path]


def _number(folder):
    digits = [part for part in os.path.basename(folder).split(".") if part.isdigit()]
    return int(digits[0]) if digits else 0


def _tensor(found):
    """"11 -inf of 64", "0 ... 3.5"."""
    bad = ["%d %s" % (found[key], word) for key, word in (("nan", "nan"), ("pos_inf", "inf"), ("neg_inf", "-inf"))
           if found[key]]
    if bad:
        return "%s of %d" % (", ".join(bad), found["count"])
    return "%.6g ... %.6g" % (found["min"], found["max"]) if found["min"] is not None else "no elements"


def _print(about, reply):
    print("Overflow %d, step %d, %s: %s%s" % (about["number"], about["step"], about["node"], about["function"] or "?",
                                              " (%s)" % about["line"] if about["line"] else ""))
    for run in reply["runs"]:
        print("  %-22s  %s" % (run["as"], run.get("error") or "; ".join(map(_tensor, run["outputs"]))))
    print("%s: %s" % (_WORDS[reply["verdict"]].capitalize(), reply["text"]))
    for place in reply["places"]:
        inputs = ", ".join("%s is %s" % (given["argument"], given["value"]) for given in place["inputs"])
        print("  output %d at %s: %s%s%s" % (place["output"], place["index"], place.get("value", "?"),
              ", in float64 %s" % place["float64"] if "float64" in place else "", "; " + inputs if inputs else ""))


def _say(error):
    print("gradb: %s" % error, file=sys.stderr)
    return 1


def _make_again(folder, as_json):
    """Repeats one call. Returns its exit status."""
    from .torch import calls, replay
    try:
        call = calls.load(folder)
        reply = replay.rerun(call)
    except calls.CallError as error:
        return _say(error)
    if as_json:
        names = ("number", "step", "node", "phase", "function", "line")
        print(json.dumps(dict({name: call.about[name] for name in names}, folder=folder, **reply)))
    else:
        _print(call.about, reply)
    return 0 if reply["verdict"] != "unknown" else 1


def main(arguments):
    """Runs the command line. Returns the exit status."""
    as_json = "--json" in arguments
    folders = [word for word in arguments if word != "--json"]
    if not folders or any(word.startswith("-") for word in folders):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        import torch  # noqa: F401: fails here, in one line
    except ImportError as error:
        return _say("PyTorch is needed to repeat a call: %s" % error)
    return max([_make_again(folder, as_json) for path in folders for folder in _folders(path)], default=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
