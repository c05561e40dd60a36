// SPDX-License-Identifier: GPL-3.0-or-later
/* The output of a training with LossMonitor or TimeMonitor: metrics by step. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "engine/log/monitor_line.h"

#define CHUNK    ((size_t)1 << 18)
#define MAX_LINE 4096 /* longer lines are cut: those of the monitors are short */

struct reading {
    struct gd_catalog *catalog;
    struct gd_monitor monitor;
    char line[MAX_LINE + 1];
    size_t len;
    uint64_t losses;
};

static int add_metrics(struct reading *in, const struct gd_monitor_line *line, struct gd_err *err)
{
    int64_t step = gd_monitor_step(&in->monitor, line);
    int rc = GD_OK;

    if (line->step >= 0) {
        in->losses++;
        rc = gd_catalog_add_step(in->catalog, step, err);
        rc = rc != GD_OK ? rc : gd_catalog_add_scalar(in->catalog, step, "loss", line->loss, err);
        return rc != GD_OK
                   ? rc
                   : gd_catalog_add_scalar(in->catalog, step, "epoch", (double)line->epoch, err);
    }
    return step > 0
               ? gd_catalog_add_scalar(in->catalog, step, "step_time", line->step_ms / 1000, err)
               : GD_OK;
}

static int take_chunk(struct reading *in, const char *data, size_t size, struct gd_err *err)
{
    struct gd_monitor_line line;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < size; i++) {
        if (data[i] != '\n') {
            in->line[in->len] = data[i] ? data[i] : ' ';
            in->len += in->len < MAX_LINE;
            continue;
        }
        in->line[in->len] = '\0';
        in->len = 0;
        if (gd_monitor_parse(in->line, &line)) {
            rc = add_metrics(in, &line, err);
        }
    }
    return rc;
}

static int take_text(struct reading *in, struct gd_disk *disk,
                     bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_err *err)
{
    char *chunk = malloc(CHUNK);
    int rc = chunk ? GD_OK : gd_fail_nomem(err);

    uint64_t size = gd_disk_size(disk);
    for (uint64_t at = 0; rc == GD_OK && at < size;) {
        size_t len = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        rc = go_on && !go_on(ctx, at) ? gd_fail(err, GD_EINTR, "interrupted")
                                      : gd_disk_read(disk, at, chunk, len, err);
        rc = rc != GD_OK ? rc : take_chunk(in, chunk, len, err);
        at += len;
    }
    free(chunk);
    return rc == GD_OK ? take_chunk(in, "\n", 1, err) : rc;
}

/* One of the first lines is a monitor's. Only in files that may be logs: what is opened by itself,
 * and *.log and *.txt in a folder. */
static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    struct gd_monitor_line line;
    char start[MAX_LINE + 1], *next;

    if (listing->entry[entry].parent != GD_NO_ENTRY && !gd_ends_with(name, ".log") &&
        !gd_ends_with(name, ".txt")) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    for (char *at = start; at; at = next) {
        next = strchr(at, '\n');
        if (next) {
            *next++ = '\0';
        }
        if (gd_monitor_parse(at, &line)) {
            return true;
        }
    }
    return false;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_files(findings, format, listing, wants_file,
                                 "lines \"epoch: N step: N, loss is X\"", err);
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct reading *in;
    char path[PATH_MAX], count[40];
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    if (rc != GD_OK) {
        return rc;
    }
    in = calloc(1, sizeof(*in));
    if (!in) {
        return gd_fail_nomem(err);
    }
    rc = gd_dump_catalog(dump, 0, path, &in->catalog, err);
    rc = rc != GD_OK ? rc : gd_listing_open(listing, finding->root, &disk, err);
    rc = rc != GD_OK ? rc : take_text(in, disk, go_on, ctx, err);
    if (rc == GD_OK) {
        struct gd_peer *peer = gd_catalog_peer(in->catalog);
        snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
        snprintf(count, sizeof(count), "%llu", (unsigned long long)in->losses);
        rc = gd_catalog_add_fact(in->catalog, "losses", count, err);
        rc = rc != GD_OK ? rc : gd_catalog_add_fact(in->catalog, GD_FACT_LOG, path, err);
    }
    free(in);
    return rc;
}

const struct gd_dump_format gd_loss_log_format = {
    .name = "loss-log",
    .what = "output of LossMonitor",
    .find = find_places,
    .read = read_format,
};
