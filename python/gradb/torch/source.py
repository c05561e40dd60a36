# SPDX-License-Identifier: MIT
"""What the debugger asks for while the training is stopped (struct gradb_source): where a value is, its statistics,
which values to keep for the next step, and commands in words.

Values in host memory are read in place. For values on a device the statistics are computed there, and what is fetched
comes through pinned memory. Gradients that a GradScaler has scaled are shown unscaled, in values, statistics and
therefore in all conditions; `agent scale NODE` shows both."""
import ctypes

import torch

from .. import _lib, native
from . import commands, device_stats, devices, previous_step, values
from .guard import apart
from .places import Places

_KINDS_SCALED = (_lib.GRADIENT,)
_SMALL = 1 << 16       # bytes of a tensor that is copied rather than looked at on its device
_MOST_SMALL = 16 << 20  # of all those that are copied at once


class Source:
    """The callbacks of libgradb. struct: for gradb_open; it must live as long as the handle."""

    def __init__(self, agent):
        self.agent = agent
        self.kept = previous_step.Kept(agent)
        self._held = []      # tensors that libgradb reads now
        self._form = ()      # shape that libgradb reads now
        self._places = {}    # node number -> places.Places of a lasting value
        self._kept_places = {}  # the same for what is kept of the previous step
        self._native = None  # the native Source, which libgradb calls first
        self._looks = None   # _look as libgradb calls it, once a value on a device was seen
        self._copies = {}    # (node number, slot, previous) -> (copy on the host, step, scale), until it is released
        self._records = {}   # (node number, slot, what is wanted) -> (tensor, Record, scale), until then too
        self._slow = set()   # (node number, slot) whose quick statistics were not precise enough
        self._reply = None   # bytes that libgradb reads until the next command
        self.struct = _lib.Source()
        self.struct.locate = _lib.LOCATE(self._locate)
        self.struct.release = _lib.RELEASE(self._release)
        self.struct.stats = _lib.STATS(self._stats)
        self.struct.keep = _lib.KEEP(self._keep)
        self.struct.command = _lib.COMMAND(self._command)
        self.struct.locate_part = _lib.LOCATE_PART(self._locate_part)
        self.struct.lines = agent.lines.callback

    def pointer(self):
        """For gradb_open's options."""
        if native.module is None:
            return ctypes.pointer(self.struct)
        self._native = native.module.Source(ctypes.addressof(self.struct))
        return ctypes.cast(self._native.address(), ctypes.POINTER(_lib.Source))

    def use(self, context):
        """From now on lasting values, and what is kept of the previous step, are located without Python."""
        self._native.use(context, self._places, self.kept.before, self._kept_places, self._held)

    # ---- values ----

    def find(self, number, slot, previous=False):
        """(readable tensor, step, scale) of a node's value. NoValue."""
        if previous:
            return self.kept.find(number, slot)
        tensor, step = self.agent.live.find(number, slot)
        return values.readable(tensor), step, self.scale_of(number)

    def _find_fetched(self, number, slot, previous=False):
        """As find; of a value that was fetched from its device, the copy on the host."""
        found = self._copies.get((number, slot, previous))
        if found is None:
            found = self.find(number, slot, previous)
            if not is_here(found[0]):
                self.hear_of_looks()
        return found

    def scale_of(self, number):
        """What the gradients of a node are multiplied by; 1.0 for all others."""
        live = self.agent.live
        leaf = live.leaf(number)
        if leaf is not None:
            return self.agent.scaler.scale_of(leaf)
        node = self.agent.reporter.graph.by_id.get(number)
        return live.run_scale(number) if node is not None and node.kind in _KINDS_SCALED else 1.0

    def places(self, node, tensors):
        """The places of the outputs, for gradb_did_with. Scaled gradients have none, so that libgradb asks for their
        statistics."""
        places = node.places
        if places is None or places.count != len(tensors):
            places = node.places = Places(len(tensors))
        if self.agent.scaler.scaling and node.kind in _KINDS_SCALED and self.scale_of(node.id) != 1.0:
            places.fill_none(tensors)
        else:
            places.fill(tensors)
        return places

    def _at_hand(self, number, slot, previous):
        """(tensor, its Places, its step or -1) of a value that libgradb can read in place: a lasting one, or what is
        kept of it, as nearly every value that is watched at the end of each step. None: it needs a closer look."""
        if slot or self.agent.scaler.scaling:
            return None
        table = self._kept_places if previous else self._places
        try:
            places = table.get(number)
            if places is None:
                places = table[number] = Places(1)
            with apart():
                tensor, step = self.kept.first(number) if previous else (self.agent.live.lasting(number), -1)
                if not isinstance(tensor, torch.Tensor) or not is_here(tensor):
                    return None
                places.fill((tensor,))
            return (tensor, places, step) if places.array[0].data else None
        except Exception:  # a subclass may raise anything; the closer look reports it
            return None

    def _refuse_split(self):
        self.agent.reporter.parameters.check_names()
        self.agent.library.gradb_publish(self.agent.handle)
        raise values.NoValue("the script has replaced it under some of its names: try again")

    def _locate(self, _ctx, number, slot, previous, ret, step, why):
        if self.agent.reporter.parameters.is_split(number):
            return self._answer(why, self._refuse_split)
        found = self._at_hand(number, slot, previous)
        if found is None:
            return self._answer(why, self._put_value, number, slot, previous, ret, step)
        tensor, places, step[0] = found
        self._held.append(tensor)
        ret[0] = places.array[0]
        return _lib.OK

    def _put_value(self, number, slot, previous, ret, step):
        tensor, when, scale = self._find_fetched(number, slot, previous)
        if scale != 1.0:
            tensor = tensor.to(_unscaled_type(tensor)) / scale
        if tensor.device.type != "cpu":
            tensor = device_stats.to_host(tensor)
        ret[0] = values.describe(tensor)
        step[0] = when
        self._held.append(tensor)

    def _locate_part(self, _ctx, number, slot, previous, items, count, ret, step, why):
        return self._answer(why, self._put_part, number, slot, previous, items[:count], ret, step)

    def _put_part(self, number, slot, previous, items, ret, step):
        tensor, when, scale = self.find(number, slot, previous)
        if is_here(tensor):
            raise values.NoValue("", _lib.UNSUPPORTED)  # libgradb slices it, nothing is copied
        part = cut(tensor, items)
        if scale != 1.0:
            part = part.to(_unscaled_type(part)) / scale
        part = device_stats.to_host(part)
        ret[0] = values.describe(part)
        step[0] = when
        self._held.append(part)

    def _release(self, _ctx):
        self._held.clear()
        self._copies.clear()
        self._records.clear()

    # ---- many at once ----

    def hear_of_looks(self):
        """There are values on a device: from now on libgradb says what it is about to ask for, see gradb_on_look."""
        tell = getattr(self.agent.library, "gradb_on_look", None)
        if self._looks is None and tell is not None:
            self._looks = _lib.LOOK(self._look)
            tell(self.agent.handle, self._looks, None)

    def _look(self, _ctx, asks, count):
        agent = self.agent
        if agent.dead:
            return
        watching, agent.watching_now = agent.watching_now, False
        try:
            with apart(), values.outside_training():
                self._fetch(asks[:count])
                agent.events.settle()
        except Exception as error:
            agent.fault(error)
        finally:
            agent.watching_now = watching and not agent.dead

    def _fetch(self, asks):
        """Fetches what can be: the small values, and the statistics of the others. With one wait for each device."""
        found, room = {}, _MOST_SMALL
        try:
            for ask in asks:
                room -= self._begin(ask, found, room)
            for works, small in found.values():
                self._take(works, small)
        except RuntimeError:  # such as out of memory: each value is asked for alone, and then says what is wrong
            self._release(None)

    def _begin(self, ask, found, room):
        """Has the device compute what is asked for. found: device -> ([(key, Work, scale)], [(key, what find
        returned)]). Returns how many bytes of `room` are to be copied."""
        number, slot, wanted = ask.node, ask.slot, ask.wanted[0]
        try:
            value = tensor, _, scale = self.find(number, slot)
        except values.NoValue:
            return 0
        if is_here(tensor) or tensor.numel() == 0:
            return 0
        works, small = found.setdefault(tensor.device, ([], []))
        if _size(tensor) <= min(_SMALL, room):
            small.append(((number, slot, False), value))
            if wanted.against_previous:
                small += self._begin_previous(number, slot, tensor.device)
            return _size(tensor)
        if device_stats.computes(devices.of(tensor)):
            before, before_scale = self._before(number, slot, tensor) if wanted.against_previous else (None, 1.0)
            works.append(((number, slot, _key(wanted)),
                          device_stats.Work(tensor, _wanted(wanted), before, (scale, before_scale),
                                            thorough=(number, slot) in self._slow), scale))
        return 0

    def _begin_previous(self, number, slot, device):
        try:
            value = self.kept.find(number, slot)
        except values.NoValue:
            return []
        fits = value[0].device == device and 0 < _size(value[0]) <= _SMALL
        return [((number, slot, True), value)] if fits else []

    def _take(self, works, small):
        rows, copies = device_stats.gather([row for _, work, _ in works for row in work.rows],
                                           [value[0] for _, value in small])
        rows = iter(rows)
        for (key, (_, step, scale)), copy in zip(small, copies):
            self._copies[key] = copy, step, scale
        for key, work, scale in works:
            self._records[key] = work.tensor, work.finish([next(rows) for _ in work.rows]), scale
            if work.thorough:
                self._slow.add(key[:2])

    # ---- statistics ----

    def _stats(self, _ctx, number, slot, previous, wanted, ret, what, why):
        compares = wanted[0].against_previous and not self.kept.is_unscaled(number)
        if not previous and not compares and self._at_hand(number, slot, False) is not None:
            return _lib.UNSUPPORTED  # libgradb is faster
        return self._answer(why, self._put_stats, number, slot, previous, wanted[0], ret[0], what)

    def _put_stats(self, number, slot, previous, wanted, ret, what):
        fetched = None if previous or not self._records else self._records.get((number, slot, _key(wanted)))
        tensor, record, scale = fetched or self._compute(number, slot, previous, wanted)
        _fill(ret, record)
        shape, strides, dtype, rank, *_ = self._form = values.geometry(tensor)
        if scale != 1.0:
            dtype = values.DTYPES[_unscaled_type(tensor)][0]
        what[0] = _lib.Tensor(dtype, rank, shape, strides, None)

    def _compute(self, number, slot, previous, wanted):
        """(tensor, Record, scale) of a value. NoValue: libgradb is to compute the statistics."""
        tensor, _, scale = self._find_fetched(number, slot, previous)
        before, before_scale = self._before(number, slot, tensor) if wanted.against_previous else (None, 1.0)
        if is_here(tensor) or _size(tensor) <= _SMALL or not device_stats.computes(devices.of(tensor)):
            if scale == 1.0 and before_scale == 1.0:
                raise values.NoValue("", _lib.UNSUPPORTED)  # libgradb is faster
            tensor = device_stats.to_host(tensor)
            before = device_stats.to_host(before) if before is not None else None
        return tensor, device_stats.compute(tensor, _wanted(wanted), before, scale, before_scale), scale

    def _before(self, number, slot, tensor):
        """The value of the previous step and its scale, when it can be compared; else (None, 1.0)."""
        try:
            before, _, scale = self._find_fetched(number, slot, previous=True)
        except values.NoValue:
            return None, 1.0
        if is_here(tensor) and not is_here(before):
            before = device_stats.to_host(before)
        same = before.shape == tensor.shape and before.dtype == tensor.dtype and before.device == tensor.device
        return (before, scale) if same else (None, 1.0)

    # ---- keeping ----

    def _keep(self, _ctx, nodes, count):
        try:
            self.agent.end_idle()
            self.kept.keep(nodes[i] for i in range(count))
        except Exception as error:
            self.agent.fault(error)

    # ---- commands ----

    def _command(self, _ctx, name, args, number, reply, why):
        return self._answer(why, self._run_command, name, args, number, reply,
                            apart=_text(name) != "evaluate")  # which runs the program's code

    def _run_command(self, name, args, number, reply):
        agent = self.agent
        agent.end_idle()
        text = commands.run(agent, _text(name), _text(args), agent.reporter.graph.by_id.get(number))
        self._reply = _lib.text(text)
        reply[0] = self._reply

    # ---- answering ----

    def _answer(self, why, function, *args, **how):
        """Calls the function. Returns one of enum gradb_answer; `why` gets the reason where there is no answer."""
        agent = self.agent
        watching, agent.watching_now = agent.watching_now, False
        try:
            if how.get("apart", True):
                with apart(), values.outside_training():
                    function(*args)
            else:
                function(*args)
            return _lib.OK
        except values.NoValue as error:
            _lib.say_why(why, str(error))
            return error.answer
        except (commands.CommandError, IndexError) as error:
            _lib.say_why(why, str(error))
            return _lib.FAILED
        except Exception as error:  # reported to the debugger, not raised into the training
            _lib.say_why(why, "%s: %s" % (type(error).__name__, str(error).split("\n", 1)[0]))
            return _lib.FAILED
        finally:
            agent.watching_now = watching and not agent.dead


