// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A JSON file of any size, plain or gzip, read in one pass through a window of fixed size.
 *
 * After a token could not be read, trace_stream_failure says whether that is because the file is
 * truncated, damaged or unreadable.
 */
#ifndef GD_DUMP_TRACE_STREAM_H
#define GD_DUMP_TRACE_STREAM_H

#include <zlib.h>

#include "dump/io/disk.h"
#include "dump/io/json.h"

struct trace_stream { /* zero all but the disk, which is borrowed, and go_on */
    struct gd_disk *disk;
    bool (*go_on)(void *ctx, uint64_t done); /* NULL: always; false: GD_EINTR */
    void *ctx;
    struct gd_json json; /* read it with gd_json_next */
    /* private: */
    uint64_t at; /* bytes of the file that were read */
    char *window;
    unsigned char *packed; /* of a gzip file; NULL: plain */
    z_stream inflater;
    bool inflating, at_end;
    struct gd_err err; /* why nothing more comes; code GD_OK: the file ended */
};

int trace_stream_open(struct trace_stream *stream, struct gd_err *err);
void trace_stream_close(struct trace_stream *stream);

/* The reading failed with `err`: whether the file simply ends too early. Otherwise *err is what is
 * wrong with the file, if the JSON is not. */
bool trace_stream_is_cut(const struct trace_stream *stream, struct gd_err *err);
/* Only the last bracket of a list that is the whole file is missing: writers may omit it. */
bool trace_stream_is_open_list(const struct trace_stream *stream);

#endif
