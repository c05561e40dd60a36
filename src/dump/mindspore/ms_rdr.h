// SPDX-License-Identifier: GPL-3.0-or-later
/* Files of MindSpore's Running Data Recorder next to its graphs. Private to the readers of
 * MindSpore's formats. */
#ifndef GD_DUMP_MS_RDR_H
#define GD_DUMP_MS_RDR_H

#include "dump/catalog.h"

/* "MODULE.name.YYYYMMDDHHMMSS[_NNNN].ext" */
bool ms_rdr_is_name(const char *name);

/* Reads the execution order, and adds facts about nodes (streams, tasks, addresses) as attributes
 * of the catalog's graph. Broken and unsupported files are left out with a reason. */
int ms_rdr_take(const struct gd_listing *listing, uint32_t directory, struct gd_catalog *catalog,
                struct gd_dump *dump, struct gd_err *err);

#endif
