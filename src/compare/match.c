// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/match_impl.h"
#include "engine/hash_index.h"

#define MAX_NAME   4200
#define MAX_VALUES 4096 /* units per side whose values are read for matching */

static const struct {
    const char *name;
    double confidence;
} hows[] = {
    [GD_HOW_NONE] = {"-", 0},          [GD_HOW_MAP] = {"map", 1},
    [GD_HOW_NAME] = {"name", 1},       [GD_HOW_RULES] = {"rules", 0.9},
    [GD_HOW_VALUES] = {"values", 0.8}, [GD_HOW_ORDER] = {"order", 0.6},
};

const char *gd_how_name(enum gd_how how)
{
    return hows[how].name;
}

double gd_how_confidence(enum gd_how how)
{
    return hows[how].confidence;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void keys_free(struct gd_keys *keys)
{
    gd_hash_index_deinit(&keys->lookup);
    free(keys->unit);
    gd_arena_deinit(&keys->arena);
}

/* Units must be added in order. */
static int keys_add(struct gd_keys *keys, uint32_t unit, const char *key, struct gd_err *err)
{
    uint32_t first = gd_hash_index_find(&keys->lookup, key, keys->unit, sizeof(*keys->unit));
    struct gd_keyed *to = &keys->unit[unit];

    *to = (struct gd_keyed){.next = UINT32_MAX, .last = unit, .free = unit};
    if (first != UINT32_MAX) {
        to->key = keys->unit[first].key;
        keys->unit[keys->unit[first].last].next = unit;
        keys->unit[first].last = unit;
        return GD_OK;
    }
    to->key = gd_arena_strdup(&keys->arena, key);
    return to->key ? gd_hash_index_add_name(&keys->lookup, key, unit, err) : gd_fail_nomem(err);
}

static int keys_init(struct gd_keys *keys, size_t count, struct gd_err *err)
{
    *keys = (struct gd_keys){.unit = calloc(count + 1, sizeof(*keys->unit))};
    gd_arena_init(&keys->arena, 0);
    return keys->unit ? GD_OK : gd_fail_nomem(err);
}

/* The first unit of the chain, starting at `unit`, without a partner. */
static uint32_t next_free(const struct gd_keys *keys, uint32_t unit, const uint32_t *taken)
{
    while (unit != UINT32_MAX && taken[unit] != UINT32_MAX) {
        unit = keys->unit[unit].next;
    }
    return unit;
}

/* The next unit with that key without a partner; UINT32_MAX: none. several (may be NULL): there are
 * more. Existing partners are kept. */
static uint32_t keys_find(struct gd_keys *keys, const char *key, const uint32_t *taken,
                          bool *several)
{
    uint32_t first = gd_hash_index_find(&keys->lookup, key, keys->unit, sizeof(*keys->unit));
    uint32_t found;

    if (several) {
        *several = false;
    }
    if (first == UINT32_MAX) {
        return UINT32_MAX;
    }
    found = next_free(keys, keys->unit[first].free, taken);
    keys->unit[first].free = found;
    if (several && found != UINT32_MAX) {
        *several = next_free(keys, keys->unit[found].next, taken) != UINT32_MAX;
    }
    return found;
}

/* ---- the state of a matching ----------------------------------------------------------------- */

static void join_units(struct gd_matcher *m, uint32_t a, uint32_t b, enum gd_how how)
{
    m->of_a[a] = b;
    m->of_b[b] = a;
    m->how[b] = how;
}

typedef const char *(*name_fn)(const struct gd_unit *unit);

static const char *full_name(const struct gd_unit *unit)
{
    return unit->name;
}

/* Keys of the units that have no partner. */
static int add_free(struct gd_keys *keys, const struct gd_table *table, const uint32_t *taken,
                    name_fn name_of, struct gd_err *err)
{
    int rc = keys_init(keys, table->unit_count, err);

    for (uint32_t i = 0; rc == GD_OK && i < table->unit_count; i++) {
        if (taken[i] == UINT32_MAX) {
            rc = keys_add(keys, i, name_of(&table->unit[i]), err);
        }
    }
    return rc;
}

static int by_map(struct gd_matcher *m, struct gd_err *err)
{
    struct gd_keys keys;
    char name[MAX_NAME];
    int rc = add_free(&keys, m->b, m->of_b, full_name, err);

    for (int back = 0; rc == GD_OK && back < 2; back++) {
        for (uint32_t i = 0; i < m->a->unit_count; i++) {
            uint32_t to =
                m->of_a[i] == UINT32_MAX && gd_map_name(m->options->map, m->a->unit[i].name,
                                                        back != 0, name, sizeof(name))
                    ? keys_find(&keys, name, m->of_b, NULL)
                    : UINT32_MAX;

            if (to != UINT32_MAX) {
                join_units(m, i, to, GD_HOW_MAP);
            }
        }
    }
    keys_free(&keys);
    return rc;
}

static int by_name(struct gd_matcher *m, struct gd_err *err)
{
    struct gd_keys keys;
    int rc = add_free(&keys, m->b, m->of_b, full_name, err);

    for (uint32_t i = 0; rc == GD_OK && i < m->a->unit_count; i++) {
        uint32_t to = m->of_a[i] == UINT32_MAX ? keys_find(&keys, m->a->unit[i].name, m->of_b, NULL)
                                               : UINT32_MAX;

        if (to != UINT32_MAX) {
            join_units(m, i, to, GD_HOW_NAME);
        }
    }
    keys_free(&keys);
    return rc;
}

static const char *wire_of(const struct gd_unit *unit)
{
    return unit->wire ? unit->wire : gd_unit_own(unit);
}

/* The name used by the rules: a parameter's own name rather than its place in a graph,
 * SCOPE/WIRE. */
static const char *rules_name(const struct gd_unit *unit)
{
    const char *own = gd_unit_own(unit), *wire = wire_of(unit);
    size_t len = strlen(own), end = strlen(wire);
    bool placed = len > end && own[len - end - 1] == '/' && strcmp(own + len - end, wire) == 0;

    return placed && strcmp(unit->op, "Parameter") == 0 ? wire : own;
}

/* A weight after the optimizer's update does not match the one before the step. Files have no
 * phase. */
static bool is_same_phase(const struct gd_table *x, uint32_t a, const struct gd_table *y,
                          uint32_t b)
{
    return x->unit[a].phase == y->unit[b].phase || !x->graph || !y->graph;
}

/* Matches by another than the displayed name, if it is unique on both sides. */
static int by_other_name(struct gd_matcher *m, name_fn name_of, struct gd_err *err)
{
    struct gd_keys a, b = {.unit = NULL};
    int rc = add_free(&a, m->a, m->of_a, name_of, err);

    rc = rc != GD_OK ? rc : add_free(&b, m->b, m->of_b, name_of, err);
    for (uint32_t i = 0; rc == GD_OK && i < m->a->unit_count; i++) {
        const char *name = name_of(&m->a->unit[i]);
        bool several_a = false, several_b = false;
        uint32_t to =
            m->of_a[i] == UINT32_MAX ? keys_find(&b, name, m->of_b, &several_b) : UINT32_MAX;

        if (to != UINT32_MAX) {
            keys_find(&a, name, m->of_a, &several_a);
        }
        if (to != UINT32_MAX && !several_a && !several_b && is_same_phase(m->a, i, m->b, to)) {
            join_units(m, i, to, GD_HOW_NAME);
        }
    }
    keys_free(&a);
    keys_free(&b);
    return rc;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *const prefixes[] = {
    "module.",     "_orig_mod.",        "model.",    "net.",
    "network.",    "_backbone.",        "backbone.", "_fsdp_wrapped_module.",
    "state_dict.", "model_state_dict.", "params.",   "Module.",
};
#define PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

static bool is_state(const struct gd_table *table, uint32_t unit)
{
    const char *parameter;
    int64_t number;

    return gd_name_state(rules_name(&table->unit[unit]), &number, &parameter) ||
           table->item[table->unit[unit].first].kind == GD_ENTRY_OPTIMIZER ||
           strncmp(rules_name(&table->unit[unit]), "optimizer", 9) == 0;
}

static bool is_trainable(const struct gd_table *table, uint32_t unit)
{
    const struct gd_item *item = &table->item[table->unit[unit].first];
    const char *dot = strrchr(rules_name(&table->unit[unit]), '.');

    return table->unit[unit].count > 0 && !is_state(table, unit) && item->kind != GD_ENTRY_BUFFER &&
           item->trainable != GD_TRAINABLE_NO &&
           !gd_name_is_alone(rules_name(&table->unit[unit])) &&
           !(dot && strncmp(dot, ".running_", 9) == 0);
}

/* Numbers parameters like an optimizer created with all of them. */
static int number_trainable(struct gd_table *table, struct gd_err *err)
{
    if (!table->trainable) {
        table->trainable = malloc((table->unit_count + 1) * sizeof(*table->trainable));
        table->trainable_count = 0;
        if (!table->trainable) {
            return gd_fail_nomem(err);
        }
        for (uint32_t i = 0; i < table->unit_count; i++) {
            if (is_trainable(table, i)) {
                table->trainable[table->trainable_count++] = i;
            }
        }
    }
    return GD_OK;
}

/* "state m1 of fc.weight": the parameter by name, or by its number among the trainable ones. */
static void common_key(const struct gd_table *table, uint32_t unit, size_t cut, char *ret,
                       size_t size)
{
    const char *name = rules_name(&table->unit[unit]), *parameter, *updates;
    int64_t number;
    const char *state = gd_name_state(name, &number, &parameter);
    char common[MAX_NAME - 64], updated[MAX_NAME - 64];
    bool update = gd_name_update(name, &updates, updated, sizeof(updated));

    if (update) {
        state = updates;
        parameter = updated;
    }
    if (!state && !update) {
        gd_name_common(name, common, sizeof(common));
        snprintf(ret, size, "%s", cut <= strlen(common) ? common + cut : common);
        return;
    }
    if (!parameter && number >= 0) {
        parameter = (uint64_t)number < table->trainable_count
                        ? rules_name(&table->unit[table->trainable[number]])
                        : NULL;
    }
    common[0] = '\0';
    if (parameter) {
        gd_name_common(parameter, common, sizeof(common));
    } else {
        snprintf(common, sizeof(common), "#%lld", (long long)number);
    }
    snprintf(ret, size, "%s%s of %s", state ? "state " : "update", state ? state : "",
             cut <= strlen(common) ? common + cut : common);
}

/* The length of the common prefix of all names that are not optimizer state; 0: none. */
static size_t common_prefix(const struct gd_table *table, size_t cut, const char *prefix)
{
    size_t len = strlen(prefix), with = 0;
    char key[MAX_NAME];

    for (uint32_t i = 0; i < table->unit_count; i++) {
        if (is_state(table, i)) {
            continue;
        }
        gd_name_common(rules_name(&table->unit[i]), key, sizeof(key));
        if (strlen(key) <= cut + len || strncmp(key + cut, prefix, len) != 0) {
            return 0;
        }
        with++;
    }
    return with ? len : 0;
}

/* What the rules for names must not match, although its names are alike: a matrix product to which
 * the next operator adds a bias, and backward operators that compute other gradients. */
static bool is_same_place(const struct gd_matcher *m, uint32_t a, uint32_t b)
{
    const struct gd_unit *x = &m->a->unit[a], *y = &m->b->unit[b];

    return x->phase == y->phase && gd_op_is_alike_back(x, y) &&
           (gd_unit_goes_on(m->a, a) == GD_GOES_ON_BIAS) ==
               (gd_unit_goes_on(m->b, b) == GD_GOES_ON_BIAS);
}

/* Matches, or only counts the matches. */
static int match_cut(struct gd_matcher *m, size_t cut_a, size_t cut_b, bool apply, size_t *count,
                     struct gd_err *err)
{
    struct gd_keys keys;
    char key[MAX_NAME];
    int rc = keys_init(&keys, m->b->unit_count, err);

    *count = 0;
    for (uint32_t i = 0; rc == GD_OK && i < m->b->unit_count; i++) {
        if (m->of_b[i] == UINT32_MAX) {
            common_key(m->b, i, cut_b, key, sizeof(key));
            rc = keys_add(&keys, i, key, err);
        }
    }
    for (uint32_t i = 0; rc == GD_OK && i < m->a->unit_count; i++) {
        uint32_t to;

        if (m->of_a[i] != UINT32_MAX) {
            continue;
        }
        common_key(m->a, i, cut_a, key, sizeof(key));
        to = keys_find(&keys, key, m->of_b, NULL);
        if (to != UINT32_MAX && is_same_place(m, i, to)) {
            *count += 1;
            if (apply) {
                join_units(m, i, to, GD_HOW_RULES);
            }
        }
    }
    keys_free(&keys);
    return rc;
}

/* Lists possible cuts after the current one, including 0. */
static size_t cuts_of(const struct gd_table *table, size_t cut, size_t ret[PREFIXES + 1])
{
    size_t count = 1;

    ret[0] = cut;
    for (size_t i = 0; i < PREFIXES; i++) {
        size_t more = common_prefix(table, cut, prefixes[i]);

        if (more) {
            ret[count++] = cut + more;
        }
    }
    return count;
}

/* Cuts one more prefix on either or both sides, if that finds more matches. */
static int cut_more(struct gd_matcher *m, size_t cut[2], size_t *best, bool *better,
                    struct gd_err *err)
{
    size_t a[PREFIXES + 1], b[PREFIXES + 1], from[2] = {cut[0], cut[1]}, count;
    size_t many_a = cuts_of(m->a, cut[0], a), many_b = cuts_of(m->b, cut[1], b);
    int rc = GD_OK;

    *better = false;
    for (size_t i = 0; rc == GD_OK && i < many_a; i++) {
        for (size_t j = 0; rc == GD_OK && j < many_b; j++) {
            if (a[i] == from[0] && b[j] == from[1]) {
                continue;
            }
            rc = match_cut(m, a[i], b[j], false, &count, err);
            if (rc == GD_OK && count > *best) {
                *best = count;
                cut[0] = a[i];
                cut[1] = b[j];
                *better = true;
            }
        }
    }
    return rc;
}

/* The unit whose whole name is the end of this one, with at least two components: a graph's scopes
 * precede a checkpoint's parameter names. */
static uint32_t by_tail(struct gd_keys *keys, const char *key, const uint32_t *taken)
{
    bool several;

    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
        uint32_t to = strchr(dot + 1, '.') ? keys_find(keys, dot + 1, taken, &several) : UINT32_MAX;

        if (to != UINT32_MAX) {
            return several ? UINT32_MAX : to;
        }
    }
    return UINT32_MAX;
}

/* Matches ends of `from`'s names with names of `to` if unique. */
static int match_tails(struct gd_matcher *m, bool back, struct gd_err *err)
{
    struct gd_table *from = back ? m->b : m->a, *to = back ? m->a : m->b;
    const uint32_t *from_of = back ? m->of_b : m->of_a, *to_of = back ? m->of_a : m->of_b;
    uint32_t *claim = malloc((to->unit_count + 1) * sizeof(*claim));
    struct gd_keys keys;
    char key[MAX_NAME];
    int rc = keys_init(&keys, to->unit_count, err);

    if (rc == GD_OK && !claim) {
        rc = gd_fail_nomem(err);
    }
    for (uint32_t i = 0; rc == GD_OK && i < to->unit_count; i++) {
        claim[i] = UINT32_MAX;
        if (to_of[i] == UINT32_MAX) {
            common_key(to, i, 0, key, sizeof(key));
            rc = keys_add(&keys, i, key, err);
        }
    }
    for (uint32_t i = 0; rc == GD_OK && i < from->unit_count; i++) {
        uint32_t found = UINT32_MAX;

        if (from_of[i] == UINT32_MAX) {
            common_key(from, i, 0, key, sizeof(key));
            found = by_tail(&keys, key, to_of);
        }
        if (found != UINT32_MAX && is_same_place(m, back ? found : i, back ? i : found)) {
            claim[found] = claim[found] == UINT32_MAX ? i : UINT32_MAX - 1; /* ambiguous: none */
        }
    }
    for (uint32_t i = 0; rc == GD_OK && i < to->unit_count; i++) {
        if (claim[i] < UINT32_MAX - 1) {
            join_units(m, back ? i : claim[i], back ? claim[i] : i, GD_HOW_RULES);
        }
    }
    keys_free(&keys);
    free(claim);
    return rc;
}

/* Drops wrapper prefixes if that finds more matches. */
static int by_rules(struct gd_matcher *m, struct gd_err *err)
{
    size_t cut[2] = {0, 0}, best, count;
    bool better = true;
    int rc = number_trainable(m->a, err);

    rc = rc == GD_OK ? number_trainable(m->b, err) : rc;
    rc = rc == GD_OK ? match_cut(m, 0, 0, false, &best, err) : rc;
    while (rc == GD_OK && better) {
        rc = cut_more(m, cut, &best, &better, err);
    }
    rc = rc == GD_OK ? match_cut(m, cut[0], cut[1], true, &count, err) : rc;
    rc = rc == GD_OK ? match_tails(m, false, err) : rc;
    return rc == GD_OK ? match_tails(m, true, err) : rc;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int print_of(struct gd_matcher *m, struct gd_table *table, uint32_t unit,
                    struct gd_fingerprint *ret, struct gd_err *err)
{
    int rc = GD_OK;

    *ret = (struct gd_fingerprint){.good = false};
    if (table->unit[unit].count) {
        rc =
            gd_fingerprint_item(table, &table->item[table->unit[unit].first], m->options, ret, err);
    }
    ret->unit = unit;
    return rc;
}

static int prints_of(struct gd_matcher *m, struct gd_table *table, const uint32_t *taken,
                     struct gd_fingerprint **ret, size_t *count, struct gd_err *err)
{
    size_t left = 0;
    int rc = GD_OK;

    for (size_t i = 0; i < table->unit_count; i++) {
        left += taken[i] == UINT32_MAX;
    }
    *count = 0;
    *ret = calloc(left + 1, sizeof(**ret));
    if (!*ret) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; rc == GD_OK && left <= MAX_VALUES && i < table->unit_count; i++) {
        if (taken[i] == UINT32_MAX) {
            rc = print_of(m, table, i, &(*ret)[(*count)++], err);
        }
        if (rc == GD_OK && m->options->go_on && !m->options->go_on(m->options->go_on_ctx, i)) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    return rc;
}

/* The only equal fingerprint among the others; -1: none, or several. */
static int64_t only_same(const struct gd_fingerprint *one, const struct gd_fingerprint *list,
                         size_t count)
{
    int64_t found = -1;

    for (size_t i = 0; i < count; i++) {
        if (gd_fingerprint_same(one, &list[i])) {
            if (found >= 0) {
                return -1;
            }
            found = (int64_t)i;
        }
    }
    return found;
}

static int by_values(struct gd_matcher *m, struct gd_err *err)
{
    struct gd_fingerprint *a = NULL, *b = NULL;
    size_t count_a = 0, count_b = 0;
    int rc = prints_of(m, m->a, m->of_a, &a, &count_a, err);

    if (rc == GD_OK && count_a) {
        rc = prints_of(m, m->b, m->of_b, &b, &count_b, err);
    }
    for (size_t i = 0; rc == GD_OK && i < count_a; i++) {
        int64_t to = a[i].good ? only_same(&a[i], b, count_b) : -1;

        if (to >= 0 && only_same(&b[to], a, count_a) == (int64_t)i &&
            m->of_b[b[to].unit] == UINT32_MAX) {
            join_units(m, a[i].unit, b[to].unit, GD_HOW_VALUES);
        }
    }
    free(a);
    free(b);
    return rc;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static int run_methods(struct gd_matcher *m, struct gd_err *err)
{
    int rc = m->options->map ? by_map(m, err) : GD_OK;

    rc = rc != GD_OK ? rc : by_name(m, err);
    rc = rc != GD_OK ? rc : by_other_name(m, gd_unit_own, err);
    rc = rc != GD_OK ? rc : by_other_name(m, wire_of, err);
    if (rc == GD_OK && m->options->last >= GD_HOW_RULES) {
        rc = by_rules(m, err);
        rc = rc != GD_OK ? rc : gd_match_by_layer(m, err);
    }
    if (rc == GD_OK && m->options->last >= GD_HOW_VALUES) {
        rc = by_values(m, err);
    }
    if (rc == GD_OK && m->options->last >= GD_HOW_ORDER) {
        rc = gd_match_by_order(m, err);
    }
    return rc;
}

/* Sorted by B; units that only A has follow their predecessor in A. */
static void list_all(const struct gd_matcher *m, struct gd_matching *ret)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < m->b->unit_count; i++) {
        uint32_t a = m->of_b[i];

        for (; a != UINT32_MAX && next < a; next++) {
            if (m->of_a[next] == UINT32_MAX) {
                ret->match[ret->count++] = (struct gd_match){next, UINT32_MAX, GD_HOW_NONE};
            }
        }
        ret->match[ret->count++] =
            (struct gd_match){a, i, a == UINT32_MAX ? GD_HOW_NONE : m->how[i]};
    }
    for (; next < m->a->unit_count; next++) {
        if (m->of_a[next] == UINT32_MAX) {
            ret->match[ret->count++] = (struct gd_match){next, UINT32_MAX, GD_HOW_NONE};
        }
    }
}

int gd_match_tables(struct gd_table *a, struct gd_table *b, const struct gd_match_options *options,
                    struct gd_matching *ret, struct gd_err *err)
{
    struct gd_matcher m = {.a = a, .b = b, .options = options};
    int rc = GD_OK;

    *ret = (struct gd_matching){0};
    m.of_a = malloc((a->unit_count + 1) * sizeof(*m.of_a));
    m.of_b = malloc((b->unit_count + 1) * sizeof(*m.of_b));
    m.how = calloc(b->unit_count + 1, sizeof(*m.how));
    ret->match = calloc(a->unit_count + b->unit_count + 1, sizeof(*ret->match));
    if (!m.of_a || !m.of_b || !m.how || !ret->match) {
        rc = gd_fail_nomem(err);
    } else {
        memset(m.of_a, 0xff, (a->unit_count + 1) * sizeof(*m.of_a));
        memset(m.of_b, 0xff, (b->unit_count + 1) * sizeof(*m.of_b));
        rc = run_methods(&m, err);
    }
    if (rc == GD_OK) {
        list_all(&m, ret);
        ret->guessed = m.guessed;
    } else {
        gd_matching_free(ret);
    }
    free(m.of_a);
    free(m.of_b);
    free(m.how);
    return rc;
}

void gd_matching_free(struct gd_matching *matching)
{
    free(matching->match);
    *matching = (struct gd_matching){0};
}

/* Outputs, then inputs, by position. */
static int compare_places(const struct gd_item *a, const struct gd_item *b)
{
    return a->input != b->input ? (a->input ? 1 : -1)
                                : (a->position > b->position) - (a->position < b->position);
}

struct gd_item *gd_match_item(struct gd_table *other, const struct gd_unit *unit,
                              const struct gd_item *item)
{
    uint32_t low = unit->first, high = unit->first + unit->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_places(&other->item[middle], item);

        if (order == 0) {
            return &other->item[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
