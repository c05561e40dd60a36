// SPDX-License-Identifier: GPL-3.0-or-later
/* Traces in Chrome's JSON format, as torch.profiler and others write them. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_nest.h"

/* Whether the text begins as a list of events does, or an object with "traceEvents" near its
 * beginning. */
static bool looks_like_trace(const char *start)
{
    const char *at = start + strspn(start, "\xef\xbb\xbf \t\r\n");

    if (*at == '[') {
        at++;
        at += strspn(at, " \t\r\n");
        return *at == '{' && strstr(at, "\"ph\"");
    }
    return *at == '{' && strstr(at, "\"traceEvents\"");
}

static bool is_trace(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    char start[8193];

    if (gd_ends_with(name, ".trace.json") || gd_ends_with(name, ".trace.json.gz") ||
        strcmp(name, "trace_view.json") == 0 ||
        (gd_starts_with(name, "ascend_timeline_display") && gd_ends_with(name, ".json"))) {
        return true;
    }
    if (gd_ends_with(name, ".json.gz")) {
        return !gd_is_memory_timeline(listing, entry);
    }
    if (!gd_ends_with(name, ".json") && listing->entry[entry].parent != GD_NO_ENTRY) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    return looks_like_trace(start);
}

/* The directory is looked through only for a trace: it may have very many other files. */
static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    uint32_t parent = listing->entry[entry].parent;

    return is_trace(listing, entry) &&
           (parent == GD_NO_ENTRY ||
            (!gd_is_profile_place(listing, parent) && !gd_is_rank_profile_place(listing, parent)));
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_files(findings, format, listing, wants_file,
                                 "*.trace.json, or JSON with \"traceEvents\"", err);
}

/* "host_4711.1795520579983.pt.trace.json": the worker is what precedes the time. Traces of one
 * worker are parts of one training. */
static void worker_of(const char *path, char *out, size_t size)
{
    const char *name = gd_base_name(path), *dot = strchr(name, '.');

    while (dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] != '.') {
        dot = strchr(dot + 1, '.');
    }
    snprintf(out, size, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

int trace_note_cut(struct gd_catalog *catalog, const char *path, uint64_t cut, struct gd_err *err)
{
    char text[160];

    snprintf(text, sizeof(text),
             "SUSPICIOUS: the file is truncated at byte %llu; the events before that were read",
             (unsigned long long)cut);
    return gd_catalog_add_fact(catalog, gd_base_name(path), text, err);
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    GD_CLEANUP(trace_run_deinit) struct trace_run run = {.nodes = 0};
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_catalog *catalog;
    char path[PATH_MAX], worker[256];
    uint64_t cut = 0;
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, true, &disk, err);
    rc = rc != GD_OK ? rc : trace_spans_read(&run.spans, disk, go_on, ctx, &cut, err);
    if (rc == GD_OK && run.spans.count == 0) {
        return gd_fail(err, GD_EPROTO, "%.300s is a trace without events that take time", path);
    }
    rc = rc != GD_OK ? rc : trace_run_analyse(&run, err);
    if (rc != GD_OK) {
        return rc;
    }
    worker_of(path, worker, sizeof(worker));
    rc = gd_dump_catalog(dump, run.spans.rank < 0 ? 0 : (int)run.spans.rank,
                         run.spans.rank < 0 ? worker : "", &catalog, err);
    rc = rc != GD_OK ? rc : trace_fill(&run, catalog, err);
    if (rc == GD_OK && run.spans.world_size > 0) {
        gd_catalog_peer(catalog)->world_size = (int)run.spans.world_size;
    }
    return rc != GD_OK || !cut ? rc : trace_note_cut(catalog, path, cut, err);
}

const struct gd_dump_format gd_trace_format = {
    .name = "trace",
    .what = "Profiler trace (torch.profiler, Kineto, Chrome's JSON)",
    .find = find_places,
    .read = read_format,
};
