// SPDX-License-Identifier: GPL-3.0-or-later
/* `info statistics`. */
#include "repl/commands/status/info.h"

int info_statistics(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"name", "Figure", false},
                                                {"text", "Meaning", false}};
    struct out_table *table = out_table_begin(call->out, "statistics", columns, 2);
    (void)err;
    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        enum gd_statistic statistic = (enum gd_statistic)i;
        /* the range cannot be used in expressions */
        if ((gd_statistic_needs(statistic) & GD_NEED_RANGE) == 0) {
            out_put(table, OUT_TEXT("name", gd_statistic_name(statistic)),
                    OUT_TEXT("text", gd_statistic_text(statistic)));
        }
    }
    out_table_end(table);
    out_printf(
        call->out,
        "Also: step, and the metrics of \"info scalars\" (loss, lr). Operators and functions:\n"
        "+ - * / < <= > >= == != && || ! ( ) and abs sqrt log log10 exp min max:\n"
        "  watch 'max > 1e4 || nan > 0' on gradients\n");
    return GD_OK;
}
