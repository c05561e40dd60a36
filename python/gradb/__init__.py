# SPDX-License-Identifier: MIT
"""gradb's agent for Python. Under `gradb run -- python train.py` the script needs no change; by hand it is `import
gradb.torch; gradb.torch.attach(model, optimizer)`."""

import os

with open(os.path.join(os.path.dirname(__file__), "VERSION"), encoding="ascii") as file:
    __version__ = file.read().strip()


def attach(*args, **kwargs):
    """gradb.torch.attach: lets the debugger see this training."""
    from . import torch
    return torch.attach(*args, **kwargs)


def detach():
    """gradb.torch.detach: removes all hooks."""
    from . import torch
    torch.detach()
