// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * NumPy's .npy: a header with a Python dictionary, then the elements. Read from a file or a member
 * of an .npz.
 */
#ifndef GD_DUMP_NPY_H
#define GD_DUMP_NPY_H

#include "dump/io/source.h"

#define GD_NPY_MAX_HEADER 65536

struct gd_npy {
    /* GD_STORED_OPAQUE: the elements are strings or raw bytes of `item` bytes */
    enum gd_stored stored;
    size_t item; /* bytes per element */
    bool swap, fortran;
    struct gd_shape shape;
    char descr[32];      /* as written */
    const char *assumed; /* a sentence if the type is a guess; NULL: certain */
    size_t data;         /* offset of the elements */
};

bool gd_npy_is(const unsigned char *start, size_t size);

/* Parses the header at the beginning of the bytes. `dtype` resolves "<V1" and the like; NULL:
 * unknown. GD_EPROTO: broken; GD_EUNSUPPORTED: objects, structures, long doubles. */
int gd_npy_read_header(struct gd_bytes *bytes, const char *dtype, struct gd_npy *ret,
                       struct gd_err *err);

/* The tensor that the header describes. `name` is for errors. `partial`: of truncated bytes, the
 * complete rows of the first axis. *trailing (may be NULL) gets the number of bytes after the
 * elements. */
int gd_npy_source(struct gd_bytes *bytes, const struct gd_npy *npy, const char *name, bool partial,
                  struct gd_source **ret, uint64_t *trailing, struct gd_err *err);

#endif
