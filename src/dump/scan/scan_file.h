// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a scan has found out so far, in a file: the statistics of the values that are worth judging,
 * and which values were looked at. Written as the scan goes on, so that one that was interrupted or
 * killed goes on where it was, and parts that several machines made can be merged. What watchpoints
 * make of it is judged when it is read, by who has the dump and the watchpoints.
 *
 * The file: eight bytes "GDSCAN1\n", then records of a type, a length, a checksum and so many
 * bytes; numbers are little-endian. The first record is the head, a unit comes before its results,
 * the end comes when all that was to be done is done. Nothing that is read is trusted.
 */
#ifndef GD_DUMP_SCAN_FILE_H
#define GD_DUMP_SCAN_FILE_H

#include "base/buf.h"
#include "base/stats.h"

#define GD_SCAN_SUFFIX     ".gdscan"
#define GD_SCAN_MAX_SHARDS 100000

#define GD_SCAN_MAX_RANGES 64

struct gd_scan_range { /* both ends inside */
    int64_t from, to;
};
struct gd_scan_head {
    uint32_t shard, shards;     /* number 1 ... shards of so many parts */
    struct gd_scan_range steps; /* INT64_MIN to INT64_MAX: all, and what holds in every step */
    uint32_t range_count;       /* 0: all ranks */
    struct gd_scan_range ranks[GD_SCAN_MAX_RANGES];
    char *watched; /* the watchpoints, a command line each */
};
/* What one asked for is what the other did; parts may differ. */
bool gd_scan_head_equal(const struct gd_scan_head *a, const struct gd_scan_head *b);

struct gd_scan_unit { /* one step of one rank */
    uint32_t member;  /* which of the dump: two roots may have the same rank */
    int32_t rank;
    int64_t step;    /* INT64_MIN: values that hold in every step */
    uint32_t items;  /* values to look at in it */
    uint64_t names;  /* a hash of what they are */
    uint64_t stamps; /* a hash of when they were dumped */
};

struct gd_scan_stats {
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    unsigned error; /* bits of enum gd_hit_error; not 0: there are no statistics */
};

struct gd_scan_result { /* of one value of a unit */
    uint32_t index;
    const struct gd_scan_stats *figures; /* NULL: looked at, nothing to judge */
};

/* ---- writing --------------------------------------------------------------------------------- */

void gd_scan_put_start(struct gd_buf *out, const struct gd_scan_head *head);
void gd_scan_put_unit(struct gd_buf *out, uint32_t number, const struct gd_scan_unit *unit);
/* Of the unit of that number; as many records as it takes. */
void gd_scan_put_results(struct gd_buf *out, uint32_t number, const struct gd_scan_result *results,
                         size_t count);
void gd_scan_put_end(struct gd_buf *out);

/* ---- reading --------------------------------------------------------------------------------- */

struct gd_scan_file;

/* GD_EPROTO: it is no such file, or its head is broken. What follows the last whole record is left
 * out: gd_scan_file_good says where that ended. */
int gd_scan_file_read(const void *bytes, size_t size, struct gd_scan_file **ret,
                      struct gd_err *err);
int gd_scan_file_open(const char *path, struct gd_scan_file **ret, struct gd_err *err);
void gd_scan_file_free(struct gd_scan_file *file); /* NULL is fine */

const struct gd_scan_head *gd_scan_file_head(const struct gd_scan_file *file);
size_t gd_scan_file_good(const struct gd_scan_file *file); /* bytes that could be read */
/* Nothing was left out, and its end is there. */
bool gd_scan_file_is_complete(const struct gd_scan_file *file);
/* Units by the number that they have in the file; those of a member and step that come later
 * replace what was there before. */
uint32_t gd_scan_file_units(const struct gd_scan_file *file);
const struct gd_scan_unit *gd_scan_file_unit(const struct gd_scan_file *file, uint32_t number);
/* The last one of that member and step; UINT32_MAX: none. */
uint32_t gd_scan_file_find(const struct gd_scan_file *file, uint32_t member, int64_t step);
/* Whether the value was looked at; *ret as in gd_scan_result. */
bool gd_scan_file_result(const struct gd_scan_file *file, uint32_t number, uint32_t index,
                         const struct gd_scan_stats **ret);
uint64_t gd_scan_file_results(const struct gd_scan_file *file); /* of all units */

#endif
