// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The way from a weight forward to the loss, and where it ends: through what no gradient comes
 * back. And what the program reports about the gradients of its optimizer.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define MAX_UNREACHED 200 /* weights that nothing updates, whose way to the loss is searched */
#define MAX_MODELS    64  /* that are distinguished */

/* ---- the way from a weight to the loss ------------------------------------------------------- */

struct way { /* from a weight forward, through operators without a backward pass */
    const struct gd_graph *graph;
    unsigned char *reached; /* one bit per node: its gradient was computed */
    unsigned char *seen;
    gd_node_id *queue;
    uint32_t count;
    gd_node_id cut;   /* the last node without a gradient, before one that has it; GD_NO_NODE */
    gd_node_id after; /* that one */
    bool is_whole;    /* the weight's own reader has a gradient */
    bool no_updates;  /* do not follow other weights that are computed from it */
};

enum cut { /* why no gradient comes back */
           CUT_UNKNOWN,
           CUT_DETACH,
           CUT_DATA, /* it was given x.data */
           CUT_OFF,  /* the program had disabled gradients */
           CUT_EXIT, /* its result became a number or an array */
           CUT_INT,  /* it produces integers or booleans */
};

static const struct gd_why_exit *exit_of(const struct why_walk *walk, const char *name)
{
    for (int i = 0; i < walk->facts.exit_count; i++) {
        if (strcmp(walk->facts.exits[i].node, name) == 0) {
            return &walk->facts.exits[i];
        }
    }
    return NULL;
}

/* exits: values that left the graph count, too. */
static enum cut cut_at(const struct why_walk *walk, gd_node_id node, bool exits)
{
    struct gd_node_info info;
    struct gd_output output;

    if (node == GD_NO_NODE || !gd_graph_node(walk->session->graph, node, &info)) {
        return CUT_UNKNOWN;
    }
    return exits && exit_of(walk, info.name)                       ? CUT_EXIT
           : why_type_in(info.type, "detach detach_ StopGradient") ? CUT_DETACH
           : why_attr_is(&info, "grad", "off")                     ? CUT_OFF
           : why_attr_is(&info, "grad", "data")                    ? CUT_DATA
           : gd_graph_output(walk->session->graph, node, 0, &output) &&
                   (gd_dtype_is_int(output.dtype) || output.dtype == GD_BOOL)
               ? CUT_INT
               : CUT_UNKNOWN;
}

/* A write in place while gradients are disabled, as for an average of weights: its result is
 * another weight, not part of the forward pass. */
static bool is_update(const struct gd_node_info *info)
{
    size_t len = strlen(info->type);

    return len > 1 && info->type[len - 1] == '_' &&
           (why_attr_is(info, "grad", "off") || strncmp(info->name, "eval/", strlen("eval/")) == 0);
}

/* One step from `node`: its readers join the queue, or the way ends there. */
static void follow_readers(struct way *way, gd_node_id node, bool is_weight)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(way->graph, node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        gd_node_id reader = edges[i].node;
        struct gd_node_info info;

        if (edges[i].control || !gd_graph_node(way->graph, reader, &info) ||
            !why_in_phase(&info, "forward") || (way->no_updates && is_update(&info))) {
            continue;
        }
        if (why_has_bit(way->reached, reader)) {
            way->is_whole = way->is_whole || is_weight;
            way->after = way->cut == GD_NO_NODE ? reader : way->after;
            way->cut = way->cut == GD_NO_NODE ? node : way->cut;
        } else if (!why_has_bit(way->seen, reader)) {
            why_set_bit(way->seen, reader);
            way->queue[way->count++] = reader;
        }
    }
}

