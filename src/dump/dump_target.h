// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A dump as targets: every catalog is a session that stands at the end of a recorded step and goes
 * from there to any other. The ranks of one dump go together.
 *
 * Moving forward evaluates the watchpoints in each step that is passed, from the values on the
 * disk; moving back does not. What takes long is done in pieces (ops->work).
 */
#ifndef GD_DUMP_DUMP_TARGET_H
#define GD_DUMP_DUMP_TARGET_H

#include "dump/catalog.h"
#include "engine/debugger.h"

/* Makes a session of every catalog, the first one selected: *ret. Owns the dump, also on failure.
 * `path`: what was opened. */
int gd_dump_sessions(struct gd_debugger *debugger, struct gd_dump *dump, const char *path,
                     struct gd_session **ret, struct gd_err *err);

/* Of a session that is a dump; NULL: it is something else. */
struct gd_dump *gd_dump_of(const struct gd_session *session);
struct gd_catalog *gd_catalog_of(const struct gd_session *session);

#endif
