// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/nonfinite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    struct gd_table *table;
    int (*fetch)(void *ctx, const struct gd_unit *unit, struct gd_item *item, struct gd_err *err);
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    uint32_t *unit_of; /* per node; NULL: no graph */
    uint32_t limit;    /* nodes at the beginning: a training's graph may grow */
    const struct gd_unit **order;
};

static bool has_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(text, words[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the node's output is uninitialised memory. */
static bool is_unwritten(const struct gd_unit *unit)
{
    static const char *const words[] = {"empty", "recv", "receive"};
    const char *slash = strrchr(unit->name, '/');

    return has_any(unit->op[0] ? unit->op : slash ? slash : unit->name, words, 3);
}

static bool is_mask(const struct gd_unit *unit, const struct gd_stats *stats)
{
    static const char *const words[] = {"fill", "where", "mask", "select"};

    return !stats->nan && !stats->pos_inf && stats->neg_inf &&
           (has_any(unit->op, words, 4) || has_any(unit->name, words, 4));
}

/* Counts may be lower bounds: see gd_stats.unknown. */
static bool is_finite(const struct gd_stats *stats)
{
    return !stats->nan && !stats->pos_inf && !stats->neg_inf;
}

/* *why: NULL, or why the item is unknown; valid as long as the table and `text`. */
static int read_item(struct finding *f, const struct gd_unit *unit, struct gd_item *item,
                     struct gd_stats *ret, const char **why, struct gd_err *text)
{
    struct gd_err err = {.text = ""};
    int rc = f->fetch ? f->fetch(f->ctx, unit, item, text) : GD_OK;

    *why = item->digest ? "only a checksum of it was dumped" : "its value was not dumped";
    rc = rc == GD_OK ? gd_table_look(f->table, item, text) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    if (item->problem) {
        *why = item->problem;
    } else if (item->source) {
        rc = gd_source_stats(item->source, NULL, NULL, ret, &err);
        snprintf(text->text, sizeof(text->text), "%s", err.text);
        *why = rc == GD_OK ? NULL : text->text;
        return rc == GD_EINTR || rc == GD_ENOMEM ? gd_fail(text, rc, "%s", err.text) : GD_OK;
    } else if (item->stats) {
        *ret = *item->stats;
        *why = is_finite(ret) && ret->unknown & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF)
                   ? "its statistics do not say whether it is finite"
                   : NULL;
    }
    return GD_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

struct inputs {
    size_t known;
    uint32_t bad;  /* item */
    uint32_t from; /* its unit */
    uint32_t late; /* item that is bad after the step */
};

static void take_range(const struct gd_stats *stats, struct gd_nonfinite *ret)
{
    double smallest = stats->zero || (stats->min < 0 && stats->max > 0)
                          ? stats->zero ? 0 : fmin(-stats->min, stats->max)
                          : fmin(fabs(stats->min), fabs(stats->max));

    ret->least = ret->has_range ? fmin(ret->least, stats->min) : stats->min;
    ret->most = ret->has_range ? fmax(ret->most, stats->max) : stats->max;
    ret->smallest = ret->has_range ? fmin(ret->smallest, smallest) : smallest;
    ret->has_range = true;
}

static int look_input(struct finding *f, uint32_t number, uint32_t item, struct inputs *inputs,
                      struct gd_nonfinite *ret, struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    struct gd_err text = {.text = ""};
    struct gd_stats stats;
    const char *why;
    int rc = read_item(f, unit, &f->table->item[item], &stats, &why, &text);

    if (rc != GD_OK || why) {
        return rc == GD_OK ? GD_OK : gd_fail(err, rc, "%s", text.text);
    }
    if (unit->left) { /* the operator did not read this value, but the one before */
        inputs->late = is_finite(&stats) || inputs->late != UINT32_MAX ? inputs->late : item;
        return GD_OK;
    }
    inputs->known++;
    if (!is_finite(&stats) && inputs->bad == UINT32_MAX) {
        inputs->bad = item;
        inputs->from = number;
    }
    if (stats.min <= stats.max) {
        take_range(&stats, ret);
    }
    return GD_OK;
}

static int look_producers(struct finding *f, const struct gd_node_info *info, struct inputs *inputs,
                          struct gd_nonfinite *ret, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < info->input_count; i++) {
        const struct gd_edge *edge = &info->inputs[i];
        uint32_t from =
            edge->control || edge->node >= f->limit ? UINT32_MAX : f->unit_of[edge->node];
        const struct gd_unit *producer = from == UINT32_MAX ? NULL : &f->table->unit[from];

        for (uint32_t j = 0; rc == GD_OK && producer && j < producer->count; j++) {
            const struct gd_item *item = &f->table->item[producer->first + j];

            if (!item->input && item->position == edge->slot) {
                rc = look_input(f, from, producer->first + j, inputs, ret, err);
            }
        }
    }
    return rc;
}

static int look_inputs(struct finding *f, uint32_t number, struct inputs *inputs,
                       struct gd_nonfinite *ret, struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    struct gd_node_info info;
    int rc = GD_OK;

    *inputs = (struct inputs){.bad = UINT32_MAX, .from = UINT32_MAX, .late = UINT32_MAX};
    for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
        if (f->table->item[i].input) {
            rc = look_input(f, number, i, inputs, ret, err);
        }
    }
    if (rc != GD_OK || !f->unit_of || unit->node == GD_NO_NODE || inputs->known > 0 ||
        !gd_graph_node(f->table->graph, unit->node, &info)) {
        return rc;
    }
    return look_producers(f, &info, inputs, ret, err);
}

