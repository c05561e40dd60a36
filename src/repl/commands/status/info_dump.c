// SPDX-License-Identifier: GPL-3.0-or-later
/* `info dump`. */
#include "repl/commands/files/dump_live.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"

int info_dump(struct command_call *call, struct gd_err *err)
{
    static const struct live_dump none = {.armed = false};
    const struct live_dump *d = dump_live_find(call->repl);
    cJSON *record = out_record(call->out, "dump");

    (void)err;
    d = d ? d : &none;
    if (d->armed) {
        dump_live_show_plan(call, d);
    } else {
        out_set(record, OUT_BOOL("armed", false));
        out_printf(call->out, "No steps will be dumped.\n");
    }
    out_set(record, OUT_INT("tensors", d->tensors), OUT_INT("rows", d->rows),
            OUT_INT("dumped_steps", d->steps_done), OUT_INT("total_bytes", d->bytes),
            OUT_INT("most_bytes", call->debugger->settings.dump_bytes));
    out_say(call->out, record,
            "Dumped so far: {tensors|tensor} of {dumped_steps|step}, {total_bytes:bytes}"
            "[ of at most {most_bytes:bytes}].\n");
    return GD_OK;
}