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
    uint32_t *unit_of; /* by node; NULL: no graph */
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

/* Nobody has written what such a node gives. */
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

static bool is_finite(const struct gd_stats *stats)
{
    return !stats->nan && !stats->pos_inf && !stats->neg_inf && !isnan(stats->mean) &&
           !(stats->count && isinf(stats->max) && stats->max > 0) &&
           !(stats->count && isinf(stats->min) && stats->min < 0);
}

/* false: nothing is known of the item. */
static int look(struct finding *f, const struct gd_unit *unit, struct gd_item *item, bool *known,
                struct gd_stats *ret, struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    int rc = f->fetch ? f->fetch(f->ctx, unit, item, err) : GD_OK;

    *known = false;
    rc = rc == GD_OK ? gd_table_look(f->table, item, err) : rc;
    if (rc != GD_OK || item->problem) {
        return rc;
    }
    if (!item->source && item->stats) {
        *ret = *item->stats;
        *known =
            (ret->unknown & (GD_UNKNOWN_MAX | GD_UNKNOWN_NAN)) != (GD_UNKNOWN_MAX | GD_UNKNOWN_NAN);
        return GD_OK;
    }
    if (!item->source) {
        return GD_OK;
    }
    rc = gd_source_stats(item->source, NULL, NULL, ret, &why);
    *known = rc == GD_OK;
    return rc == GD_EINTR || rc == GD_ENOMEM ? gd_fail(err, rc, "%s", why.text) : GD_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

struct inputs {
    size_t known;
    uint32_t bad;
};

static int look_input(struct finding *f, const struct gd_unit *unit, uint32_t item,
                      struct inputs *inputs, struct gd_nonfinite *ret, struct gd_err *err)
{
    struct gd_stats stats;
    bool known;
    int rc = look(f, unit, &f->table->item[item], &known, &stats, err);

    if (rc != GD_OK || !known) {
        return rc;
    }
    inputs->known++;
    if (!is_finite(&stats)) {
        inputs->bad = inputs->bad == UINT32_MAX ? item : inputs->bad;
    }
    if (stats.min <= stats.max) {
        double smallest = stats.zero || (stats.min < 0 && stats.max > 0)
                              ? stats.zero ? 0 : fmin(-stats.min, stats.max)
                              : fmin(fabs(stats.min), fabs(stats.max));

        ret->least = ret->has_range ? fmin(ret->least, stats.min) : stats.min;
        ret->most = ret->has_range ? fmax(ret->most, stats.max) : stats.max;
        ret->smallest = ret->has_range ? fmin(ret->smallest, smallest) : smallest;
        ret->has_range = true;
    }
    return GD_OK;
}

static int look_inputs(struct finding *f, const struct gd_unit *unit, struct inputs *inputs,
                       struct gd_nonfinite *ret, struct gd_err *err)
{
    struct gd_node_info info;
    int rc = GD_OK;

    *inputs = (struct inputs){.bad = UINT32_MAX};
    for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
        if (f->table->item[i].input) {
            rc = look_input(f, unit, i, inputs, ret, err);
        }
    }
    if (!f->unit_of || unit->node == GD_NO_NODE || inputs->known > 0 ||
        !gd_graph_node(f->table->graph, unit->node, &info)) {
        return rc;
    }
    for (uint32_t i = 0; rc == GD_OK && i < info.input_count; i++) {
        uint32_t from = info.inputs[i].control ? UINT32_MAX : f->unit_of[info.inputs[i].node];
        const struct gd_unit *producer = from == UINT32_MAX ? NULL : &f->table->unit[from];

        for (uint32_t j = 0; rc == GD_OK && producer && j < producer->count; j++) {
            const struct gd_item *item = &f->table->item[producer->first + j];

            if (!item->input && item->position == info.inputs[i].slot) {
                rc = look_input(f, producer, producer->first + j, inputs, ret, err);
            }
        }
    }
    return rc;
}

/* ---- hints ----------------------------------------------------------------------------------- */

