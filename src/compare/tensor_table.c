// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/tensor_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"

#define MAX_ENTRIES 1000000

void gd_table_init(struct gd_table *table)
{
    *table = (struct gd_table){.step = -1, .rank = -1};
    gd_arena_init(&table->arena, 0);
}

void gd_table_deinit(struct gd_table *table)
{
    for (size_t i = 0; i < table->item_count; i++) {
        gd_source_unref(table->item[i].source);
    }
    free(table->item);
    free(table->unit);
    free(table->trainable);
    gd_arena_deinit(&table->arena);
    gd_table_init(table);
}

static bool has_part(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* By words that frameworks and dump tools use in names. */
static enum gd_phase phase_of(const char *name)
{
    if (strncasecmp(name, "gradients/", 10) == 0 || has_part(name, "/gradients/") ||
        has_part(name, "backward") || has_part(name, "_grad.") || has_part(name, "/grad") ||
        strncasecmp(name, "grad", 4) == 0) {
        return GD_PHASE_BACKWARD;
    }
    return has_part(name, "optimizer") ? GD_PHASE_OPTIMIZER : GD_PHASE_FORWARD;
}

int gd_table_unit(struct gd_table *table, const char *name, const char *op, struct gd_err *err)
{
    struct gd_unit unit = {.node = GD_NO_NODE, .first = (uint32_t)table->item_count};

    if (!gd_grow_list(&table->unit, table->unit_count, &table->unit_room, sizeof(*table->unit))) {
        return gd_fail_nomem(err);
    }
    unit.name = gd_arena_strdup(&table->arena, name);
    unit.op = op && op[0] ? gd_arena_strdup(&table->arena, op) : "";
    if (!unit.name || !unit.op) {
        return gd_fail_nomem(err);
    }
    unit.phase = phase_of(name);
    table->unit[table->unit_count++] = unit;
    return GD_OK;
}

static bool copy_text(struct gd_arena *arena, const char **text)
{
    if (*text) {
        *text = gd_arena_strdup(arena, *text);
        return *text != NULL;
    }
    return true;
}

/* See gd_unit.leaf. */
static bool is_leaf(const struct gd_node_info *info)
{
    return info->order == GD_NO_ORDER &&
           (info->kind == GD_NODE_WEIGHT || info->kind == GD_NODE_PARAMETER ||
            info->kind == GD_NODE_CONSTANT);
}

int gd_table_node(struct gd_table *table, gd_node_id node, const struct gd_node_info *info,
                  struct gd_err *err)
{
    int rc = gd_table_unit(table, info->name, info->type, err);
    struct gd_unit *unit = rc == GD_OK ? &table->unit[table->unit_count - 1] : NULL;

    if (rc != GD_OK) {
        return rc;
    }
    unit->node = node;
    unit->ordered = info->order != GD_NO_ORDER;
    unit->leaf = is_leaf(info);
    unit->own = strcmp(info->own_name, info->name) != 0 ? info->own_name : NULL;
    unit->wire = strcmp(info->wire_name, info->own_name) != 0 ? info->wire_name : NULL;
    return copy_text(&table->arena, &unit->own) && copy_text(&table->arena, &unit->wire)
               ? GD_OK
               : gd_fail_nomem(err);
}

int gd_table_add(struct gd_table *table, const struct gd_item *item, struct gd_err *err)
{
    struct gd_item *to;

    if (!gd_grow_list(&table->item, table->item_count, &table->item_room, sizeof(*table->item))) {
        return gd_fail_nomem(err);
    }
    to = &table->item[table->item_count];
    *to = *item;
    if (!copy_text(&table->arena, &to->name) || !copy_text(&table->arena, &to->digest) ||
        !copy_text(&table->arena, &to->problem)) {
        return gd_fail_nomem(err);
    }
    if (to->source) {
        gd_source_ref(to->source);
    }
    table->item_count++;
    table->unit[table->unit_count - 1].count++;
    return GD_OK;
}

int gd_table_look(struct gd_table *table, struct gd_item *item, struct gd_err *err)
{
    struct gd_source_info info;
    struct gd_err why = {.text = ""};
    int rc;

    if (!item->source || (item->has_shape && item->stored != GD_STORED_NONE) || item->problem) {
        return GD_OK;
    }
    rc = gd_source_info(item->source, &info, &why);
    if (rc == GD_ENOMEM || rc == GD_EINTR) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK) {
        item->problem = gd_arena_strdup(&table->arena, why.text);
        return item->problem ? GD_OK : gd_fail_nomem(err);
    }
    item->dtype = info.dtype;
    item->stored = info.stored;
    item->shape = info.shape;
    item->has_shape = true;
    return GD_OK;
}

