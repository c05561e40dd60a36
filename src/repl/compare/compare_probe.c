// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/compare/compare_probe.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "engine/hash_index.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

#define NONE PROBE_NONE

/* ---- names ----------------------------------------------------------------------------------- */

struct naming { /* of one table */
    struct command_call *call;
    const struct gd_table *table;
    struct gd_hash_index modules; /* forward calls of modules, by the module's path */
    bool torch, mindspore;
};

static bool node_of(const struct naming *names, uint32_t unit, struct gd_node_info *ret)
{
    gd_node_id node = names->table->unit[unit].node;

    return names->table->graph && node != GD_NO_NODE &&
           gd_graph_node(names->table->graph, node, ret);
}

/* Length of "Module.fc1" in "Module.fc1.Linear.forward.0"; 0: not a forward call of a module. */
static size_t module_of(const char *wire)
{
    const char *at = strstr(wire, ".forward.");
    size_t len = at ? (size_t)(at - wire) : 0;

    if (!at || (strncmp(wire, "Module.", 7) != 0 && strncmp(wire, "Cell.", 5) != 0)) {
        return 0;
    }
    while (len > 0 && wire[len - 1] != '.') {
        len--;
    }
    return len > 0 ? len - 1 : 0;
}

static int naming_init(struct naming *names, struct command_call *call,
                       const struct gd_table *table, struct gd_err *err)
{
    const char *framework =
        table->catalog ? gd_catalog_peer((struct gd_catalog *)table->catalog)->framework : "";
    int rc = GD_OK;

    *names = (struct naming){.call = call,
                             .table = table,
                             .torch = strcmp(framework, "PyTorch") == 0,
                             .mindspore = strcmp(framework, "MindSpore") == 0};
    for (uint32_t i = 0; rc == GD_OK && i < table->unit_count; i++) {
        struct gd_node_info info;
        size_t len = node_of(names, i, &info) ? module_of(info.wire_name) : 0;

        if (len) {
            rc = gd_hash_index_add(
                &names->modules, gd_hash_index_hash(&names->modules, info.wire_name, len), i, err);
        }
    }
    return rc;
}

/* The first forward call of the module that owns the parameter "Module.fc1.weight". */
static bool module_call(struct naming *names, const char *wire, struct gd_node_info *ret,
                        uint32_t *unit)
{
    const char *dot = strrchr(wire, '.');
    size_t at = 0, len = dot ? (size_t)(dot - wire) : 0, found = SIZE_MAX;
    uint64_t hash = gd_hash_index_hash(&names->modules, wire, len);
    struct gd_node_info info;
    uint32_t number;

    while (len && gd_hash_index_next(&names->modules, hash, &at, &number)) {
        if (number < found && node_of(names, number, &info) && module_of(info.wire_name) == len &&
            strncmp(info.wire_name, wire, len) == 0) {
            found = number;
        }
    }
    *unit = (uint32_t)found;
    return found != SIZE_MAX && node_of(names, *unit, ret);
}

/* "0", "0.1", "mask": the argument of a slot. */
static const char *label_of(const struct naming *names, const struct gd_node_info *info,
                            const struct gd_item *item)
{
    const char *slot =
        inspect_printf(names->call, "slot %s%u", item->input ? "in" : "", item->position);

    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (strcmp(info->attrs[i].name, slot) == 0) {
            const char *label = info->attrs[i].value;

            return strncmp(label, "kwargs.", 7) == 0 ? label + 7 : label;
        }
    }
    return slot + (item->input ? 7 : 5);
}

struct place {
    const char *name;
    uint32_t group; /* unit of the call */
    int place;
};

/* The name as msprobe spells it; anything that is not a call keeps its name and counts as a call of
 * its own. */
static void place_of(struct naming *names, uint32_t unit, const struct gd_item *item,
                     struct place *ret)
{
    struct gd_node_info info, module;
    struct command_call *call = names->call;
    const char *leaf;
    uint32_t of;

