// SPDX-License-Identifier: GPL-3.0-or-later
/* `info log`. */
#include "repl/commands/status/info.h"
#include "repl/launch/launch.h"
#include "repl/values/inspect.h"

int info_log(struct command_call *call, struct gd_err *err)
{
    int64_t wanted = 20;
    bool all = inspect_take_flag(call, "-a");
    int rc = call->argc > 0 ? arg_count(call->argv[0], 1, INT32_MAX, &wanted, err) : GD_OK;
    if (rc != GD_OK) {
        return rc;
    }
    size_t count = launch_log_count(call->repl);
    size_t first = all || count <= (size_t)wanted ? 0 : count - (size_t)wanted;
    cJSON *record = out_record(call->out, "log");
    cJSON *lines = out_list(record, "lines");
    for (size_t i = first; i < count; i++) {
        out_push_text(lines, launch_log_line(call->repl, i));
    }
    out_set(record, OUT_INT("count", count), OUT_INT("dropped", launch_log_dropped(call->repl)));
    out_say(call->out, record,
            "[{!count}The training program has written nothing.\n]"
            "[({before|line} before these: info log -a)\n]",
            OUT_INT("before", first));
    out_say_each(call->out, lines, "{}\n");
    return GD_OK;
}