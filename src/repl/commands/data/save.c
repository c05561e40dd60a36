// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: save */
#include <string.h>

#include "repl/commands/data/save.h"
#include "repl/values/inspect.h"

/* Takes the file name, the last word, from call->argv. A single word is a tensor. */
static const char *take_file(struct command_call *call)
{
    const char *last = call->argc > 1 ? call->argv[call->argc - 1] : "";
    bool mode = strcmp(last, "prev") == 0 || strcmp(last, "diff") == 0;

    if (call->argc < 2 || (call->argc == 2 && mode)) {
        return NULL;
    }
    return inspect_home_path(call, call->argv[--call->argc]);
}

static int run_save(struct command_call *call, struct gd_err *err)
{
    bool force = inspect_take_flag(call, "-f");
    inspect_join_slices(call);
    const char *what = call->argc > 0 ? call->argv[0] : "";
    if (call->argc == 3 && strcmp(what, "overflow") == 0) {
        return save_overflow(call, err);
    }
    bool watchpoints = strcmp(what, "watchpoints") == 0;
    const char *path = take_file(call);
    if (call->argc == 1 && (watchpoints || strcmp(what, "breakpoints") == 0)) {
        path = path ? path : inspect_printf(call, "%s.gdb", what);
        return save_points(call, !watchpoints, path, force, err);
    }
    enum value_which which = call->argc > 1 ? value_take_which(call) : VALUE_CURRENT;
    path = path ? path : save_name(call, value_which_name(which));
    return path ? save_tensors(call, path, which, force, err) : gd_fail_nomem(err);
}

const struct command cmd_save = {
    .name = "save",
    .group = "data",
    .usage = "save [-f] [NODE[:SLOT][SLICE]|$N [prev|diff]] [FILE.npy] | save [-f] SELECTOR "
             "FILE.npz|FILE.safetensors | save [-f] watchpoints|breakpoints [FILE] | save "
             "overflow N DIR",
    .summary = "Save tensors to a .npy, .npz or safetensors file, or watchpoints as commands",
    .help =
        "The extension of the file chooses the format: .npz and .safetensors files hold any\n"
        "number of tensors, those of a selector (\"help selectors\"), under the names of their\n"
        "nodes. Any other file holds one tensor for numpy.load. numpy has no bfloat16: its 16\n"
        "bits are saved. Without FILE, the file is named after the tensor; without a tensor,\n"
        "save the current node. gradb asks before it replaces a file; in scripts and with\n"
        "--json it needs -f or \"set confirm off\".\n"
        "\n"
        "save watchpoints writes the commands that set them again, with ignore counts, command\n"
        "lists and excluded nodes, for \"source\"; save breakpoints writes both kinds.\n"
        "save overflow writes the call of an overflow (\"info overflows\") to a new directory\n"
        "on the host of the training.",
    .examples = "save watchpoints watch.gdb\n"
                "save model/head/weight w.npy\n"
                "save weights except *bias weights.safetensors\n"
                "save $3[0] first-row.npy",
    .args = {ARG_TENSOR, ARG_FILE},
    .run = run_save,
};