    *ret = (struct place){.name = inspect_printf(call, "%s", item->name), /* outlives the table */
                          .group = unit,
                          .place = item->input ? PROBE_INPUT : PROBE_OUTPUT};
    if (!node_of(names, unit, &info)) {
        return;
    }
    leaf = strrchr(info.wire_name, '.');
    if (info.kind == GD_NODE_WEIGHT && leaf && module_call(names, info.wire_name, &module, &of)) {
        ret->name = inspect_printf(call, "%s.parameters%s", module.wire_name, leaf);
        ret->group = of;
        ret->place = PROBE_PARAMETER;
        return;
    }
    if (strcmp(info.type, "Gradient") == 0 && leaf && strcmp(leaf, ".grad") == 0) {
        const char *parameter =
            inspect_printf(call, "%.*s", (int)(leaf - info.wire_name), info.wire_name);

        if (module_call(names, parameter, &module, &of)) {
            const char *at = strstr(module.wire_name, ".forward.");

            ret->name =
                inspect_printf(call, "%.*s.parameters_grad%s%s", (int)(at - module.wire_name),
                               module.wire_name, names->torch ? ".0" : "", strrchr(parameter, '.'));
            ret->place = PROBE_PARAMETER;
            return;
        }
    }
    if (strstr(info.wire_name, "forward") || strstr(info.wire_name, "backward")) {
        ret->name = inspect_printf(call, "%s.%s.%s", info.wire_name,
                                   item->input ? "input" : "output", label_of(names, &info, item));
    }
}

static const char *dtype_of(const struct naming *names, enum gd_stored stored)
{
    static const struct {
        const char *small, *large;
    } words[] = {{"bfloat", "BFloat"}, {"float", "Float"}, {"uint", "UInt"},
                 {"int", "Int"},       {"bool", "Bool"},   {"complex", "Complex"}};
    const char *name = stored == GD_STORED_NONE ? NONE : gd_stored_name(stored);

    if (stored == GD_STORED_NONE || (!names->torch && !names->mindspore)) {
        return name;
    }
    for (size_t i = 0; names->mindspore && i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i].small);

        if (strncmp(name, words[i].small, len) == 0) {
            return inspect_printf(names->call, "%s%s", words[i].large, name + len);
        }
    }
    return names->torch ? inspect_printf(names->call, "torch.%s", name) : name;
}

/* ---- statistics --------------------------------------------------------------------------- */

static double infinity_of(const struct gd_stats *stats)
{
    return stats->pos_inf && stats->neg_inf ? NAN : stats->pos_inf ? INFINITY : -INFINITY;
}

