// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * PyTorch's zip files (torch.save since 1.6): the pickle D/data.pkl, one storage per D/data/KEY,
 * and their byte order in D/byteorder, where D is the file's original name. TorchScript uses the
 * same container, recognised by D/constants.pkl; it is a program and refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/io/little_endian.h"
#include "dump/io/zip.h"
#include "dump/torch/torch_impl.h"

struct zipped {
    struct gd_zip *zip;
    char top[GD_ZIP_MAX_NAME + 1]; /* D */
};

/* Finds D of D/data.pkl or, for TorchScript, D/constants.pkl. False: neither. */
static bool find_top(const struct gd_zip *zip, char top[GD_ZIP_MAX_NAME + 1])
{
    for (size_t i = 0; i < gd_zip_count(zip); i++) {
        const char *name = gd_zip_entry(zip, i)->name, *slash = strchr(name, '/');

        if (slash && (strcmp(slash, "/data.pkl") == 0 || strcmp(slash, "/constants.pkl") == 0)) {
            snprintf(top, GD_ZIP_MAX_NAME + 1, "%.*s", (int)(slash - name), name);
            return true;
        }
    }
    return false;
}

/* Finds the record D/name; NULL: none. */
static const struct gd_zip_entry *find_record(const struct zipped *zipped, const char *name)
{
    char full[GD_ZIP_MAX_NAME + 80];

    snprintf(full, sizeof(full), "%s/%s", zipped->top, name);
    return gd_zip_find(zipped->zip, full);
}

/* The name in a local header at the beginning; false: none, or truncated. */
static bool first_name(const unsigned char *start, size_t size, const char **name, size_t *len)
{
    if (size < 30) {
        return false;
    }
    *len = (size_t)gd_little_endian(start + 26, 2);
    *name = (const char *)start + 30;
    return *len <= size - 30;
}

static bool torch_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    char top[GD_ZIP_MAX_NAME + 1];
    struct gd_zip *zip;
    const char *name;
    bool found;
    size_t len;

    if (!gd_zip_is(start, size)) {
        return false;
    }
    /* torch.save writes data.pkl first; the directory is then not needed. */
    if (first_name(start, size, &name, &len)) {
        if (len > 9 && memcmp(name + len - 9, "/data.pkl", 9) == 0) {
            return true;
        }
        if (len > 4 && memcmp(name + len - 4, ".npy", 4) == 0) {
            return false;
        }
    }
    if (gd_zip_open(disk, &zip, NULL) != GD_OK) {
        return false;
    }
    found = find_top(zip, top);
    gd_zip_unref(zip);
    return found;
}

static int find_storage(struct torch_file *file, const char *key, struct gd_bytes **ret,
                        struct gd_err *err)
{
    const struct zipped *zipped = file->find_ctx;
    const struct gd_zip_entry *entry;
    char name[128];

    snprintf(name, sizeof(name), "data/%s", key);
    entry = find_record(zipped, name);
    if (!entry) {
        return gd_fail(err, GD_EPROTO, "the file has no record %s with its values", name);
    }
    return gd_zip_bytes(zipped->zip, entry, false, ret, err);
}

