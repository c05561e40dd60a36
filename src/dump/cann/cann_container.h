// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A CANN dump file of one operator: its inputs, outputs, buffers and workspaces, and where in the
 * file their bytes are. Reads three layouts: the usual one (length, protobuf description, bytes),
 * that of old releases (protobuf only) and the nano layout.
 *
 * A file may have fewer bytes than it announces: a tensor's device address was empty, or the dump
 * was cut off. That is not an error; each tensor says how much of it is there.
 */
#ifndef GD_DUMP_CANN_CONTAINER_H
#define GD_DUMP_CANN_CONTAINER_H

#include "base/arena.h"
#include "base/tensor.h"
#include "dump/io/disk.h"

enum gd_cann_io { GD_CANN_INPUT, GD_CANN_OUTPUT, GD_CANN_BUFFER, GD_CANN_SPACE };

struct gd_cann_tensor {
    enum gd_cann_io io;
    uint32_t index;    /* within its kind */
    int32_t data_type; /* in the dump numbering (cann_types.h) */
    int32_t format;    /* without the bits packed above it */
    uint32_t group;    /* FRACTAL_Z: groups of the convolution; 0: none */
    bool bad_shape;    /* a shape is invalid: too many dimensions, or too large */
    bool has_shape, has_original;
    struct gd_shape shape;     /* as stored */
    struct gd_shape original;  /* as in the framework */
    uint64_t size;             /* bytes it should have; 0: the operator did not get it */
    uint64_t at;               /* offset of its bytes in the file */
    uint64_t there;            /* bytes of it in the file */
    const unsigned char *data; /* old releases: within the description; otherwise NULL */
    const char *original_op;   /* the operator it belonged to before fusion; "" unknown */
    uint32_t original_output;
    int32_t original_format; /* of that operator; -1 unknown */
    int32_t buffer_type;     /* buffers: 0 is L1; workspaces: 0 is a log */
};

enum gd_cann_layout { GD_CANN_USUAL, GD_CANN_LEGACY, GD_CANN_NANO };

struct gd_cann_file {
    enum gd_cann_layout layout;
    const char *version;
    const char *op_name;           /* as in the graph; "" unknown */
    const char *dfx;               /* text of an exception; "" none */
    uint64_t dump_time;            /* 0: unknown */
    uint64_t missing;              /* bytes that should be in the file but are not */
    uint64_t extra;                /* bytes after the last tensor */
    struct gd_cann_tensor *tensor; /* inputs, outputs, buffers, workspaces, in file order */
    uint32_t count;
    uint32_t count_of[4]; /* indexed by enum gd_cann_io */
    struct gd_arena arena;
};

/* GD_EPROTO: not a dump file (the message says why). */
int gd_cann_read(struct gd_disk *disk, struct gd_cann_file **ret, struct gd_err *err);
void gd_cann_free(struct gd_cann_file *file); /* NULL is fine */

/* NULL: none. */
const struct gd_cann_tensor *gd_cann_find(const struct gd_cann_file *file, enum gd_cann_io io,
                                          uint32_t index);
const char *gd_cann_io_name(enum gd_cann_io io); /* "input", "output", "buffer", "space" */

/* A cheap first check: whether a file of that size could begin with these bytes. */
bool gd_cann_looks_right(const unsigned char *start, size_t len, uint64_t file_size);

#endif
