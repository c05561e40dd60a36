// SPDX-License-Identifier: GPL-3.0-or-later
/* Merges and judges parts of a scan that several processes made. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/scan/scan_impl.h"

#define MAX_PATHS GD_SCAN_MAX_SHARDS

static int add_part(struct scan *scan, const char *path, struct gd_err *err)
{
    struct gd_scan_file *file;
    int rc;

    if (!gd_grow_list(&scan->part, scan->part_count, &scan->part_cap, sizeof(file))) {
        return gd_fail_nomem(err);
    }
    if (scan->part_count >= MAX_PATHS) {
        return gd_fail(err, GD_ELIMIT, "more than %d part files", MAX_PATHS);
    }
    rc = gd_scan_file_open(path, &file, err);
    if (rc != GD_OK) {
        return rc;
    }
    scan->part[scan->part_count++] = file;
    if (!gd_scan_file_is_complete(file)) {
        return gd_fail(
            err, GD_ESTATE,
            "%.300s is incomplete: it has %llu values; run the same scan with --out to continue it",
            path, (unsigned long long)gd_scan_file_results(file));
    }
    return GD_OK;
}

static int is_part(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name), tail = strlen(GD_SCAN_SUFFIX);

    return len > tail && strcmp(entry->d_name + len - tail, GD_SCAN_SUFFIX) == 0;
}

/* Adds a file, or all parts in a directory. */
static int add_path(struct scan *scan, const char *path, struct gd_err *err)
{
    struct dirent **entry = NULL;
    char file[4096 + 256];
    int count = scandir(path, &entry, is_part, alphasort), rc = GD_OK;

    if (count < 0) {
        return add_part(scan, path, err);
    }
    if (count == 0) {
        rc =
            gd_fail(err, GD_ENOTFOUND, "%.300s contains no part files (*%s)", path, GD_SCAN_SUFFIX);
    }
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof(file), "%.4000s/%s", path, entry[i]->d_name);
        rc = rc != GD_OK ? rc : add_part(scan, file, err);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

/* Checks that each part is there once, and all are of one scan. */
static int check_parts(const struct scan *scan, struct gd_err *err)
{
    const struct gd_scan_head *first = gd_scan_file_head(scan->part[0]);
    bool *seen = calloc((size_t)first->shards + 1, sizeof(*seen));
    int rc = seen ? GD_OK : gd_fail_nomem(err);

    for (size_t i = 0; rc == GD_OK && i < scan->part_count; i++) {
        const struct gd_scan_head *head = gd_scan_file_head(scan->part[i]);

        if (!gd_scan_head_equal(head, first) || head->shards != first->shards) {
            rc = gd_fail(
                err, GD_ESTATE,
                "the parts belong to different scans: part %u of %u does not match the first one",
                head->shard, head->shards);
        } else if (seen[head->shard]) {
            rc = gd_fail(err, GD_ESTATE, "part %u of %u is given twice", head->shard, head->shards);
        } else {
            seen[head->shard] = true;
        }
    }
    for (uint32_t i = 1; rc == GD_OK && i <= first->shards; i++) {
        if (!seen[i]) {
            rc = gd_fail(err, GD_ESTATE, "part %u of %u is missing", i, first->shards);
        }
    }
    if (rc == GD_OK && strcmp(first->watched, scan->head.watched) != 0) {
        rc = gd_fail(err, GD_ESTATE,
                     "the parts were made with other watchpoints: set the same ones in the same "
                     "order (their first: %.*s)",
                     (int)strcspn(first->watched, "\n") > 200 ? 200
                                                              : (int)strcspn(first->watched, "\n"),
                     first->watched);
    }
    free(seen);
    return rc;
}

static int merge_parts(struct scan *scan, struct gd_err *err)
{
    char *watched = scan->head.watched;
    int rc = check_parts(scan, err);

    if (rc != GD_OK) {
        return rc;
    }
    scan->head = *gd_scan_file_head(scan->part[0]);
    scan->head.shard = scan->head.shards = 1;
    scan->head.watched = watched;
    rc = scan_prepare(scan, err);
    if (rc != GD_OK) {
        return rc;
    }
    scan->state.fd = -1;
    rc = scan_run(scan, err);
    scan->summary->remembered = scan->summary->values;
    scan_list_free(&scan->list);
    return rc;
}

int gd_scan_merge(struct gd_session *session, const char *const *paths, size_t count,
                  const struct gd_scan_options *options, struct gd_scan_summary *ret,
                  struct gd_err *err)
{
    struct scan scan;
    int rc = scan_start(&scan, session, options, ret, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = add_path(&scan, paths[i], err);
    }
    rc = rc != GD_OK ? rc : merge_parts(&scan, err);
    for (size_t i = 0; i < scan.part_count; i++) {
        gd_scan_file_free(scan.part[i]);
    }
    free(scan.part);
    free(scan.head.watched);
    return rc;
}
