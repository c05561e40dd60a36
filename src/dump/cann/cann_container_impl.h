// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by the readers of the container layouts. */
#ifndef GD_DUMP_CANN_CONTAINER_IMPL_H
#define GD_DUMP_CANN_CONTAINER_IMPL_H

#include "dump/cann/cann_container.h"

#define CANN_NANO_MAGIC 0x5a5a5a5au

/* Sets shape and has from `count` dimensions; false: not a valid shape. */
bool cann_set_shape(struct gd_shape *shape, bool *has, const uint64_t *dim, size_t count);

/* Reads a nano description, which begins with the magic. */
int cann_read_nano(struct gd_cann_file *file, const unsigned char *header, size_t len,
                   struct gd_err *err);

#endif