/* False if out of memory, or if there was no backward pass. Call way_free in any case. */
static bool way_begin(struct way *way, const struct gd_graph *graph)
{
    size_t limit = gd_graph_node_limit(graph);

    *way = (struct way){.graph = graph};
    way->reached = calloc(limit / 8 + 1, 1);
    way->seen = calloc(limit / 8 + 1, 1);
    way->queue = malloc((limit + 1) * sizeof(*way->queue));
    return way->reached && way->seen && way->queue && why_mark_reached(graph, way->reached);
}

/* Forgets what was found on the way of another weight. */
static void way_go(struct way *way, gd_node_id weight)
{
    while (way->count > 0) {
        way->count--;
        way->seen[way->queue[way->count] / 8] = 0;
    }
    way->cut = way->after = GD_NO_NODE;
    way->is_whole = false;
    follow_readers(way, weight, true);
    for (uint32_t i = 0; i < way->count && !way->is_whole; i++) {
        follow_readers(way, way->queue[i], false);
    }
}

static void way_find(struct way *way, gd_node_id weight)
{
    way->no_updates = true;
    way_go(way, weight);
    if (!way->is_whole && way->cut == GD_NO_NODE) {
        way->no_updates = false;
        way_go(way, weight);
    }
}

static void way_free(struct way *way)
{
    free(way->reached);
    free(way->seen);
    free(way->queue);
}

/* ---- where it ends --------------------------------------------------------------------------- */

/* The operator that cuts: of those that the weight's values went through, the one nearest to where
 * the backward pass ended; if that is unknown, the last one that cuts. */
static gd_node_id find_cutter(const struct why_walk *walk, const struct way *way, enum cut *how)
{
    gd_node_id *back = malloc((way->count + 1) * sizeof(*back)), found = GD_NO_NODE;
    unsigned char *seen = calloc(gd_graph_node_limit(way->graph) / 8 + 1, 1);
    uint32_t count = 0;

    *how = CUT_UNKNOWN;
    if (back && seen && way->cut != GD_NO_NODE) {
        back[count++] = way->cut;
        why_set_bit(seen, way->cut);
    }
    for (uint32_t i = 0; i < count && (*how != CUT_DATA && *how != CUT_EXIT); i++) {
        struct gd_node_info info = {0};
        enum cut here = cut_at(walk, back[i], false);

        if (here != CUT_UNKNOWN && (*how == CUT_UNKNOWN || here == CUT_OFF)) {
            *how = here;
            found = back[i]; /* the first operator that ran without gradients: the farthest back */
        }
        gd_graph_node(way->graph, back[i], &info);
        for (uint32_t k = 0; k < info.input_count && count < way->count; k++) {
            gd_node_id input = info.inputs[k].node;

            if (input != GD_NO_NODE && why_has_bit(way->seen, input) && !why_has_bit(seen, input)) {
                why_set_bit(seen, input);
                back[count++] = input;
            }
        }
    }
    for (uint32_t i = way->count; way->cut == GD_NO_NODE && i-- > 0 && *how == CUT_UNKNOWN;) {
        *how = cut_at(walk, found = way->queue[i], true);
    }
    free(back);
    free(seen);
    return *how == CUT_UNKNOWN ? GD_NO_NODE : found;
}

static gd_node_id say_cut(const struct why_walk *walk, const struct way *way,
                          struct why_finding *ret)
{
    static const struct {
        const char *rule, *says;
    } cuts[] = {
        [CUT_UNKNOWN] = {"cut-off", " carries no gradient; the graph does not show why (detach_(), "
                                    ".data and no_grad() do that)."},
        [CUT_DETACH] = {"detached", " cuts it off from the loss."},
        [CUT_DATA] = {"cut-off", " received .data of its input, which carries no gradient."},
        [CUT_OFF] = {"no-grad", " ran with gradients disabled, as under no_grad(), so none comes "
                                "back through it."},
        [CUT_EXIT] = {"cut-off", " leave the graph through "},
        [CUT_INT] = {"cut-off",
                     " produces integers or booleans, through which no gradient comes back."},
    };
    enum cut how;
    gd_node_id node = find_cutter(walk, way, &how);

