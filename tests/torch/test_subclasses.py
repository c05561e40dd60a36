# SPDX-License-Identifier: GPL-3.0-or-later
"""Tensors whose values are in other tensors (__torch_dispatch__), and tensors that the program swaps: whatever gradb is
asked to look at, the training ends as without it."""
import re
import subprocess

import harness
import torches

# Parameters without memory of their own: without their __torch_dispatch__, PyTorch reads at address 0.
WRAPPED = """
import torch
from torch import nn
from torch.utils import _pytree as pytree

class Boxed(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device,
                                                   requires_grad=inner.requires_grad)
    def __init__(self, inner):
        self.inner = inner
    def __repr__(self):
        return "Boxed"
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def inside(one):
            return one.inner if isinstance(one, Boxed) else one
        made = func(*pytree.tree_map(inside, args), **pytree.tree_map(inside, kwargs or {}))
        if func._schema.name.endswith("_"):
            return args[0]
        return pytree.tree_map(lambda one: Boxed(one) if isinstance(one, torch.Tensor) else one, made)

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for layer in (net[0], net[2]):
    for name, parameter in list(layer.named_parameters()):
        setattr(layer, name, nn.Parameter(Boxed(parameter.detach())))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
for step in range(6):
    x = torch.randn(16, 4)
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("digest", [one.inner.double().sum().item().hex() for one in net.parameters()], flush=True)
"""

# Module.to() swaps each parameter and its gradient with a converted one.
SWAPPED = """
import torch
from torch import nn

torch.manual_seed(5)
torch.__future__.set_swap_module_params_on_conversion(True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    net(torch.randn(16, 4)).pow(2).mean().backward()
    optimizer.step()
    if step % 2:
        optimizer.zero_grad()
    if step > 1:
        net.double()
        net.float()
        net.load_state_dict(net.state_dict())
print("digest", [one.double().sum().item().hex() for one in net.parameters()], flush=True)
"""

# Commands that look at values, each set for one run.
LOOKS = (["watch TO on all", "catch overflow", "step 3", "print net/0/weight", "digest all", "info optimizer",
          "info model", "info gradients", "print grad_norm", "delete", "continue"],
         ["recommend yes", "step 2", "why", "continue"],
         ["why", "next", "next", "step 2", "why", "continue"])


class Same(torches.Folder):
    script = ""

    def ends_as_alone(self, **env):
        """The output of each run."""
        script = self.write("train.py", self.script)
        alone = subprocess.run([*torches.warm(self.python), script], capture_output=True, text=True, check=True,
                               env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        digest = re.search(r"(?m)^digest .*$", alone.stdout).group()
        outputs = []
        for commands in LOOKS:
            done = self.gradb([self.python, script], "set on-error continue", *commands, "info log -a", **env)
            with self.subTest(commands=commands):
                self.assertIn(digest, done.stdout, done.stdout + done.stderr)
                self.assertNotIn("internal error", done.stdout + done.stderr)
            outputs.append(done.stdout + done.stderr)
        return outputs


@torches.both
class Wrapped(Same):
    script = WRAPPED

    def test_values_are_refused_and_the_training_is_the_same(self):
        values, *_ = self.ends_as_alone()
        self.assertIn("it is a Boxed: its values are in other tensors, in a way that only the program knows", values)
        self.assertRegex(values, r"no norm can be computed")

    def test_without_the_native_module(self):
        self.ends_as_alone(GRADB_NATIVE="0")


@torches.newest
class Swapped(Same):
    script = SWAPPED

    def setUp(self):
        super().setUp()
        if torches.release_of(self.python) < (2, 3):
            self.skipTest("torch.utils.swap_tensors came with 2.3")

    def test_the_parameters_stay_known_and_the_training_is_the_same(self):
        values, *_ = self.ends_as_alone()
        self.assertRegex(values, r"net/0/weight:0\nfloat32 \(8, 4\)")

    def test_without_the_native_module(self):
        self.ends_as_alone(GRADB_NATIVE="0")


if __name__ == "__main__":
    harness.main()
