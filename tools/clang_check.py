# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks every C file for warnings of clang: clang_check.py DIRECTORY

DIRECTORY was set up with CC=clang, and its generated headers are built. Files are only parsed, which takes seconds.
Prints the warnings; the exit status is 1 if there are any.
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
    """The command of the compilation database, without code generation."""
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
    # A file may belong to several targets. Generated files are left out.
    files = {entry["file"]: entry for entry in entries if entry["file"].startswith("..") and entry["file"].endswith(".c")}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(check, files.values()) if text]
    print("".join(said), end="")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
