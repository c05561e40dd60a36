// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/catalog.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/catalog_impl.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "engine/debugger.h"
#include "engine/memory/memory.h"

#define MAX_FACTS    10000
#define MAX_VALUES   (UINT32_C(1) << 26)
#define MAX_STEPS    (UINT32_C(1) << 24)
#define MAX_CATALOGS 65536
#define MAX_LEFT     2000 /* paths kept by name; the rest are only counted */
#define MAX_TEXT     (UINT64_C(1) << 32)

struct gd_dump {
    uint64_t max_bytes;
    struct gd_arena arena;
    struct gd_catalog **catalogs;
    size_t count, cap;
    void *by_place; /* tsearch(3) tree ordered by order_places; dropped when the dump is finished */
    struct gd_catalog_fact *left;
    size_t left_count, left_cap;
    uint64_t left_more;
    struct gd_listing *listing;
    struct gd_findings findings;
    const struct gd_open_options *options;
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* Makes room for one more item of `size` bytes in a list; `list`: the address of its pointer. */
static int make_room(void *list, size_t count, size_t *cap, size_t size, size_t max,
                     struct gd_err *err)
{
    if (count >= max) {
        return gd_fail(err, GD_ELIMIT, "the dump has more than %zu entries of one kind", max);
    }
    return gd_grow_list(list, count, cap, size) ? GD_OK : gd_fail_nomem(err);
}

/* Copies the text into the arena; NULL stays NULL. False: out of memory. */
static bool keep_text(struct gd_arena *arena, const char **text)
{
    if (*text) {
        *text = gd_arena_strdup(arena, *text);
        return *text != NULL;
    }
    return true;
}

static bool keep_bytes(struct gd_arena *arena, const void **data, size_t size)
{
    void *copy;

    if (!*data) {
        return true;
    }
    copy = gd_arena_alloc(arena, size);
    if (!copy) {
        return false;
    }
    memcpy(copy, *data, size);
    *data = copy;
    return true;
}

/* A dump has few distinct shapes and many values of each: share one copy. */
static bool keep_shape(struct gd_catalog *catalog, const struct gd_shape **shape)
{
    const void *copy = *shape;
    size_t size, at = 0;
    uint64_t hash;
    uint32_t number;

    if (!*shape) {
        return true;
    }
    size = (size_t)(*shape)->rank * sizeof((*shape)->dim[0]);
    hash = gd_hash_index_hash(&catalog->shape_lookup, (*shape)->dim, size);
    while (gd_hash_index_next(&catalog->shape_lookup, hash, &at, &number)) {
        if (gd_shape_equal(catalog->shapes[number], *shape)) {
            *shape = catalog->shapes[number];
            return true;
        }
    }
    if (make_room(&catalog->shapes, catalog->shape_count, &catalog->shape_cap,
                  sizeof(*catalog->shapes), MAX_VALUES, NULL) != GD_OK ||
        !keep_bytes(&catalog->arena, &copy, sizeof(**shape)) ||
        gd_hash_index_add(&catalog->shape_lookup, hash, (uint32_t)catalog->shape_count, NULL) !=
            GD_OK) {
        return false;
    }
    *shape = copy;
    catalog->shapes[catalog->shape_count++] = copy;
    return true;
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static void catalog_free(struct gd_catalog *catalog)
{
    if (!catalog) {
        return;
    }
    for (size_t i = 0; i < catalog->value_count; i++) {
        gd_source_unref(catalog->values[i].of.source);
    }
    if (catalog->owns_graph) {
        gd_graph_destroy(catalog->graph);
    }
    if (catalog->memory) {
        gd_memory_deinit(catalog->memory);
        free(catalog->memory);
    }
    gd_time_report_destroy(catalog->times);
    gd_timeline_destroy(catalog->timeline);
    gd_arena_deinit(&catalog->arena);
    gd_hash_index_deinit(&catalog->shape_lookup);
    free(catalog->shapes);
    free((void *)(uintptr_t)catalog->where);
    free(catalog->values);
    free(catalog->steps);
    free(catalog->graph_steps);
    free(catalog->reasons);
    free(catalog->scalars);
    free(catalog->events);
    free(catalog->facts);
    free(catalog);
}

int gd_dump_create(uint64_t max_bytes, struct gd_dump **ret, struct gd_err *err)
{
    struct gd_dump *dump = calloc(1, sizeof(*dump));

    if (!dump) {
        return gd_fail_nomem(err);
    }
    dump->max_bytes = max_bytes;
    gd_arena_init(&dump->arena, MAX_TEXT);
    *ret = dump;
    return GD_OK;
}

static int order_places(const void *a, const void *b)
{
    const struct gd_catalog *x = a, *y = b;

    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return strcmp(x->where, y->where);
}

static void keep_item(void *item)
{
    (void)item;
}

static void forget_places(struct gd_dump *dump)
{
    tdestroy(dump->by_place, keep_item);
    dump->by_place = NULL;
}

void gd_dump_destroy(struct gd_dump *dump)
{
    if (!dump) {
        return;
    }
    forget_places(dump);
    for (size_t i = 0; i < dump->count; i++) {
        catalog_free(dump->catalogs[i]);
    }
    gd_findings_clear(&dump->findings);
    if (dump->listing) {
        gd_listing_free(dump->listing);
    }
    gd_arena_deinit(&dump->arena);
    free(dump->catalogs);
    free(dump->left);
    free(dump);
}

static int catalog_create(const struct gd_dump *dump, int rank, const char *where,
                          struct gd_catalog **ret, struct gd_err *err)
{
    struct gd_catalog *catalog = calloc(1, sizeof(*catalog));
    uint64_t max = dump->max_bytes;
    int rc;

    if (catalog) {
        gd_arena_init(&catalog->arena, MAX_TEXT);
        catalog->where = strdup(where);
        catalog->rank = rank;
        catalog->peer.rank = rank;
        catalog->peer.world_size = 1;
        catalog->owns_graph = true;
    }
    rc = !catalog || !catalog->where
             ? gd_fail_nomem(err)
             : gd_graph_create(max > SIZE_MAX ? SIZE_MAX : (size_t)max, &catalog->graph, err);
    if (rc != GD_OK) {
        catalog_free(catalog);
        return rc;
    }
    *ret = catalog;
    return GD_OK;
}

int gd_dump_catalog(struct gd_dump *dump, int rank, const char *where, struct gd_catalog **ret,
                    struct gd_err *err)
{
    struct gd_catalog key = {.rank = rank, .where = where ? where : ""}, *catalog;
    struct gd_catalog *const *found = tfind(&key, &dump->by_place, order_places);
    int rc;

    if (found) {
        *ret = *found;
        return GD_OK;
    }
    rc = make_room(&dump->catalogs, dump->count, &dump->cap, sizeof(struct gd_catalog *),
                   MAX_CATALOGS, err);
    rc = rc != GD_OK ? rc : catalog_create(dump, rank, key.where, &catalog, err);
    if (rc == GD_OK && !tsearch(catalog, &dump->by_place, order_places)) {
        catalog_free(catalog);
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        dump->catalogs[dump->count++] = catalog;
        *ret = catalog;
    }
    return rc;
}

int gd_dump_catalog_beside(struct gd_dump *dump, int rank, const char *where,
                           struct gd_catalog **ret, struct gd_err *err)
{
    struct gd_catalog *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < dump->count; i++) {
        if (dump->catalogs[i]->rank == rank) {
            found = dump->catalogs[i];
            count++;
        }
    }
    if (count != 1) {
        return gd_dump_catalog(dump, rank, where, ret, err);
    }
    *ret = found;
    return GD_OK;
}

struct gd_graph *gd_catalog_graph(struct gd_catalog *catalog)
{
    return catalog->graph;
}

struct gd_graph *gd_catalog_give_graph(struct gd_catalog *catalog)
{
    catalog->owns_graph = false;
    return catalog->graph;
}

int gd_catalog_times(struct gd_catalog *catalog, struct gd_time_report **ret, struct gd_err *err)
{
    int rc = catalog->times ? GD_OK : gd_time_report_create(&catalog->times, err);

    *ret = catalog->times;
    return rc;
}

struct gd_time_report *gd_catalog_give_times(struct gd_catalog *catalog)
{
    struct gd_time_report *times = catalog->times;

