// SPDX-License-Identifier: GPL-3.0-or-later
/* What is shown of a comparison of two tensors in addition to its row. */
#include <math.h>

#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

static void show_worst(struct command_call *call, const struct compare_row *row,
                       const struct gd_metrics *metrics)
{
    static const struct out_column columns[] = {{"index", "Largest differences", false},
                                                {"a", "A", true, ":g6"},
                                                {"b", "B", true, ":g6"},
                                                {"distance", "|a-b|", true, ":g6"}};
    struct out_table *table = out_table_begin(call->out, "worst", columns, 4);

    for (int i = 0; i < metrics->worst_count; i++) {
        const struct gd_worst *one = &metrics->worst[i];
        out_put(table, OUT_TEXT("index", inspect_index(call, &row->shape_a, one->at)),
                OUT_REAL("a", one->a), OUT_REAL("b", one->b),
                OUT_REAL("distance", fabs(one->a - one->b)));
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

static void add_records(struct command_call *call, const struct compare_row *row,
                        const struct gd_metrics *metrics)
{
    cJSON *record = out_record(call->out, "compare"), *list;
    int used = GD_ULP_BUCKETS;

    list = out_list(record, "worst");
    for (int i = 0; i < metrics->worst_count; i++) {
        const struct gd_worst *one = &metrics->worst[i];
        cJSON *object = cJSON_CreateObject(), *index = out_list(object, "index");
        int64_t flat = one->at;

        for (int axis = row->shape_a.rank - 1; axis >= 0; axis--) {
            cJSON_InsertItemInArray(index, 0,
                                    cJSON_CreateNumber((double)(flat % row->shape_a.dim[axis])));
            flat /= row->shape_a.dim[axis];
        }
        out_set(object, OUT_REAL("a", one->a), OUT_REAL("b", one->b));
        cJSON_AddItemToArray(list, object);
    }
    while (used > 0 && metrics->ulp[used - 1] == 0) {
        used--;
    }
    list = out_list(record, "ulp");
    for (int i = 0; i < used; i++) {
        out_push_int(list, (int64_t)metrics->ulp[i]);
    }
}

void compare_pair_show(struct command_call *call, const struct compare_rows *rows)
{
    const struct compare_row *row = &rows->row[0];
    const struct gd_metrics *metrics = &rows->last;
    const char *ulps;

    if (!row->has_metrics || row->verdict == GD_V_SAME) {
        return;
    }
    if (out_is_json(call->out)) {
        add_records(call, row, metrics);
        return;
    }
    if (metrics->worst_count > 0) {
        show_worst(call, row, metrics);
    }
    ulps = ulp_text(call, metrics);
    if (ulps[0]) {
        out_printf(call->out, "Difference in units of the last place: %s\n", ulps);
    }
}
