// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: overflow */
#include "repl/commands/breakpoints/overflow.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

static int arm_overflow(struct command_call *call, const char *words, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = overflow_ask_all(call, words, &reply, err);
    if (rc == GD_OK) {
        overflow_show(call, reply, OVERFLOWS_NONE);
    }
    cJSON_Delete(reply);
    return rc;
}

int catch_overflow(struct command_call *call, bool temporary, struct gd_err *err)
{
    const char *rest = call->line;
    int64_t count = temporary ? 1 : 0;
    int rc = repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (temporary && rest[0] != '\0') {
        return gd_fail(err, GD_EUSAGE, "tcatch overflow takes no arguments");
    }
    if (rest[0] != '\0' && (rc = arg_count(rest, 1, INT32_MAX, &count, err)) != GD_OK) {
        return rc;
    }
    return arm_overflow(
        call, count > 0 ? inspect_printf(call, "stop %lld", (long long)count) : "stop", err);
}

static int run_record(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    if (call->argc < 1 || call->argc > 2) {
        return gd_fail(err, GD_EUSAGE, "overflow record: specify how many overflows to record");
    }
    int rc = arg_count(call->argv[0], 1, INT32_MAX, &count, err);
    return rc != GD_OK ? rc : arm_overflow(call, overflow_words(call, "record", 0), err);
}

static int run_stop(struct command_call *call, struct gd_err *err)
{
    int64_t count = 0;
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "overflow stop: expected a number of overflows, or nothing");
    }
    int rc = call->argc ? arg_count(call->argv[0], 1, INT32_MAX, &count, err) : GD_OK;
    return rc != GD_OK ? rc : arm_overflow(call, overflow_words(call, "stop", 0), err);
}

static int run_off(struct command_call *call, struct gd_err *err)
{
    return arm_overflow(call, "off", err);
}

static int run_overflow(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 0) {
        return gd_fail(err, GD_EUSAGE, "overflow: unknown word \"%.100s\"",
                       out_safe(call, call->argv[0]));
    }
    return info_overflows(call, err);
}

static const struct command overflow_subs[] = {
    {.name = "record",
     .usage = "overflow record N [DIR]",
     .summary = "Write the next N overflows to a directory without stopping",
     .help = "Only for PyTorch: calls of MindSpore cannot be repeated.\n"
             "DIR is a directory on the host of the training (default ./gradb-overflow). Each\n"
             "overflow gets a directory of its own: forward_info.json or backward_info.json with\n"
             "the call and its source location, and a .npy file for each tensor.",
     .examples = "overflow record 3\n"
                 "overflow record 10 /data/overflows",
     .args = {ARG_WORD, ARG_FILE},
     .flags = OVERFLOW_NEEDS,
     .run = run_record},
    {.name = "stop",
     .usage = "overflow stop [N]",
     .summary = "Stop at the next N overflows, or at every one (same as catch overflow)",
     .examples = "overflow stop\n"
                 "overflow stop 2",
     .args = {ARG_WORD},
     .flags = OVERFLOW_NEEDS,
     .run = run_stop},
    {.name = "off",
     .usage = "overflow off",
     .summary = "Stop looking for overflows",
     .help = "Overflows that were found stay listed.",
     .flags = OVERFLOW_NEEDS,
     .run = run_off},
    {.name = NULL},
};

const struct command cmd_overflow = {
    .name = "overflow",
    .group = "breakpoints",
    .usage = "overflow [record N [DIR] | stop [N] | off]",
    .summary = "Find operators with finite inputs whose output is infinite or NaN",
    .help =
        "The training process checks the output of each operator in the forward pass, the\n"
        "backward pass and the optimizer, and the inputs of those whose output is not finite.\n"
        "\"catch overflow\" stops at it; \"overflow record\" writes the call and\n"
        "continues. Operators that receive an infinity as an argument, such as masked_fill with\n"
        "-inf, are marked \"intended\": they never stop the training, and only \"info overflows\n"
        "-a\" lists them. Without a word, the same as \"info overflows\". Applies to all ranks.\n"
        "Only PyTorch programs support this.",
    .examples = "overflow",
    .args = {ARG_SUBCOMMAND},
    .flags = OVERFLOW_NEEDS,
    .run = run_overflow,
    .sub = overflow_subs,
};
