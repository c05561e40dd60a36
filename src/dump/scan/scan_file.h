// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The file with a scan's results so far: the statistics of the values worth judging, and which
 * values were read. It is written during the scan, so that an interrupted or killed scan can
 * resume, and parts made by several machines can be merged. Watchpoints are judged when it is read,
 * by the process that has the dump and the watchpoints.
 *
 * Format: eight bytes "GDSCAN1\n", then records: type, length, checksum and `length` bytes; numbers
 * are little-endian. The head record comes first, a unit before its results, the end record when
 * everything is done. The contents are untrusted.
 */
#ifndef GD_DUMP_SCAN_FILE_H
#define GD_DUMP_SCAN_FILE_H

#include "base/buf.h"
#include "base/stats.h"

#define GD_SCAN_SUFFIX     ".gdscan"
#define GD_SCAN_MAX_SHARDS 100000

#define GD_SCAN_MAX_RANGES 64

struct gd_scan_range { /* inclusive */
    int64_t from, to;
};
struct gd_scan_head {
    uint32_t shard, shards; /* part `shard`, from 1, of `shards` */
    /* INT64_MIN to INT64_MAX: all, and values that hold in every step */
    struct gd_scan_range steps;
    uint32_t range_count; /* 0: all ranks */
    struct gd_scan_range ranks[GD_SCAN_MAX_RANGES];
    char *watched; /* the watchpoints, one command line each */
};
/* Whether both scans asked for the same; parts may differ. */
bool gd_scan_head_equal(const struct gd_scan_head *a, const struct gd_scan_head *b);

struct gd_scan_unit { /* one step of one rank */
    uint32_t member;  /* of the dump; two roots may have the same rank */
    int32_t rank;
    int64_t step;    /* INT64_MIN: values that hold in every step */
    uint32_t items;  /* values to scan */
    uint64_t names;  /* hash of what they are */
    uint64_t stamps; /* hash of when they were dumped */
};

struct gd_scan_stats {
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    unsigned error; /* bits of enum gd_hit_error; if not 0, there are no statistics */
};

struct gd_scan_result { /* of one value of a unit */
    uint32_t index;
    const struct gd_scan_stats *figures; /* NULL: scanned, nothing to judge */
};

/* ---- writing --------------------------------------------------------------------------------- */

void gd_scan_put_start(struct gd_buf *out, const struct gd_scan_head *head);
void gd_scan_put_unit(struct gd_buf *out, uint32_t number, const struct gd_scan_unit *unit);
/* Of the unit with that number; writes as many records as needed. */
void gd_scan_put_results(struct gd_buf *out, uint32_t number, const struct gd_scan_result *results,
                         size_t count);
void gd_scan_put_end(struct gd_buf *out);

/* ---- reading --------------------------------------------------------------------------------- */

struct gd_scan_file;

/* GD_EPROTO: not a scan file, or its head is broken. Bytes after the last complete record are
 * ignored; gd_scan_file_good says where it ends. */
int gd_scan_file_read(const void *bytes, size_t size, struct gd_scan_file **ret,
                      struct gd_err *err);
int gd_scan_file_open(const char *path, struct gd_scan_file **ret, struct gd_err *err);
void gd_scan_file_free(struct gd_scan_file *file); /* NULL is fine */

const struct gd_scan_head *gd_scan_file_head(const struct gd_scan_file *file);
size_t gd_scan_file_good(const struct gd_scan_file *file); /* bytes that are valid */
/* Nothing was ignored, and the end record is there. */
bool gd_scan_file_is_complete(const struct gd_scan_file *file);
/* Units by their number in the file; a later unit of the same member and step replaces the earlier
 * one. */
uint32_t gd_scan_file_units(const struct gd_scan_file *file);
const struct gd_scan_unit *gd_scan_file_unit(const struct gd_scan_file *file, uint32_t number);
/* The last unit of that member and step; UINT32_MAX: none. */
uint32_t gd_scan_file_find(const struct gd_scan_file *file, uint32_t member, int64_t step);
/* Whether the value was scanned; *ret as in gd_scan_result. */
bool gd_scan_file_result(const struct gd_scan_file *file, uint32_t number, uint32_t index,
                         const struct gd_scan_stats **ret);
uint64_t gd_scan_file_results(const struct gd_scan_file *file); /* of all units */

#endif
