// SPDX-License-Identifier: GPL-3.0-or-later
/* The formats `cann` and `tf-ascend`: the same directory tree, without and with compiled graphs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/cann/cann_load.h"
#include "dump/format.h"

#define MAX_ROOTS 100000

/* ---- finding --------------------------------------------------------------------------------- */

/* A tree with compiled graphs next to it belongs to tf-ascend, unless they are MindSpore's. */
static bool is_ours(const struct cann_dirs *tree, const struct cann_dir *dir, bool graphs)
{
    return graphs == (tree->graphs > 0 && !dir->place.is_mindspore);
}

static int add_finding(const struct gd_dump_format *format, const struct cann_dirs *tree,
                       size_t first, bool graphs, struct gd_findings *findings, struct gd_err *err)
{
    const struct cann_dir *dir = &tree->dir[first];
    struct gd_finding finding = {.format = format, .root = dir->root, .files = 0};
    char rule[200];
    size_t places = 0;

    for (size_t i = first; i < tree->count; i++) {
        if (tree->dir[i].root == dir->root && is_ours(tree, &tree->dir[i], graphs)) {
            finding.files += tree->dir[i].files;
            places++;
        }
    }
    snprintf(rule, sizeof(rule), "dump files of operators in %zu director%s of the form %s%s",
             places, places == 1 ? "y" : "ies",
             dir->place.layout ? dir->place.layout : "of an unknown tree",
             graphs ? ", and ge_proto_*_Build.txt" : "");
    finding.rule = rule;
    return gd_findings_add(findings, &finding, err);
}

static bool is_new(uint32_t root, const uint32_t *roots, size_t count)
{
    for (size_t i = count; i-- > 0;) { /* usually the last one */
        if (roots[i] == root) {
            return false;
        }
    }
    return true;
}

static int find_roots(const struct gd_dump_format *format, const struct cann_dirs *tree,
                      bool graphs, struct gd_findings *findings, struct gd_err *err)
{
    uint32_t *roots = NULL;
    size_t count = 0, cap = 0;
    int rc = GD_OK;

    for (size_t i = 0; i < tree->count && rc == GD_OK && count < MAX_ROOTS; i++) {
        uint32_t root = tree->dir[i].root;

        if (!is_ours(tree, &tree->dir[i], graphs) || !is_new(root, roots, count)) {
            continue;
        }
        if (!gd_grow_list(&roots, count, &cap, sizeof(*roots))) {
            rc = gd_fail_nomem(err);
            break;
        }
        roots[count++] = root;
        rc = add_finding(format, tree, i, graphs, findings, err);
    }
    free(roots);
    if (rc == GD_OK && graphs && count == 0 && tree->graphs > 0) {
        struct gd_finding finding = {.format = format,
                                     .root = 0,
                                     .rule = "ge_proto_*_Build.txt, without dump files",
                                     .files = tree->graphs};

        rc = gd_findings_add(findings, &finding, err);
    }
    return rc;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    bool graphs = format == &gd_tf_ascend_format;
    struct cann_dirs tree;
    int rc = cann_dirs_read(listing, &tree, err);

    if (rc == GD_OK) {
        rc = find_roots(format, &tree, graphs, findings, err);
        cann_dirs_clear(&tree);
    }
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    const struct gd_listing *listing;
    const struct gd_finding *finding;
    struct gd_dump *dump;
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    struct cann_dirs tree;
    bool graphs;
    uint64_t done;
};

static bool belongs_to_rank(const struct reading *reading, const struct cann_dir *dir)
{
    return dir->root == reading->finding->root && is_ours(&reading->tree, dir, reading->graphs);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The start times of a rank's dump whose directories have no step, sorted and unique. */
static int find_starts(const struct reading *reading, int rank, const char ***ret, size_t *count,
                       struct gd_err *err)
{
    const char **starts = calloc(reading->tree.count + 1, sizeof(*starts));
    size_t all = 0, kept = 0;

    if (!starts) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < reading->tree.count; i++) {
        const struct cann_dir *dir = &reading->tree.dir[i];

        if (belongs_to_rank(reading, dir) && dir->place.rank == rank && !dir->place.has_step) {
            starts[all++] = dir->place.start;
        }
    }
    qsort(starts, all, sizeof(*starts), by_text);
    for (size_t i = 0; i < all; i++) {
        if (kept == 0 || strcmp(starts[kept - 1], starts[i]) != 0) {
            starts[kept++] = starts[i];
        }
    }
    *ret = starts;
    *count = kept;
    return GD_OK;
}

