# SPDX-License-Identifier: MIT
"""What the debugger asks for while the training stands (struct gradb_source): where a value lies, its
statistics, which values to keep for the next step, and commands in words."""
import ctypes

from .. import _lib
from . import commands, values


class Source:
    """The callbacks of libgradb. `struct`: what gradb_open takes; it must live as long as the handle."""

    def __init__(self, agent):
        self.agent = agent
        self._held = []  # tensors that libgradb reads now
        self.struct = _lib.Source()
        self.struct.locate = _lib.LOCATE(self._locate)
        self.struct.release = _lib.RELEASE(self._release)
        self.struct.command = _lib.COMMAND(self._command)
        self._reply = None  # bytes that libgradb reads until the next command

    def pointer(self):
        """For gradb_open's options."""
        return ctypes.pointer(self.struct)

    def _locate(self, _ctx, number, slot, previous, ret, step, why):
        return _answer(why, self._find, number, slot, previous, ret, step)

    def _find(self, number, slot, previous, ret, step):
        if previous:
            raise values.NoValue("its value of the step before was not kept")
        tensor, when = self.agent.live.find(number, slot)
        tensor = tensor.detach()
        values.check(tensor)
        if tensor.device.type != "cpu":
            tensor = tensor.cpu()
        ret[0] = values.describe(tensor)
        step[0] = when
        self._held.append(tensor)

    def _release(self, _ctx):
        self._held.clear()

    def _command(self, _ctx, name, args, number, reply, why):
        return _answer(why, self._run_command, name, args, number, reply)

    def _run_command(self, name, args, number, reply):
        agent = self.agent
        looking, agent.looking = agent.looking, False
        try:
            text = commands.run(agent, _text(name), _text(args), agent.telling.graph.by_id.get(number))
        finally:
            agent.looking = looking and not agent.dead
        self._reply = _lib.text(text)
        reply[0] = self._reply


def _text(data):
    return (data or b"").decode("utf-8", "replace")


def _answer(why, function, *args):
    """Calls it; a reason for having no answer goes into `why`. One of enum gradb_answer."""
    try:
        function(*args)
        return _lib.OK
    except values.NoValue as error:
        _lib.say_why(why, str(error))
        return error.answer
    except commands.CommandError as error:
        _lib.say_why(why, str(error))
        return _lib.FAILED
    except Exception as error:  # goes to the debugger, not into the training
        _lib.say_why(why, "%s: %s" % (type(error).__name__, error))
        return _lib.FAILED
