# SPDX-License-Identifier: MIT
"""The text of source files, for a debugger that cannot read them: the cells of a notebook exist only in linecache, and
other files only on this machine."""
import linecache

from .. import lines as source_lines
from . import commands

_MAX_BYTES = 1 << 20


def _named(agent, name):
    """Whether a node has a frame in that file: no other file of this machine is sent."""
    return agent.lines.runs(name) or any(
        code.co_filename == name for node in list(agent.reporter.graph.nodes.values())
        for code, _, _ in node.stack or ())


def _source(agent, args, _node):
    name = args.strip()
    if not name:
        raise commands.CommandError("name a file, as `backtrace` shows it")
    if not _named(agent, name):
        raise commands.CommandError("no node was created in %s" % name)
    lines = linecache.getlines(name)
    if not lines:
        raise commands.CommandError("the training process has no text of %s either" % name)
    text = "".join(lines).encode("utf-8", "replace")
    if len(text) > _MAX_BYTES:
        text = text[:text.rfind(b"\n", 0, _MAX_BYTES) + 1] + b"... (cut: the file has %d bytes)\n" % len(text)
    return text.decode("utf-8", "ignore")


source_lines.register(commands)
commands.register("source", _source, "the text of a file that nodes were made in", "FILE")
