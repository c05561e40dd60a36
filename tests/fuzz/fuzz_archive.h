// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensor files for fuzz targets: the bytes become a file, the file an archive; all entries are
 * examined, and a part of each tensor is read.
 */
#ifndef TESTS_FUZZ_FUZZ_ARCHIVE_H
#define TESTS_FUZZ_FUZZ_ARCHIVE_H

#include "fuzz_disk.h"

#include <string.h>

#include "dump/files/archive.h"

#define FUZZ_READ_BYTES   ((size_t)1 << 16)
#define FUZZ_READ_ENTRIES 64

static inline void fuzz_read_source(struct gd_source *source)
{
    struct gd_source_info info;
    struct gd_tensor *tensor;
    struct gd_err err = {.text = ""};

    if (gd_source_info(source, &info, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
        return;
    }
    FUZZ_CHECK(gd_shape_count(&info.shape) >= 0 && info.note);
    if (gd_source_read(source, NULL, FUZZ_READ_BYTES, &tensor, &err) == GD_OK) {
        FUZZ_CHECK(gd_tensor_bytes(tensor) <= FUZZ_READ_BYTES);
        FUZZ_CHECK(gd_shape_equal(&tensor->shape, &info.shape) && tensor->dtype == info.dtype);
        gd_tensor_unref(tensor);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
}

static inline void fuzz_look_at(const struct gd_archive *archive)
{
    for (size_t i = 0; i < gd_archive_count(archive); i++) {
        const struct gd_archive_entry *entry = gd_archive_entry(archive, i);

        FUZZ_CHECK(entry->name && (entry->source || entry->text || entry->problem));
        FUZZ_CHECK(gd_archive_find(archive, entry->name));
        FUZZ_CHECK(!entry->same_as || gd_archive_find(archive, entry->same_as));
        if (entry->source && i < FUZZ_READ_ENTRIES) {
            fuzz_read_source(entry->source);
        }
    }
    for (size_t i = 0; i < gd_archive_note_count(archive); i++) {
        FUZZ_CHECK(gd_archive_note(archive, i)[0]);
    }
}

/* `format` NULL: any format. */
static inline void fuzz_archive(const void *data, size_t size, const char *format, bool partial)
{
    struct gd_archive_options options = {.format = format, .partial = partial};
    struct gd_err err = {.text = ""};
    struct gd_archive *archive;
    struct gd_disk *disk = fuzz_disk(data, size);

    if (gd_archive_open_disk(disk, &options, &archive, &err) == GD_OK) {
        fuzz_look_at(archive);
        gd_archive_close(archive);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_disk_unref(disk);
}

#endif
