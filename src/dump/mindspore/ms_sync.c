// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's synchronous dump of 1.3 and later: one .npy per tensor, statistic.csv. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/io/mapping.h"
#include "dump/mindspore/ms_file_name.h"
#include "dump/mindspore/ms_graph_file.h"
#include "dump/mindspore/ms_reading.h"
#include "dump/mindspore/ms_statistic.h"

#define MAX_NAME 8192

struct sync {
    struct ms_reading *reading;
    uint32_t next_order;
    const struct ms_dir *dir; /* current directory */
    const char *path;         /* of the current file */
};

/* ---- files ----------------------------------------------------------------------------------- */

static int copy_text(const char *text, size_t len, char *out, size_t size, struct gd_err *err)
{
    if (len >= size) {
        return gd_fail(err, GD_ELIMIT, "the operator's name has %zu bytes", len);
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return GD_OK;
}

/* Device layouts are not converted: the host's shape is unknown. */
static const char *layout_note(const struct gd_ms_name *name, char *out, size_t size)
{
    static const char *const plain[] = {"DefaultFormat", "ND", "NCHW", "NC", "NCL", "NCDHW"};

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strlen(plain[i]) == name->format_len &&
            memcmp(plain[i], name->format, name->format_len) == 0) {
            return NULL;
        }
    }
    snprintf(out, size, "in the device layout %.*s", (int)name->format_len % 64, name->format);
    return out;
}

/* Raw elements are what msprobe saves for whole graphs: the table gives their shape. */
static int take_tensor(struct sync *in, const char *path, const struct gd_ms_name *name, bool raw,
                       struct gd_err *err)
{
    char type[256], op[MAX_NAME], note[160];
    struct ms_value value = {.is_input = name->is_input,
                             .slot = name->slot,
                             .step = in->dir->step,
                             .time = name->time,
                             .stored = name->stored,
                             .note = raw ? NULL : layout_note(name, note, sizeof(note)),
                             .raw = raw ? path : NULL};
    int rc = copy_text(name->type, name->type_len, type, sizeof(type), err);

