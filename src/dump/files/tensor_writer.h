// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Files of tensors, written one tensor after another, whose elements come in pieces: nothing is
 * kept but names and shapes. .npz and safetensors are gone back in, so they need a real file. An
 * .npz is not compressed, as numpy.savez does it.
 */
#ifndef GD_DUMP_TENSOR_WRITER_H
#define GD_DUMP_TENSOR_WRITER_H

#include <stdio.h>

#include "base/tensor.h"

enum gd_tensor_file { GD_FILE_NPY, GD_FILE_NPZ, GD_FILE_SAFETENSORS };

struct gd_tensor_writer;

/* By the extension; .npy for any but .npz and .safetensors. */
enum gd_tensor_file gd_tensor_file_of(const char *path);
/* Whether it has the type: numpy's files lack bfloat16, of which the bits are written as uint16;
 * safetensors lacks complex128. */
bool gd_tensor_file_holds(enum gd_tensor_file kind, enum gd_dtype dtype);

/* Of a tensor that will be written: safetensors has its header in front. `rank` may be more than it
 * turns out to be. */
struct gd_tensor_plan {
    const char *name;
    int rank;
};
/* `format`: "pt", "np", "ms" for safetensors' metadata; NULL none. The file stays the caller's. */
int gd_tensor_writer_create(enum gd_tensor_file kind, FILE *file, const struct gd_tensor_plan *plan,
                            size_t count, const char *format, struct gd_tensor_writer **ret,
                            struct gd_err *err);
/* Names differ. Then all elements, C-contiguous, in pieces of any size, and the end of the tensor.
 * GD_EUNSUPPORTED: the file cannot hold the type, or only one tensor; GD_EIO. */
int gd_tensor_writer_begin(struct gd_tensor_writer *writer, const char *name, enum gd_dtype dtype,
                           const struct gd_shape *shape, struct gd_err *err);
int gd_tensor_writer_data(struct gd_tensor_writer *writer, const void *data, size_t size,
                          struct gd_err *err);
int gd_tensor_writer_end(struct gd_tensor_writer *writer, struct gd_err *err);
/* Behind the last one. A full disk may show only when the file is closed. */
int gd_tensor_writer_finish(struct gd_tensor_writer *writer, struct gd_err *err);
void gd_tensor_writer_destroy(struct gd_tensor_writer *writer); /* NULL is fine */

#endif
