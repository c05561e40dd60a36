// SPDX-License-Identifier: GPL-3.0-or-later
/* `info events`. */
#include "dump/catalog.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

#define EVENT_ROWS 40

int info_events(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"step", "Step", true},
                                                {"kind", "What", false},
                                                {"node", "Node", false},
                                                {"text", "", false}};
    const struct gd_catalog *catalog;
    bool all = inspect_take_flag(call, "-a") || out_is_json(call->out);
    size_t count;
    int rc = inspect_no_options(call, err);

    rc = rc != GD_OK ? rc : info_need_catalog(call, &catalog, err);
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_catalog_event *events = gd_catalog_events(catalog, &count);
    size_t shown = all || count <= EVENT_ROWS ? count : EVENT_ROWS;
    struct out_table *table = out_table_begin(call->out, "events", columns, 4);
    for (size_t i = 0; i < shown; i++) {
        out_put(table,
                events[i].step == GD_EVERY_STEP ? OUT_TEXT("step", NULL)
                                                : OUT_INT("step", events[i].step),
                OUT_TEXT("kind", events[i].kind),
                OUT_TEXT("node", gd_graph_name(call->session->graph, events[i].node)),
                OUT_TEXT("text", events[i].text));
    }
    out_table_end(table);
    if (count == 0) {
        size_t steps;
        gd_catalog_steps(catalog, &steps);
        out_printf(call->out,
                   "No event was recorded in %s of rank %d (\"info formats\" lists the files that "
                   "were read).\n",
                   inspect_plural(call, steps, "step"), gd_catalog_rank(catalog));
    } else if (shown < count) {
        out_printf(call->out, "(%s more: info events -a)\n", inspect_number(call, count - shown));
    }
    return GD_OK;
}
