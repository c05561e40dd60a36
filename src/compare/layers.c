// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Matches operators by their layer: the scopes before the operator's own name,
 * "net/conv1" of "net/conv1/conv2d" and of "Default/net-Net/conv1-Conv2d/Conv2D-op0". Frameworks
 * differ in what precedes a layer's name, so a layer's partner is the one with the longest common
 * ending that is unique on both sides; remaining roots are paired if the layers below them are.
 * Within a pair of layers, operators are aligned in order.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/match_impl.h"

#define MAX_DEPTH 64
#define MAX_PATH  4096

struct layer {
    const char *path;
    uint32_t depth;
    uint32_t partner; /* on the other side; UINT32_MAX: none */
    uint32_t first;   /* first unit; `next` leads to the others */
    uint32_t last;
};

struct layers {
    struct layer *layer;
    size_t count;
    uint32_t *next; /* per unit: the next of its layer; UINT32_MAX: none */
    struct gd_hash_index lookup;
    struct gd_arena arena;
};

/* ---- the layers of a side -------------------------------------------------------------------- */

/* Writes the scopes without their classes, joined by slashes; returns their number, 0: no scope. */
static uint32_t path_of(const char *name, char ret[MAX_PATH])
{
    const char *end = strrchr(name, '/');
    uint32_t depth = 0;
    size_t len = 0;

    if (!end || (size_t)(end - name) >= MAX_PATH) {
        return 0;
    }
    if (strncmp(name, "Default/", 8) == 0) {
        name += 8;
    }
    while (name < end) {
        const char *slash = memchr(name, '/', (size_t)(end - name));
        size_t one = (size_t)((slash ? slash : end) - name), dash = one;

        while (dash > 0 && name[dash - 1] != '-') {
            dash--;
        }
        dash = dash > 1 ? dash - 1 : one;
        if (depth++ > 0) {
            ret[len++] = '/';
        }
        memcpy(ret + len, name, dash);
        len += dash;
        name += one + 1;
    }
    ret[len] = '\0';
    return depth <= MAX_DEPTH ? depth : 0;
}

static uint32_t find_layer(const struct layers *layers, const char *path)
{
    return gd_hash_index_find(&layers->lookup, path, layers->layer, sizeof(*layers->layer));
}

static int add_unit(struct layers *layers, uint32_t unit, const char *path, uint32_t depth,
                    struct gd_err *err)
{
    uint32_t number = find_layer(layers, path);
    layers->next[unit] = UINT32_MAX;
    if (number != UINT32_MAX) {
        layers->next[layers->layer[number].last] = unit;
        layers->layer[number].last = unit;
        return GD_OK;
    }
    number = (uint32_t)layers->count++;
    layers->layer[number] = (struct layer){.path = gd_arena_strdup(&layers->arena, path),
                                           .depth = depth,
                                           .partner = UINT32_MAX,
                                           .first = unit,
                                           .last = unit};
    return layers->layer[number].path ? gd_hash_index_add_name(&layers->lookup, path, number, err)
                                      : gd_fail_nomem(err);
}

static bool is_operator(const struct gd_table *table, uint32_t unit)
{
    const struct gd_unit *one = &table->unit[unit];

    return (one->phase == GD_PHASE_FORWARD || gd_unit_is_back(one)) && one->ordered &&
           one->count > 0 && one->op[0];
}

static int find_layers(const struct gd_table *table, struct layers *ret, struct gd_err *err)
{
    char path[MAX_PATH];
    int rc = GD_OK;

    *ret = (struct layers){.layer = calloc(table->unit_count + 1, sizeof(*ret->layer)),
                           .next = calloc(table->unit_count + 1, sizeof(*ret->next))};
    gd_arena_init(&ret->arena, 0);
    if (!ret->layer || !ret->next) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; rc == GD_OK && i < table->unit_count; i++) {
        uint32_t depth = is_operator(table, i) ? path_of(gd_unit_own(&table->unit[i]), path) : 0;

        if (depth > 0) {
            rc = add_unit(ret, i, path, depth, err);
        }
    }
    return rc;
}

static void layers_free(struct layers *layers)
{
    free(layers->layer);
    free(layers->next);
    gd_hash_index_deinit(&layers->lookup);
    gd_arena_deinit(&layers->arena);
}

/* ---- pairing layers -------------------------------------------------------------------------- */

/* The last `depth` scopes. */
static const char *end_of(const struct layer *layer, uint32_t depth)
{
    const char *at = layer->path;

    for (uint32_t i = depth; i < layer->depth; i++) {
        at = strchr(at, '/') + 1;
    }
    return at;
}

struct ending { /* the ending of one or more unmatched layers */
    const char *text;
    uint32_t a, b;             /* one of them */
    uint32_t count_a, count_b; /* 2: several */
};

struct endings {
    struct ending *list;
    size_t count;
    struct gd_hash_index lookup;
};

static struct ending *ending_of(struct endings *endings, const char *text, struct gd_err *err)
{
    uint32_t number =
        gd_hash_index_find(&endings->lookup, text, endings->list, sizeof(*endings->list));

    if (number != UINT32_MAX) {
        return &endings->list[number];
    }
    number = (uint32_t)endings->count;
    if (gd_hash_index_add_name(&endings->lookup, text, number, err) != GD_OK) {
        return NULL;
    }
    endings->list[endings->count++] = (struct ending){.text = text};
    return &endings->list[number];
}

