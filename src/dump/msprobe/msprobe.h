// SPDX-License-Identifier: GPL-3.0-or-later
/* What msprobe found out about a dump of its own. Private to its reader. */
#ifndef GD_DUMP_MSPROBE_H
#define GD_DUMP_MSPROBE_H

#include "dump/msprobe/api_load.h"

/* Events of the calls that are there: anomaly_analyze_*.json beside the dump.json or in a directory
 * of its step; and what dump_error_info.log says is told as left out. */
int msprobe_events(struct api_load *load, const char *path, const struct api_where *where,
                   struct gd_err *err);

#endif
