// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/disk.h"

#define MAX_BYTES ((uint64_t)256 << 20)
#define MAX_PATH  4096

struct pair {
    const char *name, *original;
};

struct gd_mapping {
    char *text; /* the file, with NUL for commas and line ends */
    struct pair *pair;
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* A line without a comma is ignored. */
static void add_line(struct gd_mapping *mapping, char *line)
{
    char *comma = strchr(line, ',');
    size_t len;

    if (!comma || comma == line) {
        return;
    }
    *comma = '\0';
    len = strlen(comma + 1);
    if (len > 0 && comma[len] == '\r') {
        comma[len] = '\0';
    }
    mapping->pair[mapping->count++] = (struct pair){line, comma + 1};
}

static int take_lines(struct gd_mapping *mapping, struct gd_err *err)
{
    size_t lines = 1;

    for (const char *p = mapping->text; (p = strchr(p, '\n')); p++) {
        lines++;
    }
    mapping->pair = calloc(lines, sizeof(*mapping->pair));
    if (!mapping->pair) {
        return gd_fail_nomem(err);
    }
    for (char *line = mapping->text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) {
            *end++ = '\0';
        }
        add_line(mapping, line);
    }
    qsort(mapping->pair, mapping->count, sizeof(*mapping->pair), by_name);
    return GD_OK;
}

static int read_file(const char *path, struct gd_mapping **ret, struct gd_err *err)
{
    struct gd_mapping *mapping = calloc(1, sizeof(*mapping));
    struct gd_file_text text;
    int rc = mapping ? gd_file_text_read(path, MAX_BYTES, &text, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        mapping->text = text.data;
        rc = take_lines(mapping, err);
    }
    if (rc != GD_OK) {
        gd_mapping_free(mapping);
        return rc;
    }
    *ret = mapping;
    return GD_OK;
}

/* The path of mapping.csv in a directory, or next to a file. */
static int find_path(const struct gd_listing *listing, uint32_t place, char *out, size_t size,
                     struct gd_err *err)
{
    const char *slash;
    uint32_t entry;
    int rc;

    if (listing->entry[place].is_directory) {
        entry = gd_listing_child(listing, place, "mapping.csv");
        return entry == GD_NO_ENTRY || listing->entry[entry].is_directory
                   ? GD_ENOTFOUND
                   : gd_listing_path(listing, entry, out, size, err);
    }
    rc = gd_listing_path(listing, place, out, size, err);
    slash = rc == GD_OK ? strrchr(out, '/') : NULL;
    if (rc == GD_OK) {
        size_t at = slash ? (size_t)(slash + 1 - out) : 0;

        snprintf(out + at, size - at, "mapping.csv");
    }
    return rc;
}

int gd_mapping_read(const struct gd_listing *listing, uint32_t place, struct gd_mapping **ret,
                    struct gd_err *err)
{
    char path[MAX_PATH];
    struct gd_err why = {0};
    int rc = find_path(listing, place, path, sizeof(path), &why);

    *ret = NULL;
    rc = rc != GD_OK ? rc : read_file(path, ret, &why);
    if (rc == GD_OK || rc == GD_ENOTFOUND) {
        return GD_OK;
    }
    return gd_fail(err, rc, "%s", why.text);
}

void gd_mapping_free(struct gd_mapping *mapping)
{
    if (mapping) {
        free(mapping->pair);
        free(mapping->text);
        free(mapping);
    }
}

const char *gd_mapping_name(const struct gd_mapping *mapping, const char *name)
{
    struct pair wanted = {name, NULL}, *found = NULL;

    if (mapping && mapping->count > 0) {
        found = bsearch(&wanted, mapping->pair, mapping->count, sizeof(wanted), by_name);
    }
    return found ? found->original : name;
}
