// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's synchronous dump of 1.0 to 1.2: raw elements in .bin files, described by their
 * names. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dump/mindspore/ms_file_name.h"
#include "dump/mindspore/ms_reading.h"

#define MAX_NAME 8192

/* "Default--network--Add-op1": turn "--" back into slashes; parameters have no scope. */
static int node_name(const struct gd_ms_bin_name *name, char *out, size_t size, struct gd_err *err)
{
    size_t len = 0;

    if (name->name_len >= size) {
        return gd_fail(err, GD_ELIMIT, "the operator's name has %zu bytes", name->name_len);
    }
    for (size_t i = 0; i < name->name_len; i++) {
        bool dashes = name->name[i] == '-' && i + 1 < name->name_len && name->name[i + 1] == '-';

        out[len++] = dashes ? '/' : name->name[i];
        i += dashes;
    }
    out[len] = '\0';
    return GD_OK;
}

/* "Add-op1": Add. Without a scope it is a weight, an input or a constant ("cst3"). */
static void type_of(const char *name, char *out, size_t size)
{
    const char *last = gd_ms_short_name(name);
    const char *op = strstr(last, "-op");

    if (!strchr(name, '/') && !op) {
        uint64_t number;
        bool constant = strncmp(name, "cst", 3) == 0 &&
                        gd_ms_number(name + 3, strlen(name + 3), UINT32_MAX, &number);

        snprintf(out, size, "%s", constant ? "Const" : "Parameter");
    } else {
        snprintf(out, size, "%.*s", op ? (int)(op - last) : (int)strlen(last), last);
    }
}

static int take_bin(struct ms_reading *reading, const struct ms_dir *dir, const char *path,
                    const struct gd_ms_bin_name *name, struct gd_err *err)
{
    char op[MAX_NAME], type[256], note[128];
    bool plain = name->format_len == strlen("DefaultFormat") &&
                 memcmp(name->format, "DefaultFormat", name->format_len) == 0;
    struct ms_value value = {.is_input = name->is_input,
                             .slot = name->slot,
                             .step = dir->step,
                             .stored = name->stored,
                             .note = plain ? NULL : note};
    int rc = node_name(name, op, sizeof(op), err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(note, sizeof(note), "in the device layout %.*s", (int)(name->format_len % 64),
             name->format);
    type_of(op, type, sizeof(type));
    rc = ms_nodes_get(&reading->nodes, type, op, &value.node, err);
    rc = rc != GD_OK
             ? rc
             : ms_raw_source(path, name->stored == GD_STORED_NONE ? GD_STORED_OPAQUE : name->stored,
                             &name->shape, true, &value.source, err);
    return rc != GD_OK ? rc : ms_values_add(&reading->values, &value, err);
}

static int take_file(struct ms_reading *reading, const struct ms_dir *dir, uint32_t entry,
                     struct gd_err *err)
{
    const char *name = reading->listing->entry[entry].name;
    struct gd_ms_bin_name parsed;
    char path[PATH_MAX];
    struct gd_err why;
    int rc;

    if (!gd_ms_bin_name_parse(name, &parsed)) {
        return GD_OK; /* belongs to another format */
    }
    rc = gd_listing_path(reading->listing, entry, path, sizeof(path), &why);
    rc = rc != GD_OK ? rc : take_bin(reading, dir, path, &parsed, &why);
    return rc != GD_OK ? gd_dump_leave_out(reading->dump, path, &why, err) : GD_OK;
}

static int take_dir(struct ms_reading *reading, const struct ms_dir *dir, struct gd_err *err)
{
    const struct gd_listing *listing = reading->listing;
    int rc = GD_OK;

    for (uint32_t i = listing->entry[dir->entry].first_child; rc == GD_OK && i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        if (!listing->entry[i].is_directory) {
            rc = take_file(reading, dir, i, err);
        }
        rc = rc != GD_OK ? rc : ms_reading_count(reading, err);
    }
    return rc;
}

static int begin_graph(struct ms_reading *reading, const struct ms_dir *dir, struct gd_err *err)
{
    struct gd_peer *peer;
    int rc = ms_reading_begin(reading, dir, err);

    if (rc != GD_OK) {
        return rc;
    }
    peer = gd_catalog_peer(reading->catalog);
    snprintf(peer->version, sizeof(peer->version), "1.0 to 1.2");
    return ms_nodes_begin(gd_catalog_graph(reading->catalog), "graph", &reading->nodes, err);
}

static int read_root(struct ms_reading *reading, const struct ms_dirs *tree, uint32_t root,
                     struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < tree->count; i++) {
        if (tree->dir[i].root != root) {
            continue;
        }
        rc = reading->catalog ? GD_OK : begin_graph(reading, &tree->dir[i], err);
        rc = rc != GD_OK ? rc : take_dir(reading, &tree->dir[i], err);
    }
    ms_nodes_end(&reading->nodes);
    return rc != GD_OK || !reading->catalog
               ? rc
               : ms_values_finish(&reading->values, reading->catalog, 0, err);
}

static const struct ms_dirs_rule rule = {
    .is_bin = true,
    .text = "NAME_(input|output)_I_shape_D0_..._DTYPE_FORMAT.bin",
    .read = read_root,
};

const struct gd_dump_format gd_ms_bin_format = {
    .name = "mindspore-bin",
    .what = "MindSpore synchronous dump (1.0 to 1.2)",
    .detail = &rule,
    .find = ms_dirs_find,
    .read = ms_reading_run,
};
