// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes the timelines of sessions in Chrome's JSON format, which Perfetto and chrome://tracing
 * open: each session is a process, whose number is its rank. Steps and their parts are one track,
 * each thread or stream of operators is another, and metrics are counters.
 */
#ifndef GD_DUMP_TRACE_WRITER_H
#define GD_DUMP_TRACE_WRITER_H

#include <stdio.h>

#include "engine/debugger.h"

struct trace_written {
    uint64_t steps, operators, metrics; /* events */
    uint64_t dropped;                   /* events that the timelines no longer have */
    bool laid;                          /* starts of operators were not measured */
};

/* What the timelines contain now; go_on may let trainings run, which add to them. Sessions without
 * a timeline are left out. With `packed`, as gzip. GD_EIO; GD_EINTR: go_on, called
 * with the number of events, returned false. */
int trace_write(FILE *file, bool packed, struct gd_session *const *sessions, size_t count,
                bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct trace_written *ret,
                struct gd_err *err);

#endif
