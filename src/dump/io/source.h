// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A source: one tensor on disk, and how to read it. Format readers make sources; slicing,
 * conversion to the engine's types (stored_type.h) and statistics of tensors larger than memory are
 * implemented once, here.
 *
 * Reference counted. All functions are thread-safe, also on one source.
 */
#ifndef GD_DUMP_SOURCE_H
#define GD_DUMP_SOURCE_H

#include "base/slice.h"
#include "base/stats.h"
#include "dump/io/bytes.h"
#include "dump/io/stored_type.h"

struct gd_source;

struct gd_source_info {
    enum gd_dtype dtype;   /* after conversion */
    enum gd_stored stored; /* in the file */
    struct gd_shape shape; /* after conversion */
    uint64_t bytes;        /* its size in the file */
    /* "" or a sentence for the user: a converted layout, an assumed type, a missing part; lives as
     * long as the source */
    const char *note;
};

/* ---- creating -------------------------------------------------------------------------------- */

struct gd_source_desc {
    struct gd_bytes *bytes; /* a reference is taken */
    enum gd_stored stored;
    bool swap;              /* byte order differs from the host's */
    bool conjugate, negate; /* torch's lazy views: applied when read */
    struct gd_shape shape;
    bool has_stride;             /* otherwise C order */
    int64_t stride[GD_MAX_RANK]; /* in elements; may be 0 or negative */
    int64_t offset;              /* of element [0, ..., 0] in `bytes`, in elements */
    const char *note;            /* copied; may be NULL */
};
/* GD_EPROTO: an element lies outside the bytes; GD_EINVAL, GD_ELIMIT. */
int gd_source_create(const struct gd_source_desc *desc, struct gd_source **ret, struct gd_err *err);

/* A lazy source: its file is opened on first use (a dump has many), or its values must be made as a
 * whole (a fractal layout). The functions may be called from any thread, but never two at once for
 * one source. */
struct gd_source_ops {
    /* Opens another source that has the values; it is kept until gd_source_close. */
    int (*open)(void *ctx, struct gd_source **ret, struct gd_err *err);
    /* With open: optional, the type and shape known in advance, which the opened source must match.
     * With load instead of open: required, called first. */
    int (*info)(void *ctx, struct gd_source_info *ret, struct gd_err *err);
    int (*load)(void *ctx, struct gd_tensor **ret, struct gd_err *err);
    void (*free_ctx)(void *ctx);
};
int gd_source_create_lazy(const struct gd_source_ops *ops, void *ctx, struct gd_source **ret,
                          struct gd_err *err); /* takes over ctx, also on failure */
/* Concatenates sources along the first axis; all must agree in type and in the other axes.
 * GD_EUNSUPPORTED: they are stored differently, or not in C order. */
int gd_source_join(struct gd_source *const *part, size_t count, struct gd_source **ret,
                   struct gd_err *err);
/* Of a tensor in memory; takes a reference. */
int gd_source_of_tensor(struct gd_tensor *tensor, struct gd_source **ret, struct gd_err *err);

struct gd_source *gd_source_ref(struct gd_source *source);
void gd_source_unref(struct gd_source *source); /* NULL is fine */

/* Hints that the source will not be used for a while: if very many lazy sources are open, it is
 * closed. It keeps its info and opens again when needed. */
void gd_source_close(struct gd_source *source);

/* ---- reading --------------------------------------------------------------------------------- */

int gd_source_info(struct gd_source *source, struct gd_source_info *ret, struct gd_err *err);

/* Reads what the slice selects (NULL or empty: everything), C-contiguous. Reads only from the first
 * to the last wanted byte, and skips large gaps. GD_ELIMIT: more than max_bytes (0: no limit). */
int gd_source_read(struct gd_source *source, const struct gd_slice *slice, size_t max_bytes,
                   struct gd_tensor **ret, struct gd_err *err);

/* Reads `count` elements, starting at number `first` in C order, as gd_stored_dtype. */
int gd_source_read_run(struct gd_source *source, int64_t first, int64_t count, void *ret,
                       struct gd_err *err);

/* gd_stats_compute of the whole tensor in bounded memory; prev may be NULL. */
int gd_source_stats(struct gd_source *source, struct gd_source *prev,
                    const struct gd_stats_options *options, struct gd_stats *ret,
                    struct gd_err *err);

#endif
