// SPDX-License-Identifier: GPL-3.0-or-later
/* `info log`. */
#include "repl/commands/status/info.h"
#include "repl/core/command.h"
#include "repl/launch/launch.h"
#include "repl/values/inspect.h"

int info_log(struct command_call *call, struct gd_err *err)
{
    int64_t wanted = 20;
    bool all = inspect_take_flag(call, "-a");
    if (call->argc > 0) {
        int rc = arg_count(call->argv[0], 1, INT32_MAX, &wanted, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    size_t count = launch_log_count(call->repl);
    size_t first = all || count <= (size_t)wanted ? 0 : count - (size_t)wanted;
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "log");
        cJSON *lines = out_list(record, "lines");
        for (size_t i = first; i < count; i++) {
            const char *line = inspect_name(call, launch_log_line(call->repl, i));
            out_push_text(lines, line);
        }
        out_set(record, OUT_INT("count", count),
                OUT_INT("dropped", launch_log_dropped(call->repl)));
        return GD_OK;
    }
    if (count == 0) {
        out_printf(call->out, "The training program has written nothing.\n");
    }
    if (first > 0) {
        out_printf(call->out, "(%s before these: info log -a)\n",
                   inspect_plural(call, first, "line"));
    }
    for (size_t i = first; i < count; i++) {
        out_printf(call->out, "%s\n", out_safe(call, launch_log_line(call->repl, i)));
    }
    return GD_OK;
}
