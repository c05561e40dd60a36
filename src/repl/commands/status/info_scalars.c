// SPDX-License-Identifier: GPL-3.0-or-later
/* `info scalars`. */
#include "repl/commands/status/info.h"

int info_scalars(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"name", "Name", false}, {"value", "Value", true, "{value:.9}"}, {"step", "Step", true}};
    const struct gd_session *session = call->session;
    (void)err;
    struct out_table *table = out_table_begin(call->out, "scalars", columns, 3);
    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        out_put(table, OUT_TEXT("name", scalar->name),
                OUT_NUMERAL("value", repl_scalar_text(call->arena, scalar->value, 9)),
                OUT_INT("step", scalar->step));
    }
    out_table_end(table);
    if (session->scalar_count == 0) {
        out_printf(call->out, "The training process has reported no metrics.\n");
    }
    return GD_OK;
}