/* ---- archives -------------------------------------------------------------------------------- */

int gd_table_of_archive(struct gd_table *table, const struct gd_archive *archive,
                        const char *prefix, struct gd_err *err)
{
    size_t count = gd_archive_count(archive);
    char name[4200];
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        const struct gd_archive_entry *entry = gd_archive_entry(archive, i);
        bool alone = prefix[0] && count == 1 && strcmp(gd_archive_format(archive), "npy") == 0;
        bool join = prefix[0] && entry->name[0] && !alone;

        if (entry->kind == GD_ENTRY_VALUE) {
            continue;
        }
        snprintf(name, sizeof(name), "%s%s%s", prefix, join ? "/" : "", alone ? "" : entry->name);
        rc = gd_table_unit(table, name, NULL, err);
        if (rc == GD_OK && entry->kind == GD_ENTRY_OPTIMIZER) {
            table->unit[table->unit_count - 1].phase = GD_PHASE_OPTIMIZER;
        }
        if (rc == GD_OK) {
            rc = gd_table_add(table,
                              &(struct gd_item){.name = name,
                                                .kind = entry->kind,
                                                .trainable = entry->trainable,
                                                .source = entry->source,
                                                .problem = entry->source ? NULL : entry->problem},
                              err);
        }
    }
    return rc;
}

/* ---- directories ----------------------------------------------------------------------------- */

struct numbered {
    uint32_t unit;
    uint64_t first, last; /* numbers in the name */
    bool any;
};

static void numbers_of(const char *name, struct numbered *ret)
{
    const char *slash = strrchr(name, '/'), *at = slash ? slash + 1 : name;

    ret->any = false;
    while (*at) {
        char *end;
        uint64_t value;

        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        value = strtoull(at, &end, 10);
        if (!ret->any) {
            ret->first = value;
        }
        ret->last = value;
        ret->any = true;
        at = end;
    }
}

/* "3_fc1.npy" or "conv1_float32_17": the name has a number that gives execution order. */
static bool leads_with_number(const char *name)
{
    const char *slash = strrchr(name, '/'), *at = slash ? slash + 1 : name;

    if (!isdigit((unsigned char)*at)) {
        return false;
    }
    while (isdigit((unsigned char)*at)) {
        at++;
    }
    return *at == '_' || *at == '-' || *at == '.' || *at == '\0';
}

static bool ends_with_number(const char *name)
{
    size_t at = strlen(name);

    while (at > 0 && isdigit((unsigned char)name[at - 1])) {
        at--;
    }
    return at > 0 && name[at] && (name[at - 1] == '_' || name[at - 1] == '-');
}

