# SPDX-License-Identifier: MIT
"""Requests in words that only the program can carry out: a table of functions by name.

A module offers one with `register`; the debugger sends it with `agent NAME ARGUMENTS`, or with a command of
its own that is built on it. Functions run on the training thread while it stands.
"""
import difflib
import json
import math

_table = {}  # name -> (function, usage, summary)
_LIST = "commands"  # the one that tells the others


class CommandError(Exception):
    """Why a command cannot be carried out: one line, shown to the user."""


def register(name, function, summary, usage=""):
    """Offers a command. function(agent, args, node) gets the agent, the words behind the name as one text, and
    the graph.Node it is about or None; it returns a text, or a value that json can write. It raises
    CommandError for what the user can put right. usage: the arguments, "NODE [N]"."""
    _table[name] = (function, usage, summary)


def names():
    """The names known, in order."""
    return sorted(_table)


def run(agent, name, args, node):
    """The reply of a command, as text. CommandError; and what the function itself raises."""
    entry = _table.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, names(), 1)
        hint = "did you mean %s?" % near[0] if near else "known are %s" % ", ".join(names())
        raise CommandError("this program knows no command '%s': %s" % (name, hint))
    reply = entry[0](agent, args, node)
    return reply if isinstance(reply, str) else json.dumps(_writable(reply), allow_nan=False)


def _writable(value):
    """Numbers that JSON cannot write become "nan", "inf" and "-inf", as in all of gradb's JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value


def node_of(agent, args, node=None):
    """(node, rest of the words): the node a command is about, which is `node` when the debugger named it, else
    the first word of the arguments. CommandError when there is none of that name."""
    if node is not None:
        return node, args.strip()
    name, _, rest = args.strip().partition(" ")
    if not name:
        raise CommandError("it needs a node's name")
    found = agent.telling.graph.nodes.get(name)
    if found is None:
        near = difflib.get_close_matches(name, list(agent.telling.graph.nodes)[:20000], 1)
        raise CommandError("no node '%s'%s" % (name, ": did you mean %s?" % near[0] if near else ""))
    return found, rest.strip()


def _list(_agent, _args, _node):
    return {"commands": [{"name": name, "usage": _table[name][1], "summary": _table[name][2]} for name in names()]}


register(_LIST, _list, "the commands that this program offers")