/* max, min, mean, norm as Python computes them: one NaN makes all of them NaN. */
static void figures_of(struct command_call *call, const struct gd_stats *stats, bool is_bool,
                       const char *figure[4])
{
    static const unsigned unknown[4] = {GD_UNKNOWN_MAX, GD_UNKNOWN_MIN, GD_UNKNOWN_MEAN,
                                        GD_UNKNOWN_SUM_SQ};
    bool infinite = stats && (stats->pos_inf || stats->neg_inf);
    double value[4];

    for (int i = 0; i < 4; i++) {
        figure[i] = stats ? "None" : NONE;
    }
    if (!stats) {
        return;
    }
    value[0] = stats->pos_inf ? INFINITY : stats->max;
    value[1] = stats->neg_inf ? -INFINITY : stats->min;
    value[2] = infinite ? infinity_of(stats) : stats->mean;
    value[3] = infinite ? INFINITY : sqrt(stats->sum_sq);
    for (int i = 0; i < 4; i++) {
        bool told = !(stats->unknown & unknown[i]) || (infinite && !isfinite(value[i]));

        if (stats->nan) {
            figure[i] = "Nan";
        } else if (is_bool) {
            figure[i] = i > 1 || !told ? "None" : value[i] != 0 ? "True" : "False";
        } else if (told) {
            figure[i] = compare_probe_number(call, value[i]);
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void fill_side(struct naming *names, const struct place *place, const struct gd_item *item,
                      const struct compare_row *row, bool is_b, struct probe_side *ret)
{
    enum gd_stored stored = is_b ? row->type_b : row->type_a;
    const struct gd_stats *computed = is_b ? &row->stats_b : &row->stats_a;
    const struct gd_stats *stats = item->stats ? item->stats : row->has_metrics ? computed : NULL;
    bool has = is_b ? row->has_shape_b : row->has_shape_a;

    ret->name = place->name;
    ret->dtype = dtype_of(names, stored);
    ret->shape = has ? compare_list_shape(names->call, is_b ? &row->shape_b : &row->shape_a) : NONE;
    ret->grad = item->trainable == GD_TRAINABLE_YES  ? "True"
                : item->trainable == GD_TRAINABLE_NO ? "False"
                                                     : NONE;
    figures_of(names->call, stats, stored == GD_STORED_BOOL, ret->figure);
    ret->digest = NONE;
    if (item->digest) {
        const char *colon = strchr(item->digest, ':');

        ret->digest = inspect_printf(names->call, "%s", colon ? colon + 1 : item->digest);
    }
}

static void no_side(struct probe_side *ret)
{
    *ret = (struct probe_side){NONE, NONE, NONE, NONE, {NONE, NONE, NONE, NONE}, NONE};
}

static bool is_floating(const char *dtype)
{
    return strstr(dtype, "float") || strstr(dtype, "Float");
}

/* An integer and a float do not match; across frameworks the type families decide. */
static bool types_agree(const struct naming *a, const struct naming *b, const char *x,
                        const char *y)
{
    size_t i = 0, j = 0;

    if (strcmp(x, y) == 0 || (is_floating(x) && is_floating(y))) {
        return true;
    }
    if (a->torch == b->torch) {
        return false;
    }
    i = strncmp(x, "torch.", 6) == 0 ? 6 : 0;
    j = strncmp(y, "torch.", 6) == 0 ? 6 : 0;
    i += tolower((unsigned char)x[i]) == 'u';
    j += tolower((unsigned char)y[j]) == 'u';
    return strncasecmp(x + i, y + j, 3) == 0;
}

static int position_of(const char *label)
{
    return isdigit((unsigned char)*label) ? (int)strtol(label, NULL, 10) : INT16_MAX;
}

static int make_row(struct naming *a, struct naming *b, struct compare_row *row, struct gd_err *err)
{
    struct command_call *call = a->call;
    struct probe_row *probe = gd_arena_alloc(call->arena, sizeof(*probe));
    struct place place, other;

    if (!probe) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the rows of a comparison");
    }
    *probe = (struct probe_row){.result = "pass", .message = ""};
    row->probe = probe;
    if (!row->item_a) {
        probe->skip = true;
        return GD_OK;
    }
    place_of(a, row->unit_a, row->item_a, &place);
    probe->group = place.group;
    probe->place = place.place;
    probe->position =
        place.place == PROBE_PARAMETER
            ? 0
            : position_of(strrchr(place.name, '.') ? strrchr(place.name, '.') + 1 : "");
    fill_side(a, &place, row->item_a, row, false, &probe->a);
    if (row->item_b) {
        place_of(b, row->unit_b, row->item_b, &other);
        fill_side(b, &other, row->item_b, row, true, &probe->b);
    }
    if (!row->item_b || !types_agree(a, b, probe->a.dtype, probe->b.dtype)) {
        no_side(&probe->b);
    }
    probe->has_elements = row->item_a->source && row->item_b && row->item_b->source;
    for (int i = 0; i < GD_TOOL_CELLS; i++) {
        probe->metric[i] =
            row->view && strcmp(probe->b.name, NONE) != 0 ? row->view->cell[i] : "unsupported";
    }
    return GD_OK;
}

/* ---- numeric arguments of a call ---------------------------------------------------------- */

#define CLASS_BOOL  "<class 'bool'>"
#define CLASS_INT   "<class 'int'>"
#define CLASS_FLOAT "<class 'float'>"

static const char *class_of(const char *value)
{
    return value[0] == '"'                                             ? "<class 'str'>"
           : strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ? CLASS_BOOL
           : strpbrk(value, ".eEnN")                                   ? CLASS_FLOAT
                                                                       : CLASS_INT;
}

static bool is_argument(const struct gd_attr *attr)
{
    const char *name = attr->name, *value = attr->value;

    if (strncmp(name, "kwargs.", 7) != 0 &&
        (strncmp(name, "in", 2) != 0 || !isdigit((unsigned char)name[2]))) {
        return false;
    }
    if (name[0] == 'k' ? strchr(name + 7, '.') != NULL
                       : name[2 + strspn(name + 2, "0123456789.")] != '\0') {
        return false;
    }
    return value[0] == '"' || value[0] == '-' || isdigit((unsigned char)value[0]) ||
           strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

/* The checksum is that of the text. */
static void set_argument(struct command_call *call, struct probe_side *ret, const char *dtype,
                         const char *value)
{
    ret->dtype = dtype;
    for (int i = 0; i < 4; i++) {
        ret->figure[i] = value;
    }
    ret->digest = inspect_printf(call, "%08lx",
                                 crc32(0, (const unsigned char *)value, (unsigned)strlen(value)));
}

static void fill_argument(struct naming *names, const struct gd_node_info *info,
                          const struct gd_attr *attr, struct probe_side *ret)
{
    struct command_call *call = names->call;
    const char *value = attr->value;
    size_t len = strlen(value);

    no_side(ret);
    ret->name = inspect_printf(call, "%s.input.%s", info->wire_name,
                               attr->name + (attr->name[0] == 'k' ? 7 : 2));
    ret->dtype = class_of(value);
    ret->shape = "[]";
    if (value[0] == '"' && len >= 2) {
        value = inspect_printf(call, "%.*s", (int)(len - 2), value + 1);
    } else if (strcmp(ret->dtype, CLASS_BOOL) == 0) {
        value = value[0] == 't' ? "True" : "False";
    }
    set_argument(call, ret, ret->dtype, value);
}

/* JSON's 1 may be Python's 1.0: next to a float it counts as one. */
static void match_int_to_float(struct command_call *call, struct probe_side *a,
                               const struct probe_side *b)
{
    if (strcmp(a->dtype, CLASS_INT) == 0 && strcmp(b->dtype, CLASS_FLOAT) == 0) {
        set_argument(call, a, b->dtype, inspect_printf(call, "%s.0", a->figure[0]));
    }
}

static int add_argument(struct naming *a, struct naming *b, uint32_t unit,
                        const struct gd_node_info *x, const struct gd_node_info *y,
                        const struct gd_attr *attr, struct compare_rows *rows, struct gd_err *err)
{
    struct probe_row *probe = gd_arena_alloc(a->call->arena, sizeof(*probe));
    struct compare_row row = {
        .step = a->table->step, .rank = a->table->rank, .note = "", .max_abs_at = -1};

    if (!probe) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the rows of a comparison");
    }
    *probe = (struct probe_row){.result = "pass", .message = "", .group = unit};
    probe->position = position_of(attr->name[0] == 'k' ? "" : attr->name + 2);
    fill_argument(a, x, attr, &probe->a);
    no_side(&probe->b);
    for (uint32_t i = 0; y && i < y->attr_count; i++) {
        if (strcmp(y->attrs[i].name, attr->name) == 0 && is_argument(&y->attrs[i])) {
            fill_argument(b, y, &y->attrs[i], &probe->b);
        }
    }
    match_int_to_float(a->call, &probe->a, &probe->b);
    match_int_to_float(a->call, &probe->b, &probe->a);
    if (strcmp(probe->a.dtype, probe->b.dtype) != 0) {
        no_side(&probe->b);
    }
    for (int i = 0; i < GD_TOOL_CELLS; i++) {
        probe->metric[i] = "unsupported";
    }
    row.probe = probe;
    return compare_rows_add_extra(rows, &row, err);
}

/* Once for each call of A. */
static int add_arguments(struct naming *a, struct naming *b, struct compare_rows *rows,
                         size_t first, struct gd_err *err)
{
    size_t end = rows->count;
    uint32_t last = UINT32_MAX;
    int rc = GD_OK;

    for (size_t i = first; rc == GD_OK && i < end; i++) {
        struct compare_row *row = &rows->row[i];
        uint32_t unit = row->unit_a, other = row->unit_b;
        struct gd_node_info x, y;
        bool has_b;

        if (!row->item_a || unit == last || !node_of(a, unit, &x)) {
            continue;
        }
        last = unit;
        has_b = row->item_b && node_of(b, other, &y);
        for (uint32_t j = 0; rc == GD_OK && j < x.attr_count; j++) {
            if (is_argument(&x.attrs[j])) {
                rc = add_argument(a, b, unit, &x, has_b ? &y : NULL, &x.attrs[j], rows, err);
            }
        }
    }
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct probe_row *x = ((const struct compare_row *)a)->probe;
    const struct probe_row *y = ((const struct compare_row *)b)->probe;

    if (x->skip != y->skip) {
        return x->skip ? 1 : -1;
    }
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->place != y->place) {
        return x->place < y->place ? -1 : 1;
    }
    return x->position != y->position ? (x->position < y->position ? -1 : 1)
           : x->number != y->number   ? (x->number < y->number ? -1 : 1)
                                      : 0;
}

int compare_probe_make(struct command_call *call, const struct gd_table *a,
                       const struct gd_table *b, struct compare_rows *rows, size_t first,
                       struct gd_err *err)
{
    struct naming names_a, names_b = {.call = NULL};
    int rc = naming_init(&names_a, call, a, err);

    rc = rc == GD_OK ? naming_init(&names_b, call, b, err) : rc;
    for (size_t i = first; rc == GD_OK && i < rows->count; i++) {
        rc = make_row(&names_a, &names_b, &rows->row[i], err);
    }
    rc = rc == GD_OK ? add_arguments(&names_a, &names_b, rows, first, err) : rc;
    for (size_t i = first; rc == GD_OK && i < rows->count; i++) {
        rows->row[i].probe->number = i;
    }
    if (rc == GD_OK && rows->count - first > 1) {
        qsort(rows->row + first, rows->count - first, sizeof(*rows->row), by_place);
    }
    while (rc == GD_OK && rows->count > first && rows->row[rows->count - 1].probe->skip) {
        rows->count--;
    }
    for (size_t i = first; rc == GD_OK && i < rows->count; i++) {
        rows->row[i].probe->number = first; /* its calls form one table */
    }
    gd_hash_index_deinit(&names_a.modules);
    gd_hash_index_deinit(&names_b.modules);
    return rc;
}
