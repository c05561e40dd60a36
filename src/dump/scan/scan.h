// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Offline watchpoints: every value of a dump, or of some of its steps and ranks, is looked at for
 * the watchpoints of the debugger. Values are looked at in parallel, in whatever order; they are
 * judged step by step in execution order, by the code that judges what a live training reports, so
 * that conditions on the step before and on many steps mean the same.
 *
 * What was found is remembered in a file as it goes on (scan_file.h): a scan that was stopped, or
 * whose process was killed, takes up where it was. Parts of a scan are such files, too.
 */
#ifndef GD_DUMP_SCAN_H
#define GD_DUMP_SCAN_H

#include "dump/dump_target.h"
#include "dump/scan/scan_file.h"

struct gd_scan_options {
    struct gd_scan_head asked; /* `watched` is filled in here */
    /* Where to remember what was found; it stays when all is done. NULL: in the user's state
     * directory until then. A directory: a file named after the part is made in it. */
    const char *out;
    bool remember; /* false: nowhere, when there is no `out` */
    int threads;   /* 0: as there are processors */
    /* Asked now and then with the bytes that were read, of about how many; false: GD_EINTR. */
    bool (*go_on)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct gd_scan_summary {
    uint64_t values;     /* to look at, of this part */
    uint64_t remembered; /* of these: known from before */
    uint64_t steps, ranks;
    uint64_t bytes; /* that were looked at now */
    /* Of the watchpoints: what was judged, fired, could not be judged. 0 of a part: it is judged
     * when it is merged */
    uint64_t checks, hits, unclear;
    unsigned errors; /* why it could not: bits of enum gd_hit_error */
    uint64_t unreadable;
    char first_unreadable[400]; /* why, of one of them */
    char file[4096];            /* where it is remembered; "" nowhere */
    char warning[400];          /* "" or why it could not be */
};

/* Looks at the ranks of the dump that the session is one of; hits are reported by their sessions.
 * GD_EUNSUPPORTED: it is no dump; GD_ESTATE: nothing is watched in it, or `out` holds another scan.
 */
int gd_scan(struct gd_session *session, const struct gd_scan_options *options,
            struct gd_scan_summary *ret, struct gd_err *err);

/* Judges what the parts have found. A directory stands for all files of parts in it. GD_EPROTO: a
 * file is broken, or made of another dump; GD_ESTATE: of other watchpoints, or not all parts. */
int gd_scan_merge(struct gd_session *session, const char *const *paths, size_t count,
                  const struct gd_scan_options *options, struct gd_scan_summary *ret,
                  struct gd_err *err);

#endif
