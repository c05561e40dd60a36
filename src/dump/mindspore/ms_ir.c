// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs that MindSpore's compiler wrote as text: save_graphs, and the Running Data Recorder. Of
 * the many stages of a compilation, the last one is shown. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/mindspore/ir_text.h"
#include "dump/mindspore/ms_dirs.h"
#include "dump/mindspore/ms_graph_file.h"
#include "dump/mindspore/ms_rdr.h"

#define MAX_FILE (UINT64_C(1) << 30)

struct name { /* the parts of a file name */
    bool is_rdr;
    int64_t stage; /* the number after the last '_', which grows during compilation */
    bool is_final; /* the graph that is executed */
};

static struct name parse_name(const char *name)
{
    const char *at = strrchr(name, '_');
    struct name ret = {.is_rdr = ms_rdr_is_name(name), .stage = -1};

    if (at && strspn(at + 1, "0123456789") == strcspn(at + 1, ".")) {
        ret.stage = strtoll(at + 1, NULL, 10);
    }
    ret.is_final = strstr(name, "graph_build") || strstr(name, "trace_code_graph") ||
                   strstr(name, "analyze_fail");
    return ret;
}

static bool is_ir_text(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    char start[4097];

    if (!gd_ends_with(name, ".ir") || strncmp(name, "DEVICE.", 7) == 0) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    return strncmp(start, "#IR entry", 9) == 0 || strncmp(start, "# IR entry", 10) == 0 ||
           strncmp(start, "#=====", 6) == 0 || strncmp(start, "# ====", 6) == 0 ||
           strstr(start, "subgraph @") || strstr(start, "subgraph instance:");
}

/* The next file next to what was opened, or that file itself; start with *at = root. */
static uint32_t next_file(const struct gd_listing *listing, uint32_t root, uint32_t at)
{
    if (at == GD_NO_ENTRY) {
        return listing->entry[root].is_directory ? listing->entry[root].first_child : root;
    }
    return at == root ? GD_NO_ENTRY : listing->entry[at].next;
}

/* The executed graph, the latest if there are several; otherwise the latest of all stages. */
static uint32_t best_of(const struct gd_listing *listing, uint32_t root, bool rdr, uint32_t *count)
{
    struct name best = {.stage = -2};
    uint32_t ret = GD_NO_ENTRY;

    for (uint32_t i = GD_NO_ENTRY; (i = next_file(listing, root, i)) != GD_NO_ENTRY;) {
        struct name name = parse_name(gd_base_name(listing->entry[i].name));

        if (listing->entry[i].is_directory || name.is_rdr != rdr || !is_ir_text(listing, i)) {
            continue;
        }
        ++*count;
        if (name.is_final != best.is_final ? name.is_final : name.stage >= best.stage) {
            best = name;
            ret = i;
        }
    }
    return ret;
}

/* "SESSION.graph_build.G.TIME.pb": the same graph, in case its text was switched off or lost. */
static uint32_t find_pb(const struct gd_listing *listing, uint32_t root)
{
    uint32_t ret = GD_NO_ENTRY;

    for (uint32_t i = GD_NO_ENTRY; (i = next_file(listing, root, i)) != GD_NO_ENTRY;) {
        const char *name = gd_base_name(listing->entry[i].name);

        if (!listing->entry[i].is_directory && ms_rdr_is_name(name) && gd_ends_with(name, ".pb")) {
            ret = i;
        }
    }
    return ret;
}

static int read_pb(const char *path, struct gd_catalog *catalog, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    uint32_t subgraph;
    int rc = gd_disk_open(AT_FDCWD, path, false, &disk, err);

    rc = rc != GD_OK ? rc
                     : ms_graph_file_read(disk, gd_catalog_graph(catalog), NULL, &subgraph, err);
    return rc != GD_OK ? rc : gd_catalog_add_fact(catalog, "graph", gd_base_name(path), err);
}

static int read_graph(const char *path, struct gd_catalog *catalog, struct gd_err *err)
{
    struct gd_peer *peer = gd_catalog_peer(catalog);
    struct gd_ir_facts facts;
    struct gd_file_text text;
    uint32_t order = 0;
    int rc;

    if (gd_ends_with(path, ".pb")) {
        snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
        return read_pb(path, catalog, err);
    }
    rc = gd_file_text_read(path, MAX_FILE, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_ir_read(text.data, text.size, gd_catalog_graph(catalog), &order, &facts, err);
    free(text.data);
    snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
    rc = rc != GD_OK ? rc : gd_catalog_add_fact(catalog, "graph", gd_base_name(path), err);
    if (rc == GD_OK && facts.entry[0]) {
        rc = gd_catalog_add_fact(catalog, "entry", facts.entry, err);
    }
    if (rc == GD_OK && facts.failed != GD_NO_NODE) {
        rc = gd_catalog_add_event(catalog, GD_EVERY_STEP, facts.failed, "compile",
                                  "compilation failed at this node", err);
    }
    return rc;
}

static bool has_rank(const struct gd_dump *dump, int rank)
{
    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        if (gd_catalog_rank(gd_dump_at(dump, i)) == rank) {
            return true;
        }
    }
    return false;
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    bool rdr = finding->format == &gd_rdr_format;
    struct gd_catalog *catalog;
    char path[PATH_MAX], fact[96];
    uint32_t count = 0, best = best_of(listing, finding->root, rdr, &count);
    int rank, rc;

    if (go_on && !go_on(ctx, 0)) {
        return gd_fail(err, GD_EINTR, "interrupted");
    }
    if (best == GD_NO_ENTRY && rdr) {
        best = find_pb(listing, finding->root);
    }
    if (best == GD_NO_ENTRY) {
        return gd_fail(err, GD_EPROTO, "no graph in .ir or .pb files next to the others");
    }
    rc = gd_listing_path(listing, best, path, sizeof(path), err);
    rank = rc != GD_OK ? 0 : ms_rank_of(path);
    if (rc == GD_OK && has_rank(dump, rank)) {
        return gd_fail(err, GD_EINVAL,
                       "a dump of that rank has its own graph: open this one separately");
    }
    rc = rc != GD_OK ? rc : gd_dump_catalog(dump, rank, "graphs", &catalog, err);
    rc = rc != GD_OK ? rc : read_graph(path, catalog, err);
    if (rc == GD_OK && count > 1) {
        snprintf(fact, sizeof(fact), "%u: open a file to see another one", count);
        rc = gd_catalog_add_fact(catalog, "graphs of stages", fact, err);
    }
    return rc != GD_OK || !rdr ? rc : ms_rdr_take(listing, finding->root, catalog, dump, err);
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    bool rdr = format == &gd_rdr_format;
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        const char *name = gd_base_name(listing->entry[i].name);
        struct gd_finding finding = {.format = format,
                                     .root = gd_listing_up(listing, i, 1),
                                     .files = 1,
                                     .rule = rdr ? "MODULE.NAME.TIME.EXT" : "IR text in .ir files"};

        if (listing->entry[i].is_directory || ms_rdr_is_name(name) != rdr ||
            (!rdr && !is_ir_text(listing, i))) {
            continue;
        }
        rc = gd_findings_add_root(findings, &finding, err);
    }
    return rc;
}

const struct gd_dump_format gd_ms_ir_format = {
    .name = "mindspore-ir",
    .what = "graphs saved as text by MindSpore (.ir)",
    .find = find_places,
    .read = read_format,
};

const struct gd_dump_format gd_rdr_format = {
    .name = "rdr",
    .what = "MindSpore Running Data Recorder",
    .find = find_places,
    .read = read_format,
};
