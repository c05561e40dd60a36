// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The tensors of a dumped operator as sources: in the framework's shape if the device's layout is
 * known, otherwise as stored, with a note. Missing bytes are reported when they are read.
 */
#ifndef GD_DUMP_CANN_SOURCE_H
#define GD_DUMP_CANN_SOURCE_H

#include "dump/cann/cann_container.h"
#include "dump/cann/cann_layout.h"
#include "dump/io/source.h"

#define GD_CANN_NOTE 320

/* Notes for the user: a converted layout, missing bytes. */
void gd_cann_note(const struct gd_cann_file *file, const struct gd_cann_tensor *tensor,
                  const struct gd_cann_plan *plan, char *note, size_t size);

/* hint and to: see gd_cann_plan. */
int gd_cann_source(struct gd_disk *disk, const struct gd_cann_file *file,
                   const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                   struct gd_source **ret, struct gd_err *err);
/* As stored, whatever the layout. */
int gd_cann_source_stored(struct gd_disk *disk, const struct gd_cann_file *file,
                          const struct gd_cann_tensor *tensor, struct gd_source **ret,
                          struct gd_err *err);
/* Like gd_cann_source, but the file is read again only on demand. */
int gd_cann_source_lazy(struct gd_disk *disk, enum gd_cann_io io, uint32_t index, int32_t hint,
                        struct gd_source **ret, struct gd_err *err);

#endif
