// SPDX-License-Identifier: GPL-3.0-or-later
/* `info gradients`. */
#include <math.h>
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/value.h"

#define NAMES_SHOWN 4

/* A kind of gradient that is counted, with the first names. */
struct named_count {
    const char *key;
    const char *text; /* template over {count} and {names} */
    uint64_t count;
    cJSON *names;
};

enum { MISSING, ZERO, NONFINITE, UNKNOWN, COUNTS };

struct gradients {
    struct command_call *call;
    struct out_table *table;
    bool all;
    bool of_operators; /* those of weights cannot be told from others */
    uint64_t shown, hidden, known;
    double sum_sq; /* of those that are finite */
    int64_t step;  /* of the newest value; -1: none */
    struct named_count counts[COUNTS];
    const char *why; /* why the first one without a value has none */
};

static void count_name(struct gradients *g, int kind, const char *name)
{
    struct named_count *counted = &g->counts[kind];

    if (counted->count++ < NAMES_SHOWN) {
        out_push_text(counted->names, name);
    }
}

static void add_row(struct gradients *g, const char *name, const struct value *value)
{
    const struct gd_stats *s = &value->stats;
    uint64_t bad = s->nan + s->pos_inf + s->neg_inf;
    char age[VALUE_AGE];

    g->known++;
    g->step = value->step > g->step ? value->step : g->step;
    g->sum_sq += s->sum_sq;
    if (bad > 0) {
        count_name(g, NONFINITE, name);
    } else if (s->count > 0 && s->zero == s->count) {
        count_name(g, ZERO, name);
    }
    if (!g->all && g->shown == NODES_SHOWN) {
        g->hidden++;
        return;
    }
    bool finite = s->count > bad;
    g->shown++;
    out_put(g->table, OUT_IF(finite, OUT_REAL("norm", sqrt(s->sum_sq))),
            OUT_IF(finite, OUT_REAL("abs_max", fmax(fabs(s->min), fabs(s->max)))),
            OUT_IF(finite, OUT_REAL("mean", s->mean)), OUT_IF(bad > 0, OUT_INT("bad", bad)),
            OUT_INT("elements", s->count), OUT_INT("zeros", s->zero), OUT_INT("step", value->step),
            OUT_TEXT("name", name),
            OUT_TEXT("note", value_age(g->call->session, value->step, age)));
}

/* GD_EINTR: stop. */
static int look_at(struct gradients *g, gd_node_id node)
{
    const char *name = gd_graph_name(g->call->session->graph, node);
    struct gd_err err = {.code = GD_OK};
    struct value value = {.step = -1, .prev_step = -1, .label = name, .arg.ref = {.node = node}};
    int rc = value_fetch(g->call, &value, VALUE_STATS, &err);

    if (rc == GD_EINTR) {
        return rc;
    }
    if (rc == GD_OK && value.has_stats) {
        add_row(g, name, &value);
    } else {
        count_name(g, UNKNOWN, name);
        g->why = g->why ? g->why : inspect_printf(g->call, "%s", out_safe(g->call, err.text));
    }
    value_deinit(&value);
    return GD_OK;
}

static bool contains_node(const struct node_list *list, gd_node_id node)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->node[i] == node) {
            return true;
        }
    }
    return false;
}

/* The gradient's node of a weight, which PyTorch's and MindSpore's agents name after it; or
 * GD_NO_NODE. */
static gd_node_id gradient_of(struct command_call *call, gd_node_id weight)
{
    const struct gd_graph *graph = call->session->graph;
    const char *name = inspect_printf(call, "%s.grad", gd_graph_name(graph, weight));

    return gd_graph_lookup(graph, name, strlen(name));
}

/* Adds the gradients of weights, where they can be told from others; else all gradients. Counts the
 * weights without one. */
static void list_gradients(struct gradients *g, struct node_list *ret)
{
    struct gd_graph *graph = g->call->session->graph;
    struct node_list weights = {0};

    gd_graph_search_kind(graph, GD_NODE_WEIGHT, node_list_add, &weights);
    for (size_t i = 0; i < weights.count; i++) {
        gd_node_id gradient = gradient_of(g->call, weights.node[i]);
        if (gradient != GD_NO_NODE) {
            node_list_add(ret, gradient);
        }
    }
    for (size_t i = 0; i < weights.count && ret->count > 0; i++) {
        if (gradient_of(g->call, weights.node[i]) == GD_NO_NODE) {
            count_name(g, MISSING, gd_graph_name(graph, weights.node[i]));
        }
    }
    if (ret->count == 0) {
        g->of_operators = true;
        gd_graph_search_kind(graph, GD_NODE_GRADIENT, node_list_add, ret);
    }
    node_list_deinit(&weights);
}

