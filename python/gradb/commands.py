# SPDX-License-Identifier: MIT
"""Requests in words that only the training process can carry out: a table of functions by name, for each framework.

The debugger sends one with `agent NAME ARGUMENTS`, or with a command that is built on it. The functions run on the
training thread while it is stopped."""
import difflib
import json
import math

_LIST = "commands"  # lists the others


class CommandError(Exception):
    """Why a command cannot be carried out: one line, shown to the user."""


class Table:
    """The commands of one framework's agents. An agent has `graph`, whose `nodes` finds nodes by name."""

    def __init__(self):
        self._entries = {}  # name -> (function, usage, summary)
        self.register(_LIST, self._list, "the commands of this training process")

    def register(self, name, function, summary, usage=""):
        """Adds a command. function(agent, args, node) gets the agent, the words after the name as one text, and the
        node that it is about, or None. It returns a text, or a value for json. CommandError: for mistakes that the user
        can correct. usage: the arguments, such as "NODE [N]". summary None: it is not listed, for the debugger's own
        commands send it."""
        self._entries[name] = (function, usage, summary)

    def names(self):
        """The listed names, sorted."""
        return sorted(name for name, entry in self._entries.items() if entry[2] is not None)

    def run(self, agent, name, args, node):
        """Runs a command and returns its reply as text. CommandError; and whatever the function raises."""
        entry = self._entries.get(name)
        if entry is None:
            near = difflib.get_close_matches(name, self.names(), 1)
            hint = "did you mean %s?" % near[0] if near else '"agent commands" lists them'
            raise CommandError("the training process has no command '%s': %s" % (name, hint))
        reply = entry[0](agent, args, node)
        return reply if isinstance(reply, str) else json.dumps(_writable(reply), allow_nan=False)

    def _list(self, _agent, _args, _node):
        return {"commands": [{"name": name, "usage": self._entries[name][1], "summary": self._entries[name][2]}
                             for name in self.names()]}


def node_of(agent, args, node=None):
    """(node, remaining words): the node that a command is about, which is `node` when the debugger named it, else the
    first word. CommandError: there is no such node."""
    if node is not None:
        return node, args.strip()
    name, _, rest = args.strip().partition(" ")
    if not name:
        raise CommandError("name a node")
    found = agent.graph.nodes.get(name)
    if found is None:
        near = difflib.get_close_matches(name, list(agent.graph.nodes)[:20000], 1)
        raise CommandError("no node '%s'%s" % (name, ": did you mean %s?" % near[0] if near else ""))
    return found, rest.strip()


def switch_of(name, args):
    """The argument of command `name`: True for "on", False for "off", None for nothing. CommandError: another word."""
    word = args.strip()
    if word not in ("", "on", "off"):
        raise CommandError("%s takes 'on' or 'off', not '%s'" % (name, word))
    return word == "on" if word else None


def _writable(value):
    """Numbers that JSON cannot write become "nan", "inf" and "-inf", as in all of gradb's JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value