    catalog->times = NULL;
    return times;
}

int gd_catalog_timeline(struct gd_catalog *catalog, struct gd_timeline **ret, struct gd_err *err)
{
    catalog->timeline = catalog->timeline ? catalog->timeline : gd_timeline_create();
    *ret = catalog->timeline;
    return *ret ? GD_OK : gd_fail_nomem(err);
}

struct gd_timeline *gd_catalog_give_timeline(struct gd_catalog *catalog)
{
    struct gd_timeline *timeline = catalog->timeline;

    catalog->timeline = NULL;
    return timeline;
}

struct gd_peer *gd_catalog_peer(struct gd_catalog *catalog)
{
    return &catalog->peer;
}

/* ---- filling --------------------------------------------------------------------------------- */

int gd_catalog_add(struct gd_catalog *catalog, const struct gd_catalog_value *value,
                   struct gd_err *err)
{
    struct gd_catalog_value kept = *value;
    const void *stats = value->stats;
    int rc = make_room(&catalog->values, catalog->value_count, &catalog->value_cap,
                       sizeof(*catalog->values), MAX_VALUES, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!keep_bytes(&catalog->arena, &stats, sizeof(*value->stats)) ||
        !keep_shape(catalog, &kept.shape) || !keep_text(&catalog->arena, &kept.digest) ||
        !keep_text(&catalog->arena, &kept.note)) {
        return gd_fail_nomem(err);
    }
    kept.stats = stats;
    if (kept.source) {
        gd_source_ref(kept.source);
    }
    catalog->values[catalog->value_count] =
        (struct kept_value){.of = kept, .number = (uint32_t)catalog->value_count};
    catalog->value_count++;
    return GD_OK;
}

int gd_catalog_add_step(struct gd_catalog *catalog, int64_t step, struct gd_err *err)
{
    int rc;

    if (step == GD_EVERY_STEP ||
        (catalog->step_count && catalog->steps[catalog->step_count - 1].step == step)) {
        return GD_OK;
    }
    rc = make_room(&catalog->steps, catalog->step_count, &catalog->step_cap,
                   sizeof(*catalog->steps), MAX_STEPS, err);
    if (rc == GD_OK) {
        catalog->steps[catalog->step_count++] = (struct gd_catalog_step){.step = step};
    }
    return rc;
}

int gd_catalog_not_dumped(struct gd_catalog *catalog, gd_node_id node, const char *why,
                          struct gd_err *err)
{
    const struct kept_reason *last;
    int rc = make_room(&catalog->reasons, catalog->reason_count, &catalog->reason_cap,
                       sizeof(*catalog->reasons), MAX_VALUES, err);

