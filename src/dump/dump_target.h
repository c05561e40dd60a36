// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A dump as targets: every catalog is a session that is stopped at the end of a recorded step and
 * can go to any other. The ranks of one dump move together.
 *
 * Moving forward evaluates the watchpoints in each step passed, from the values on disk; moving
 * back does not. Long work is done in pieces (ops->work).
 */
#ifndef GD_DUMP_DUMP_TARGET_H
#define GD_DUMP_DUMP_TARGET_H

#include "dump/catalog.h"
#include "engine/debugger.h"

/* Creates a session for every catalog; *ret is the first, which is selected. Takes over the dump,
 * also on failure. `path`: what was opened. */
int gd_dump_sessions(struct gd_debugger *debugger, struct gd_dump *dump, const char *path,
                     struct gd_session **ret, struct gd_err *err);

/* The dump of a session; NULL: it is not a dump. */
struct gd_dump *gd_dump_of(const struct gd_session *session);
struct gd_catalog *gd_catalog_of(const struct gd_session *session);

/* The catalog's scalars have changed: the session learns those up to its step. */
void gd_dump_recall_scalars(struct gd_session *session);

#endif
