// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes tensor files, one tensor after another, with elements in pieces: only names and shapes are
 * kept in memory. .npz and safetensors need a seekable file. An .npz is not compressed, like
 * numpy.savez.
 */
#ifndef GD_DUMP_TENSOR_WRITER_H
#define GD_DUMP_TENSOR_WRITER_H

#include <stdio.h>

#include "base/tensor.h"

enum gd_tensor_file { GD_FILE_NPY, GD_FILE_NPZ, GD_FILE_SAFETENSORS };

struct gd_tensor_writer;

/* By the extension; .npy for anything but .npz and .safetensors. */
enum gd_tensor_file gd_tensor_file_of(const char *path);
/* Whether the file can hold the type: numpy's files lack bfloat16, whose bits are written as
 * uint16; safetensors lacks complex128. */
bool gd_tensor_file_holds(enum gd_tensor_file kind, enum gd_dtype dtype);

/* A tensor to be written: a safetensors header comes first in the file. `rank` may be larger than
 * the actual one. */
struct gd_tensor_plan {
    const char *name;
    int rank;
};
/* `format`: "pt", "np" or "ms" for safetensors' metadata; NULL: none. The file stays the
 * caller's. */
int gd_tensor_writer_create(enum gd_tensor_file kind, FILE *file, const struct gd_tensor_plan *plan,
                            size_t count, const char *format, struct gd_tensor_writer **ret,
                            struct gd_err *err);
/* Names must be unique. Call begin, then pass all elements, C-contiguous, in pieces of any size,
 * then end the tensor. GD_EUNSUPPORTED: the file cannot hold the type or another tensor; GD_EIO. */
int gd_tensor_writer_begin(struct gd_tensor_writer *writer, const char *name, enum gd_dtype dtype,
                           const struct gd_shape *shape, struct gd_err *err);
int gd_tensor_writer_data(struct gd_tensor_writer *writer, const void *data, size_t size,
                          struct gd_err *err);
int gd_tensor_writer_end(struct gd_tensor_writer *writer, struct gd_err *err);
/* After the last tensor. A full disk may show only when the file is closed. */
int gd_tensor_writer_finish(struct gd_tensor_writer *writer, struct gd_err *err);
void gd_tensor_writer_destroy(struct gd_tensor_writer *writer); /* NULL is fine */

#endif