    if (raw && name->stored == GD_STORED_NONE) {
        return gd_fail(err, GD_EUNSUPPORTED, "raw elements without .npy, of unknown type");
    }
    rc = rc != GD_OK ? rc : copy_text(name->name, name->name_len, op, sizeof(op), err);
    rc = rc != GD_OK ? rc : ms_nodes_want(&in->reading->nodes, type, op, &value.node, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = raw ? ms_raw_source(path, name->stored, NULL, false, &value.source, err)
             : ms_npy_source(path, name->stored, &value.source, err);
    return rc != GD_OK ? rc : ms_values_add(&in->reading->values, &value, err);
}

static int take_row(void *ctx, const struct ms_statistic *row, struct gd_err *err)
{
    struct sync *in = ctx;
    struct ms_value value = {.is_input = row->is_input,
                             .slot = row->slot,
                             .step = in->dir->step,
                             .time = row->time,
                             .stored = row->stored,
                             .shape = row->has_shape ? &row->shape : NULL,
                             .stats = &row->stats,
                             .digest = row->digest,
                             .note = row->note};
    int rc = ms_nodes_want(&in->reading->nodes, row->type, row->name, &value.node, err);

    return rc != GD_OK ? rc : ms_values_add(&in->reading->values, &value, err);
}

static void bad_row(void *ctx, const char *why)
{
    struct sync *in = ctx;

    gd_dump_left_out(in->reading->dump, in->path, why, NULL);
}

static int take_statistic(struct sync *in, const char *path, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    int rc = gd_disk_open(AT_FDCWD, path, false, &disk, err);

    in->path = path;
    return rc != GD_OK ? rc : ms_statistic_read(disk, take_row, bad_row, in, err);
}

/* TYPE.NAME.json, written by save_kernel_args. */
static bool is_arguments(const char *name)
{
    const char *dot = strchr(name, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;

    return end && dot > name && end > dot + 1 && strcmp(end, ".json") == 0;
}

static int take_file(struct sync *in, uint32_t entry, const struct gd_mapping *mapping,
                     struct gd_err *err)
{
    const char *name = in->reading->listing->entry[entry].name;
    const char *original = gd_mapping_name(mapping, name);
    char path[PATH_MAX];
    struct gd_err why;
    struct gd_ms_name parsed;
    int rc = gd_listing_path(in->reading->listing, entry, path, sizeof(path), &why);

    if (rc == GD_OK && strcmp(name, "statistic.csv") == 0) {
        rc = take_statistic(in, path, &why);
    } else if (rc == GD_OK && gd_ends_with(name, ".npy")) {
        rc = gd_ms_name_parse(original, &parsed)
                 ? take_tensor(in, path, &parsed, false, &why)
                 : gd_fail(&why, GD_EPROTO,
                           ms_is_renamed(original)
                               ? "a name that was too long, but no mapping.csv with the original"
                               : "its name is not TYPE.NAME.TASK.STREAM.TIME.IO.SLOT.FORMAT.npy");
    } else if (rc == GD_OK && !gd_ends_with(original, ".json") &&
               gd_ms_name_parse(original, &parsed)) {
        rc = take_tensor(in, path, &parsed, true, &why);
    } else if (rc == GD_OK && is_arguments(original)) {
        rc = gd_fail(&why, GD_EUNSUPPORTED,
                     "kernel arguments, not a tensor: read the file directly");
    }
    if (rc != GD_OK) {
        const char *told = rc == GD_ELIMIT && !path[0] ? name : path;

        return gd_dump_leave_out(in->reading->dump, told, &why, err);
    }
    return GD_OK;
}

static int take_dir(struct sync *in, struct gd_err *err)
{
    const struct gd_listing *listing = in->reading->listing;
    struct gd_mapping *mapping = NULL;
    int rc = gd_mapping_read(listing, in->dir->entry, &mapping, err);

    for (uint32_t i = listing->entry[in->dir->entry].first_child; rc == GD_OK && i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        if (listing->entry[i].is_directory) {
            continue;
        }
        rc = take_file(in, i, mapping, err);
        rc = rc != GD_OK ? rc : ms_reading_count(in->reading, err);
    }
    gd_mapping_free(mapping);
    return rc;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* All names of a graph have been seen: resolve their operators. */
static int settle_graph(struct sync *in, size_t first, struct gd_err *err)
{
    struct ms_nodes *nodes = &in->reading->nodes;
    char text[96];
    uint32_t joined = 0;
    int rc = ms_nodes_settle(nodes, err);

    for (uint32_t i = 0; i < nodes->wanted_count; i++) {
        joined += nodes->wanted[i].joined;
    }
    rc = rc != GD_OK ? rc : ms_values_settle(&in->reading->values, first, nodes, err);
    if (rc != GD_OK || joined == 0) {
        return rc;
    }
    snprintf(text, sizeof(text), "%u by type and scope: their numbers differ in the graph", joined);
    return gd_catalog_add_fact(in->reading->catalog, GD_FACT_JOINED, text, err);
}

/* Reads the directories of one graph below the root, all steps and the constants, starting at
 * *at. */
static int take_graph(struct sync *in, const struct ms_dirs *tree, size_t *at, struct gd_err *err)
{
    const struct ms_dir *of = &tree->dir[*at];
    size_t first = in->reading->values.count;
    int rc = ms_graph_take(in->reading->listing, of->rank_dir, of->graph, in->reading->catalog,
                           in->reading->dump, &in->reading->nodes, &in->next_order, err);

    for (; rc == GD_OK && *at < tree->count && tree->dir[*at].root == of->root &&
           strcmp(tree->dir[*at].graph, of->graph) == 0;
         ++*at) {
        in->dir = &tree->dir[*at];
        rc = take_dir(in, err);
    }
    rc = rc != GD_OK ? rc : settle_graph(in, first, err);
    ms_nodes_end(&in->reading->nodes);
    return rc;
}

static int read_root(struct ms_reading *reading, const struct ms_dirs *tree, uint32_t root,
                     struct gd_err *err)
{
    struct sync in = {.reading = reading};
    size_t at = 0;
    int rc;

    while (at < tree->count && tree->dir[at].root != root) {
        at++; /* a root inside this one */
    }
    if (at == tree->count) {
        return GD_OK;
    }
    rc = ms_reading_begin(reading, &tree->dir[at], err);
    rc = rc != GD_OK ? rc
                     : ms_metadata_take(reading->listing, tree->dir[at].rank_dir, reading->catalog,
                                        reading->dump, err);
    while (rc == GD_OK && at < tree->count && tree->dir[at].root == root) {
        rc = take_graph(&in, tree, &at, err);
    }
    return rc != GD_OK ? rc
                       : ms_values_finish(&reading->values, reading->catalog, in.next_order, err);
}

/* ---- the format ------------------------------------------------------------------------------ */

static const struct ms_dirs_rule rule = {
    .is_bin = false,
    .text = "TYPE.NAME.TASK.STREAM.TIME.IO.SLOT.FORMAT.npy, or MindSpore's statistic.csv",
    .read = read_root,
};

const struct gd_dump_format gd_ms_sync_format = {
    .name = "mindspore-sync",
    .what = "MindSpore synchronous dump (1.3 and later)",
    .detail = &rule,
    .find = ms_dirs_find,
    .read = ms_reading_run,
};