/* Those of the selector; all weights' without one. */
static int choose_gradients(struct gradients *g, struct node_list *ret, struct gd_err *err)
{
    struct command_call *call = g->call;
    struct node_list chosen = {0};
    struct gd_node_info info;

    if (call->argc == 0) {
        list_gradients(g, ret);
        return GD_OK;
    }
    int rc = nodes_select(call, inspect_join(call, 0, call->argc), &chosen, err);
    for (size_t i = 0; i < chosen.count; i++) {
        gd_node_id node = chosen.node[i];
        gd_node_id own = gradient_of(call, node);
        bool is_gradient =
            gd_graph_node(call->session->graph, node, &info) && info.kind == GD_NODE_GRADIENT;
        bool both = own != GD_NO_NODE && contains_node(&chosen, own);
        if (is_gradient || (own != GD_NO_NODE && !both)) {
            node_list_add(ret, is_gradient ? node : own);
        }
    }
    node_list_deinit(&chosen);
    return rc == GD_OK && ret->count == 0
               ? gd_fail(err, GD_ENOTFOUND,
                         "%.200s selects no gradient: \"info gradients\" lists them",
                         inspect_join(call, 0, call->argc))
               : rc;
}

static void show_counts(struct gradients *g, cJSON *record)
{
    struct command_call *call = g->call;

    out_set(record, OUT_IF(g->step >= 0, OUT_INT("step", g->step)), OUT_INT("gradients", g->known),
            OUT_INT("more", g->hidden),
            OUT_IF(g->known > 0 && !g->of_operators, OUT_REAL("norm", sqrt(g->sum_sq))),
            OUT_IF(g->of_operators, OUT_BOOL("of_operators", true)));
    info_add_moment(call, record);
    if (g->hidden > 0) {
        out_printf(call->out, "... %s more (info gradients -a)\n", inspect_number(call, g->hidden));
    }
    if (g->known > 0) {
        info_say_moment(call, record);
        out_say(
            call->out, record,
            ": {gradients|gradient}[, norm of all {norm:g6}[{?bad}, without the elements that are "
            "not finite]][{?of_operators}: of operators, as this program does not name those of "
            "its "
            "weights]\n",
            OUT_BOOL("bad", g->counts[NONFINITE].count > 0));
    }
    for (int i = 0; i < COUNTS; i++) {
        struct named_count *c = &g->counts[i];
        uint64_t count = c->count;
        cJSON *item = cJSON_GetObjectItem(record, c->key);
        out_set(item, OUT_INT("count", count));
        if (count > 0) {
            out_say(call->out, item, c->text, OUT_TEXT("why", g->why ? g->why : ""),
                    OUT_TEXT("rest", count > NAMES_SHOWN ? ", ..." : ""));
        }
    }
}

int info_gradients(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"norm", "Norm", true, ":g4"}, {"abs_max", "Max abs", true, ":g4"},
        {"mean", "Mean", true, ":g4"}, {"bad", "NaN, Inf", true, ":n"},
        {"name", "Gradient", false},   {"note", "", false},
    };
    struct gradients g = {
        .call = call,
        .all = inspect_take_flag(call, "-a"),
        .step = -1,
        .counts = {
            [MISSING] = {"missing", "No gradient yet for {count|weight}: {names}{rest}\n"},
            [ZERO] = {"zero", "All zero: {count} of them: {names}{rest}\n"},
            [NONFINITE] = {"nonfinite", "With NaN or Inf: {count} of them: {names}{rest}\n"},
            [UNKNOWN] = {"unavailable", "Unavailable: {count} of them: {names}{rest}: {why}\n"}}};
    struct gd_graph_counts counts;
    struct node_list list = {0};
    int rc = inspect_no_options(call, err);

    rc = rc == GD_OK ? info_need_graph(call, &counts, err) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "gradients");
    for (int i = 0; i < COUNTS; i++) {
        g.counts[i].names = out_list(out_object(record, g.counts[i].key), "names");
    }
    rc = choose_gradients(&g, &list, err);
    g.table = out_table_begin(call->out, "rows", columns, 6);
    for (size_t i = 0; i < list.count && rc == GD_OK; i++) {
        rc = look_at(&g, list.node[i]);
    }
    out_table_end(g.table);
    node_list_deinit(&list);
    if (rc != GD_OK) {
        return rc == GD_EINTR ? gd_fail(err, rc, "interrupted") : rc;
    }
    show_counts(&g, record);
    return g.known == 0 && g.counts[UNKNOWN].count == 0
               ? gd_fail(err, GD_ENODATA,
                         gd_session_is_record(call->session)
                             ? "what is open has no gradients"
                             : "there is no gradient yet: the first backward pass makes them "
                               "(\"step\")")
               : GD_OK;
}