    if (rc != GD_OK) {
        return rc;
    }
    last = catalog->reason_count ? &catalog->reasons[catalog->reason_count - 1] : NULL;
    if (last && strcmp(last->why, why) == 0) {
        why = last->why; /* many nodes in a row share one reason */
    } else if (!keep_text(&catalog->arena, &why)) {
        return gd_fail_nomem(err);
    }
    catalog->reasons[catalog->reason_count++] = (struct kept_reason){.node = node, .why = why};
    return GD_OK;
}

int gd_catalog_add_scalar(struct gd_catalog *catalog, int64_t step, const char *name, double value,
                          struct gd_err *err)
{
    int rc = make_room(&catalog->scalars, catalog->scalar_count, &catalog->scalar_cap,
                       sizeof(*catalog->scalars), MAX_VALUES, err);

    if (rc != GD_OK || !keep_text(&catalog->arena, &name)) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    catalog->scalars[catalog->scalar_count++] =
        (struct gd_catalog_scalar){.step = step, .name = name, .value = value};
    return GD_OK;
}

void gd_catalog_remove_scalars(struct gd_catalog *catalog, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < catalog->scalar_count; i++) {
        if (strcmp(catalog->scalars[i].name, name) != 0) {
            catalog->scalars[kept++] = catalog->scalars[i];
        }
    }
    catalog->scalar_count = kept;
}

int gd_catalog_add_event(struct gd_catalog *catalog, int64_t step, gd_node_id node,
                         const char *kind, const char *text, struct gd_err *err)
{
    int rc = make_room(&catalog->events, catalog->event_count, &catalog->event_cap,
                       sizeof(*catalog->events), MAX_VALUES, err);

    if (rc != GD_OK || !keep_text(&catalog->arena, &kind) || !keep_text(&catalog->arena, &text)) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    catalog->events[catalog->event_count++] = (struct gd_catalog_event){
        .step = step, .node = node, .kind = kind ? kind : "", .text = text ? text : ""};
    return GD_OK;
}

int gd_catalog_add_fact(struct gd_catalog *catalog, const char *name, const char *value,
                        struct gd_err *err)
{
    int rc;

    if (catalog->fact_count == MAX_FACTS) {
        return GD_OK;
    }
    rc = make_room(&catalog->facts, catalog->fact_count, &catalog->fact_cap,
                   sizeof(*catalog->facts), MAX_FACTS, err);
    if (rc != GD_OK || !keep_text(&catalog->arena, &name) || !keep_text(&catalog->arena, &value)) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    catalog->facts[catalog->fact_count++] = (struct gd_catalog_fact){.name = name, .value = value};
    return GD_OK;
}

