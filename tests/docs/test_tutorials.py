# SPDX-License-Identifier: GPL-3.0-or-later
"""The tutorials in docs/, typed at a terminal as their readers type them; transcript.py says how.

UPDATE=1 in the environment writes what came into the pages where they show something else."""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import harness
import transcript
import venvs

sys.path.append(str(harness.SOURCE / "tests" / "torch"))
import torches  # noqa: E402

DOCS = harness.SOURCE / "docs"
SANITIZE = sys.argv.pop(1).partition("=")[2] if len(sys.argv) > 1 and sys.argv[1].startswith("sanitize=") else "none"


class Tutorial(unittest.TestCase):
    """Plays a page with gradb, cc and a Python of the case in PATH."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gradb-docs-"))).resolve()
        self.bin = self.folder / "bin"
        self.work = self.folder / "work"
        for folder in (self.bin, self.work, self.folder / "gradb"):
            folder.mkdir()
        # Importing PyTorch may take long on a loaded machine.
        (self.folder / "gradb" / "gradbrc").write_text("set start-timeout 0\n", encoding="utf-8")
        build = harness.BUILD.resolve()
        self.env = torches.environment(
            PATH=f"{self.bin}:{build / 'src'}:{os.environ['PATH']}", HOME=str(self.work),
            XDG_CONFIG_HOME=str(self.folder), LC_ALL="C.UTF-8", PKG_CONFIG_PATH=str(build / "meson-uninstalled"),
            LD_LIBRARY_PATH=str(build / "src" / "agent"))

    def put_program(self, name, command):
        """A program in the reader's PATH."""
        path = self.bin / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def play(self, name, **options):
        """Plays the blocks of a page that have these options, and those that have none of their names."""
        path = DOCS / name
        page = path.read_text(encoding="utf-8")
        terminal = transcript.Terminal(self.work, self.env)
        self.addCleanup(terminal.close)
        faults, sessions = [], 0
        for language, given, text in transcript.blocks(page):
            if any(key in given and given[key] != value for key, value in options.items()):
                continue
            if "file" in given:
                target = self.work / given["file"]
                text = transcript.change(target.read_text(encoding="utf-8"), text) if language == "diff" else text
                target.write_text(text, encoding="utf-8")
            elif language == "console":
                found, right = transcript.play(text, terminal)
                faults += found
                sessions += 1
                page = page.replace(text, right)
        self.assertGreater(sessions, 0)
        if faults and os.environ.get("UPDATE"):
            path.write_text(page, encoding="utf-8")
        else:
            self.assertFalse(faults, "\n\n".join(faults))


class C(Tutorial):
    def test_c(self):
        if SANITIZE != "none":  # a program that links a sanitized libgradb needs the sanitizers' runtime
            self.put_program("cc", f"{shutil.which('cc')} -fsanitize={SANITIZE}")
        self.play("tutorial-c.md")


class Torch(Tutorial):
    def play_with(self, python):
        if python is None:
            self.skipTest("no PyTorch here: ./dev installs Debian's, and pip's in build/torch-venv")
        if torches.library() is None:
            self.skipTest("no libgradb that a plain interpreter can load: ./dev build release makes it")
        self.put_program("python", python)
        self.play("tutorial-pytorch.md")

    def test_debian(self):
        self.play_with(torches.debian())

    def test_pip(self):
        self.play_with(torches.pip())


class MindSpore(Tutorial):
    def test_dump(self):
        python = venvs.python("mindspore")
        if python is None:
            self.skipTest("no build/mindspore-venv: ./dev test makes it where pip can install MindSpore")
        self.put_program("python", python)
        self.play("tutorial-mindspore.md", needs="mindspore-2.10")

    def test_live(self):
        """MindSpore 1.x needs a GPU or an Ascend device: the process is one that speaks its protocol."""
        self.put_program("python", sys.executable)
        self.env["PYTHONPATH"] = f"{harness.SOURCE / 'tests' / 'e2e'}:{os.environ['PYTHONPATH']}"
        (self.work / "train.py").write_text(
            "import runpy, sys\nsys.argv[1:] = ['--version', '1.5.0', '--backend', 'Ascend', '--nan-step', '3', '--steps', '5']\n"
            "runpy.run_module('fake_mindspore', run_name='__main__')\n", encoding="utf-8")
        self.play("tutorial-mindspore.md", needs="mindspore-1")


if __name__ == "__main__":
    harness.main()
