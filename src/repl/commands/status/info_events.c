// SPDX-License-Identifier: GPL-3.0-or-later
/* `info events`: what a dump recorded, or what the training process reported. */
#include "dump/dump_target.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

#define EVENT_ROWS 40

static struct out_table *begin_table(struct command_call *call)
{
    static const struct out_column columns[] = {{"step", "Step", true},
                                                {"kind", "What", false},
                                                {"node", "Node", false},
                                                {"text", "", false}};
    return out_table_begin(call->out, "events", columns, 4);
}

static void put_event(struct command_call *call, struct out_table *table, int64_t step,
                      const char *kind, gd_node_id node, const char *text)
{
    out_put(table, step == GD_EVERY_STEP ? OUT_TEXT("step", NULL) : OUT_INT("step", step),
            OUT_TEXT("kind", kind), OUT_TEXT("node", gd_graph_name(call->session->graph, node)),
            OUT_TEXT("text", text));
}

static void show_recorded(struct command_call *call, const struct gd_catalog *catalog, bool all)
{
    size_t count;
    const struct gd_catalog_event *events = gd_catalog_events(catalog, &count);
    size_t shown = all || count <= EVENT_ROWS ? count : EVENT_ROWS;
    struct out_table *table = begin_table(call);

    for (size_t i = 0; i < shown; i++) {
        put_event(call, table, events[i].step, events[i].kind, events[i].node, events[i].text);
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
}

static void show_reported(struct command_call *call, bool all)
{
    const struct gd_event_log *log = &call->session->events;
    size_t first = all || log->count <= EVENT_ROWS ? 0 : log->count - EVENT_ROWS;

    if (log->count == 0) {
        out_printf(call->out, "The training process has reported no event.\n");
    } else if (first > 0) {
        out_printf(call->out, "(%s before these: info events -a)\n",
                   inspect_plural(call, first, "event"));
    } else if (log->dropped > 0) {
        out_printf(call->out, "(%s before these are not kept)\n",
                   inspect_plural(call, log->dropped, "event"));
    }
    struct out_table *table = begin_table(call);
    for (size_t i = first; i < log->count; i++) {
        const struct gd_logged_event *event = gd_event_log_at(log, i);
        put_event(call, table, event->step, event->kind, event->node, event->text);
    }
    out_table_end(table);
}

int info_events(struct command_call *call, struct gd_err *err)
{
    const struct gd_catalog *catalog = gd_catalog_of(call->session);
    bool all = inspect_take_flag(call, "-a") || out_is_json(call->out);
    int rc = inspect_no_options(call, err);

    if (rc == GD_OK && catalog) {
        show_recorded(call, catalog, all);
    } else if (rc == GD_OK) {
        show_reported(call, all);
    }
    return rc;
}
