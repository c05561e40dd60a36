# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the sessions of a page in docs/ and compares what a reader would see with what the page shows.

A page is made of fenced blocks; the info string says what the test does with one:

    ```python file=train.py     the block is written to that file
    ```diff file=train.py       the block changes that file
    ```console                  the block is typed at a terminal of 80 columns, line by line

A console block holds what was typed and what came of it. Typed lines follow `$ ` (the shell), `(gradb) ` (gradb) or
a question that ends in `(y or n) `. All other lines are output, and each must come where the page has it: a line
`...` stands for any lines but errors, `...` inside a line for any text.
"""
import difflib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import harness

SHELL, PROMPT, QUESTION = "\x01$ ", "(gradb) ", "(y or n) "  # the shell's prompt as no output has it
COLUMNS = 80
TYPED = re.compile(r"(\$ |\(gradb\) |.*\(y or n\) )(.*)")
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks(page):
    """The page's blocks: (language, {option: value}, text)."""
    for match in FENCE.finditer(page):
        language, options, text = match.groups()
        yield language, dict(word.split("=", 1) for word in options.split() if "=" in word), text


def change(text, diff):
    """The text with a diff applied: its ` ` and `-` lines become its ` ` and `+` lines."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M):
        if not hunk:
            continue
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        if text.count(old) != 1:
            raise AssertionError(f"the lines that the page changes are there {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    return text


def matches(shown, said):
    """Whether lines of a page stand for lines of output."""
    pattern = ""
    for line in shown:
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in said)) is not None


def corrected(shown, said):
    """What the page should show: its lines as they are now, and `...` where it has that or where lines are new."""
    right, at = [], 0
    for line in shown:
        if line == "...":
            right.append(line)
            continue
        places = [i for i in range(at, len(said)) if matches([line], said[i:i + 1])]
        close = difflib.get_close_matches(line, said[at:], 1, 0.5)
        if not places and not close:
            continue
        place = places[0] if places else said.index(close[0], at)
        if place > at and right[-1:] != ["..."]:
            right.append("...")
        right.append(line if places else said[place])
        at = place + 1
    return right if matches(right, said) else said


def steps(block):
    """[(prompt, line typed, lines shown)] of a console block."""
    found = []
    for line in block.splitlines():
        typed = TYPED.fullmatch(line)
        if typed and typed.group(1).endswith(QUESTION):
            found[-1][2].append(typed.group(1).rstrip())  # the question is output, its answer is typed
            found.append((QUESTION, typed.group(2), []))
        elif typed:
            found.append((typed.group(1), typed.group(2), []))
        else:
            found[-1][2].append(line)
    return found


class Terminal:
    """A shell at a terminal in a folder."""

    def __init__(self, folder, env):
        env = dict(env, PS1=SHELL, PS2="", TERM="dumb", COLUMNS=str(COLUMNS))
        env.pop("ENV", None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve("/bin/sh", ["sh", "-i"], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 200, COLUMNS, 0, 0))
        self.prompt = None
        self.wait()

    def wait(self):
        """Waits for a prompt; the lines before it."""
        data, end = b"", time.monotonic() + 2 * harness.DEADLINE
        while True:
            text = data.decode(errors="replace")
            for prompt in (SHELL, PROMPT, QUESTION):
                if text.endswith(prompt):
                    self.prompt = prompt
                    return self.lines(text[:-len(prompt)], prompt)
            more = self.read(end)
            if not more:
                raise AssertionError(f"no prompt came; the terminal ends:\n{text[-3000:]}")
            data += more

    def read(self, end):
        """What comes next; b"" at the terminal's end or after that time."""
        if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return b""
        try:
            return os.read(self.fd, 65536)
        except OSError:
            return b""

    @staticmethod
    def lines(text, prompt):
        """Of what was drawn over, what stayed; a question is shown with its text."""
        text = text.replace("\r\n", "\n")
        text = re.sub(r"[^\n]*\r", "", text)
        lines = text.split("\n")
        if prompt == QUESTION:
            lines[-1] += QUESTION.rstrip()
        elif lines[-1] == "":
            lines.pop()
        return [line.rstrip() for line in lines]

    def type(self, line):
        """Types a line; the lines that came then, up to the next prompt."""
        os.write(self.fd, line.encode() + b"\n")
        return self.wait()[1:]  # without the echo

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def play(block, terminal):
    """Types a console block. The differences, as text; and the block as it would be right."""
    faults, right = [], ""
    for prompt, line, shown in steps(block):
        here = {SHELL: "$ "}.get(terminal.prompt, terminal.prompt)
        if here != prompt:
            raise AssertionError(f"the page types {prompt + line!r}, but the terminal shows the prompt {here!r}")
        said = terminal.type(line)
        hidden = [text for text in said if text.startswith("error: ") and text not in shown]
        if hidden or not matches(shown, said):
            faults.append("\n".join([f"after {prompt + line!r} the page shows", *shown, "but there came", *said]))
            shown = corrected(shown, said)
        right += ("" if prompt == QUESTION else prompt) + line + "\n" + "".join(text + "\n" for text in shown)
        if terminal.prompt == QUESTION:
            right = right[:-1] + " "
    return faults, right
