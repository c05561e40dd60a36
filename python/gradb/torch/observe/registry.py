# SPDX-License-Identifier: MIT
"""The watchers, in the order in which their evidence is reported."""
from .averages import Averages
from .axes import Axes
from .by_hand import ByHand
from .collapse import Copies, Weights
from .data import Data
from .functions import Functions
from .generated import Generators, Latents
from .graphs import Graphs
from .held_out import HeldOut
from .hooks import Hooks
from .language import Adapters, Codebooks, Routers, Tokens
from .layers import Layers
from .loss_input import LossInput
from .losses import Losses, Spikes
from .modes import Modes
from .numbers import Numbers
from .objectives import Objectives
from .order import Order
from .overwritten import Overwritten
from .padding import Padding
from .ranks import Draws, Ranks, Statistics
from .references import LostAverages, References
from .schedules import Schedules
from .scores import Scores
from .seeds import Seeds
from .structure import Structure
from .targets import Targets
from .trained import Trained
from .units import Units
from .updates import Updates

WATCHERS = (Losses, Numbers, Weights, Copies, Units, Latents, Generators, Functions, Hooks, LossInput, Axes, Order,
            Graphs, Modes, Trained, Updates, Schedules, Averages, ByHand,
            Data, Tokens, Routers, Adapters, Ranks, Draws, Statistics, Padding, Structure, Layers, Targets, Objectives,
            Seeds, Scores, Overwritten, Codebooks, References, LostAverages, Spikes, HeldOut)
