# SPDX-License-Identifier: MIT
"""The rank of this process in a job of several."""
import os


def rank_and_size():
    """(rank, number of ranks), from mindspore.communication where it is initialised, else from the environment."""
    try:
        from mindspore import communication
        return communication.get_rank(), communication.get_group_size()
    except (RuntimeError, ValueError, ImportError):
        pass
    return _number("MS_NODE_ID", _number("RANK_ID", 0)), _number("MS_WORKER_NUM", _number("RANK_SIZE", 1))


def _number(name, default):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default
