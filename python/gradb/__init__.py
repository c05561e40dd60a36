# SPDX-License-Identifier: MIT
"""gradb's agents for Python. Under `gradb run -- python train.py` the script needs no change; by hand it is `import
gradb; gradb.attach()`, after the import of PyTorch or MindSpore."""

import os
import sys

with open(os.path.join(os.path.dirname(__file__), "VERSION"), encoding="ascii") as file:
    __version__ = file.read().strip()


def attach(*args, **kwargs):
    """gradb.torch.attach or gradb.mindspore.attach: lets the debugger see this training. Of a script that has imported
    both frameworks it is PyTorch's."""
    return _framework().attach(*args, **kwargs)


def detach():
    """Removes all hooks of all frameworks."""
    for name in ("torch", "mindspore"):
        module = sys.modules.get("%s.%s" % (__name__, name))
        if module is not None:
            module.detach()


def _framework():
    """The agent's package for the framework that the script has imported."""
    if "mindspore" in sys.modules and "torch" not in sys.modules:
        from . import mindspore
        return mindspore
    from . import torch
    return torch