static int note_endings(struct endings *endings, const struct layers *layers, bool of_b,
                        uint32_t depth, struct gd_err *err)
{
    for (uint32_t i = 0; i < layers->count; i++) {
        const struct layer *layer = &layers->layer[i];
        struct ending *ending;

        if (layer->partner != UINT32_MAX || layer->depth < depth) {
            continue;
        }
        ending = ending_of(endings, end_of(layer, depth), err);
        if (!ending) {
            return GD_ENOMEM;
        }
        *(of_b ? &ending->b : &ending->a) = i;
        *(of_b ? &ending->count_b : &ending->count_a) += 1;
    }
    return GD_OK;
}

static void pair_layers(struct layers *a, struct layers *b, uint32_t of_a, uint32_t of_b)
{
    a->layer[of_a].partner = of_b;
    b->layer[of_b].partner = of_a;
}

/* Pairs layers whose last `depth` scopes are unique. */
static int pair_endings(struct layers *a, struct layers *b, uint32_t depth, struct gd_err *err)
{
    struct endings endings = {.list = calloc(a->count + b->count + 1, sizeof(*endings.list))};
    int rc = endings.list ? note_endings(&endings, a, false, depth, err) : gd_fail_nomem(err);

    rc = rc == GD_OK ? note_endings(&endings, b, true, depth, err) : rc;
    for (size_t i = 0; rc == GD_OK && i < endings.count; i++) {
        const struct ending *one = &endings.list[i];

        if (one->count_a == 1 && one->count_b == 1) {
            pair_layers(a, b, one->a, one->b);
        }
    }
    gd_hash_index_deinit(&endings.lookup);
    free(endings.list);
    return rc;
}

/* What precedes the common ending of both paths; false: one of them is nothing else. */
static bool roots_of(char *a, char *b)
{
    for (;;) {
        char *x = strrchr(a, '/'), *y = strrchr(b, '/');

        if (strcmp(x ? x + 1 : a, y ? y + 1 : b) != 0) {
            return true;
        }
        if (!x || !y) {
            return false;
        }
        *x = *y = '\0';
    }
}

/* Pairs the networks themselves, which have different names, by their already paired layers. */
static void pair_roots(struct layers *a, struct layers *b)
{
    char x[MAX_PATH], y[MAX_PATH];

    for (size_t i = 0; i < a->count; i++) {
        const struct layer *layer = &a->layer[i];
        uint32_t of_a, of_b;

        if (layer->partner == UINT32_MAX) {
            continue;
        }
        memcpy(x, layer->path, strlen(layer->path) + 1);
        memcpy(y, b->layer[layer->partner].path, strlen(b->layer[layer->partner].path) + 1);
        if (!roots_of(x, y)) {
            continue;
        }
        of_a = find_layer(a, x);
        of_b = find_layer(b, y);
        if (of_a != UINT32_MAX && of_b != UINT32_MAX && a->layer[of_a].partner == UINT32_MAX &&
            b->layer[of_b].partner == UINT32_MAX) {
            pair_layers(a, b, of_a, of_b);
        }
    }
}

static uint32_t max_depth(const struct layers *layers)
{
    uint32_t ret = 0;

    for (size_t i = 0; i < layers->count; i++) {
        ret = layers->layer[i].depth > ret ? layers->layer[i].depth : ret;
    }
    return ret;
}

/* ---- pairing operators ----------------------------------------------------------------------- */

static int collect_units(struct gd_table *table, const struct layers *layers, uint32_t layer,
                         const uint32_t *taken, uint32_t *list, size_t *count, struct gd_err *err)
{
    int rc = GD_OK;

    *count = 0;
    for (uint32_t i = layers->layer[layer].first; rc == GD_OK && i != UINT32_MAX;
         i = layers->next[i]) {
        if (taken[i] == UINT32_MAX) {
            list[(*count)++] = i;
            rc = gd_table_look(table, &table->item[table->unit[i].first], err);
        }
    }
    return rc;
}

static int align_pairs(struct gd_matcher *m, const struct layers *a, const struct layers *b,
                       struct gd_err *err)
{
    uint32_t *of_a = calloc(m->a->unit_count + 1, sizeof(*of_a));
    uint32_t *of_b = calloc(m->b->unit_count + 1, sizeof(*of_b));
    int rc = of_a && of_b ? GD_OK : gd_fail_nomem(err);

    for (uint32_t i = 0; rc == GD_OK && i < a->count; i++) {
        size_t count_a, count_b;

        if (a->layer[i].partner == UINT32_MAX) {
            continue;
        }
        rc = collect_units(m->a, a, i, m->of_a, of_a, &count_a, err);
        if (rc == GD_OK) {
            rc = collect_units(m->b, b, a->layer[i].partner, m->of_b, of_b, &count_b, err);
        }
        rc = rc != GD_OK ? rc : gd_align(m, of_a, count_a, of_b, count_b, GD_HOW_RULES, err);
    }
    free(of_a);
    free(of_b);
    return rc;
}

int gd_match_by_layer(struct gd_matcher *m, struct gd_err *err)
{
    struct layers a, b = {.layer = NULL};
    int rc = find_layers(m->a, &a, err);

    rc = rc == GD_OK ? find_layers(m->b, &b, err) : rc;
    for (uint32_t depth = rc == GD_OK ? max_depth(&a) : 0; rc == GD_OK && depth > 0; depth--) {
        rc = pair_endings(&a, &b, depth, err);
    }
    if (rc == GD_OK) {
        pair_roots(&a, &b);
        rc = align_pairs(m, &a, &b, err);
    }
    layers_free(&a);
    layers_free(&b);
    return rc;
}
