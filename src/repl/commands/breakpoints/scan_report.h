// SPDX-License-Identifier: GPL-3.0-or-later
/* What scan and merge share. */
#ifndef GD_REPL_SCAN_REPORT_H
#define GD_REPL_SCAN_REPORT_H

#include "dump/scan/scan.h"
#include "repl/core/work.h"

struct scanning {
    struct command_call *call;
    struct repl_work work;
};
/* From here to scan_finish, Ctrl-C ends the scan. */
void scan_begin(struct scanning *s, struct command_call *call);
/* gd_scan_options.go_on; ctx is a struct scanning. */
bool scan_go_on(void *ctx, uint64_t done, uint64_t total);
int scan_finish(struct scanning *s, int rc, struct gd_err *err);

void scan_report(struct command_call *call, const struct gd_scan_options *options,
                 const struct gd_scan_summary *sum, double seconds);

#endif
