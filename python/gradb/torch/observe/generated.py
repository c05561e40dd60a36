# SPDX-License-Identifier: MIT
"""What is drawn at random on the way: the latent variables of an autoencoder, and what a generator makes of noise."""

import torch

from ..swapping import Ref
from . import Watcher, piece, trace
from .units import LAYERS, is_plain
from .ways import Ways

_NOISE = frozenset(("randn", "randn_like", "normal", "normal_"))
_DRAWN = _NOISE | {"rand", "rand_like", "uniform_"}
_ADDS = frozenset(("add", "add_", "iadd", "addcmul", "__iadd__"))
_MULTIPLIES = frozenset(("mul", "mul_", "multiply", "imul"))
_LEAST_ROWS = 8
_MOST_ROWS = 256
_MOST_COLUMNS = 4096
_MOST_LOOKS = 64
_MOST_PLACES = 16
_MOST_MADE = 512     # operators from a tensor back to noise
_MOST_ASKED = 16     # layers of a step whose input is examined


class Latents(Watcher):
    """Compares z = mean + deviation * noise with the standard normal distribution."""

    operators = _ADDS | _MULTIPLIES

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._scaled = {}  # id of deviation * noise -> (weak reference, a copy of the deviation)
        self._found = {}   # node -> {"where", "looks"}
        self._loss_at = {}
        self._step = 0

    def begins(self, step):
        """Forgets the previous step's."""
        self._scaled = {}
        self._step = step
        self.trace.begins(step)

    def operator(self, call):
        """A deviation that is multiplied by noise, or a mean that this is added to."""
        if not call.is_forward() or len(call.args) < 2 or not isinstance(call.result, torch.Tensor) or \
                not call.result.requires_grad:
            return
        self.trace.see(call)
        if call.name in _MULTIPLIES:
            self._note_scaled(call)
        elif call.name == "addcmul" and len(call.args) > 2:
            self._measure(call, call.args[0], self._deviation(*call.args[1:3]))
        elif call.name in _ADDS:
            for mean, other in (call.args[:2], call.args[1::-1]):
                held = self._scaled.get(id(other))
                if held is not None and held[0]() is other:
                    self._measure(call, mean, held[1])

    def _deviation(self, first, second):
        for deviation, noise in ((first, second), (second, first)):
            if isinstance(deviation, torch.Tensor) and isinstance(noise, torch.Tensor) and deviation.requires_grad \
                    and not noise.requires_grad and self.trace.of(noise).source().name in _NOISE:
                return trace.copied(deviation.detach())
        return None

    def _note_scaled(self, call):
        deviation = self._deviation(*call.args[:2])
        if deviation is not None and deviation.dim() > 1:
            self._scaled[id(call.result)] = Ref(call.result), deviation

    def _measure(self, call, mean, deviation):
        if deviation is None or not is_plain(mean, 2) or not mean.requires_grad or mean.dim() < 2 \
                or mean.shape != deviation.shape or mean.shape[0] < _LEAST_ROWS:
            return
        mean = mean.detach().to("cpu", torch.float64).reshape(len(mean), -1)
        deviation = deviation.to(torch.float64).reshape(len(mean), -1)
        if not bool((deviation > 0).all()):
            return
        divergence = 0.5 * (mean ** 2 + deviation ** 2 - 1) - deviation.log()
        node = call.node()
        known = self._found.get(node)
        if known is None:
            if not node or len(self._found) >= _MOST_PLACES:
                return
            known = self._found[node] = {"where": call.where(), "looks": []}
        known["looks"].append((self._step, float(divergence.sum(1).mean()), float(mean.std(0).mean()),
                               mean.shape[1]))
        del known["looks"][:-_MOST_LOOKS]

    def loss(self, tensor):
        """Where the terms of the loss are added."""
        if self.observation.observes and self._found and isinstance(tensor, torch.Tensor):
            self._loss_at = self.trace.of(tensor).source().where()

    def evidence(self):
        """A piece for each place."""
        ways = Ways(self.agent)
        return [piece("latent", one["where"], looks=len(one["looks"]), step=one["looks"][-1][0],
                      divergence=max(look[1] for look in one["looks"][-3:]), first=one["looks"][0][1],
                      spread=one["looks"][-1][2], units=one["looks"][-1][3], feeds=ways.leads_to(node, LAYERS),
                      also=[self._loss_at] if self._loss_at else []) for node, one in self._found.items()]


class Generators(Watcher):
    """Compares how much the generated examples that a layer is given differ with how much the real ones do."""

    operators = LAYERS

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._step = self._asked = 0
        self._now = {}    # id of a layer's weight -> {"real": spread, "made": (spread, where)}
        self._found = {}  # the same -> {"where", "looks"}

    def begins(self, step):
        """Forgets the previous step's."""
        self._step, self._asked, self._now = step, 0, {}
        self.trace.begins(step)

    def operator(self, call):
        """A layer is given real examples, or generated ones."""
        if self.agent.in_backward or self._asked >= _MOST_ASKED:
            return
        given, weight = call.given(0, "input"), call.given(1, "weight")
        if not is_plain(given, 2) or given.requires_grad or given.dim() < 2 or given.shape[0] < _LEAST_ROWS:
            return  # a critic is trained with examples that are detached
        self._asked += 1
        made = self.trace.of(given)
        kind = _origin(made)
        if kind is None:
            return
        now = self._now.setdefault(id(weight), {})
        now[kind] = _spread(given), made.source().where() if kind == "made" else call.where()

    def ends(self, step):
        """Keeps what both kinds were like."""
        for key, now in self._now.items():
            if len(now) == 2 and now["real"][0] > 0 and (key in self._found or len(self._found) < _MOST_PLACES):
                known = self._found.setdefault(key, {"where": now["made"][1], "looks": []})
                known["looks"].append((self._step, now["made"][0], now["real"][0]))
                del known["looks"][:-_MOST_LOOKS]
        self._now = {}

    def evidence(self):
        """One piece: the layer that was given both most often."""
        if not self._found:
            return []
        one = max(self._found.values(), key=lambda known: len(known["looks"]))
        ratios = [made / real for _, made, real in one["looks"]]
        optimizers = self.agent.optimizers
        places = [optimizers.made_at(optimizers.by_name(name)) for name in optimizers.names()]
        return [piece("generated", one["where"], looks=len(ratios), step=one["looks"][-1][0], ratio=max(ratios[-2:]),
                      most=max(ratios), first=ratios[0], fallen=_fallen(one["looks"]), made=one["looks"][-1][1],
                      real=one["looks"][-1][2], also=[place for place in places if place])]


def _fallen(looks):
    """How often generated examples differed much less than the real ones, and than they did before."""
    most, count = 0.0, 0
    for step, made, real in looks:
        count += step >= 16 and made / real < min(0.4, 0.2 * most)
        most = max(most, made / real)
    return count


def _origin(made):
    """"made": computed by parameters from noise; "real": by no parameter; None: otherwise."""
    above = trace.ancestors(made, _MOST_MADE, grads=False)
    if len(above) >= _MOST_MADE:
        return None
    if not any(one.name == "parameter" for one in above):
        return "real"
    return "made" if any(one.name in _DRAWN for one in above) else None


def _spread(tensor):
    rows = tensor.detach()[:_MOST_ROWS]
    return float(rows.reshape(len(rows), -1)[:, :_MOST_COLUMNS].float().var(0).mean()) ** 0.5
