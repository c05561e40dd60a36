# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of the PyTorch agent (tests/torch) on the emulated device, which is PyTorch's default one then and called
"cuda": test_suite.py MODULE [CASE...]

Their cases for pip's PyTorch, with its emulated sibling as interpreter; streams run late. Those in LEFT_OUT are about
something that is not on a device, or needs what the emulated one lacks, and are skipped, each with the reason."""
import importlib
import os
import sys
import unittest

os.environ.update(GRADB_EMULATED="cuda", GRADB_EMULATED_SCHEDULE="random:1", GRADB_EMULATED_SCRIPTS="1")

import harness  # noqa: E402
import torches  # noqa: E402

# reason -> MODULE.Case or MODULE.Case.test
LEFT_OUT = {
    "backward passes of a device run on one thread: its second one waits for the first":
        ("graph.Undisturbed.test_a_backward_pass_of_another_thread_is_left_alone",),
    "it makes another device the default one":
        ("graph.Undisturbed.test_modes_of_the_program",),
    "its worker processes call a module that is on the device": ("launch.Started.test_workers_are_left_alone",),
    "it makes sparse tensors, which the emulated device lacks": ("memory.Memory.test_tensors_of_all_kinds",),
    "a bad index on a device is noticed later, and ends the device":
        ("mistakes.Mistake.test_label_out_of_range", "mistakes.Raised.test_which_number_of_what_picks",
         "mistakes.Raised.test_which_number_where_nobody_looked", "mistakes.Raised.test_which_of_many_layers"),
    "a forked process cannot use the device": ("attach.ByHand.test_attach_twice_and_in_a_child",),
    "collectives of a device are launched, not waited for":
        ("timing.Collectives.test_calls_that_wait_at_once", "timing.Collectives.test_one_large_call"),
    "up to 256 numbers are on their way from a device, which it counts": ("leaks.Leaks.test_steps_hold_nothing",),
    "its program imports PyTorch in a way of its own, by which it has no emulated device":
        ("launch.Started.test_hook_of_the_program_around_the_import",
         "launch.StartedByPython.test_shell_script_environment_module_and_own_customizations"),
    "it uses DataParallel, which copies by functions of CUDA": ("graph.Names.test_levels_that_only_wrap_are_left_out",),
    "it takes tensors of the host for those of a device": ("values.Staged", "values.Previous"),
    "it compares counting in host memory with counting on a device": ("metrics.Anywhere",),
}


def reason_of(*names):
    """Why it is left out; "": it is not."""
    return next((reason for reason, left_out in LEFT_OUT.items() if any(name in left_out for name in names)), "")


def skipped(method, reason):
    """The method, skipped."""
    return unittest.skip("emulated device: " + reason)(method)


def cases_of(name):
    """Makes the cases of a module of tests/torch, here: XEmulated of its XPip."""
    module = importlib.import_module("test_" + name)
    for case in [thing for key, thing in vars(module).items() if key.endswith("Pip") and isinstance(thing, type)]:
        short = "%s.%s" % (name, case.__name__[:-len("Pip")])
        members = {"which": staticmethod(torches.emulated), "__module__": __name__}
        for test in unittest.TestLoader().getTestCaseNames(case):
            reason = reason_of(name, short, "%s.%s" % (short, test))
            if reason:
                members[test] = skipped(getattr(case, test), reason)
        made = type(case.__name__[:-len("Pip")] + "Emulated", (case,), members)
        globals()[made.__name__] = made


if __name__ == "__main__":
    cases_of(sys.argv.pop(1))
    harness.main()
