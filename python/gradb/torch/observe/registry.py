# SPDX-License-Identifier: MIT
"""The watchers, in the order in which their evidence is reported."""
from .axes import Axes
from .collapse import Copies, Weights
from .functions import Functions
from .loss_input import LossInput
from .losses import Losses
from .units import Units

WATCHERS = (Losses, Weights, Copies, Units, Functions, LossInput, Axes)
