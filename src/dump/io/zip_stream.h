// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A deflated member too large to inflate into memory: inflated while it is read. Keeps the latest
 * output and marks to resume from, so that reads may come in any order.
 */
#ifndef GD_DUMP_FILES_ZIP_STREAM_H
#define GD_DUMP_FILES_ZIP_STREAM_H

#include "dump/io/zip.h"

#define ZIP_STREAM_MIN ((uint64_t)64 << 20) /* members of this size and above are streamed */

struct zip_stream;

/* Zip and entry must outlive the stream. NULL: out of memory. */
struct zip_stream *zip_stream_new(struct gd_zip *zip, const struct gd_zip_entry *entry);
void zip_stream_free(struct zip_stream *stream); /* NULL is fine */
/* Reads bytes [at, at + size); one caller at a time. GD_EPROTO: the member is damaged (a wrong CRC
 * shows at its end). GD_ENODATA: reads jump back and forth, and the member may be loaded whole: it
 * is small, or hardly compressed. */
int zip_stream_read(struct zip_stream *stream, uint64_t at, void *ret, size_t size,
                    struct gd_err *err);

#endif
