// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_reading.h"

#include <limits.h>
#include <stdio.h>

#define ASK_EVERY 4096 /* files between two calls of go_on */

int ms_reading_begin(struct ms_reading *reading, const struct ms_dir *dir, struct gd_err *err)
{
    char path[PATH_MAX] = "";
    struct gd_peer *peer;
    int rc;

    gd_listing_path(reading->listing, dir->root, path, sizeof(path), NULL);
    rc = gd_dump_catalog(reading->dump, dir->rank, path, &reading->catalog, err);
    if (rc != GD_OK) {
        return rc;
    }
    peer = gd_catalog_peer(reading->catalog);
    snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
    snprintf(peer->program, sizeof(peer->program), "%s", dir->net);
    snprintf(peer->job, sizeof(peer->job), "%.60s", dir->net);
    return GD_OK;
}

int ms_reading_count(struct ms_reading *reading, struct gd_err *err)
{
    if (++reading->done % ASK_EVERY == 0 && reading->go_on &&
        !reading->go_on(reading->ctx, reading->done)) {
        return gd_fail(err, GD_EINTR, "interrupted after %llu files",
                       (unsigned long long)reading->done);
    }
    return GD_OK;
}

int ms_reading_run(const struct gd_listing *listing, const struct gd_finding *finding,
                   struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                   struct gd_err *err)
{
    const struct ms_dirs_rule *rule = finding->format->detail;
    struct ms_reading reading = {.listing = listing, .dump = dump, .go_on = go_on, .ctx = ctx};
    struct ms_dirs tree;
    int rc = ms_dirs_read(listing, finding->root, rule->is_bin, &tree, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = rule->read(&reading, &tree, finding->root, err);
    ms_values_clear(&reading.values);
    ms_dirs_clear(&tree);
    return rc;
}
