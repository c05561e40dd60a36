# SPDX-License-Identifier: MIT
"""What the debugger asks for while the training is stopped (struct gradb_source): where a value is, which values to
keep for the next step, and commands in words. libgradb computes the statistics."""
import ctypes

from .. import _lib
from . import commands, values

# Commands that do not ask MindSpore for values.
_AT_TAPS = ("operators", "exceptions", "training", "digest", "stack", "evaluate-refuse")


class Source:
    """The callbacks of libgradb. struct: for gradb_open; it must live as long as the handle."""

    def __init__(self, agent):
        self.agent = agent
        self._held = []        # what libgradb reads now
        self._wanted = ()      # numbers of the nodes whose values of the previous step are kept
        self._before = {}      # node number -> (step, struct, memory), of the previous step
        self._reply = None     # bytes that libgradb reads until the next command
        self.struct = _lib.Source()
        self.struct.locate = _lib.LOCATE(self._locate)
        self.struct.release = _lib.RELEASE(self._release)
        self.struct.keep = _lib.KEEP(self._keep)
        self.struct.command = _lib.COMMAND(self._command)
        self.struct.lines = agent.lines.callback

    def find(self, number, slot=0):
        """The tensor of a node. NoValue."""
        node = self.agent.graph.by_id.get(number)
        if node is None:
            raise values.NoValue("there is no such node")
        if node.get is None:
            return self.agent.output(node, slot)
        if node.kind == _lib.GRADIENT:
            self.agent.gradient_asked = self.agent.steps.step
        tensor = node.get() if slot == 0 else None
        if tensor is None:
            if node.kind == _lib.GRADIENT:
                known = self.agent.gives_gradients  # else it exists, inside compiled code
                raise values.NoValue(self.agent.why_no_gradient(), _lib.NO_VALUE if known else _lib.UNSUPPORTED)
            raise values.NoValue("the script no longer has this tensor", _lib.GONE)
        return tensor

    def step_ended(self, step):
        """The debugger continues from the end of the step: keeps what it wants of it."""
        before = {}
        for number in self._wanted:
            try:
                before[number] = (step, *values.copy_of(self.find(number)))
            except (values.NoValue, RuntimeError):
                pass
        self._before = before

    def _locate(self, _ctx, number, slot, previous, ret, step, why):
        return self._answer(why, self._put_value, number, slot, previous, ret, step)

    def _put_value(self, number, slot, previous, ret, step):
        if previous:
            kept = self._before.get(number)
            if kept is None:
                raise values.NoValue("no previous value yet: it is kept from the end of the next step on"
                                     if number in self._wanted else "its value of the previous step was not kept")
            step[0], ret[0] = kept[0], kept[1]
            self._held.append(kept)
            return
        struct, held = values.describe(self.find(number, slot))
        ret[0] = struct
        step[0] = -1
        self._held.append((struct, held))

    def _release(self, _ctx):
        self._held.clear()

    def _keep(self, _ctx, nodes, count):
        self._wanted = tuple(nodes[i] for i in range(count))

    def _command(self, _ctx, name, args, number, reply, why):
        return self._answer(why, self._run_command, name, args, number, reply)

    def _run_command(self, name, args, number, reply):
        agent = self.agent
        if values.is_fixed() and _text(name) not in _AT_TAPS:
            raise commands.CommandError("not inside compiled code: first `step` to the end of the step")
        text = commands.run(agent, _text(name), _text(args), agent.graph.by_id.get(number))
        self._reply = _lib.text(text)
        reply[0] = self._reply

    def _answer(self, why, function, *args):
        """Calls the function. Returns one of enum gradb_answer; `why` gets the reason where there is no answer."""
        try:
            with self.agent.own_moment():
                function(*args)
            return _lib.OK
        except values.NoValue as error:
            _lib.say_why(why, str(error))
            return error.answer
        except commands.CommandError as error:
            _lib.say_why(why, str(error))
            return _lib.FAILED
        except Exception as error:  # reported to the debugger, not raised into the training
            _lib.say_why(why, "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0]))
            return _lib.FAILED

    def pointer(self):
        """For gradb_open's options."""
        return ctypes.pointer(self.struct)


def _text(data):
    return (data or b"").decode("utf-8", "replace")