static int load_dirs(const struct reading *reading, struct cann_load *load)
{
    const char **starts = NULL, **found;
    size_t count = 0;
    int rc = find_starts(reading, load->rank, &starts, &count, load->err);

    for (uint32_t i = 0; i < reading->tree.count && rc == GD_OK; i++) {
        const struct gd_cann_path *place = &reading->tree.dir[i].place;

        if (!belongs_to_rank(reading, &reading->tree.dir[i]) || place->rank != load->rank) {
            continue;
        }
        found = place->has_step ? NULL
                                : bsearch(&place->start, starts, count, sizeof(*starts), by_text);
        load->is_mindspore = load->is_mindspore || place->is_mindspore;
        /* Without step directories, each start of the dump is a step. */
        rc = cann_load_dir(load, i, found ? found - starts : place->step);
    }
    free(starts);
    return rc;
}

/* Several dumps in one directory are distinguished by their directories. */
static void name_peer(const struct cann_load *load, struct gd_peer *peer, bool graphs)
{
    const char *where = gd_catalog_where(load->catalog), *slash = strrchr(where, '/');

    snprintf(peer->framework, sizeof(peer->framework), "%s",
             load->is_mindspore ? "MindSpore"
             : graphs           ? "GE"
                                : "CANN");
    snprintf(peer->device, sizeof(peer->device), "Ascend %d", load->rank);
    if (load->is_inside && slash && slash[1] != '\0') {
        snprintf(peer->program, sizeof(peer->program), "%s", slash + 1);
    }
}

static int read_files(struct cann_load *load, bool graphs)
{
    struct gd_peer *peer = gd_catalog_peer(load->catalog);
    int rc = load->joins ? GD_OK : cann_graph_find(load);

    if (!load->joins) {
        name_peer(load, peer, graphs);
    }
    rc = rc != GD_OK ? rc : cann_open_all(load);
    rc = rc != GD_OK ? rc : cann_load_ops(load);
    return rc != GD_OK ? rc : cann_fill(load);
}

static int read_rank(struct reading *reading, int rank, struct gd_err *err)
{
    struct cann_load load = {.listing = reading->listing,
                             .tree = &reading->tree,
                             .dump = reading->dump,
                             .rank = rank,
                             .go_on = reading->go_on,
                             .ctx = reading->ctx,
                             .done = reading->done,
                             .is_inside = reading->finding->root != 0,
                             .err = err};
    char where[PATH_MAX];
    int rc = gd_listing_path(reading->listing, reading->finding->root, where, sizeof(where), err);

    gd_arena_init(&load.arena, 0);
    if (rc == GD_OK) {
        load.catalog =
            cann_join_find(reading->dump, &reading->tree, reading->finding->root, where, rank);
        load.joins = load.catalog != NULL;
        rc = load.joins ? GD_OK : gd_dump_catalog(reading->dump, rank, where, &load.catalog, err);
    }
    rc = rc != GD_OK ? rc : load_dirs(reading, &load);
    rc = rc != GD_OK ? rc : read_files(&load, reading->graphs);
    reading->done = load.done;
    cann_load_free(&load);
    return rc;
}

/* Reads each rank once, lowest first; without dump files, only the graphs. */
static int read_ranks(struct reading *reading, struct gd_err *err)
{
    int rank = -1, rc = GD_OK;
    bool any = false;

    while (rc == GD_OK) {
        int next = -1;

        for (size_t i = 0; i < reading->tree.count; i++) {
            int of = reading->tree.dir[i].place.rank;

            if (belongs_to_rank(reading, &reading->tree.dir[i]) && of > rank &&
                (next < 0 || of < next)) {
                next = of;
            }
        }
        if (next < 0) {
            break;
        }
        any = true;
        rank = next;
        rc = read_rank(reading, rank, err);
    }
    return rc != GD_OK || any || !reading->graphs ? rc : read_rank(reading, 0, err);
}

static int read_place(const struct gd_listing *listing, const struct gd_finding *finding,
                      struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                      struct gd_err *err)
{
    struct reading reading = {.listing = listing,
                              .finding = finding,
                              .dump = dump,
                              .go_on = go_on,
                              .ctx = ctx,
                              .graphs = finding->format == &gd_tf_ascend_format};
    int rc = cann_dirs_read(listing, &reading.tree, err);

    if (rc == GD_OK) {
        rc = read_ranks(&reading, err);
        cann_dirs_clear(&reading.tree);
    }
    return rc;
}

const struct gd_dump_format gd_cann_format = {
    .name = "cann",
    .what = "CANN operator dump (MindSpore asynchronous, torch_npu, overflow records)",
    .find = find_places,
    .read = read_place,
};

const struct gd_dump_format gd_tf_ascend_format = {
    .name = "tf-ascend",
    .what = "CANN operator dump with compiled graphs (TensorFlow on Ascend)",
    .find = find_places,
    .read = read_place,
};
