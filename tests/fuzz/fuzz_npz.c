// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Zip files, read as NumPy's .npz: directories, local headers, inflated members. A member inflated
 * while it is read gives the same bytes, and errors, as one inflated as a whole.
 */
#include "fuzz_archive.h"

#include "dump/io/zip_stream.h"

#define MEMBERS 8
#define PIECE   1000

/* From the end to the start, in pieces: every one but the first seeks back. */
static void read_back(struct zip_stream *stream, const unsigned char *whole, size_t size)
{
    unsigned char piece[PIECE];

    for (size_t end = size; end > 0;) {
        size_t at = end > PIECE ? end - PIECE : 0;
        FUZZ_CHECK(zip_stream_read(stream, at, piece, end - at, NULL) == GD_OK);
        FUZZ_CHECK(memcmp(piece, whole + at, end - at) == 0);
        end = at;
    }
}

static void stream_member(struct gd_zip *zip, const struct gd_zip_entry *entry)
{
    struct zip_stream *stream = zip_stream_new(zip, entry);
    size_t size = (size_t)entry->size;
    unsigned char *whole = malloc(size), *streamed = malloc(size);
    struct gd_bytes *bytes = NULL;
    struct gd_err err = {.text = ""};

    FUZZ_CHECK(stream && whole && streamed);
    FUZZ_CHECK(gd_zip_bytes(zip, entry, true, &bytes, NULL) == GD_OK);
    int rc = gd_bytes_read(bytes, 0, whole, size, NULL);
    FUZZ_CHECK(zip_stream_read(stream, 0, streamed, size, &err) == rc &&
               (rc == GD_OK || err.text[0]));
    if (rc == GD_OK) {
        FUZZ_CHECK(memcmp(whole, streamed, size) == 0);
        read_back(stream, whole, size);
    }
    zip_stream_free(stream);
    gd_bytes_unref(bytes);
    free(whole);
    free(streamed);
}

static void stream_members(struct gd_disk *disk)
{
    struct gd_zip *zip;

    if (gd_zip_open(disk, &zip, NULL) != GD_OK) {
        return;
    }
    for (size_t i = 0; i < gd_zip_count(zip) && i < MEMBERS; i++) {
        const struct gd_zip_entry *entry = gd_zip_entry(zip, i);
        if (entry->method == GD_ZIP_DEFLATED && entry->size > 0) { /* small, like the input */
            stream_member(zip, entry);
        }
    }
    gd_zip_unref(zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);

    fuzz_archive(data, size, "npz", size % 2);
    stream_members(disk);
    gd_disk_unref(disk);
    return 0;
}
