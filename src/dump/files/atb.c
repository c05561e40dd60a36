// SPDX-License-Identifier: GPL-3.0-or-later
/* One tensor as Ascend's transformer library (ATB) dumps it: lines NAME=VALUE up to "$End", then
 * the elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"

#define MAX_HEAD  ((size_t)64 << 10)
#define MAX_VALUE 1024

static bool is_atb(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    return size > 9 && memcmp(start, "$Version=", 9) == 0;
}

/* Numbered as in the device runtime. */
static enum gd_stored type_of(int64_t code)
{
    static const enum gd_stored types[] = {
        [0] = GD_STORED_FLOAT32,    [1] = GD_STORED_FLOAT16,     [2] = GD_STORED_INT8,
        [3] = GD_STORED_INT32,      [4] = GD_STORED_UINT8,       [6] = GD_STORED_INT16,
        [7] = GD_STORED_UINT16,     [8] = GD_STORED_UINT32,      [9] = GD_STORED_INT64,
        [10] = GD_STORED_UINT64,    [11] = GD_STORED_FLOAT64,    [12] = GD_STORED_BOOL,
        [16] = GD_STORED_COMPLEX64, [17] = GD_STORED_COMPLEX128, [27] = GD_STORED_BFLOAT16,
    };

    return code < 0 || code >= (int64_t)(sizeof(types) / sizeof(types[0])) ? GD_STORED_NONE
                                                                           : types[code];
}

/* Finds the value of a line "NAME=VALUE" in the header; false: none. */
static bool value_of(const char *head, const char *name, char out[MAX_VALUE])
{
    size_t len = strlen(name);

    for (const char *line = head; *line;) {
        size_t size = strcspn(line, "\n");

        if (size > len && size - len < MAX_VALUE && line[len] == '=' &&
            strncmp(line, name, len) == 0) {
            snprintf(out, MAX_VALUE, "%.*s", (int)(size - len - 1), line + len + 1);
            out[strcspn(out, "\r")] = '\0';
            return true;
        }
        line += size + (line[size] == '\n');
    }
    return false;
}

/* Parses "2,3"; "" is a scalar. */
static bool dims_of(const char *text, struct gd_shape *ret)
{
    int64_t total = 1;

    *ret = (struct gd_shape){.rank = 0};
    while (*text >= '0' && *text <= '9') {
        char *end;
        int64_t dim = strtoll(text, &end, 10);

        if (end - text > 18 || ret->rank == GD_MAX_RANK ||
            __builtin_mul_overflow(total, dim ? dim : 1, &total)) {
            return false;
        }
        ret->dim[ret->rank++] = dim;
        text = end + (*end == ',');
    }
    return *text == '\0';
}

/* Reads the header and finds where the elements begin. */
static int read_head(struct gd_disk *disk, char **ret, uint64_t *data, struct gd_err *err)
{
    uint64_t size = gd_disk_size(disk);
    size_t len = size < MAX_HEAD ? (size_t)size : MAX_HEAD;
    GD_CLEANUP(gd_cleanup_free) char *head = malloc(len + 1);
    char *end, *line;
    int rc = head ? gd_disk_read(disk, 0, head, len, err) : gd_fail_nomem(err);

    if (rc != GD_OK) {
        return rc;
    }
    head[len] = '\0';
    end = strstr(head, "\n$End=");
    line = end ? strchr(end + 1, '\n') : NULL;
    if (!line) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s: its header does not end with a line \"$End=\" within %zu bytes",
                       gd_disk_path(disk), MAX_HEAD);
    }
    *data = (uint64_t)(line - head) + 1;
    end[1] = '\0';
    *ret = head;
    head = NULL;
    return GD_OK;
}

static int parse_head(const char *head, struct gd_disk *disk, struct gd_source_desc *ret,
                      struct gd_err *err)
{
    const char *path = gd_disk_path(disk);
    char type[MAX_VALUE], dims[MAX_VALUE], other[MAX_VALUE];

    if (value_of(head, "data", other) && other[0]) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.200s: its elements are in another file, %.200s: open that one", path,
                       other);
    }
    if (!value_of(head, "dtype", type) || !value_of(head, "dims", dims)) {
        return gd_fail(err, GD_EPROTO, "%.300s: its header lacks the line \"dtype\" or \"dims\"",
                       path);
    }
    ret->stored = strspn(type, "0123456789") == strlen(type) && strlen(type) <= 3
                      ? type_of(strtol(type, NULL, 10))
                      : GD_STORED_NONE;
    if (!ret->stored || !type[0]) {
        return gd_fail(err, GD_EPROTO, "%.300s: \"dtype=%.60s\" is not a known element type", path,
                       type);
    }
    if (!dims_of(dims, &ret->shape)) {
        return gd_fail(err, GD_EPROTO, "%.300s: \"dims=%.100s\" is not a shape", path, dims);
    }
    return GD_OK;
}

/* Takes the bytes that the shape needs; the rest is padding. */
static int make_source(struct gd_disk *disk, uint64_t data, struct gd_source_desc *desc,
                       struct gd_source **ret, struct gd_err *err)
{
    uint64_t left = gd_disk_size(disk) - data, bytes;
    int64_t count = gd_shape_count(&desc->shape);
    int rc;

    if (__builtin_mul_overflow((uint64_t)count, gd_stored_bits(desc->stored) / 8, &bytes) ||
        bytes > left) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s: only %llu bytes follow its header, fewer than its shape needs",
                       gd_disk_path(disk), (unsigned long long)left);
    }
    rc = gd_bytes_of_disk(disk, data, bytes, &desc->bytes, err);
    rc = rc != GD_OK ? rc : gd_source_create(desc, ret, err);
    gd_bytes_unref(desc->bytes);
    return rc;
}

static int read_atb(struct gd_archive *archive, struct gd_disk *disk,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR, .name = "tensor"};
    struct gd_source_desc desc = {.bytes = NULL};
    char format[MAX_VALUE], *head = NULL;
    uint64_t data = 0;
    int rc = read_head(disk, &head, &data, err);

    (void)options;
    rc = rc != GD_OK ? rc : parse_head(head, disk, &desc, err);
    rc = rc != GD_OK ? rc : make_source(disk, data, &desc, &entry.source, err);
    rc = rc != GD_OK ? rc : gd_archive_add(archive, &entry, err);
    if (rc == GD_OK && value_of(head, "format", format) && strcmp(format, "2") != 0) {
        gd_archive_add_note(archive, "stored in the device layout number %.60s", format);
    }
    gd_source_unref(entry.source);
    free(head);
    return rc;
}

const struct gd_archive_format gd_atb_format = {
    .name = "atb",
    .what = "tensor of Ascend's transformer library (.bin)",
    .is = is_atb,
    .read = read_atb,
};