def _size(tensor):
    """Bytes of its elements."""
    return tensor.numel() * tensor.element_size()


def is_here(tensor):
    """Whether libgradb can read the tensor in place."""
    return tensor.device.type == "cpu"


def cut(tensor, items):
    """The part of a tensor that a slice (structs gradb_slice_item) selects, as in Python. IndexError."""
    rest = tensor.dim() - sum(item.kind in (_lib.SLICE_INDEX, _lib.SLICE_RANGE) for item in items)
    if rest < 0:
        raise IndexError("too many indices for a tensor of %d axes" % tensor.dim())
    index, turned = [], []
    axis = place = 0  # of the tensor; of the result
    for item in items:
        if item.kind == _lib.SLICE_INDEX:
            index.append(item.start)
            axis += 1
        elif item.kind == _lib.SLICE_RANGE:
            part, is_turned = _forward(item, tensor.shape[axis])
            index.append(part)
            turned += [place] if is_turned else []
            axis, place = axis + 1, place + 1
        elif item.kind == _lib.SLICE_NEWAXIS:
            index.append(None)
            place += 1
        else:
            index.append(Ellipsis)
            axis, place = axis + rest, place + rest
    part = tensor[tuple(index)]
    return part.flip(turned) if turned else part


def _forward(item, size):
    """(slice with a positive step, whether the result must be reversed)."""
    begin, end, step = slice(item.start if item.has_start else None, item.stop if item.has_stop else None,
                             item.step).indices(size)
    if step > 0:
        return slice(begin, max(begin, end), step), False
    places = range(begin, end, step)
    return (slice(places[-1], places[0] + 1, -step), True) if places else (slice(0, 0), False)


