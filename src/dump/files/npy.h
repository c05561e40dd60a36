// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * NumPy's .npy: a header that is a Python dictionary, then the elements. Wherever its bytes are: a
 * file, a member of an .npz.
 */
#ifndef GD_DUMP_NPY_H
#define GD_DUMP_NPY_H

#include "dump/io/source.h"

#define GD_NPY_MAX_HEADER 65536

struct gd_npy {
    enum gd_stored stored; /* GD_STORED_OPAQUE: the elements are texts or raw bytes, of `item` */
    size_t item;           /* bytes of an element */
    bool swap, fortran;
    struct gd_shape shape;
    char descr[32];      /* as it is written */
    const char *assumed; /* a sentence when the type is a guess; NULL: it is certain */
    size_t data;         /* byte where the elements begin */
};

bool gd_npy_is(const unsigned char *start, size_t size);

/* The header of bytes that begin with it. `dtype`: what "<V1" and the like are, NULL: unknown.
 * GD_EPROTO: broken, says how; GD_EUNSUPPORTED: objects, structures, long doubles. */
int gd_npy_read_header(struct gd_bytes *bytes, const char *dtype, struct gd_npy *ret,
                       struct gd_err *err);

/* The tensor that has such a header. `name` is for errors. `partial`: of bytes that are cut short,
 * the rows of the first axis that are whole. *trailing gets the bytes behind the elements; may be
 * NULL. */
int gd_npy_source(struct gd_bytes *bytes, const struct gd_npy *npy, const char *name, bool partial,
                  struct gd_source **ret, uint64_t *trailing, struct gd_err *err);

#endif
