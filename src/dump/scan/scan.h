// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Offline watchpoints: evaluates the debugger's watchpoints for every value of a dump, or of
 * selected steps and ranks. Values are read in parallel, in any order, but judged step by step in
 * execution order, by the same code as a live training, so that conditions on the previous step or
 * on several steps mean the same.
 *
 * Results are saved to a file during the scan (scan_file.h): an interrupted or killed scan resumes
 * from it. The parts of a split scan are such files, too.
 */
#ifndef GD_DUMP_SCAN_H
#define GD_DUMP_SCAN_H

#include "dump/dump_target.h"
#include "dump/scan/scan_file.h"

struct gd_scan_options {
    struct gd_scan_head asked; /* `watched` is filled in by gd_scan */
    /* Where to save results; the file stays when the scan is complete. A directory: a file named
     * after the part is created in it. NULL: in the user's state directory, until the scan is
     * complete. */
    const char *out;
    bool remember; /* false: do not save, unless `out` is set */
    int threads;   /* 0: one per processor */
    /* Called now and then with the bytes read and the estimated total; false: GD_EINTR. */
    bool (*go_on)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct gd_scan_summary {
    uint64_t values;     /* to scan, in this part */
    uint64_t remembered; /* of these, known from an earlier scan */
    uint64_t steps, ranks;
    uint64_t bytes; /* read now */
    /* Conditions that were judged, that fired, and that could not be judged. 0 for a part, which is
     * judged when it is merged */
    uint64_t checks, hits, unclear;
    unsigned errors; /* why not: bits of enum gd_hit_error */
    uint64_t unreadable;
    char first_unreadable[400]; /* the reason for one of them */
    char file[4096];            /* where results are saved; "": nowhere */
    char warning[400];          /* "" or why they cannot be saved */
};

/* Scans the ranks of the session's dump; hits are reported by their sessions. GD_EUNSUPPORTED: not
 * a dump; GD_ESTATE: nothing is watched, or `out` is another scan's. */
int gd_scan(struct gd_session *session, const struct gd_scan_options *options,
            struct gd_scan_summary *ret, struct gd_err *err);

/* Judges the results of all parts. A directory stands for all part files in it. GD_EPROTO: a file
 * is broken, or from another dump; GD_ESTATE: other watchpoints, or parts missing. */
int gd_scan_merge(struct gd_session *session, const char *const *paths, size_t count,
                  const struct gd_scan_options *options, struct gd_scan_summary *ret,
                  struct gd_err *err);

#endif
