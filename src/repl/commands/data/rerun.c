// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: rerun */
#include <string.h>

#include "repl/commands/breakpoints/overflow.h"

static void show_run(struct command_call *call, const cJSON *run)
{
    const char *error = out_text_of(run, "error");
    const cJSON *outputs = cJSON_GetObjectItem(run, "outputs");
    out_say(call->out, run, "  {as:-22}  {result}\n",
            OUT_TEXT("result", error[0] != '\0' ? error : overflow_tensors(call, outputs)));
}

/* "  output 0 at [0, 3]: -inf, in float64 -inf; input.0 is 0" */
static void show_place(struct command_call *call, const cJSON *place)
{
    const cJSON *inputs = cJSON_GetObjectItem(place, "inputs"), *item;
    out_say(call->out, place, "  output {output} at \\[{index}\\]: {value:g6}");
    if (cJSON_GetObjectItem(place, "float64")) {
        out_say(call->out, place, ", in float64 {float64:g6}");
    }
    cJSON_ArrayForEach(item, inputs)
    {
        out_printf(call->out, item == inputs->child ? "; " : ", ");
        out_say(call->out, item, "{argument} is {value:g6}");
    }
    out_printf(call->out, "\n");
}

static void show_rerun(struct command_call *call, const cJSON *reply)
{
    const char *verdict = out_text_of(reply, "verdict");
    const char *word = strcmp(verdict, "inherent") == 0 ? "Inherent"
                       : strcmp(verdict, "dtype") == 0  ? "Caused by the data type"
                       : strcmp(verdict, "device") == 0 ? "Caused by the device"
                                                        : "Unknown";
    const cJSON *item;
    out_say(call->out, reply, "Overflow {number}, step {step}, {node}: {operator}[ ({line})]\n");
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "runs"))
    {
        show_run(call, item);
    }
    out_say(call->out, reply, "{word}: {text}\n", OUT_TEXT("word", word));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "places"))
    {
        show_place(call, item);
    }
}

static int run_rerun(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = overflow_ask(call, "rerun", call->argc > 0 ? call->argv[0] : "", &reply, err);
    if (rc == GD_OK && out_is_json(call->out)) {
        out_move(out_record(call->out, "rerun"), reply);
    } else if (rc == GD_OK) {
        show_rerun(call, reply);
    }
    cJSON_Delete(reply);
    return rc;
}

const struct command cmd_rerun = {
    .name = "rerun",
    .group = "data",
    .usage = "rerun [N | NODE]",
    .summary = "Repeat the call of an overflow on the CPU, in float32 and float64",
    .help =
        "If the result is not finite in float64 either, the values cause the overflow\n"
        "(inherent); otherwise the data type or the device does. Without an argument, repeat the\n"
        "last overflow found. The training's tensors, random state and hooks are unchanged.\n"
        "Only for PyTorch.",
    .examples = "rerun\n"
                "rerun 2",
    .args = {ARG_NODE},
    .flags = OVERFLOW_NEEDS,
    .words = {0, 1, "specify one overflow by number or node"},
    .run = run_rerun,
};
