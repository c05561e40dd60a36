# SPDX-License-Identifier: MIT
"""gradb's agents for Python: `gradb run -- python train.py` needs nothing of it in the script; by hand it is
`import gradb.torch; gradb.torch.attach(model, optimizer)`."""

__version__ = "0.1.0"