def _unscaled_type(tensor):
    """The type of an unscaled tensor: unscaled halves would underflow, which the scale is there to prevent."""
    return torch.float32 if tensor.is_floating_point() and tensor.element_size() < 4 else tensor.dtype


def _text(data):
    return (data or b"").decode("utf-8", "replace")


def _wanted(given):
    """struct gradb_stats_wanted as device_stats.Wanted."""
    ranges = [(given.range_lo[i], given.range_hi[i]) for i in range(given.range_count)]
    bins = (given.bins_lo, given.bins_hi, given.bins) if given.bins else None
    return device_stats.Wanted(ranges, given.rtol, given.atol, given.equal_nan, bins)


def _key(given):
    """The fields of struct gradb_stats_wanted."""
    count = given.range_count
    return (tuple(given.range_lo[:count]), tuple(given.range_hi[:count]), given.against_previous, given.equal_nan,
            given.rtol, given.atol, given.bins, given.bins_lo, given.bins_hi)


def _fill(ret, record):
    """Copies a Record into struct gradb_stats."""
    for name, value in record.items():
        if name == "in_range":
            for i, count in enumerate(value):
                ret.in_range[i] = count
        elif name == "histogram":
            for i, count in enumerate(value or ()):
                ret.histogram[i] = count
        else:
            setattr(ret, name, value)