void gd_catalog_keep(struct gd_catalog *catalog)
{
    catalog->keep = true;
}

int gd_catalog_memory(struct gd_catalog *catalog, struct gd_memory **ret, struct gd_err *err)
{
    if (!catalog->memory) {
        catalog->memory = malloc(sizeof(*catalog->memory));
        if (!catalog->memory) {
            return gd_fail_nomem(err);
        }
        gd_memory_init(catalog->memory);
    }
    catalog->keep = true;
    *ret = catalog->memory;
    return GD_OK;
}

bool gd_catalog_has_times(const struct gd_catalog *catalog)
{
    return catalog->times != NULL;
}

const struct gd_memory *gd_catalog_has_memory(const struct gd_catalog *catalog)
{
    return catalog->memory;
}

bool gd_catalog_fact_is_alarm(const struct gd_catalog_fact *fact)
{
    return gd_starts_with(fact->value, "SUSPICIOUS: ") || gd_starts_with(fact->value, "CORRUPT: ");
}

/* ---- entry points ---------------------------------------------------------------------------- */

int gd_dump_left_out(struct gd_dump *dump, const char *path, const char *why, struct gd_err *err)
{
    int rc;

    if (dump->left_count >= MAX_LEFT) {
        dump->left_more++;
        return GD_OK;
    }
    rc = make_room(&dump->left, dump->left_count, &dump->left_cap, sizeof(*dump->left), MAX_LEFT,
                   err);
    if (rc != GD_OK || !keep_text(&dump->arena, &path) || !keep_text(&dump->arena, &why)) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    dump->left[dump->left_count++] = (struct gd_catalog_fact){.name = path, .value = why};
    return GD_OK;
}

int gd_dump_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                      struct gd_err *err)
{
    if (why->code == GD_ENOMEM || why->code == GD_EINTR) {
        if (err) {
            *err = *why;
        }
        return why->code;
    }
    return gd_dump_left_out(dump, path, why->text, err);
}

void gd_dump_keep_findings(struct gd_dump *dump, struct gd_listing *listing,
                           struct gd_findings *findings)
{
    dump->listing = listing;
    dump->findings = *findings;
    *findings = (struct gd_findings){.item = NULL};
}

static int compare_catalogs(const void *a, const void *b)
{
    const struct gd_catalog *const *x = a, *const *y = b;

    return order_places(*x, *y);
}

static bool is_empty(const struct gd_catalog *catalog)
{
    return gd_graph_node_limit(catalog->graph) == 0 && catalog->step_count == 0 &&
           catalog->event_count == 0 && catalog->scalar_count == 0 && !catalog->keep;
}

int gd_dump_finish(struct gd_dump *dump, struct gd_err *err)
{
    size_t kept = 0;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < dump->count; i++) {
        rc = gd_catalog_sort(dump->catalogs[i], err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    forget_places(dump);
    for (size_t i = 0; i < dump->count; i++) {
        if (is_empty(dump->catalogs[i])) {
            catalog_free(dump->catalogs[i]);
        } else {
            dump->catalogs[kept++] = dump->catalogs[i];
        }
    }
    dump->count = kept;
    if (kept > 1) {
        qsort(dump->catalogs, kept, sizeof(*dump->catalogs), compare_catalogs);
    }
    return GD_OK;
}

size_t gd_dump_count(const struct gd_dump *dump)
{
    return dump->count;
}

struct gd_catalog *gd_dump_at(const struct gd_dump *dump, size_t index)
{
    return index < dump->count ? dump->catalogs[index] : NULL;
}

const struct gd_catalog_fact *gd_dump_left(const struct gd_dump *dump, size_t *count,
                                           uint64_t *more)
{
    *count = dump->left_count;
    *more = dump->left_more;
    return dump->left;
}

const struct gd_open_options *gd_dump_options(const struct gd_dump *dump)
{
    static const struct gd_open_options none = {.format = NULL};

    return dump->options ? dump->options : &none;
}

void gd_dump_set_options(struct gd_dump *dump, const struct gd_open_options *options)
{
    dump->options = options;
}

const struct gd_listing *gd_dump_listing(const struct gd_dump *dump)
{
    return dump->listing;
}

const struct gd_findings *gd_dump_findings(const struct gd_dump *dump)
{
    return &dump->findings;
}
