// SPDX-License-Identifier: GPL-3.0-or-later
/* `info steps`. */
#include "dump/dump_target.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

#define STEP_ROWS 40

int info_need_catalog(struct command_call *call, const struct gd_catalog **ret, struct gd_err *err)
{
    int rc = repl_need_session(call, err);

    if (rc == GD_OK) {
        *ret = gd_catalog_of(call->session);
        if (!*ret) {
            rc = gd_fail(err, GD_EUNSUPPORTED,
                         "session %d is not a dump: open one with \"open DIRECTORY\"",
                         call->session->number);
        }
    }
    return rc;
}

/* The graphs that ran in the step. */
static const char *graphs_of_step(struct command_call *call, const struct gd_catalog *catalog,
                                  int64_t step)
{
    const struct gd_graph *graph = call->session->graph;
    const char *text = "";
    struct gd_graph_counts counts;

    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; i < counts.subgraphs; i++) {
        if (gd_catalog_has_graph(catalog, i, step)) {
            text = inspect_printf(call, "%s%s%s", text, text[0] ? ", " : "",
                                  inspect_name(call, gd_graph_subgraph_name(graph, i)));
        }
    }
    return text;
}

static void step_row(struct command_call *call, struct out_table *table,
                     const struct gd_catalog *catalog, const struct gd_catalog_step *step)
{
    bool is_here = step->step == call->session->stop.step;

    out_put(table, OUT_TEXT("here", is_here ? "true" : "false"), OUT_INT("step", step->step),
            OUT_INT("values", step->values),
            OUT_IF(gd_graph_is_qualified(call->session->graph),
                   OUT_TEXT("graphs", graphs_of_step(call, catalog, step->step))));
    out_put_text(table, OUT_BOOL("is_here", is_here));
}

int info_steps(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"here", "", false, "[{?is_here}*]"},
                                                {"step", "Step", true},
                                                {"values", "Values", true, ":n"},
                                                {"graphs", "Graphs", false}};
    const struct gd_catalog *catalog;
    bool all = inspect_take_flag(call, "-a");
    size_t count, first = 0, shown, here = 0;
    int rc = inspect_no_options(call, err);

    rc = rc != GD_OK ? rc : info_need_catalog(call, &catalog, err);
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_catalog_step *steps = gd_catalog_steps(catalog, &count);
    shown = all || out_is_json(call->out) || count <= STEP_ROWS ? count : STEP_ROWS;
    while (here < count && steps[here].step < call->session->stop.step) {
        here++;
    }
    if (shown < count && here > shown / 2) { /* show the steps around the current one */
        first = here - shown / 2;
        first = first + shown > count ? count - shown : first;
    }
    struct out_table *table = out_table_begin(call->out, "steps", columns,
                                              gd_graph_is_qualified(call->session->graph) ? 4 : 3);
    for (size_t i = first; i < first + shown; i++) {
        step_row(call, table, catalog, &steps[i]);
    }
    out_table_end(table);
    if (shown < count) {
        out_printf(call->out, "(%s in all: info steps -a)\n", inspect_plural(call, count, "step"));
    } else if (count == 0) {
        out_printf(call->out, "The dump has no steps: its values belong to the whole run.\n");
    }
    return GD_OK;
}