/* ---- hints ----------------------------------------------------------------------------------- */

static void set_hint(const struct gd_unit *unit, const struct gd_item *item,
                     struct gd_nonfinite *ret)
{
    double size = fmax(fabs(ret->least), fabs(ret->most));
    const char *op = unit->op[0] ? unit->op : unit->name, *text = "";
    bool half = item->dtype == GD_FLOAT16;

    if (strcasestr(op, "log") && ret->has_range && ret->least <= 0) {
        text = "logarithm of 0 or a negative number";
    } else if (strcasestr(op, "sqrt") && ret->has_range && ret->least <= 0) {
        text = "square root of a negative number, or its gradient at 0";
    } else if (strcasestr(op, "div") && ret->has_range && ret->smallest == 0) {
        text = "division by 0";
    } else if (strcasestr(op, "exp") && ret->has_range && ret->most > (half ? 11.09 : 88.7)) {
        text = half ? "exp overflows float16 above 11.09" : "exp overflows float32 above 88.7";
    } else if (half && ret->has_range && size > 65504) {
        text = "float16 ends at 65504";
    } else if (half) {
        text = "float16 ends at 65504: sums and products overflow easily";
    } else if (strcasestr(op, "softmax") || strcasestr(op, "norm") || strcasestr(op, "pow")) {
        text = "powers and norms overflow for large inputs";
    }
    snprintf(ret->hint, sizeof(ret->hint), "%s", text);
}

static double largest_of(enum gd_dtype dtype)
{
    return dtype == GD_FLOAT16    ? 65504
           : dtype == GD_FLOAT64  ? DBL_MAX
           : dtype == GD_FLOAT32  ? (double)FLT_MAX
           : dtype == GD_BFLOAT16 ? 3.3895313892515355e38
                                  : INFINITY;
}

static void note_close(const struct gd_item *item, const struct gd_stats *stats, uint32_t unit,
                       struct gd_nonfinite *ret)
{
    double size = fmax(fabs(stats->min), fabs(stats->max));

    if (isfinite(size) && size > 0.9 * largest_of(item->dtype) && ret->close_count < 8) {
        ret->close_calls[ret->close_count++] = unit;
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Operators may not have run in the order that the framework planned: use the times if known. */
static int by_time(const void *a, const void *b)
{
    const struct gd_unit *x = *(const struct gd_unit *const *)a;
    const struct gd_unit *y = *(const struct gd_unit *const *)b;

    if (x->leaf != y->leaf) {
        return x->leaf ? 1 : -1;
    }
    if (x->time != y->time && !x->leaf) {
        return x->time < y->time ? -1 : 1;
    }
    return (x > y) - (x < y);
}

static int put_in_order(struct finding *f, struct gd_err *err)
{
    struct gd_table *table = f->table;
    bool timed = true;

    f->order = calloc(table->unit_count + 1, sizeof(*f->order));
    if (!f->order) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < table->unit_count; i++) {
        f->order[i] = &table->unit[i];
        timed = timed && (table->unit[i].leaf || table->unit[i].time > 0);
    }
    for (size_t i = 0; i < table->unit_count && !timed; i++) {
        table->unit[i].time = 0; /* times of only some say nothing */
    }
    if (table->unit_count > 1) {
        qsort(f->order, table->unit_count, sizeof(*f->order), by_time);
    }
    return GD_OK;
}

/* Records the item and its statistics as the result. */
static int take_result(struct finding *f, uint32_t unit, uint32_t item, struct gd_nonfinite *ret,
                       struct gd_err *err)
{
    struct gd_err text = {.text = ""};
    const char *why;
    int rc = read_item(f, &f->table->unit[unit], &f->table->item[item], &ret->stats, &why, &text);

