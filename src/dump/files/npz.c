// SPDX-License-Identifier: GPL-3.0-or-later
/* NumPy's .npz: a zip file of .npy files. Headers are read on demand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/files/npy.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/io/zip.h"

#define HEAD_BYTES ((size_t)1024) /* enough for nearly all headers */
#define MOST_BYTES ((size_t)GD_NPY_MAX_HEADER + 12)

static bool is_npz(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    struct gd_zip *zip;
    bool all = true;

    if (!gd_zip_is(start, size) || gd_zip_open(disk, &zip, NULL) != GD_OK) {
        return false;
    }
    for (size_t i = 0; i < gd_zip_count(zip) && all; i++) {
        all = gd_ends_with(gd_zip_entry(zip, i)->name, ".npy");
    }
    gd_zip_unref(zip);
    return all;
}

struct member {
    struct gd_zip *zip;
    const struct gd_zip_entry *entry;
    char *dtype;
    bool partial;
};

static int parse_head(const struct member *member, const unsigned char *head, size_t size,
                      struct gd_npy *ret, struct gd_err *err)
{
    struct gd_bytes *bytes;
    struct gd_err why;
    int rc = gd_bytes_of_memory(head, size, NULL, NULL, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_npy_read_header(bytes, member->dtype, ret, &why);
    gd_bytes_unref(bytes);
    return rc != GD_OK
               ? gd_fail(err, rc, "%.180s: %.100s: %.220s", gd_disk_path(gd_zip_disk(member->zip)),
                         member->entry->name, why.text)
               : GD_OK;
}

static int header_of(const struct member *member, size_t most, struct gd_npy *ret,
                     struct gd_err *err)
{
    unsigned char *head = malloc(most);
    size_t got;
    int rc =
        head ? gd_zip_head(member->zip, member->entry, head, most, &got, err) : gd_fail_nomem(err);

    rc = rc != GD_OK ? rc : parse_head(member, head, got, ret, err);
    free(head);
    return rc;
}

static int open_member(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct member *member = ctx;
    struct gd_bytes *bytes;
    struct gd_npy npy;
    char name[300];
    int rc = header_of(member, HEAD_BYTES, &npy, err);

    if (rc == GD_EPROTO && member->entry->size > HEAD_BYTES) {
        rc = header_of(member, MOST_BYTES, &npy, err);
    }
    rc = rc != GD_OK ? rc : gd_zip_bytes(member->zip, member->entry, true, &bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    snprintf(name, sizeof(name), "%.180s: %.100s", gd_disk_path(gd_zip_disk(member->zip)),
             member->entry->name);
    rc = gd_npy_source(bytes, &npy, name, member->partial, ret, NULL, err);
    gd_bytes_unref(bytes);
    return rc;
}

static void free_member(void *ctx)
{
    struct member *member = ctx;

    gd_zip_unref(member->zip);
    free(member->dtype);
    free(member);
}

static int make_source(struct gd_zip *zip, const struct gd_zip_entry *entry,
                       const struct gd_archive_options *options, struct gd_source **ret,
                       struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = open_member, .free_ctx = free_member};
    struct member *member = calloc(1, sizeof(*member));

    if (member && options->dtype) {
        member->dtype = strdup(options->dtype);
    }
    if (!member || (options->dtype && !member->dtype)) {
        free(member);
        return gd_fail_nomem(err);
    }
    member->zip = gd_zip_ref(zip);
    member->entry = entry;
    member->partial = options->partial;
    return gd_source_create_lazy(&ops, member, ret, err);
}

static int add_member(struct gd_archive *archive, struct gd_zip *zip,
                      const struct gd_zip_entry *member, const struct gd_archive_options *options,
                      struct gd_err *err)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR};
    char name[GD_ZIP_MAX_NAME + 1];
    size_t len = strlen(member->name);
    int rc = make_source(zip, member, options, &entry.source, err);

    if (rc != GD_OK) {
        return rc;
    }
    len -= gd_ends_with(member->name, ".npy") ? 4 : 0;
    memcpy(name, member->name, len);
    name[len] = '\0';
    entry.name = name;
    rc = gd_archive_add(archive, &entry, err);
    gd_source_unref(entry.source);
    return rc;
}

static int read_npz(struct gd_archive *archive, struct gd_disk *disk,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    struct gd_zip *zip;
    int rc = gd_zip_open(disk, &zip, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; rc == GD_OK && i < gd_zip_count(zip); i++) {
        rc = add_member(archive, zip, gd_zip_entry(zip, i), options, err);
    }
    gd_zip_unref(zip);
    return rc;
}

const struct gd_archive_format gd_npz_format = {
    .name = "npz",
    .what = "NumPy archive (.npz)",
    .is = is_npz,
    .read = read_npz,
};
