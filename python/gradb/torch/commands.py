# SPDX-License-Identifier: MIT
"""The commands of this framework's agent, see ../commands.py."""
from .. import changes, evaluate
from ..commands import CommandError, Table, node_of, switch_of  # noqa: F401

_table = Table()
register, names, run = _table.register, _table.names, _table.run
changes.register(_table)
evaluate.register(_table)