static int by_first(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;

    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* If all names have a number, sorts by it. */
static int order_by_number(struct gd_table *table, struct gd_err *err)
{
    struct numbered *list = calloc(table->unit_count + 1, sizeof(*list));
    struct gd_unit *sorted = calloc(table->unit_count + 1, sizeof(*sorted));
    bool lead = true, tail = true;

    for (size_t i = 0; list && sorted && i < table->unit_count; i++) {
        list[i].unit = (uint32_t)i;
        numbers_of(table->unit[i].name, &list[i]);
        lead = lead && leads_with_number(table->unit[i].name);
        tail = tail && ends_with_number(table->unit[i].name);
    }
    if (list && sorted && (lead || tail)) {
        for (size_t i = 0; i < table->unit_count; i++) {
            list[i].first = lead ? list[i].first : list[i].last;
        }
        qsort(list, table->unit_count, sizeof(*list), by_first);
        for (size_t i = 0; i < table->unit_count; i++) {
            sorted[i] = table->unit[list[i].unit];
            sorted[i].ordered = true;
        }
        memcpy(table->unit, sorted, table->unit_count * sizeof(*sorted));
    }
    free(sorted);
    if (!list) {
        return gd_fail_nomem(err);
    }
    free(list);
    return GD_OK;
}

/* "sub/conv1" of "DIR/sub/conv1.npy"; archives of several tensors keep their extension. */
static void name_in(const char *path, size_t root, bool single, char *ret, size_t size)
{
    const char *name = path + root;
    size_t len;

    while (*name == '/') {
        name++;
    }
    snprintf(ret, size, "%s", name);
    len = strlen(ret);
    if (single && len > 4 && strcasecmp(ret + len - 4, ".npy") == 0) {
        ret[len - 4] = '\0';
    }
}

static int add_file(struct gd_table *table, const char *path, size_t root, struct gd_err *err)
{
    struct gd_archive *archive;
    struct gd_err why = {.text = ""};
    char name[4200];
    size_t len = strlen(path);
    int rc = gd_archive_open(path, NULL, &archive, &why);

    if (rc == GD_ENOMEM) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK && len > 4 && strcasecmp(path + len - 4, ".npy") == 0) {
        name_in(path, root, true, name, sizeof(name)); /* a broken file, shown as such */
        rc = gd_table_unit(table, name, NULL, err);
        return rc == GD_OK
                   ? gd_table_add(table, &(struct gd_item){.name = name, .problem = why.text}, err)
                   : rc;
    }
    if (rc != GD_OK) {
        table->skipped++;
        return GD_OK;
    }
    name_in(path, root, gd_archive_count(archive) == 1, name, sizeof(name));
    rc = gd_table_of_archive(table, archive, name, err);
    gd_archive_close(archive);
    return rc;
}

