// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's synchronous dump, 1.3 and later: one .npy for every tensor, statistic.csv. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/cann/mapping.h"
#include "dump/mindspore/ms_graph_file.h"
#include "dump/mindspore/ms_name.h"
#include "dump/mindspore/ms_statistic.h"
#include "dump/mindspore/ms_tree.h"
#include "dump/mindspore/ms_values.h"
#include "dump/suffix.h"

#define ASK_EVERY 4096 /* files between two calls of go_on */
#define MAX_NAME  8192

struct reading {
    const struct gd_listing *listing;
    struct gd_dump *dump;
    struct gd_catalog *catalog;
    struct ms_nodes nodes; /* of the graph at hand */
    struct ms_values values;
    uint32_t next_order;
    uint64_t done; /* files */
    bool (*go_on)(void *ctx, uint64_t done);
    void *ctx;
    const struct ms_dir *dir; /* at hand */
    const char *path;         /* of the file at hand */
};

/* ---- files ----------------------------------------------------------------------------------- */

static int cut(const char *text, size_t len, char *out, size_t size, struct gd_err *err)
{
    if (len >= size) {
        return gd_fail(err, GD_ELIMIT, "the name of an operator has %zu bytes", len);
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return GD_OK;
}

/* The layout in which a device keeps a tensor is not undone: nothing here tells the host's shape.
 */
static const char *layout_note(const struct gd_ms_name *name, char *out, size_t size)
{
    static const char *const plain[] = {"DefaultFormat", "ND", "NCHW", "NC", "NCL", "NCDHW"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strlen(plain[i]) == name->format_len &&
            memcmp(plain[i], name->format, name->format_len) == 0) {
            return NULL;
        }
    }
    snprintf(out, size, "in the layout %.*s, as the device has it", (int)name->format_len % 64,
             name->format);
    return out;
}

static int take_npy(struct reading *reading, const char *path, const struct gd_ms_name *name,
                    struct gd_err *err)
{
    char type[256], op[MAX_NAME], note[160];
    bool bf16 = name->stored == GD_STORED_BFLOAT16;
    struct ms_value value = {.is_input = name->is_input,
                             .slot = name->slot,
                             .step = reading->dir->step,
                             .time = name->time,
                             .stored = name->stored,
                             .note = layout_note(name, note, sizeof(note))};
    int rc = cut(name->type, name->type_len, type, sizeof(type), err);

    rc = rc ? rc : cut(name->name, name->name_len, op, sizeof(op), err);
    rc = rc ? rc : ms_nodes_want(&reading->nodes, type, op, &value.node, err);
    rc = rc ? rc : ms_npy_source(path, bf16 ? "bfloat16" : NULL, &value.source, err);
    return rc ? rc : ms_values_add(&reading->values, &value, err);
}

/* Elements alone, as msprobe saves those of whole graphs: their table tells the shape. */
static int take_raw(struct reading *reading, const char *path, const struct gd_ms_name *name,
                    struct gd_err *err)
{
    char type[256], op[MAX_NAME];
    struct ms_value value = {.is_input = name->is_input,
                             .slot = name->slot,
                             .step = reading->dir->step,
                             .time = name->time,
                             .stored = name->stored,
                             .raw = path};
    int rc = cut(name->type, name->type_len, type, sizeof(type), err);

    if (name->stored == GD_STORED_NONE) {
        return gd_fail(err, GD_EUNSUPPORTED, "elements alone, without .npy, of no known type");
    }
    rc = rc ? rc : cut(name->name, name->name_len, op, sizeof(op), err);
    rc = rc ? rc : ms_nodes_want(&reading->nodes, type, op, &value.node, err);
    rc = rc ? rc : ms_raw_source(path, name->stored, NULL, &value.source, err);
    return rc ? rc : ms_values_add(&reading->values, &value, err);
}

static int take_row(void *ctx, const struct ms_statistic *row, struct gd_err *err)
{
    struct reading *reading = ctx;
    struct ms_value value = {.is_input = row->is_input,
                             .slot = row->slot,
                             .step = reading->dir->step,
                             .time = row->time,
                             .stored = row->stored,
                             .shape = row->has_shape ? &row->shape : NULL,
                             .stats = &row->stats,
                             .digest = row->digest,
                             .note = row->note};
    int rc = ms_nodes_want(&reading->nodes, row->type, row->name, &value.node, err);

    return rc ? rc : ms_values_add(&reading->values, &value, err);
}

static void bad_row(void *ctx, const char *why)
{
    struct reading *reading = ctx;

    gd_dump_left_out(reading->dump, reading->path, why, NULL);
}

static int take_statistic(struct reading *reading, const char *path, struct gd_err *err)
{
    struct gd_disk *disk;
    int rc = gd_disk_open(AT_FDCWD, path, false, &disk, err);

    if (rc) {
        return rc;
    }
    reading->path = path;
    rc = ms_statistic_read(disk, take_row, bad_row, reading, err);
    gd_disk_unref(disk);
    return rc;
}

