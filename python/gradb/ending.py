# SPDX-License-Identifier: MIT
"""How the debugger ends a training, for the agents of all frameworks."""
import sys


class Ended(KeyboardInterrupt):
    """The debugger ends the training. A KeyboardInterrupt, like Ctrl-C, for which scripts are prepared. step: the last
    one, where only the training was to end (the command `kill training`); None: the process as well."""

    def __init__(self, step=None):
        super().__init__("the debugger ended the training")
        self.step = step


def is_on_purpose(error):
    """Whether a script that ends by this exception has not failed."""
    return isinstance(error, Ended) and error.step is not None


def end_after(step):
    """Raises Ended. If the script does not catch it, its exit status is 0, and a line takes the traceback's place."""
    original = sys.excepthook

    def hook(kind, error, traceback):
        if is_on_purpose(error) and not sys.flags.interactive and not hasattr(sys, "ps1"):
            place = "after step %d" % error.step if error.step else "before its first step"
            print("gradb: the training was ended %s (kill training)" % place, file=sys.stderr, flush=True)
            raise SystemExit(0)
        original(kind, error, traceback)
    sys.excepthook = hook
    raise Ended(step)
