// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A file that CANN dumped of one operator: what its inputs, outputs, buffers and workspaces are,
 * and where in the file their bytes lie. Three layouts are read: the usual one (a length, a
 * description as protobuf, the bytes), that of old releases (all of it protobuf) and the nano one.
 *
 * A file may have fewer bytes than it says: the device address of a tensor was empty, or the dump
 * was cut off. That is no error; the tensors say what is there of them.
 */
#ifndef GD_DUMP_CANN_CONTAINER_H
#define GD_DUMP_CANN_CONTAINER_H

#include "base/arena.h"
#include "base/tensor.h"
#include "dump/io/disk.h"

enum gd_cann_io { GD_CANN_INPUT, GD_CANN_OUTPUT, GD_CANN_BUFFER, GD_CANN_SPACE };

struct gd_cann_tensor {
    enum gd_cann_io io;
    uint32_t index;    /* among its kind */
    int32_t data_type; /* as dumps number them (cann_types.h) */
    int32_t format;    /* without the parts that are packed above it */
    uint32_t group;    /* of FRACTAL_Z: groups of the convolution; 0 none */
    bool bad_shape;    /* the shapes are none: too many dimensions, or too large */
    bool has_shape, has_original;
    struct gd_shape shape;     /* as it is stored */
    struct gd_shape original;  /* as the framework has it */
    uint64_t size;             /* bytes that it should have; 0: it was not given to the operator */
    uint64_t at;               /* of its bytes in the file */
    uint64_t there;            /* bytes of it that are in the file */
    const unsigned char *data; /* of old releases: in the description itself; else NULL */
    const char *original_op;   /* the operator that it belonged to before fusion; "" not told */
    uint32_t original_output;
    int32_t original_format; /* of that operator; -1 not told */
    int32_t buffer_type;     /* of a buffer: 0 is L1; of a workspace: 0 is a log */
};

enum gd_cann_layout { GD_CANN_USUAL, GD_CANN_LEGACY, GD_CANN_NANO };

struct gd_cann_file {
    enum gd_cann_layout layout;
    const char *version;
    const char *op_name;           /* as the graph spells it; "" not told */
    const char *dfx;               /* words of an exception; "" none */
    uint64_t dump_time;            /* 0 not told */
    uint64_t missing;              /* bytes that the tensors should have and the file has not */
    uint64_t extra;                /* bytes behind the last of them */
    struct gd_cann_tensor *tensor; /* inputs, outputs, buffers, workspaces: as their bytes lie */
    uint32_t count;
    uint32_t count_of[4]; /* by enum gd_cann_io */
    struct gd_arena arena;
};

/* GD_EPROTO: it is no such file, says why. */
int gd_cann_read(struct gd_disk *disk, struct gd_cann_file **ret, struct gd_err *err);
void gd_cann_free(struct gd_cann_file *file); /* NULL is fine */

/* NULL: there is none. */
const struct gd_cann_tensor *gd_cann_find(const struct gd_cann_file *file, enum gd_cann_io io,
                                          uint32_t index);
const char *gd_cann_io_name(enum gd_cann_io io); /* "input", "output", "buffer", "space" */

/* Whether the first bytes of a file of that size may be such a file's: cheap, for a first look. */
bool gd_cann_looks_right(const unsigned char *start, size_t len, uint64_t file_size);

#endif