/* TYPE.NAME.json, of save_kernel_args. */
static bool is_arguments(const char *name)
{
    const char *dot = strchr(name, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;

    return end && dot > name && end > dot + 1 && strcmp(end, ".json") == 0;
}

static int take_file(struct reading *reading, uint32_t entry, const struct gd_mapping *mapping,
                     struct gd_err *err)
{
    const char *name = reading->listing->entry[entry].name;
    const char *original = gd_mapping_name(mapping, name);
    char path[PATH_MAX];
    struct gd_err why;
    struct gd_ms_name parsed;
    int rc = gd_listing_path(reading->listing, entry, path, sizeof(path), &why);

    if (!rc && strcmp(name, "statistic.csv") == 0) {
        rc = take_statistic(reading, path, &why);
    } else if (!rc && gd_ends_with(name, ".npy")) {
        rc = gd_ms_name_parse(original, &parsed)
                 ? take_npy(reading, path, &parsed, &why)
                 : gd_fail(&why, GD_EPROTO,
                           ms_is_renamed(original)
                               ? "a name that was too long, and no mapping.csv that tells it"
                               : "its name is not TYPE.NAME.TASK.STREAM.TIME.IO.SLOT.FORMAT.npy");
    } else if (!rc && !gd_ends_with(original, ".json") && gd_ms_name_parse(original, &parsed)) {
        rc = take_raw(reading, path, &parsed, &why);
    } else if (!rc && is_arguments(original)) {
        rc = gd_fail(&why, GD_EUNSUPPORTED, "arguments of a kernel: no tensor, read it as it is");
    }
    if (rc) {
        const char *told = rc == GD_ELIMIT && !path[0] ? name : path;

        return gd_dump_leave_out(reading->dump, told, &why, err);
    }
    return GD_OK;
}

static int take_dir(struct reading *reading, struct gd_err *err)
{
    const struct gd_listing *listing = reading->listing;
    struct gd_mapping *mapping = NULL;
    int rc = gd_mapping_read(listing, reading->dir->entry, &mapping, err);

    for (uint32_t i = listing->entry[reading->dir->entry].first_child; !rc && i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        if (listing->entry[i].is_directory) {
            continue;
        }
        rc = take_file(reading, i, mapping, err);
        if (!rc && ++reading->done % ASK_EVERY == 0 && reading->go_on &&
            !reading->go_on(reading->ctx, reading->done)) {
            rc = gd_fail(err, GD_EINTR, "interrupted after %llu files",
                         (unsigned long long)reading->done);
        }
    }
    gd_mapping_free(mapping);
    return rc;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* All names of a graph have been seen: which operators they are of is known. */
static int settle(struct reading *reading, size_t first, struct gd_err *err)
{
    struct ms_nodes *nodes = &reading->nodes;
    char text[96];
    uint32_t joined = 0;
    int rc = ms_nodes_settle(nodes, err);

    for (uint32_t i = 0; i < nodes->wanted_count; i++) {
        joined += nodes->wanted[i].joined;
    }
    rc = rc ? rc : ms_values_settle(&reading->values, first, nodes, err);
    if (rc || joined == 0) {
        return rc;
    }
    snprintf(text, sizeof(text), "%u by type and scope: the graph has other numbers", joined);
    return gd_catalog_add_fact(reading->catalog, GD_FACT_JOINED, text, err);
}

/* The directories of one graph of the root, all steps and the constants: those from *at on. */
static int take_graph(struct reading *reading, const struct ms_tree *tree, size_t *at,
                      struct gd_err *err)
{
    const struct ms_dir *of = &tree->dir[*at];
    size_t first = reading->values.count;
    int rc = ms_graph_take(reading->listing, of->rank_dir, of->graph, reading->catalog,
                           reading->dump, &reading->nodes, &reading->next_order, err);

    for (; !rc && *at < tree->count && tree->dir[*at].root == of->root &&
           strcmp(tree->dir[*at].graph, of->graph) == 0;
         ++*at) {
        reading->dir = &tree->dir[*at];
        rc = take_dir(reading, err);
    }
    rc = rc ? rc : settle(reading, first, err);
    ms_nodes_end(&reading->nodes);
    return rc;
}

static int begin(struct reading *reading, const struct ms_dir *dir, uint32_t root,
                 struct gd_err *err)
{
    char path[PATH_MAX] = "";
    struct gd_peer *peer;
    int rc;

    gd_listing_path(reading->listing, root, path, sizeof(path), NULL);
    rc = gd_dump_catalog(reading->dump, dir->rank, path, &reading->catalog, err);
    if (rc) {
        return rc;
    }
    peer = gd_catalog_peer(reading->catalog);
    snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
    snprintf(peer->program, sizeof(peer->program), "%s", dir->net);
    snprintf(peer->job, sizeof(peer->job), "%.60s", dir->net);
    return ms_metadata_take(reading->listing, dir->rank_dir, reading->catalog, reading->dump, err);
}

static int read_root(struct reading *reading, const struct ms_tree *tree, uint32_t root,
                     struct gd_err *err)
{
    size_t at = 0;
    int rc;

    while (at < tree->count && tree->dir[at].root != root) {
        at++; /* a root inside of this one */
    }
    if (at == tree->count) {
        return GD_OK;
    }
    rc = begin(reading, &tree->dir[at], root, err);
    while (!rc && at < tree->count && tree->dir[at].root == root) {
        rc = take_graph(reading, tree, &at, err);
    }
    return rc ? rc : ms_values_finish(&reading->values, reading->catalog, reading->next_order, err);
}

/* ---- the format ------------------------------------------------------------------------------ */

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    struct reading reading = {.listing = listing, .dump = dump, .go_on = go_on, .ctx = ctx};
    struct ms_tree tree;
    int rc = ms_tree_read(listing, finding->root, false, &tree, err);

    if (rc) {
        return rc;
    }
    rc = read_root(&reading, &tree, finding->root, err);
    ms_values_clear(&reading.values);
    ms_tree_clear(&tree);
    return rc;
}

static const struct ms_tree_rule rule = {
    .is_bin = false,
    .text = "TYPE.NAME.TASK.STREAM.TIME.IO.SLOT.FORMAT.npy, or MindSpore's statistic.csv",
};

const struct gd_dump_format gd_ms_sync_format = {
    .name = "mindspore-sync",
    .what = "MindSpore synchronous dump (1.3 and later)",
    .detail = &rule,
    .find = ms_tree_find,
    .read = read_format,
};
