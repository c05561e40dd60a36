// SPDX-License-Identifier: GPL-3.0-or-later
/* What msprobe itself found in a dump. Private to its reader. */
#ifndef GD_DUMP_MSPROBE_H
#define GD_DUMP_MSPROBE_H

#include "dump/msprobe/api_load.h"

/* Adds events to the existing calls from anomaly_analyze_*.json, next to dump.json or in a
 * directory of its step; the contents of dump_error_info.log are reported as left out. */
int msprobe_events(struct api_load *load, const char *path, const struct api_where *where,
                   struct gd_err *err);

#endif
