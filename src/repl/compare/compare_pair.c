// SPDX-License-Identifier: GPL-3.0-or-later
/* What is shown of a comparison of two tensors in addition to its row. */
#include <math.h>

#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

static cJSON *index_list(const struct gd_shape *shape, int64_t flat)
{
    cJSON *list = cJSON_CreateArray();

    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        cJSON_InsertItemInArray(list, 0, cJSON_CreateNumber((double)(flat % shape->dim[axis])));
        flat /= shape->dim[axis];
    }
    return list;
}

static void show_worst(struct command_call *call, const struct compare_row *row,
                       const struct gd_metrics *metrics)
{
    static const struct out_column columns[] = {
        {"index", "Largest differences", false, "\\[{index}\\]"},
        {"a", "A", true, ":g6"},
        {"b", "B", true, ":g6"},
        {"distance", "|a-b|", true, ":g6"}};
    struct out_table *table = out_table_begin(call->out, "worst", columns, 4);

    for (int i = 0; i < metrics->worst_count; i++) {
        const struct gd_worst *one = &metrics->worst[i];

        out_put(table, OUT_JSON("index", index_list(&row->shape_a, one->at)), OUT_REAL("a", one->a),
                OUT_REAL("b", one->b));
        out_put_text(table, OUT_REAL("distance", fabs(one->a - one->b)));
    }
    out_table_end(table);
}

/* "0: 12, 1: 3, 2-3: 1" */
static const char *ulp_text(struct command_call *call, const struct gd_metrics *metrics)
{
    const char *text = "";

    for (int i = 0; i < GD_ULP_BUCKETS; i++) {
        uint64_t least = i ? UINT64_C(1) << (i - 1) : 0, most = i ? least + (least - 1) : 0;

        if (metrics->ulp[i]) {
            text = inspect_printf(call, "%s%s%llu", text, text[0] ? ", " : "",
                                  (unsigned long long)least);
            text = most > least ? inspect_printf(call, "%s-%llu", text, (unsigned long long)most)
                                : text;
            text = inspect_printf(call, "%s: %s", text, inspect_number(call, metrics->ulp[i]));
        }
    }
    return text;
}

void compare_pair_show(struct command_call *call, const struct compare_rows *rows)
{
    const struct compare_row *row = &rows->row[0];
    const struct gd_metrics *metrics = &rows->last;
    int used = GD_ULP_BUCKETS;

    if (!row->has_metrics || row->verdict == GD_V_SAME) {
        return;
    }
    cJSON *record = out_record(call->out, "compare");
    show_worst(call, row, metrics);
    while (used > 0 && metrics->ulp[used - 1] == 0) {
        used--;
    }
    cJSON *list = out_list(record, "ulp");
    for (int i = 0; i < used; i++) {
        out_push_int(list, (int64_t)metrics->ulp[i]);
    }
    out_say(call->out, NULL, "[Difference in units of the last place: {ulps}\n]",
            OUT_TEXT("ulps", ulp_text(call, metrics)));
}