static void hint(const struct gd_unit *unit, const struct gd_item *item, struct gd_nonfinite *ret)
{
    double size = fmax(fabs(ret->least), fabs(ret->most));
    const char *op = unit->op[0] ? unit->op : unit->name, *text = "";
    bool half = item->dtype == GD_FLOAT16;

    if (strcasestr(op, "log") && ret->has_range && ret->least <= 0) {
        text = "a logarithm of 0 or less";
    } else if (strcasestr(op, "sqrt") && ret->has_range && ret->least <= 0) {
        text = "a square root of a negative number, or the gradient of one at 0";
    } else if (strcasestr(op, "div") && ret->has_range && ret->smallest == 0) {
        text = "a division by 0";
    } else if (strcasestr(op, "exp") && ret->has_range && ret->most > (half ? 11.09 : 88.7)) {
        text = half ? "exp of more than 11.09 is beyond float16"
                    : "exp of more than 88.7 is beyond "
                      "float32";
    } else if (half && ret->has_range && size > 65504) {
        text = "float16 ends at 65504";
    } else if (half) {
        text = "float16 ends at 65504: sums and products leave it easily";
    } else if (strcasestr(op, "softmax") || strcasestr(op, "norm") || strcasestr(op, "pow")) {
        text = "powers and norms overflow where their inputs are large";
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

static int found(struct finding *f, uint32_t number, uint32_t item, struct gd_nonfinite *ret,
                 struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    struct inputs inputs;
    int rc = look_inputs(f, unit, &inputs, ret, err);

    ret->unit = number;
    ret->item = item;
    ret->bad_input = inputs.bad;
    ret->kind = inputs.known == 0          ? GD_THROW_UNKNOWN
                : inputs.bad == UINT32_MAX ? GD_THROW_POINT
                                           : GD_THROW_SOURCE;
    hint(unit, &f->table->item[item], ret);
    return rc;
}

static int look_at_unit(struct finding *f, uint32_t number, struct gd_nonfinite *ret,
                        struct gd_err *err)
{
    const struct gd_unit *unit = &f->table->unit[number];
    int rc = GD_OK;

    for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
        struct gd_item *item = &f->table->item[i];
        struct gd_stats stats;
        bool known;

        if (item->input || (item->dtype != GD_DT_NONE && !gd_dtype_is_float(item->dtype) &&
                            !gd_dtype_is_complex(item->dtype))) {
            continue;
        }
        rc = look(f, unit, item, &known, &stats, err);
        if (rc != GD_OK || !known) {
            continue;
        }
        note_close(item, &stats, number, ret);
        if (is_finite(&stats) || is_unwritten(unit)) {
            continue;
        }
        if (is_mask(unit, &stats)) {
            if (ret->mask_count < 8) {
                ret->masks[ret->mask_count++] = number;
            }
            continue;
        }
        ret->stats = stats;
        return found(f, number, i, ret, err);
    }
    return rc;
}

static int index_nodes(struct finding *f, struct gd_err *err)
{
    uint32_t limit = f->table->graph ? gd_graph_node_limit(f->table->graph) : 0;

    if (!f->table->graph) {
        return GD_OK;
    }
    f->unit_of = malloc((limit + 1) * sizeof(*f->unit_of));
    if (!f->unit_of) {
        return gd_fail(err, GD_ENOMEM, "out of memory to look for what is not finite");
    }
    memset(f->unit_of, 0xff, (limit + 1) * sizeof(*f->unit_of));
    for (uint32_t i = 0; i < f->table->unit_count; i++) {
        if (f->table->unit[i].node < limit) {
            f->unit_of[f->table->unit[i].node] = i;
        }
    }
    return GD_OK;
}

int gd_nonfinite_find(struct gd_table *table,
                      int (*fetch)(void *ctx, const struct gd_unit *unit, struct gd_item *item,
                                   struct gd_err *err),
                      bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_nonfinite *ret,
                      struct gd_err *err)
{
    struct finding f = {.table = table, .fetch = fetch, .go_on = go_on, .ctx = ctx};
    int rc = index_nodes(&f, err);

    *ret = (struct gd_nonfinite){.bad_input = UINT32_MAX};
    for (uint32_t i = 0; rc == GD_OK && ret->kind == GD_THROW_NONE && i < table->unit_count; i++) {
        rc = look_at_unit(&f, i, ret, err);
        ret->checked++;
        if (rc == GD_OK && go_on && !go_on(ctx, i + 1)) {
            rc = gd_fail(err, GD_EINTR, "interrupted after %u nodes", i + 1);
        }
    }
    free(f.unit_of);
    return rc;
}
