# SPDX-License-Identifier: MIT
"""The training that bench_torch.py measures: a residual network or a GPT on one fixed batch, in blocks of steps
requested over a socket.

    torch_train.py SOCKET SCRIPTS MODEL THREADS [NUMBER...]

SOCKET: path of the requesting process's socket, see turns_served.py; SCRIPTS: the folder of cnn.py and gpt.py; NUMBER:
the model's sizes. A block's mode is one of MODES.
"""
import contextlib
import sys
import time

import torch
import torch.nn.functional as F
import turns_served

MODES = ("plain", "told", "hooks", "anomaly")  # told: gradb is notified of the last step of each block


def cnn(width, blocks, batch, size):
    """The residual network of cnn.py: returns (model, loss function)."""
    import cnn as script
    images, labels = script.bars(batch, size)
    model = script.ResNet(width, blocks)
    return model, lambda: F.cross_entropy(model(images), labels)


def gpt(width, heads, layers, context, batch):
    """The GPT of gpt.py."""
    import gpt as script
    data = script.text(2000)
    start = torch.randint(len(data) - context - 1, (batch, 1)) + torch.arange(context)
    tokens, targets = data[start], data[start + 1]
    model = script.GPT(width, heads, layers, context)

    def loss_of():
        logits = model(tokens)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    return model, loss_of


class Hooks:
    """Checks by hand: every module's output and its gradient, and every parameter's gradient, with torch.isfinite."""

    def __init__(self, model):
        self.handles = [module.register_forward_hook(self._forward) for module in model.modules()]
        self.handles += [parameter.register_hook(self._look) for parameter in model.parameters()]

    def _forward(self, _module, _inputs, output):
        self._look(output)
        if output.requires_grad:
            output.register_hook(self._look)

    @staticmethod
    def _look(tensor):
        if not torch.isfinite(tensor).all():
            raise FloatingPointError("a value is not finite")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()


def as_mode(mode, model):
    """Context in which a block of that mode runs."""
    if mode == "hooks":
        return Hooks(model)
    return torch.autograd.set_detect_anomaly(True) if mode == "anomaly" else contextlib.nullcontext()


def run(model, loss_of, optimizer, steps, told):
    """Trains; returns the seconds of each step."""
    if told:  # gradb runs it in this mode, and provides the package
        import gradb.torch
    seconds = []
    for step in range(steps):
        began = time.perf_counter()
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        if told:
            gradb.torch.log("last_of_block", int(step == steps - 1))
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds


def main():
    path, scripts, name, threads, *sizes = sys.argv[1:]
    sys.path.insert(0, scripts)
    torch.manual_seed(0)
    torch.set_num_threads(int(threads))
    model, loss_of = {"cnn": cnn, "gpt": gpt}[name](*map(int, sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def block(mode, steps):
        with as_mode(mode, model):
            return run(model, loss_of, optimizer, steps, mode == "told")
    turns_served.serve(path, torch.__version__, sum(parameter.numel() for parameter in model.parameters()), block)


if __name__ == "__main__":
    main()
