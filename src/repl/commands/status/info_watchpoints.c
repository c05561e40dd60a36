// SPDX-License-Identifier: GPL-3.0-or-later
/* `info watchpoints`. */
#include <stdlib.h>

#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

#define NODES_LISTED 10

struct sums { /* over all rows */
    uint64_t hits, checks, cost_ns, cost_bytes;
};

struct overview {
    struct gd_watch_total total;
    bool has_costs;
    const char *no_costs; /* why the costs are unknown; "": not asked */
    struct sums sums;
};

static enum gd_watch_place place_of(struct command_call *call, const struct gd_watchpoint *watch,
                                    char *why, size_t size)
{
    return gd_watchpoint_place(watch, call->debugger, call->debugger->current, why, size);
}

/* Where it is evaluated: one word. */
static const char *place_word(struct command_call *call, const struct gd_watchpoint *watch)
{
    static const char *const words[] = {"nowhere", "exact", "step", "start", "process"};
    return words[place_of(call, watch, NULL, 0)];
}

static const char *share_text(struct command_call *call, uint64_t part, uint64_t whole)
{
    return whole ? inspect_printf(call, "%.1f%%", 100.0 * (double)part / (double)whole) : "";
}

static const char *ns_text(struct command_call *call, uint64_t ns)
{
    return ns == 0 ? "0" : inspect_duration(call, (double)ns / 1e9);
}

/* Checks of its tensors, most of which the training process does not report. */
static uint64_t checks_of(const struct gd_watchpoint *watch, const struct overview *view)
{
    return view->has_costs && watch->looks > watch->checks ? watch->looks : watch->checks;
}

/* ---- one watchpoint ------------------------------------------------------------------------ */

static void row_figures(struct command_call *call, const struct gd_watchpoint *watch,
                        const struct overview *view)
{
    bool process = place_of(call, watch, NULL, 0) == GD_WATCH_PLACE_PROCESS;
    bool told = view->has_costs && !process;
    const char *kind = !watch->temporary ? watch_kind(watch) : watch->event ? "tcatch" : "twatch";
    out_printf(call->out, "%-3d  %-6s  %-3s  %-7s %7s %7s %10s %9s %6s %9s\n", watch->number, kind,
               watch->enabled ? "y" : "n", place_word(call, watch),
               watch->selector ? inspect_number(call, watch_nodes(call, watch)) : "-",
               inspect_number(call, watch->hits),
               process ? "-" : inspect_number(call, checks_of(watch, view)),
               told ? ns_text(call, watch->cost_ns) : "-",
               told ? share_text(call, watch->cost_ns, view->total.compute_ns) : "",
               told ? inspect_bytes(call, watch->cost_bytes) : "");
}

static void row_notes(struct command_call *call, const struct gd_watchpoint *watch)
{
    const struct repl_lines *body = repl_commands_of(call->repl, watch->number);
    char why[256] = "";
    out_printf(call->out, "       %s\n", watch_text(call, watch));
    if (watch->enabled && place_of(call, watch, why, sizeof(why)) == GD_WATCH_PLACE_NONE &&
        why[0] != '\0') {
        watch_fold(call, inspect_printf(call, "not set here: %s", out_safe(call, why)), 7);
    }
    const char *waits = watch->enabled ? watch_waits(call, watch) : NULL;
    if (waits) {
        watch_fold(call, inspect_printf(call, "waits: %s", waits), 7);
    }
    if (watch->unclear) {
        out_printf(call->out, "       could not be checked %s\n",
                   inspect_plural(call, watch->unclear, "time"));
    }
    if (watch->intended) {
        out_printf(call->out, "       %s\n", watch_hidden(call, watch));
    }
    if (watch->ignore) {
        out_printf(call->out, "       ignore next %s\n",
                   inspect_plural(call, watch->ignore, "hit"));
    }
    for (size_t i = 0; body && i < body->count; i++) {
        out_printf(call->out, "         %s\n", out_safe(call, body->line[i]));
    }
}

static void list_nodes(struct command_call *call, const struct gd_watchpoint *watch, bool all,
                       cJSON *object)
{
    struct gd_session *session = call->debugger->current;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!session || !watch->selector ||
        gd_watchpoint_nodes(watch, session, &nodes, &count, NULL) != GD_OK) {
        return;
    }
    cJSON *list = out_list(object, "covers");
    for (size_t i = 0; i < count && (all || i < NODES_LISTED); i++) {
        const char *name = gd_graph_name(session->graph, nodes[i]);
        out_push_text(list, name);
        out_printf(call->out, "       %s\n", inspect_fit(call, name, 7));
    }
    if (!all && count > NODES_LISTED) {
        out_printf(call->out, "       ... %s more (info watchpoints %d -a)\n",
                   inspect_number(call, count - NODES_LISTED), watch->number);
    }
    free(nodes);
}

