# SPDX-License-Identifier: MIT
"""gradb's agents for Python: `gradb run -- python train.py` needs nothing of it in the script; by hand it is
`import gradb.torch; gradb.torch.attach(model, optimizer)`."""

__version__ = "0.2.0"


def attach(*args, **kwargs):
    """gradb.torch.attach: makes this training one that the debugger can see."""
    from . import torch
    return torch.attach(*args, **kwargs)


def detach():
    """gradb.torch.detach: takes all hooks off."""
    from . import torch
    torch.detach()
