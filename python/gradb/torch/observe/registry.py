# SPDX-License-Identifier: MIT
"""The watchers, in the order in which their evidence is reported."""
from .losses import Losses

WATCHERS = (Losses,)
