// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: rerun
 * Repeat the call of an overflow.
 */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

static void run_text(struct command_call *call, const cJSON *run)
{
    const char *error = overflow_text(run, "error");
    const cJSON *outputs = cJSON_GetObjectItem(run, "outputs");
    out_printf(call->out, "  %-22s  %s\n", out_safe(call, overflow_text(run, "as")),
               error[0] != '\0' ? out_safe(call, error) : overflow_tensors(call, outputs));
}

static const char *value_text(struct command_call *call, const cJSON *value)
{
    if (cJSON_IsNumber(value)) {
        return inspect_printf(call, "%.6g", value->valuedouble);
    }
    return cJSON_IsString(value) ? out_safe(call, value->valuestring) : "?";
}

/* "  output 0 at [0, 3]: -inf, in float64 -inf; input.0 is 0" */
static void place_text(struct command_call *call, const cJSON *place)
{
    struct gd_buf text = GD_BUF_INIT(65536);
    const cJSON *item, *value = cJSON_GetObjectItem(place, "value");
    const cJSON *wide = cJSON_GetObjectItem(place, "float64");
    const char *between = "";
    gd_buf_printf(&text, "  output %.0f at [", overflow_number(place, "output"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(place, "index"))
    {
        gd_buf_printf(&text, "%s%.0f", between, item->valuedouble);
        between = ", ";
    }
    gd_buf_printf(&text, "]: %s", value_text(call, value));
    if (wide) {
        gd_buf_printf(&text, ", in float64 %s", value_text(call, wide));
    }
    between = ";";
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(place, "inputs"))
    {
        gd_buf_printf(&text, "%s %s is %s", between, overflow_text(item, "argument"),
                      value_text(call, cJSON_GetObjectItem(item, "value")));
        between = ",";
    }
    out_printf(call->out, "%s\n", out_safe(call, gd_buf_text(&text)));
    gd_buf_deinit(&text);
}

static void rerun_text(struct command_call *call, const cJSON *reply)
{
    const cJSON *item;
    const char *line = overflow_text(reply, "line");
    out_printf(call->out, "Overflow %.0f, step %.0f, %s: %s%s%s%s\n",
               overflow_number(reply, "number"), overflow_number(reply, "step"),
               out_safe(call, overflow_text(reply, "node")),
               out_safe(call, overflow_text(reply, "operator")), line[0] ? " (" : "",
               out_safe(call, line), line[0] ? ")" : "");
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "runs"))
    {
        run_text(call, item);
    }
    const char *verdict = overflow_text(reply, "verdict");
    const char *word = strcmp(verdict, "inherent") == 0 ? "Inherent"
                       : strcmp(verdict, "dtype") == 0  ? "Caused by the data type"
                       : strcmp(verdict, "device") == 0 ? "Caused by the device"
                                                        : "Unknown";
    out_printf(call->out, "%s: %s\n", word, out_safe(call, overflow_text(reply, "text")));
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "places"))
    {
        place_text(call, item);
    }
}

static int run_rerun(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    int rc = overflow_ask(call, "rerun", call->argc > 0 ? call->argv[0] : "", &reply, err);
    if (rc == GD_OK && out_is_json(call->out)) {
        overflow_take_members(out_record(call->out, "rerun"), reply);
    } else if (rc == GD_OK) {
        rerun_text(call, reply);
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
        "last overflow found. The training's tensors, random state and hooks are unchanged.\n\n"
        "  rerun\n"
        "  rerun 2\n",
    .args = {ARG_NODE},
    .flags = OVERFLOW_NEEDS,
    .words = {0, 1, "specify one overflow by number or node"},
    .run = run_rerun,
};
