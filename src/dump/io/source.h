// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A source: one tensor that lies on the disk, and how it is read. Every reader of a format makes
 * sources and nothing else of values; slices, conversion to the engine's types (stored_type.h),
 * statistics of tensors larger than memory are the same for all of them, here.
 *
 * Reference counted. All functions may be called from any thread; one source may be read by several
 * at once.
 */
#ifndef GD_DUMP_SOURCE_H
#define GD_DUMP_SOURCE_H

#include "base/slice.h"
#include "base/stats.h"
#include "dump/io/bytes.h"
#include "dump/io/stored_type.h"

struct gd_source;

struct gd_source_info {
    enum gd_dtype dtype;   /* what it reads as */
    enum gd_stored stored; /* what the file has */
    struct gd_shape shape; /* what it reads as */
    uint64_t bytes;        /* that it takes in the file */
    const char *note;      /* "" or a sentence: a layout that was converted, an assumed type, a
                              part that is missing; lives as long as the source */
};

/* ---- making ---------------------------------------------------------------------------------- */

struct gd_source_desc {
    struct gd_bytes *bytes; /* a reference is taken */
    enum gd_stored stored;
    bool swap;              /* other byte order than the host's */
    bool conjugate, negate; /* of torch's lazy views: applied when read */
    struct gd_shape shape;
    bool has_stride;             /* else C order */
    int64_t stride[GD_MAX_RANK]; /* in elements; 0 and negative are fine */
    int64_t offset;              /* element [0, ..., 0], counted from the first of `bytes` */
    const char *note;            /* copied; may be NULL */
};
/* Checks that every element lies within the bytes. GD_EPROTO otherwise; GD_EINVAL, GD_ELIMIT. */
int gd_source_create(const struct gd_source_desc *desc, struct gd_source **ret, struct gd_err *err);

/* A tensor whose file is only looked at when somebody asks (a dump has very many), or which must be
 * made as a whole (a fractal layout). Both slots may be called from any thread, never two at once
 * of one source. */
struct gd_source_ops {
    /* Finds out what it is and gives another source that has it, which is kept until
     * gd_source_close. */
    int (*open)(void *ctx, struct gd_source **ret, struct gd_err *err);
    /* Beside open: what it is, which is known before; then the other source must be so, too.
     * Instead of open: the type and shape without the values, then the values. */
    int (*info)(void *ctx, struct gd_source_info *ret, struct gd_err *err);
    int (*load)(void *ctx, struct gd_tensor **ret, struct gd_err *err);
    void (*free_ctx)(void *ctx);
};
int gd_source_create_lazy(const struct gd_source_ops *ops, void *ctx, struct gd_source **ret,
                          struct gd_err *err); /* owns ctx, also on failure */
/* Sources one after another along the first axis, all of one type and of the same other axes.
 * GD_EUNSUPPORTED: they are stored in different ways, or not in C order. */
int gd_source_join(struct gd_source *const *part, size_t count, struct gd_source **ret,
                   struct gd_err *err);
/* Of a tensor that is in memory (takes a reference). */
int gd_source_of_tensor(struct gd_tensor *tensor, struct gd_source **ret, struct gd_err *err);

struct gd_source *gd_source_ref(struct gd_source *source);
void gd_source_unref(struct gd_source *source); /* NULL is fine */

/* Nobody will look at it for a while: when very many lazy sources are open, it no longer is. It
 * stays what it was found to be and is opened again when it is wanted. */
void gd_source_close(struct gd_source *source);

/* ---- reading --------------------------------------------------------------------------------- */

int gd_source_info(struct gd_source *source, struct gd_source_info *ret, struct gd_err *err);

/* What the slice selects (NULL or empty: all), C-contiguous. Of bytes in a file only those between
 * the first and the last that are wanted are read, and of distant ones only what is wanted.
 * GD_ELIMIT: more than max_bytes (0 none). */
int gd_source_read(struct gd_source *source, const struct gd_slice *slice, size_t max_bytes,
                   struct gd_tensor **ret, struct gd_err *err);

/* `count` elements beginning at number `first` in C order, as gd_stored_dtype says, to out. */
int gd_source_read_run(struct gd_source *source, int64_t first, int64_t count, void *ret,
                       struct gd_err *err);

/* gd_stats_compute of the whole, in memory that does not grow with it; prev may be NULL. */
int gd_source_stats(struct gd_source *source, struct gd_source *prev,
                    const struct gd_stats_options *options, struct gd_stats *ret,
                    struct gd_err *err);

#endif