    node = node != GD_NO_NODE ? node : way->cut;
    ret->rule = cuts[how].rule;
    gd_buf_puts(&ret->text, how == CUT_EXIT ? "the values of " : "");
    why_put_node(way->graph, node, &ret->text);
    gd_buf_puts(&ret->text, cuts[how].says);
    if (how == CUT_EXIT) {
        const struct gd_why_exit *left = exit_of(walk, gd_graph_name(way->graph, node));

        gd_buf_printf(&ret->text,
                      "%s()%s%s, and no gradient comes back from what is computed from them.",
                      left->by, left->line[0] ? " at " : "", left->line);
    } else if (way->after != GD_NO_NODE) {
        gd_buf_puts(&ret->text, " The backward pass ends at ");
        why_put_node(way->graph, way->after, &ret->text);
        gd_buf_puts(&ret->text, how != CUT_OFF && node == way->cut ? ", which reads it." : ".");
    }
    return node;
}

uint32_t why_no_gradient(struct why_walk *walk, const char *name, gd_node_id weight,
                         struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct way way;
    gd_node_id blamed = weight;
    enum cut how;

    if (way_begin(&way, graph)) {
        way_find(&way, weight);
    } else {
        way.is_whole = true; /* as far as it is known */
    }
    if (way.is_whole) {
        way_free(&way);
        return WHY_NONE;
    }
    if (way.count == 0) {
        why_say(ret, "unused",
                "No operator reads %s: it takes no part in the computation, so no gradient reaches "
                "it.",
                name);
    } else if (way.cut != GD_NO_NODE || find_cutter(walk, &way, &how) != GD_NO_NODE) {
        why_say(ret, "no-path", "No gradient reaches %s: ", name);
        blamed = say_cut(walk, &way, ret);
    } else {
        blamed = way.queue[way.count - 1];
        why_say(ret, "no-path",
                "What is computed from %s does not reach the loss, so no gradient comes back. The "
                "last operator on that way is ",
                name);
        why_put_node(graph, blamed, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
    way_free(&way);
    return why_also(walk, blamed, 0);
}

/* ---- weights of the graph ------------------------------------------------------------------- */

/* The model is the part of a name before the first '/'. */
static size_t model_length(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? (size_t)(slash - name) + 1 : strlen(name);
}

struct models { /* models with an updated weight: the name of one weight of each */
    const char *name[MAX_MODELS];
    size_t count;
};

static bool has_model(const struct models *models, const char *name)
{
    size_t length = model_length(name);

    for (size_t i = 0; i < models->count; i++) {
        if (model_length(models->name[i]) == length && memcmp(models->name[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

static void find_models(const struct gd_graph *graph, struct models *ret)
{
    size_t limit = gd_graph_node_limit(graph);
    struct gd_node_info info;

    ret->count = 0;
    for (gd_node_id node = 0; node < limit && ret->count < MAX_MODELS; node++) {
        if (gd_graph_node(graph, node, &info) && info.kind == GD_NODE_WEIGHT &&
            why_writer(graph, node) != GD_NO_NODE && !has_model(ret, info.name)) {
            ret->name[ret->count++] = info.name;
        }
    }
}

/* How many weights of trained models no gradient reaches; *first is one. */
static int count_unreached(const struct why_walk *walk, struct way *way, gd_node_id *first)
{
    const struct gd_graph *graph = walk->session->graph;
    size_t limit = gd_graph_node_limit(graph);
    struct gd_node_info info;
    struct models trained;
    int looked = 0, count = 0;

    find_models(graph, &trained);
    for (gd_node_id node = 0; node < limit && looked < MAX_UNREACHED; node++) {
        enum cut how = CUT_UNKNOWN;

        if (!gd_graph_node(graph, node, &info) || info.kind != GD_NODE_WEIGHT ||
            gd_node_attr(&info, "frozen") || why_writer(graph, node) != GD_NO_NODE) {
            continue;
        }
        looked++;
        if (!has_model(&trained, info.name)) {
            continue;
        }
        way_find(way, node);
        if (!way->is_whole && find_cutter(walk, way, &how) != GD_NO_NODE &&
            (how == CUT_OFF || (how == CUT_DETACH && way->cut != GD_NO_NODE))) {
            *first = count++ == 0 ? node : *first;
        }
    }
    return count;
}

void why_add_unreached(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id first = GD_NO_NODE;
    struct way way;

    /* then the program reports it: see why_cut_off */
    if (!why_is_loss(walk) || walk->facts.main[0]) {
        return;
    }
    int count = way_begin(&way, graph) ? count_unreached(walk, &way, &first) : 0;
    way_free(&way);
    if (count > 0) {
        const char *name = gd_graph_name(graph, first);
        gd_buf_printf(say, " No gradient reaches %.160s", name);
        if (count > 1) {
            gd_buf_printf(say, " and %d more weight%s", count - 1, count == 2 ? "" : "s");
        }
        gd_buf_printf(say, ": `why %.160s.grad` shows what cuts it off.", name);
    }
}

/* ---- what the program reports --------------------------------------------------------------- */

/* The parameters of one kind, by name: ": a, b and 2 more"; nothing if no name is known. */
static void put_names(const struct gd_why_gradients *of, struct gd_buf *say)
{
    gd_buf_puts(say, of->named > 0 ? ": " : "");
    for (int i = 0; i < of->named; i++) {
        gd_buf_printf(say, "%s%s", i == 0 ? "" : i + 1 == of->count ? " and " : ", ", of->name[i]);
    }
    if (of->named > 0 && of->count > of->named) {
        gd_buf_printf(say, " and %lld more", (long long)(of->count - of->named));
    }
}

uint32_t why_lost(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id weight = gd_graph_lookup(graph, facts->lost, strlen(facts->lost));

    if (!facts->lost[0] || weight == GD_NO_NODE || !why_is_loss(walk)) {
        return WHY_NONE;
    }
    why_say(ret, "cleared-before-step",
            "The gradients are gone when %s steps: the backward pass leaves one in %s.grad, "
            "but after the step it is %s. zero_grad() is called between backward() and "
            "step(): call it before backward(), or after step().",
            facts->lost_of, facts->lost, facts->none.count > 0 ? "None" : "all 0");
    return why_also(walk, weight, 0);
}

/* The first parameter without a gradient for which the graph shows the reason. */
static uint32_t first_cut(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_gradients *none = &walk->facts.none;
    const struct gd_graph *graph = walk->session->graph;

    for (int i = 0; i < none->named; i++) {
        gd_node_id weight = gd_graph_lookup(graph, none->name[i], strlen(none->name[i]));
        uint32_t found =
            weight == GD_NO_NODE ? WHY_NONE : why_no_gradient(walk, none->name[i], weight, ret);

        if (found != WHY_NONE && strcmp(ret->rule, "unused") != 0) {
            return found;
        }
    }
    ret->rule = "";
    gd_buf_clear(&ret->text);
    return WHY_NONE;
}

/* All gradients of the optimizer are 0. */
uint32_t why_all_zero(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;

    if (!why_is_loss(walk) || facts->looked == 0 || facts->zero.count < facts->looked) {
        return WHY_NONE;
    }
    why_say(ret, "zero-gradients",
            "All %lld gradients of %s in step %lld are 0, so only momentum and decay change the "
            "weights. To see where they become 0: `trace TZ on gradients`, `step`, `why`.",
            (long long)facts->looked, facts->main, (long long)walk->step);
    why_add_past(walk, &ret->text);
    return 0;
}

uint32_t why_cut_off(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    uint32_t found = why_is_loss(walk) && facts->none.count > 0 ? first_cut(walk, ret) : WHY_NONE;

    if (found != WHY_NONE) {
        gd_buf_printf(&ret->text, " Of the %lld parameters that %s holds, %lld %s no gradient",
                      (long long)facts->held, facts->main, (long long)facts->none.count,
                      facts->none.count == 1 ? "has" : "have");
        put_names(&facts->none, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
    return found;
}

static bool is_read(const struct gd_graph *graph, gd_node_id weight)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(graph, weight, &edges);
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, edges[i].node, &info) && why_in_phase(&info, "forward")) {
            return true;
        }
    }
    return false;
}

/* The first of the missing ones that no operator has read so far. */
static void add_unread(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_why_gradients *none = &walk->facts.none;
    const struct gd_graph *graph = walk->session->graph;

    for (int i = 0; i < none->named; i++) {
        gd_node_id weight = gd_graph_lookup(graph, none->name[i], strlen(none->name[i]));

        if (weight != GD_NO_NODE && !is_read(graph, weight)) {
            gd_buf_printf(say, " No operator that gradb saw reads %s.", none->name[i]);
            return;
        }
    }
}

void why_add_gradients(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_why_facts *facts = &walk->facts;
    const struct {
        const struct gd_why_gradients *of;
        const char *what;
    } kinds[] = {
        {&facts->none, "missing"}, {&facts->zero, "all 0"}, {&facts->nonfinite, "NaN or Inf"}};

    if (!facts->main[0] || !why_is_loss(walk)) {
        return;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].of->count > 0) {
            gd_buf_printf(say, " %lld of the %lld gradients of %s %s %s",
                          (long long)kinds[i].of->count, (long long)facts->looked, facts->main,
                          kinds[i].of->count == 1 ? "is" : "are", kinds[i].what);
            put_names(kinds[i].of, say);
            gd_buf_putc(say, '.');
        }
    }
    add_unread(walk, say);
}

void why_add_scaling(const struct why_walk *walk, const struct why_tensor *origin, bool scaled,
                     struct gd_buf *say)
{
    const struct gd_why_facts *facts = &walk->facts;
    struct gd_node_info info;

    if (facts->skipped > 0 && facts->skipped == walk->step) {
        gd_buf_puts(say, say->len > 0 ? " " : "");
        gd_buf_printf(say,
                      "%s skipped the update of %s in step %lld because its gradients are "
                      "not finite, and lowers its scale: an occasional skip is harmless.%s",
                      facts->scaler[0] != '\0' ? facts->scaler : "GradScaler", facts->skipped_of,
                      (long long)facts->skipped,
                      facts->told ? " The scale does not cause a loss that is not finite: it is "
                                    "applied to the loss afterwards."
                                  : "");
        return;
    }
    bool backward = origin && gd_graph_node(walk->session->graph, origin->node, &info) &&
                    why_in_phase(&info, "backward");
    if (backward && (facts->scale > 1 || facts->scaler[0] != '\0')) {
        gd_buf_printf(say, " %s multiplies this pass by ",
                      facts->scaler[0] != '\0' ? facts->scaler : "GradScaler");
        if (facts->scale > 1) {
            gd_buf_printf(say, "%.6g; %s are shown without that factor.", facts->scale,
                          scaled ? "the tree's values" : "values");
        } else {
            gd_buf_puts(say, "its scale.");
        }
        gd_buf_puts(say, " It skips an update whose gradients are not finite and lowers the "
                         "factor: an occasional skip is harmless.");
    }
}

bool why_skipped(const struct why_walk *walk, struct why_finding *ret)
{
    if (!why_is_loss(walk) || walk->facts.skipped <= 0 || walk->facts.skipped != walk->step) {
        return false;
    }
    ret->rule = "skipped-step";
    why_add_scaling(walk, NULL, false, &ret->text);
    why_add_gradients(walk, &ret->text);
    gd_buf_puts(
        &ret->text,
        " `catch overflow` stops at the operator that produces the first non-finite value.");
    return true;
}
