// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: merge */
#include "dump/scan/scan.h"
#include "repl/commands/breakpoints/scan_report.h"
#include "repl/core/repl_impl.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

static int run_merge(struct command_call *call, struct gd_err *err)
{
    struct scanning s;
    struct gd_scan_options options = {.go_on = scan_go_on, .ctx = &s};
    struct gd_scan_summary sum;
    int rc = repl_check_seal(call->repl, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc == GD_OK && call->argc == 0) {
        rc = gd_fail(err, GD_EUSAGE, "merge: specify the part files or their directory");
    }
    if (rc != GD_OK) {
        return rc;
    }
    for (int i = 0; i < call->argc; i++) {
        call->argv[i] = (char *)inspect_home_path(call, call->argv[i]);
    }
    double since = repl_now(call->repl);
    scan_begin(&s, call);
    rc = scan_finish(&s,
                     gd_scan_merge(call->session, (const char *const *)call->argv,
                                   (size_t)call->argc, &options, &sum, err),
                     err);
    rc = rc == GD_OK ? hits_need_checked(sum.hits, sum.checks, sum.unclear, sum.errors, err) : rc;
    if (rc == GD_OK) {
        sum.remembered = 0; /* every value comes from the parts */
        scan_report(call, &options, &sum, repl_now(call->repl) - since);
    }
    return rc;
}

const struct command cmd_merge = {
    .name = "merge",
    .group = "breakpoints",
    .usage = "merge PATH...",
    .summary = "Evaluate the watchpoints on the parts of a scan",
    .help =
        "Each PATH is a file written by \"scan --shard I/N --out FILE\" or a directory of such\n"
        "files; all parts of a scan are needed. The dump must be open and the same watchpoints\n"
        "must be set. The hits are the same as those of a single scan.",
    .examples = "merge parts/\n"
                "merge part1.gdscan part2.gdscan",
    .args = {ARG_FILE, ARG_FILE, ARG_FILE},
    .flags = CMD_NEEDS_SESSION,
    .run = run_merge,
};