    ret->unit = unit;
    ret->item = item;
    ret->left = f->table->unit[unit].left;
    return rc == GD_OK ? GD_OK : gd_fail(err, rc, "%s", text.text);
}

/* Whatever the order: the producer of a bad input comes before its reader. */
static int follow_inputs(struct finding *f, uint32_t *number, uint32_t *item, struct inputs *inputs,
                         struct gd_nonfinite *ret, struct gd_err *err)
{
    struct gd_node_info info;
    int rc = look_inputs(f, *number, inputs, ret, err);

    for (size_t i = 0; rc == GD_OK && inputs->bad != UINT32_MAX && i < f->table->unit_count; i++) {
        struct inputs made = {.bad = UINT32_MAX, .from = UINT32_MAX, .late = UINT32_MAX};
        struct gd_nonfinite range = {.has_range = false};

        if (!f->unit_of || !gd_graph_node(f->table->graph, f->table->unit[*number].node, &info)) {
            break;
        }
        rc = look_producers(f, &info, &made, &range, err);
        if (rc != GD_OK || made.bad == UINT32_MAX || f->table->unit[made.from].leaf) {
            break;
        }
        *number = made.from;
        *item = made.bad;
        ret->has_range = false;
        rc = look_inputs(f, *number, inputs, ret, err);
    }
    return rc;
}

static bool shares_input(const struct finding *f, const struct gd_unit *a, const struct gd_unit *b)
{
    struct gd_node_info x, y;

    if (!gd_graph_node(f->table->graph, a->node, &x) ||
        !gd_graph_node(f->table->graph, b->node, &y)) {
        return false;
    }
    for (uint32_t i = 0; i < x.input_count; i++) {
        for (uint32_t j = 0; j < y.input_count; j++) {
            if (!x.inputs[i].control && x.inputs[i].node == y.inputs[j].node &&
                x.inputs[i].slot == y.inputs[j].slot) {
                return true;
            }
        }
    }
    return false;
}

static bool first_bad(struct finding *f, const struct gd_unit *unit, uint32_t *item)
{
    struct gd_err text = {.text = ""};
    struct gd_stats stats;
    const char *why;

    for (uint32_t i = unit->first; i < unit->first + unit->count; i++) {
        if (!f->table->item[i].input &&
            read_item(f, unit, &f->table->item[i], &stats, &why, &text) == GD_OK && !why &&
            !is_finite(&stats) && !is_unwritten(unit) && !is_mask(unit, &stats)) {
            *item = i;
            return true;
        }
    }
    return false;
}

/* A graph may run an operator's gradient before the operator: if both produce NaN from the same
 * value, name the operator. */
static void prefer_forward(struct finding *f, uint32_t *number, uint32_t *item)
{
    const struct gd_unit *at = &f->table->unit[*number];
    uint32_t other;

    for (uint32_t i = 0; f->unit_of && at->phase == GD_PHASE_BACKWARD && i < f->table->unit_count;
         i++) {
        const struct gd_unit *unit = &f->table->unit[i];

        if (!unit->leaf && unit->phase == GD_PHASE_FORWARD && shares_input(f, unit, at) &&
            first_bad(f, unit, &other)) {
            *number = i;
            *item = other;
            return;
        }
    }
}

static int describe_origin(struct finding *f, uint32_t number, uint32_t item,
                           struct gd_nonfinite *ret, struct gd_err *err)
{
    struct inputs inputs;
    int rc = follow_inputs(f, &number, &item, &inputs, ret, err);

