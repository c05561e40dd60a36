// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A deflated member that is too large to be unpacked into memory: it is inflated as it is read. The
 * last part is kept, and marks to begin from again, so that it can be read in any order.
 */
#ifndef GD_DUMP_FILES_ZIP_STREAM_H
#define GD_DUMP_FILES_ZIP_STREAM_H

#include "dump/io/zip.h"

#define ZIP_STREAM_MIN ((uint64_t)64 << 20) /* bytes from which a member is read in this way */

struct zip_stream;

/* Zip and entry must outlive it. NULL: out of memory. */
struct zip_stream *zip_stream_new(struct gd_zip *zip, const struct gd_zip_entry *entry);
void zip_stream_free(struct zip_stream *stream); /* NULL is fine */
/* Bytes [at, at + size). One caller at a time. GD_EPROTO: the member is damaged; a wrong CRC is
 * found when its end was read. GD_ENODATA: it is read back and forth, and may be unpacked
 * whole: it is small, or much of it is in the file. */
int zip_stream_read(struct zip_stream *stream, uint64_t at, void *ret, size_t size,
                    struct gd_err *err);

#endif
