// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A source: one tensor that lies on the disk, and how it is read. Every reader of a format makes
 * sources and nothing else of values; slices, conversion to the engine's types, statistics of
 * tensors larger than memory are the same for all of them, here.
 *
 * Stored types that the engine does not have are widened exactly when they are read: float8, float6
 * and float4 kinds, HiFloat8 and E8M0 to float32 (float64 where float32 cannot hold it); int4, int2
 * to int8; uint4, uint2, uint1 to uint8; complex32 to complex64; quantised integers stay integers,
 * with scale and zero point in the note.
 *
 * Reference counted. All functions may be called from any thread; one source may be read by several
 * at once.
 */
#ifndef GD_DUMP_SOURCE_H
#define GD_DUMP_SOURCE_H

#include "dump/disk.h"
#include "engine/slice.h"
#include "engine/stats.h"

enum gd_stored { /* element types as files have them */
                 GD_STORED_NONE = 0,
                 GD_STORED_BOOL,
                 GD_STORED_INT8,
                 GD_STORED_INT16,
                 GD_STORED_INT32,
                 GD_STORED_INT64,
                 GD_STORED_UINT8,
                 GD_STORED_UINT16,
                 GD_STORED_UINT32,
                 GD_STORED_UINT64,
                 GD_STORED_FLOAT16,
                 GD_STORED_BFLOAT16,
                 GD_STORED_FLOAT32,
                 GD_STORED_FLOAT64,
                 GD_STORED_COMPLEX32,
                 GD_STORED_COMPLEX64,
                 GD_STORED_COMPLEX128,
                 GD_STORED_FLOAT8_E4M3FN,
                 GD_STORED_FLOAT8_E5M2,
                 GD_STORED_FLOAT8_E4M3FNUZ,
                 GD_STORED_FLOAT8_E5M2FNUZ,
                 GD_STORED_FLOAT8_E4M3,
                 GD_STORED_FLOAT8_E3M4,
                 GD_STORED_FLOAT8_E4M3B11FNUZ,
                 GD_STORED_FLOAT8_E8M0FNU,
                 GD_STORED_HIFLOAT8,
                 GD_STORED_FLOAT4_E2M1, /* two in a byte, low half first */
                 GD_STORED_INT4,
                 GD_STORED_UINT4, /* two in a byte, low half first */
                 GD_STORED_INT2,
                 GD_STORED_UINT2,  /* four in a byte, low bits first */
                 GD_STORED_UINT1,  /* eight in a byte, highest bit first */
                 GD_STORED_OPAQUE, /* bytes that are shown as such: strings, unknown types */
                 GD_STORED_COUNT
};

unsigned gd_stored_bits(enum gd_stored stored);       /* of one element; 0 for NONE */
const char *gd_stored_name(enum gd_stored stored);    /* "float8_e4m3fn" */
enum gd_stored gd_stored_from_name(const char *name); /* numpy, torch, MindSpore and safetensors
                                                         spellings, any case; NONE: none */
enum gd_dtype gd_stored_dtype(enum gd_stored stored); /* what it reads as */
/* `count` elements beginning at element `first` of `in` (so many bits each) to `out`, in the host's
 * byte order; swap: `in` has the other one. */
void gd_stored_widen(enum gd_stored stored, bool swap, const unsigned char *in, int64_t first,
                     int64_t count, void *out);

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

/* Where the stored bytes are: a piece of a file as it is, or bytes that something unpacks. */
struct gd_bytes;
int gd_bytes_of_disk(struct gd_disk *disk, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err); /* GD_EPROTO: not within the file */
/* `size` bytes that are only to be had in one piece (an inflated member): `load` is called when
 * they are first wanted, at most max_bytes of all such are kept (the oldest are let go). */
typedef int (*gd_bytes_load_fn)(void *ctx, void *ret, size_t size, struct gd_err *err);
int gd_bytes_of_load(gd_bytes_load_fn load, void (*free_ctx)(void *ctx), void *ctx, uint64_t size,
                     struct gd_bytes **ret, struct gd_err *err);
struct gd_bytes *gd_bytes_ref(struct gd_bytes *bytes);
void gd_bytes_unref(struct gd_bytes *bytes);
uint64_t gd_bytes_size(const struct gd_bytes *bytes);
int gd_bytes_read(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size, struct gd_err *err);

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
    /* Finds out what it is and gives another source that has it. Called once, kept. */
    int (*open)(void *ctx, struct gd_source **ret, struct gd_err *err);
    /* Instead of open: the type and shape without the values, then the values. */
    int (*info)(void *ctx, struct gd_source_info *ret, struct gd_err *err);
    int (*load)(void *ctx, struct gd_tensor **ret, struct gd_err *err);
    void (*free_ctx)(void *ctx);
};
int gd_source_create_lazy(const struct gd_source_ops *ops, void *ctx, struct gd_source **ret,
                          struct gd_err *err); /* owns ctx, also on failure */
/* Of a tensor that is in memory (takes a reference). */
int gd_source_of_tensor(struct gd_tensor *tensor, struct gd_source **ret, struct gd_err *err);

struct gd_source *gd_source_ref(struct gd_source *source);
void gd_source_unref(struct gd_source *source); /* NULL is fine */

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