    if (rc == GD_OK && inputs.bad == UINT32_MAX && inputs.known > 0) {
        uint32_t before = number;

        prefer_forward(f, &number, &item);
        ret->has_range = number == before && ret->has_range;
        rc = number == before ? GD_OK : look_inputs(f, number, &inputs, ret, err);
    }
    ret->bad_input = inputs.bad;
    ret->late_input = inputs.bad == UINT32_MAX ? inputs.late : UINT32_MAX;
    ret->kind = inputs.bad != UINT32_MAX                         ? GD_THROW_SOURCE
                : inputs.known == 0 || inputs.late != UINT32_MAX ? GD_THROW_UNKNOWN
                                                                 : GD_THROW_POINT;
    if (rc == GD_OK && inputs.bad != UINT32_MAX && f->table->unit[inputs.from].leaf) {
        ret->kind = GD_THROW_UNKNOWN; /* it came with a parameter or the batch, which exists */
        ret->bad_input = UINT32_MAX;
        ret->has_range = false;
        return take_result(f, inputs.from, inputs.bad, ret, err);
    }
    rc = rc == GD_OK ? take_result(f, number, item, ret, err) : rc;
    set_hint(&f->table->unit[number], &f->table->item[item], ret);
    return rc;
}

static bool can_be_bad(const struct gd_item *item)
{
    return !item->input && (item->dtype == GD_DT_NONE || gd_dtype_is_float(item->dtype) ||
                            gd_dtype_is_complex(item->dtype));
}

/* *bad: this is the one. */
static int judge_item(struct finding *f, uint32_t number, struct gd_item *item, bool *bad,
                      struct gd_nonfinite *ret, struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    struct gd_err text = {.text = ""};
    struct gd_stats stats;
    const char *why;
    int rc = read_item(f, unit, item, &stats, &why, &text);

    *bad = false;
    if (rc != GD_OK) {
        return gd_fail(err, rc, "%s", text.text);
    }
    if (!can_be_bad(item)) {
        return GD_OK; /* its type was known only after reading */
    }
    if (!why && stats.count == 0 && !(stats.unknown & GD_UNKNOWN_COUNT)) {
        why = "it has no elements";
    }
    if (why) {
        if (ret->not_checked++ == 0) {
            snprintf(ret->why, sizeof(ret->why), "%.159s", why);
        }
        return GD_OK;
    }
    ret->checked++;
    note_close(item, &stats, number, ret);
    if (is_finite(&stats)) {
        return GD_OK;
    }
    if (is_mask(unit, &stats) && ret->mask_count < 8) {
        ret->masks[ret->mask_count++] = number;
    }
    *bad = !is_unwritten(unit) && !is_mask(unit, &stats);
    ret->passed_over += !*bad;
    return GD_OK;
}

static int look_at_unit(struct finding *f, uint32_t number, struct gd_nonfinite *ret,
                        struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    bool bad = false;
    int rc = GD_OK;

    for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
        if (!can_be_bad(&f->table->item[i])) {
            continue;
        }
        rc = judge_item(f, number, &f->table->item[i], &bad, ret, err);
        if (rc == GD_OK && bad) {
            return describe_origin(f, number, i, ret, err);
        }
    }
    return rc;
}

int gd_nonfinite_find(struct gd_table *table,
                      int (*fetch)(void *ctx, const struct gd_unit *unit, struct gd_item *item,
                                   struct gd_err *err),
                      bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_nonfinite *ret,
                      struct gd_err *err)
{
    struct finding f = {.table = table, .fetch = fetch, .go_on = go_on, .ctx = ctx};
    int rc = table->graph ? gd_table_units_of_nodes(table, &f.unit_of, &f.limit, err) : GD_OK;
    *ret = (struct gd_nonfinite){.bad_input = UINT32_MAX, .late_input = UINT32_MAX};
    rc = rc == GD_OK ? put_in_order(&f, err) : rc;
    for (uint32_t i = 0; rc == GD_OK && ret->kind == GD_THROW_NONE && i < table->unit_count; i++) {
        rc = look_at_unit(&f, (uint32_t)(f.order[i] - table->unit), ret, err);
        if (rc == GD_OK && go_on && !go_on(ctx, i + 1)) {
            rc = gd_fail(err, GD_EINTR, "interrupted after %u nodes", i + 1);
        }
    }
    free(f.order);
    free(f.unit_of);
    return rc;
}
