# SPDX-License-Identifier: GPL-3.0-or-later
"""clang's warnings on every C file of a build directory that clang set up: clang_check.py DIRECTORY

Nothing is compiled to the end: the tests compile with gcc, and the fuzz targets with clang what they need. Generated
headers must be there. Prints what clang says; the exit status is 1 when it said something.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

DROPPED = ("-fsanitize=", "-O", "-M")


def arguments(entry):
    """The command of the compilation database, as a look at the source alone."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-o", "-MF", "-MQ"):
            next(words)
        elif word != "-c" and not word.startswith(DROPPED):
            kept.append(word)
    return [*kept, "-fsyntax-only", "-Werror"]


def check(entry):
    done = subprocess.run(arguments(entry), cwd=entry["directory"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode or "warning:" in done.stderr else ""


def main():
    directory = pathlib.Path(sys.argv[1])
    entries = json.loads((directory / "compile_commands.json").read_text(encoding="utf-8"))
    # Files of several targets once; generated ones are not ours.
    files = {entry["file"]: entry for entry in entries if entry["file"].startswith("..") and entry["file"].endswith(".c")}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(check, files.values()) if text]
    print("".join(said), end="")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
