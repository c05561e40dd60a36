// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory snapshots as a dump format: each file is recognised by its contents. */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/memory/snapshot.h"

static const char *const extensions[] = {".pickle", ".pkl", ".pt", ".html"};

/* In a directory only files with these endings are examined. */
static const char *extension_of(const char *name)
{
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        if (gd_ends_with(name, extensions[i])) {
            return extensions[i];
        }
    }
    return NULL;
}

bool gd_snapshot_is_entry(const struct gd_listing *listing, uint32_t index)
{
    const struct gd_listing_entry *entry = &listing->entry[index];
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    unsigned char start[GD_ARCHIVE_START];
    char path[PATH_MAX];
    size_t size;

    if (entry->is_directory || (entry->parent != GD_NO_ENTRY && !extension_of(entry->name))) {
        return false;
    }
    if (gd_listing_path(listing, index, path, sizeof(path), NULL) != GD_OK ||
        gd_disk_open(AT_FDCWD, path, true, &disk, NULL) != GD_OK) {
        return false;
    }
    size = gd_disk_size(disk) < sizeof(start) ? (size_t)gd_disk_size(disk) : sizeof(start);
    return gd_disk_read(disk, 0, start, size, NULL) == GD_OK &&
           (gd_snapshot_is(start, size) || gd_snapshot_in_page(start, size) > 0);
}

/* Whether a tensor file belongs to a dump found before: there may be very many. */
static bool in_dump(const struct gd_listing *listing, const struct gd_findings *findings,
                    uint32_t index)
{
    if (gd_ends_with(listing->entry[index].name, ".pt")) {
        for (uint32_t at = index; at != GD_NO_ENTRY; at = listing->entry[at].parent) {
            for (size_t i = 0; i < findings->count; i++) {
                if (findings->item[i].root == at) {
                    return true;
                }
            }
        }
    }
    return false;
}

static int find_snapshots(const struct gd_dump_format *format, const struct gd_listing *listing,
                          struct gd_findings *findings, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        struct gd_finding finding = {
            .format = format,
            .root = i,
            .files = 1,
            .rule = "a pickle that begins with \"segments\", or a page with one"};

        if (!in_dump(listing, findings, i) && gd_snapshot_is_entry(listing, i)) {
            rc = gd_findings_add(findings, &finding, err);
        }
    }
    return rc;
}

/* "rank" and a number in a name: "snapshot_rank3.pickle", "rank_3". False: it has none. */
static bool find_rank(const char *name, int *ret)
{
    const char *at = strstr(name, "rank");

    at = at && (at == name || !isalpha((unsigned char)at[-1])) ? at + strlen("rank") : "";
    at += *at == '_' || *at == '-' || *at == '=' ? 1 : 0;
    if (*at < '0' || *at > '9') {
        return false;
    }
    *ret = (int)(strtol(at, NULL, 10) & 0xffffff);
    return true;
}

static int rank_of(const struct gd_listing *listing, uint32_t index)
{
    int rank = 0;

    for (uint32_t at = index; at != GD_NO_ENTRY; at = listing->entry[at].parent) {
        if (find_rank(gd_base_name(listing->entry[at].name), &rank)) {
            break;
        }
    }
    return rank;
}

/* A snapshot belongs to the dump next to it; further ones of the rank are on their own. */
static int catalog_for(struct gd_dump *dump, int rank, const char *path, struct gd_catalog **ret,
                       struct gd_err *err)
{
    int rc = gd_dump_catalog_beside(dump, rank, path, ret, err);

    return rc == GD_OK && gd_catalog_has_memory(*ret) ? gd_dump_catalog(dump, rank, path, ret, err)
                                                      : rc;
}

/* The pickle in a page takes the place of the page. */
static int unpack_page(struct gd_disk **disk, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    unsigned char start[GD_ARCHIVE_START];
    size_t size = gd_disk_size(*disk) < sizeof(start) ? (size_t)gd_disk_size(*disk) : sizeof(start);
    struct gd_disk *inside;
    uint64_t at;
    int rc = gd_disk_read(*disk, 0, start, size, err);

    if (rc != GD_OK || (at = gd_snapshot_in_page(start, size)) == 0) {
        return rc;
    }
    rc = gd_snapshot_unpack_page(*disk, at, go_on, ctx, &inside, err);
    if (rc == GD_OK) {
        gd_disk_unref(*disk);
        *disk = inside;
    }
    return rc;
}

static int read_snapshot(const struct gd_listing *listing, const struct gd_finding *finding,
                         struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                         struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_snapshot *snapshot;
    struct gd_catalog *catalog;
    struct gd_memory *memory;
    char path[PATH_MAX], text[200];
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, true, &disk, err);
    rc = rc != GD_OK ? rc : unpack_page(&disk, go_on, ctx, err);
    rc = rc != GD_OK ? rc : gd_snapshot_read(disk, go_on, ctx, &snapshot, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_snapshot_say(snapshot, text, sizeof(text));
    rc = catalog_for(dump, rank_of(listing, finding->root), path, &catalog, err);
    rc = rc != GD_OK ? rc : gd_catalog_memory(catalog, &memory, err);
    if (rc == GD_OK && gd_snapshot_report(snapshot, memory) != GD_OK) {
        rc = gd_fail_nomem(err);
    }
    gd_snapshot_free(snapshot);
    return rc != GD_OK ? rc : gd_catalog_add_fact(catalog, gd_base_name(path), text, err);
}

const struct gd_dump_format gd_memory_snapshot_format = {
    .name = "memory-snapshot",
    .what = "memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot)",
    .beside = true,
    .find = find_snapshots,
    .read = read_snapshot,
};