/* Reads a small record as a whole, to be freed by the caller. */
static int read_record(struct torch_file *file, const char *name, uint64_t most,
                       unsigned char **ret, size_t *size, struct gd_err *err)
{
    const struct zipped *zipped = file->find_ctx;
    const struct gd_zip_entry *entry = find_record(zipped, name);
    GD_CLEANUP(gd_cleanup_bytes) struct gd_bytes *bytes = NULL;
    GD_CLEANUP(gd_cleanup_free) unsigned char *data = NULL;
    int rc;

    if (!entry) {
        return gd_fail(err, GD_ENOTFOUND, "%.300s has no record %s", file->path, name);
    }
    if (entry->size > most) {
        return gd_fail(err, GD_ELIMIT, "%.300s: its %s of %llu bytes exceeds the limit of %llu",
                       file->path, name, (unsigned long long)entry->size, (unsigned long long)most);
    }
    rc = gd_zip_bytes(zipped->zip, entry, false, &bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    data = malloc((size_t)entry->size + 1);
    rc = data ? gd_bytes_read(bytes, 0, data, (size_t)entry->size, err) : gd_fail_nomem(err);
    if (rc != GD_OK) {
        return rc;
    }
    data[entry->size] = '\0';
    *ret = data;
    data = NULL;
    *size = (size_t)entry->size;
    return GD_OK;
}

/* Files without the record are older, and all little-endian. */
static int read_byteorder(struct torch_file *file, struct gd_err *err)
{
    bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    unsigned char *text;
    size_t size;
    int rc;

    file->swap = host_is_big;
    if (!find_record(file->find_ctx, "byteorder")) {
        return GD_OK;
    }
    rc = read_record(file, "byteorder", 16, &text, &size, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (strcmp((char *)text, "big") == 0) {
        file->swap = !host_is_big;
    } else if (strcmp((char *)text, "little") != 0) {
        rc = gd_fail(err, GD_EPROTO, "%.300s: its byteorder is '%.16s', not little or big",
                     file->path, (char *)text);
    }
    free(text);
    return rc;
}

static int read_pickle(struct torch_file *file, const struct gd_archive_options *options,
                       struct gd_err *err)
{
    char what[400];
    unsigned char *program;
    struct gd_pickle *pickle;
    uint64_t end;
    size_t size;
    int rc = read_record(file, "data.pkl", GD_PICKLE_MAX_PROGRAM, &program, &size, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(what, sizeof(what), "%.300s: data.pkl", file->path);
    rc = gd_pickle_read_memory(program, size, what, &pickle, &end, err);
    if (rc == GD_OK) {
        if (end < size) {
            gd_archive_add_note(file->archive, "%llu bytes after the end of data.pkl's pickle",
                                (unsigned long long)(size - end));
        }
        rc = torch_list(file, pickle, options, err);
        gd_pickle_free(pickle);
    }
    free(program);
    return rc;
}

static int read_zip(struct torch_file *file, struct zipped *zipped,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    int rc;

    if (!find_top(zipped->zip, zipped->top)) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s is not a PyTorch file: it has no record that ends in /data.pkl",
                       file->path);
    }
    if (find_record(zipped, "constants.pkl")) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.300s is a TorchScript program, which is not supported: save its "
                       "state_dict() with torch.save",
                       file->path);
    }
    rc = read_byteorder(file, err);
    return rc != GD_OK ? rc : read_pickle(file, options, err);
}

static int torch_read(struct gd_archive *archive, struct gd_disk *disk,
                      const struct gd_archive_options *options, struct gd_err *err)
{
    struct zipped *zipped = calloc(1, sizeof(*zipped));
    struct torch_file file = {.archive = archive,
                              .disk = disk,
                              .path = gd_disk_path(disk),
                              .find = find_storage,
                              .find_ctx = zipped};
    int rc = zipped ? gd_zip_open(disk, &zipped->zip, err) : gd_fail_nomem(err);

    if (rc == GD_EPROTO && gd_ends_with(file.path, ".distcp")) {
        rc = gd_fail(err, GD_EUNSUPPORTED,
                     "%.300s is part of a distributed checkpoint: open its directory, or the "
                     ".metadata next to it",
                     file.path);
    }
    if (rc == GD_OK) {
        rc = read_zip(&file, zipped, options, err);
        gd_zip_unref(zipped->zip);
    }
    torch_file_deinit(&file);
    free(zipped);
    return rc;
}

const struct gd_archive_format gd_torch_format = {
    .name = "torch",
    .what = "PyTorch file (torch.save, since 1.6)",
    .is = torch_is,
    .read = torch_read,
};