static void add_row(struct command_call *call, const struct gd_watchpoint *watch,
                    struct overview *view, cJSON *list, bool alone, bool all)
{
    cJSON *object = out_push(list);
    char why[256] = "";
    enum gd_watch_place place = place_of(call, watch, why, sizeof(why));
    watch_record(call, object, watch);
    cJSON_SetNumberValue(cJSON_GetObjectItem(object, "checks"), (double)checks_of(watch, view));
    out_set(object, OUT_TEXT("when", place_word(call, watch)),
            OUT_IF(place == GD_WATCH_PLACE_NONE && why[0] != '\0', OUT_TEXT("problem", why)));
    if (view->has_costs && place != GD_WATCH_PLACE_PROCESS) {
        out_set(object, OUT_INT("cost_ns", watch->cost_ns),
                OUT_INT("cost_bytes", watch->cost_bytes));
    }
    view->sums.hits += watch->hits;
    view->sums.checks += checks_of(watch, view);
    view->sums.cost_ns += watch->cost_ns;
    view->sums.cost_bytes += watch->cost_bytes;
    row_figures(call, watch, view);
    row_notes(call, watch);
    if (alone) {
        list_nodes(call, watch, all, object);
    }
}

/* ---- the sum ------------------------------------------------------------------------------- */

static void total_record(const struct overview *view, cJSON *record)
{
    cJSON *total = out_object(record, "total");
    out_set(total, OUT_INT("hits", view->sums.hits), OUT_INT("checks", view->sums.checks));
    if (view->has_costs) {
        out_set(total, OUT_INT("tensors", view->total.tensors),
                OUT_INT("compute_ns", view->total.compute_ns),
                OUT_INT("wait_ns", view->total.wait_ns), OUT_INT("reports", view->total.reports),
                OUT_INT("report_bytes", view->total.report_bytes));
    }
}

/* The rest was spent on deleted watchpoints and on the history. */
static void total_rows(struct command_call *call, const struct overview *view)
{
    const struct gd_watch_total *total = &view->total;
    const struct sums *sums = &view->sums;
    uint64_t ns = total->compute_ns > sums->cost_ns ? total->compute_ns - sums->cost_ns : 0;
    uint64_t bytes =
        total->report_bytes > sums->cost_bytes ? total->report_bytes - sums->cost_bytes : 0;
    if (view->has_costs && (ns || bytes)) {
        out_printf(call->out, "%-25s %7s %7s %10s %9s %6s %9s\n", "others", "", "", "",
                   ns_text(call, ns), share_text(call, ns, total->compute_ns),
                   inspect_bytes(call, bytes));
    }
    out_printf(call->out, "%-25s %7s %7s %10s %9s %6s %9s\n", "total", "",
               inspect_number(call, sums->hits), inspect_number(call, sums->checks),
               view->has_costs ? ns_text(call, total->compute_ns) : "-",
               view->has_costs ? share_text(call, total->compute_ns, total->compute_ns) : "",
               view->has_costs ? inspect_bytes(call, total->report_bytes) : "");
}

/* What it means for the training: share of its running time, and time per step. */
static void total_meaning(struct command_call *call, const struct overview *view)
{
    const struct gd_session *session = call->debugger->current;
    const struct gd_watch_total *total = &view->total;
    if (!view->has_costs) {
        if (view->no_costs[0] != '\0') {
            out_printf(call->out, "The costs are unknown: %s.\n", view->no_costs);
        }
        return;
    }
    out_printf(call->out, "%s watched now\n", inspect_plural(call, total->tensors, "tensor"));
    uint64_t ns = total->compute_ns + total->wait_ns;
    bool alone = session && call->debugger->session_count == 1;
    if (!alone || ns == 0 || session->timing.steps_run == 0 || !(session->timing.running > 0)) {
        return;
    }
    out_printf(call->out, "Watching takes %s per step, %.2g%% of the time; waited %s for %s\n",
               ns_text(call, ns / (uint64_t)session->timing.steps_run),
               100 * (double)ns / 1e9 / session->timing.running, ns_text(call, total->wait_ns),
               inspect_plural(call, total->reports, "report"));
}

static int ask_costs(struct command_call *call, struct overview *view, struct gd_err *err)
{
    struct gd_err why = {.code = GD_OK};
    int rc = watch_ask_costs(call, &view->total, &why);
    view->has_costs = rc == GD_OK;
    view->no_costs = "";
    if (rc != GD_OK && rc != GD_ESTATE && rc != GD_EUNSUPPORTED) {
        view->no_costs = inspect_printf(call, "%s", out_safe(call, why.text));
    }
    return rc == GD_EINTR && call->repl->end.quit ? gd_fail(err, rc, "%s", why.text) : GD_OK;
}

int info_watchpoints(struct command_call *call, struct gd_err *err)
{
    struct overview view = {.has_costs = false};
    struct gd_watchpoint *only = NULL;
    bool all = inspect_take_flag(call, "-a");
    int rc = call->argc > 0 ? watch_find(call, call->argv[0], &only, err) : GD_OK;
    if (rc == GD_OK && call->debugger->watchpoints) {
        rc = ask_costs(call, &view, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "watchpoints");
    cJSON *list = out_list(record, "watchpoints");
    if (!call->debugger->watchpoints) {
        out_printf(call->out, "No watchpoints.\n");
        return GD_OK;
    }
    out_printf(call->out,
               "Num  Kind    Enb  When      Nodes    Hits     Checks      Cost  Share    "
               "Reports\n");
    for (const struct gd_watchpoint *watch = call->debugger->watchpoints; watch;
         watch = watch->next) {
        if (!only || watch == only) {
            add_row(call, watch, &view, list, only != NULL, all);
        }
    }
    if (!only) {
        total_record(&view, record);
        total_rows(call, &view);
        total_meaning(call, &view);
    }
    return GD_OK;
}
