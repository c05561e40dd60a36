# SPDX-License-Identifier: MIT
"""Units that pass no gradient (dead, saturated), outputs that do not differ, dropout, batch normalization."""
import torch

from .. import values
from . import Watcher, node_of, piece
from .source_lines import sources_of
from .ways import Ways

_MOST_ELEMENTS = 1 << 22  # of an output that is measured
_MOST_UNITS = 65536
_MOST_NODES = 512
_ROWS = 64                # of a batch whose spread is measured
LAYERS = frozenset(("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                    "bilinear"))
_ZEROS = frozenset(("relu", "relu_", "relu6", "threshold", "threshold_"))
_BOUNDED = frozenset(("clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "hardtanh", "hardtanh_"))
_SMOOTH = frozenset(("sigmoid", "sigmoid_", "tanh", "tanh_", "hardsigmoid", "softsign"))
DROPOUTS = frozenset(("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                      "feature_alpha_dropout"))
_FLAT = 1e-3  # the derivative of a saturated sigmoid or tanh is below


def is_plain(tensor, least=1):
    """Whether a tensor can be measured here."""
    return type(tensor) in values.PLAIN and tensor.is_floating_point() and tensor.layout is torch.strided \
        and tensor.device.type != "meta" and least <= tensor.numel() <= _MOST_ELEMENTS


class _Unit:
    """An operator with units, over the observed steps."""
    __slots__ = ("where", "kind", "count", "batch", "share", "shares", "first", "since", "looks", "top", "bottom",
                 "before", "size")

    def __init__(self, where, kind):
        self.where = where
        self.kind = kind
        self.count = self.batch = self.looks = 0
        self.share = self.first = None
        self.shares = []
        self.since = None
        self.top = self.bottom = self.size = None
        self.before = ""


class _Layer:
    """A linear or convolutional layer when it first ran."""
    __slots__ = ("where", "weight", "bias", "scale", "fan_in", "given", "made", "order", "bias_mean")


class Units(Watcher):
    """Measures activations and layers in observed steps."""

    operators = DROPOUTS | LAYERS | _ZEROS | _BOUNDED | _SMOOTH | {"batch_norm", "leaky_relu", "leaky_relu_", "maximum",
                                                                   "matmul", "mm"}

    def __init__(self, observation):
        super().__init__(observation)
        self._units = {}
        self._layers = {}
        self._dropouts = {}
        self._norms = {}
        self._spread = {}
        self._step = 0

    def begins(self, step):
        """Remembers its number."""
        self._step = step

    def operator(self, call):
        """Measures what the rules are about."""
        name = call.name
        if name in DROPOUTS:
            self._dropout(call)
        elif name == "batch_norm":
            self._norm(call)
        elif not call.is_forward():
            return
        elif name in LAYERS:
            self._layer(call)
        elif name in _ZEROS or name in _BOUNDED or name in ("leaky_relu", "leaky_relu_", "maximum"):
            self._dead(call)
        elif name in _SMOOTH:
            self._saturated(call)
        elif name in ("matmul", "mm"):
            self._layer(call)

    # ---- dead ----

    def _dead(self, call):
        bounds = _bounds(call)
        given, made = call.given(0, "input"), call.result
        if not bounds or not is_plain(made, 2) or not made.requires_grad or made.dim() < 2:
            return
        made = made.detach()
        flat = None
        for bound in bounds:
            hit = made == bound
            flat = hit if flat is None else flat | hit
        units, batch = _by_unit(flat)
        if units is None or batch < 2:
            return
        share = float(units.float().mean())
        unit = self._look(call, "dead", share, units.numel(), batch)
        if len(bounds) == 2:  # it may be at one end for some examples, and at the other for the rest
            flat_share = float(flat.float().mean()) if share < 0.9 else 0.0
            self._note_size(self._look(call, "saturated", flat_share, units.numel(), batch), call)
        if unit is not None and share == 1 and isinstance(given, torch.Tensor) and given.numel() \
                and not call.writes and given.data_ptr() != made.data_ptr():
            unit.top, unit.bottom = float(given.detach().max()), float(given.detach().min())
            unit.before = node_of(self.agent, given)

    def _look(self, call, kind, share, count, batch):
        node = call.node()
        key = node, kind
        if key not in self._units and len(self._units) >= _MOST_NODES or not node:
            return None
        unit = self._units.get(key)
        if unit is None:
            unit = self._units[key] = _Unit(call.where(), kind)
            unit.first = share
        if unit.looks and unit.shares[-1][0] == self._step:  # a second micro-batch or pass of the same step
            unit.shares[-1] = self._step, min(share, unit.shares[-1][1])
        else:
            unit.looks += 1
            unit.shares.append((self._step, share))
        unit.count, unit.batch = count, batch
        return unit

    # ---- saturated ----

    def _saturated(self, call):
        made = call.result
        if not is_plain(made, 8) or not made.requires_grad or made.dim() < 2:
            return
        made = made.detach()
        if call.name.startswith("tanh"):
            slope = 1 - made * made
        elif call.name.startswith("sigmoid"):
            slope = made * (1 - made)
        elif call.name == "hardsigmoid":
            slope = ((made > 0) & (made < 1)).float()
        else:
            slope = (1 - made.abs()) ** 2
        share = float((slope < _FLAT).float().mean())
        self._note_size(self._look(call, "saturated", share, made.shape[1 if made.dim() > 3 else -1], made.shape[0]),
                        call)

    def _note_size(self, unit, call):
        given = call.given(0, "input")
        if unit is not None and isinstance(given, torch.Tensor) and not call.writes:
            unit.size = float(given.detach().float().abs().mean())
            unit.before = node_of(self.agent, given)

    # ---- layers ----

    def _layer(self, call):
        self._measure_spread(call)
        given, weight, bias = call.given(0, "input"), call.given(1, "weight"), call.given(2, "bias")
        node = call.node()
        if not node or node in self._layers or len(self._layers) >= _MOST_NODES:
            return
        if call.name in ("matmul", "mm"):
            if not is_plain(weight, 2) or not weight.is_leaf or not weight.requires_grad or weight.dim() != 2:
                return
            bias, turned = None, weight.detach().t()
        elif not is_plain(weight, 2):
            return
        else:
            turned = weight
        layer = _Layer()
        layer.where = call.where()
        held = self.agent.graph.holder(weight)
        layer.weight = held.name if held is not None else ""
        held = self.agent.graph.holder(bias) if isinstance(bias, torch.Tensor) else None
        layer.bias = held.name if held is not None else ""
        layer.bias_mean = float(bias.detach().float().mean()) if is_plain(bias) else None
        layer.fan_in = turned[0].numel()
        layer.scale = _rms(weight) * layer.fan_in ** 0.5
        layer.given = _rms(given) if is_plain(given) else None
        layer.made = _rms(call.result) if is_plain(call.result) else None
        layer.order = len(self._layers)
        layer.where["step"] = self._step
        self._layers[node] = layer

    def _measure_spread(self, call):
        made = call.result
        node = call.node()
        if not is_plain(made, 8) or not made.requires_grad or made.dim() < 2 or made.shape[0] < 8 or not node:
            return
        if node not in self._spread and len(self._spread) >= _MOST_NODES:
            return
        rows = made.detach()[:_ROWS].reshape(min(_ROWS, made.shape[0]), -1)[:, :4096].float()
        spread, size = float(rows.std(0).mean()), float(rows.pow(2).mean()) ** 0.5
        angle = 1 - float(torch.nn.functional.normalize(rows, dim=1).mean(0).pow(2).sum())
        found = self._spread.setdefault(node, {"where": call.where(), "first": spread, "most": spread, "looks": 0,
                                               "widest": angle})
        found.update(last=spread, size=size, step=self._step, most=max(found["most"], spread), looks=found["looks"] + 1,
                     angle=angle, widest=max(found["widest"], angle))

    # ---- dropout and normalization ----

    def _dropout(self, call):
        rate, training = call.given(1, "p", 0.5), call.given(2, "training", True)
        node = call.node()
        if training and isinstance(rate, (int, float)) and rate > 0.5 and node and node not in self._dropouts \
                and len(self._dropouts) < _MOST_NODES and call.is_forward():
            self._dropouts[node] = dict(call.where(), rate=float(rate), module=call.module())

    def _norm(self, call):
        given, mean, variance = call.args[0], call.given(1, "running_mean"), call.given(2, "running_var")
        training, momentum = call.given(5, "training", False), call.given(6, "momentum", 0.1)
        node = call.node() or node_of(self.agent, mean)
        if not isinstance(given, torch.Tensor) or given.dim() < 2 or not node or len(self._norms) >= _MOST_NODES:
            return
        known = self._norms.setdefault(node, {"where": call.where(), "module": call.module(), "batches": 0,
                                              "least": None, "most": None, "momentum": momentum, "fresh": 0,
                                              "applied": 0})
        values_of_one = given.numel() // max(1, given.shape[1])
        if training:
            known["batches"] += 1
            if known["momentum"] is not None and momentum is not None:  # momentum=None: 1, then 1/2, 1/3, ...
                known["momentum"] = min(known["momentum"], momentum)
            known["least"] = min(values_of_one, known["least"] or values_of_one)
            known["most"] = max(values_of_one, known["most"] or 0)
        elif call.is_forward():
            known["applied"] += 1
            if is_plain(mean) and is_plain(variance):
                known["fresh"] += bool((mean == 0).all() & (variance == 1).all())

    # ---- evidence ----

    def evidence(self):
        """Pieces for each operator that could be of interest."""
        ways = Ways(self.agent)
        sources = sources_of(self.observation)
        found = [one for (node, _), unit in self._units.items() for one in self._of_unit(node, unit, ways, sources)]
        found += self._of_layers(ways, sources)
        found += [self._of_dropout(one, sources) for one in self._dropouts.values() if one["rate"] > 0.5]
        found += self._of_norms(sources)
        return found + self._of_spread(ways)

    def _of_unit(self, node, unit, ways, sources):
        since = None
        for step, share in unit.shares:
            if share < 0.9:
                since = None
            elif since is None:
                since = step
        recent = [share for _, share in unit.shares[-3:]]
        if not recent or min(recent) < 0.5:
            return
        layer = self._layer_before(unit, ways, node)
        feeds = ways.leads_to(node, LAYERS | {"matmul", "addmm", "mm", "bmm", "einsum"})
        yield piece(unit.kind, unit.where, units=unit.count, batch=unit.batch, share=min(recent), first=unit.first,
                    since=since, step=unit.shares[-1][0], looks=len([1 for _, share in unit.shares if share >= 0.9]),
                    feeds=feeds, targets=not feeds and ways.meets_targets(node), largest=unit.top, smallest=unit.bottom,
                    size=unit.size, **self._about(layer, sources))

    def _layer_before(self, unit, ways, node):
        for before in ways.above(node):
            if before in self._layers:
                return self._layers[before]
        return None

    def _about(self, layer, sources):
        if layer is None:
            return {}
        found = {"layer": layer.where.get("node"), "weight": layer.weight or None, "bias": layer.bias or None,
                 "bias_mean": layer.bias_mean, "scale": layer.scale, "given": layer.given}
        at = sources.parameter_set(layer.bias) if layer.bias else {}
        if at:
            found["also"] = [at]
        return found

    def _of_layers(self, ways, sources):
        layers = [one for one in self._layers.values() if one.where["step"] <= 2]
        small = [one for one in layers if 0 < one.scale < 0.05]
        found = []
        for node, one in self._layers.items():
            if one.where["step"] > 2 or one.scale < 4:
                continue
            place = dict(one.where)
            place.pop("step")
            at = sources.parameter_set(one.weight) if one.weight else {}
            found.append(piece("weight-scale", dict(place, **at), weight=one.weight or None, scale=one.scale,
                               fan_in=one.fan_in, given=one.given, made=one.made, layers=len(layers),
                               normalized=ways.next_is(node, ("batch_norm", "layer_norm", "group_norm", "normalize",
                                                              "instance_norm", "rms_norm")),
                               feeds=ways.leads_to(node, LAYERS | {"matmul", "mm"})))
        if len(small) >= 2:
            one = small[0]
            at = sources.parameter_set(one.weight) if one.weight else {}
            place = dict(one.where)
            place.pop("step")
            found.append(piece("weights-tiny", dict(place, **at), count=len(small), layers=len(layers),
                               scale=max(layer.scale for layer in small), weight=one.weight or None))
        return found

    @staticmethod
    def _of_dropout(one, sources):
        place = {key: one[key] for key in ("file", "line", "node") if key in one}
        at = sources.module_made(one["module"]) if one["module"] else {}
        return piece("dropout", dict(place, **at), rate=one["rate"], kept=1 - one["rate"],
                     also=[place] if at and "file" in place else None)

    def _of_norms(self, sources):
        found = []
        for known in self._norms.values():
            at = sources.module_made(known["module"]) if known["module"] else {}
            found.append(piece("batch-norm", dict(known["where"], **at), batches=known["batches"], least=known["least"],
                               most=known["most"], momentum=known["momentum"], fresh=known["fresh"],
                               applied=known["applied"], also=[known["where"]] if at else None))
        return found

    def _of_spread(self, ways):
        found = []
        for node, known in self._spread.items():
            if known["looks"] < 3 or known["last"] > 0.1 * known["most"] and known["angle"] > 0.1 * known["widest"]:
                continue
            meets = ways.meets_itself(node, LAYERS)
            feeds = ways.leads_to(node, LAYERS | {"matmul", "addmm"})
            found.append(piece("spread", dict(known["where"], node=node), first=known["first"], last=known["last"],
                               most=known["most"], size=known["size"], step=known["step"], feeds=feeds,
                               angle=known["angle"], widest=known["widest"],
                               itself=bool(meets), also=[meets] if meets else None))
        return found


def _rms(tensor):
    return float(tensor.detach().float().pow(2).mean()) ** 0.5


def _bounds(call):
    """The values at which the derivative of a call is 0."""
    name = call.name
    if name in ("relu", "relu_"):
        return (0,)
    if name == "relu6":
        return (0, 6)
    if name.startswith("leaky_relu"):
        return (0,) if call.given(1, "negative_slope", 0.01) == 0 else ()
    if name.startswith("threshold"):
        return (call.given(2, "value"),)
    if name.startswith("clamp_min"):
        found = (call.given(1, "min"),)
    elif name == "maximum":
        other = call.given(1, "other")
        constant = isinstance(other, torch.Tensor) and other.numel() == 1 and not other.requires_grad
        found = (float(other),) if constant else ()
    else:
        names = ("min_val", "max_val") if name.startswith("hardtanh") else ("min", "max")
        found = (call.given(1, names[0]), call.given(2, names[1]))
    return tuple(one for one in found if isinstance(one, (int, float)))


def _by_unit(flat):
    """Whether each unit is flat for the whole batch, and the size of that."""
    if flat.dim() == 3:  # (batch, time, units) or (batch, channels, time)
        return flat.reshape(-1, flat.shape[-1]).all(0), flat.shape[0] * flat.shape[1]
    axis = 1
    units = flat.shape[axis]
    if units > _MOST_UNITS:
        return None, 0
    return flat.transpose(0, axis).reshape(units, -1).all(1), flat.numel() // units