int gd_table_of_directory(struct gd_table *table, const char *path,
                          bool (*go_on)(void *ctx, uint64_t entries), void *ctx, struct gd_err *err)
{
    struct gd_listing *listing;
    char name[4096];
    int rc = gd_listing_read(path, MAX_ENTRIES, go_on, ctx, &listing, err);

    for (uint32_t i = 1; rc == GD_OK && i < listing->count; i++) {
        if (listing->entry[i].is_directory) {
            continue;
        }
        rc = gd_listing_path(listing, i, name, sizeof(name), err);
        rc = rc != GD_OK ? rc : add_file(table, name, strlen(listing->entry[0].name), err);
        if (rc == GD_OK && go_on && !go_on(ctx, i)) {
            rc = gd_fail(err, GD_EINTR, "interrupted after %u files", i);
        }
    }
    rc = rc != GD_OK ? rc : order_by_number(table, err);
    gd_listing_free(listing);
    return rc;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

struct filling {
    struct gd_table *table;
    const struct gd_graph *graph;
    struct gd_err *err;
    double last_ran; /* when the last operator of the step was dumped; 0: unknown */
};

static int replace_value(struct gd_table *table, struct gd_item *item,
                         const struct gd_catalog_value *value, struct gd_err *err)
{
    gd_source_unref(item->source);
    item->source = value->source ? gd_source_ref(value->source) : NULL;
    item->stats = value->stats;
    item->digest = value->digest;
    item->dtype = value->dtype;
    item->has_shape = value->shape != NULL;
    if (value->shape) {
        item->shape = *value->shape;
    }
    return copy_text(&table->arena, &item->digest) ? GD_OK : gd_fail_nomem(err);
}

/* Not an operator, and dumped after all of them: a weight as updated by the optimizer. */
static bool is_left_behind(const struct filling *f, const struct gd_node_info *info,
                           const struct gd_catalog_value *value)
{
    return info->order == GD_NO_ORDER && f->last_ran > 0 && value->time >= f->last_ran;
}

static int note_time(void *ctx, const struct gd_catalog_value *value)
{
    struct filling *f = ctx;
    struct gd_node_info info;

    if (gd_graph_node(f->graph, value->node, &info) && info.order != GD_NO_ORDER &&
        value->time > f->last_ran) {
        f->last_ran = value->time;
    }
    return GD_OK;
}

/* The unit of the value's node: the last one, or a new one. */
static int unit_of(struct filling *f, const struct gd_catalog_value *value,
                   const struct gd_node_info *info, struct gd_unit **ret)
{
    struct gd_table *table = f->table;
    struct gd_unit *unit = table->unit_count ? &table->unit[table->unit_count - 1] : NULL;

    if (!unit || unit->node != value->node) {
        int rc = gd_table_node(table, value->node, info, f->err);

        if (rc != GD_OK) {
            return rc;
        }
        unit = &table->unit[table->unit_count - 1];
        unit->time = value->time;
        if (is_left_behind(f, info, value)) {
            unit->left = info->kind == GD_NODE_WEIGHT || unit->phase == GD_PHASE_OPTIMIZER;
            unit->phase = GD_PHASE_OPTIMIZER;
        } else if (info->kind == GD_NODE_GRADIENT) {
            unit->phase = GD_PHASE_BACKWARD;
        }
    }
    *ret = unit;
    return GD_OK;
}

/* Values come in execution order, those of a node together. */
static int add_value(void *ctx, const struct gd_catalog_value *value)
{
    struct filling *f = ctx;
    struct gd_table *table = f->table;
    struct gd_node_info info;
    struct gd_unit *unit;
    char name[4200];
    int rc;

    if (!gd_graph_node(f->graph, value->node, &info)) {
        return GD_OK;
    }
    rc = unit_of(f, value, &info, &unit);
    if (rc != GD_OK) {
        return rc;
    }
    if (unit->count && table->item[table->item_count - 1].slot == value->slot) {
        struct gd_item *last = &table->item[table->item_count - 1];

        return replace_value(table, last, value, f->err); /* a loop: the last value counts */
    }
    bool input = info.input_slots > 0 && value->slot + info.input_slots >= info.output_count;
    uint32_t outputs = info.output_count - info.input_slots;
    uint32_t position = input ? value->slot - outputs : value->slot;
    struct gd_item item = {.name = name,
                           .slot = value->slot,
                           .input = input,
                           .position = (uint16_t)position,
                           .kind =
                               info.kind == GD_NODE_WEIGHT ? GD_ENTRY_PARAMETER : GD_ENTRY_TENSOR,
                           .source = value->source,
                           .stats = value->stats,
                           .digest = value->digest,
                           .dtype = value->dtype,
                           .trainable = value->needs_grad > 0   ? GD_TRAINABLE_YES
                                        : value->needs_grad < 0 ? GD_TRAINABLE_NO
                                                                : GD_TRAINABLE_UNKNOWN,
                           .has_shape = value->shape != NULL};

    if (value->shape) {
        item.shape = *value->shape;
    }
    snprintf(name, sizeof(name), "%.4000s:%s%u", info.name, input ? "in" : "", position);
    return gd_table_add(table, &item, f->err);
}

int gd_table_of_catalog(struct gd_table *table, const struct gd_catalog *catalog, int64_t step,
                        struct gd_err *err)
{
    struct filling filling = {.table = table, .graph = table->graph, .err = err};
    int rc = gd_catalog_each(catalog, GD_EVERY_STEP, add_value, &filling);

    if (rc == GD_OK && step != GD_EVERY_STEP) {
        gd_catalog_each(catalog, step, note_time, &filling);
        rc = gd_catalog_each(catalog, step, add_value, &filling);
    }
    table->step = step == GD_EVERY_STEP ? -1 : step;
    table->rank = gd_catalog_rank(catalog);
    table->catalog = catalog;
    return rc;
}

int gd_table_units_of_nodes(const struct gd_table *table, uint32_t **ret, uint32_t *limit,
                            struct gd_err *err)
{
    *limit = gd_graph_node_limit(table->graph);
    *ret = malloc((*limit + 1) * sizeof(**ret));
    if (!*ret) {
        return gd_fail_nomem(err);
    }
    memset(*ret, 0xff, (*limit + 1) * sizeof(**ret));
    for (uint32_t i = 0; i < table->unit_count; i++) {
        if (table->unit[i].node < *limit) {
            (*ret)[table->unit[i].node] = i;
        }
    }
    return GD_OK;
}

bool gd_shape_alike(const struct gd_shape *a, const struct gd_shape *b)
{
    int j = 0;

    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] == 1) {
            continue;
        }
        while (j < b->rank && b->dim[j] == 1) {
            j++;
        }
        if (j == b->rank || b->dim[j++] != a->dim[i]) {
            return false;
        }
    }
    while (j < b->rank && b->dim[j] == 1) {
        j++;
    }
    return j == b->rank;
}