# ---- commands about values ----

def _memory(agent, _args, _node):
    kept = [{"device": device, "tensors": count, "bytes": size}
            for device, (count, size) in sorted(agent.source.kept.memory().items())]
    now, before, lasting = agent.live.counts()
    reply = {"kept for the next step": kept,
             "referred to": {"outputs": now, "outputs of the step before": before, "lasting": lasting}}
    device = devices.used()
    if device is not None:
        reply[device.name] = [{"device": said["name"], "allocated": said["allocated"], "reserved": said["reserved"],
                               "peak": said["peak"]} for said in device.memory()]
    return reply


def _scale(agent, args, node):
    if node is None and not args:
        return {"scale": agent.live.scale}
    node, _ = commands.node_of(agent, args, node)
    tensor, step, scale = agent.source.find(node.id, 0)
    names = ("count", "nan", "pos_inf", "neg_inf", "min", "max", "mean", "abs_mean", "std")
    reply = {"node": node.name, "step": step if step >= 0 else agent.steps.step, "scale": scale}
    found = [("as it lies there", device_stats.compute(tensor))]
    if scale != 1.0:
        found.append(("without the scale", device_stats.compute(tensor, scale=scale)))
    reply.update((title, {name: record[name] for name in names}) for title, record in found)
    return reply


commands.register("memory", _memory, "memory that is kept for the debugger, and the devices' memory")
commands.register("scale", _scale, "the scale of GradScaler; with NODE, a gradient with and without it",
                  "[NODE]")
