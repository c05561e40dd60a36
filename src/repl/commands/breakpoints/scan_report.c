// SPDX-License-Identifier: GPL-3.0-or-later
/* What scan and merge share: progress and the report. */
#include "repl/commands/breakpoints/scan_report.h"
#include "dump/scan/scan.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

bool scan_go_on(void *ctx, uint64_t done, uint64_t total)
{
    struct scanning *s = ctx;

    gd_progress_of(s->work.progress, total); /* the estimate improves with each file */
    s->work.total = total;
    return repl_work_at(&s->work, done);
}

void scan_report(struct command_call *call, const struct gd_scan_options *options,
                 const struct gd_scan_summary *sum, double seconds)
{
    bool part = options->asked.shards > 1;
    cJSON *record = out_record(call->out, call->command->name);

    out_set(record, OUT_INT("values", sum->values), OUT_INT("steps", sum->steps),
            OUT_INT("ranks", sum->ranks), OUT_INT("remembered", sum->remembered),
            OUT_INT("bytes", sum->bytes), OUT_REAL("seconds", seconds), OUT_INT("hits", sum->hits));
    hits_add_checked(record, sum->checks, sum->unclear, sum->errors);
    out_set(record, OUT_INT("unreadable", sum->unreadable),
            OUT_IF(part, OUT_INT("shard", options->asked.shard)),
            OUT_IF(part, OUT_INT("shards", options->asked.shards)), OUT_SOME("file", sum->file));
    out_say(call->out, record,
            "{values|value} of {steps|step}[{?ranked} and {ranks|rank}][, {remembered:n} of them "
            "from the cache][: {bytes:bytes} in {seconds:time}, {rate:bytes}/s].\n",
            OUT_BOOL("ranked", sum->ranks > 1), OUT_TEXT("took", inspect_duration(call, seconds)),
            OUT_REAL("rate", (double)sum->bytes / (seconds > 1e-6 ? seconds : 1e-6)));
    out_say(call->out, record,
            part
                ? "Part {shard} of {shards} is in {file}; \"merge\" evaluates all parts together.\n"
                : "[{hits|hit} (info hits, hit N)][{!hits}No watchpoint fired]: {checked}.\n",
            OUT_TEXT("checked", hits_checked(call, sum->checks, sum->unclear, sum->errors)));
    out_say(call->out, record,
            "[warning: {unreadable|value} could not be read[; one of them: {first}]\n]",
            OUT_TEXT("first", sum->first_unreadable));
}

void scan_begin(struct scanning *s, struct command_call *call)
{
    *s = (struct scanning){.call = call};
    repl_work_begin_count(&s->work, call, call->command->name, "B", 0);
}

int scan_finish(struct scanning *s, int rc, struct gd_err *err)
{
    rc = repl_work_end(&s->work, rc, err);
    repl_hits_over(s->call->repl);
    return rc;
}
