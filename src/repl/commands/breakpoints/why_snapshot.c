// SPDX-License-Identifier: GPL-3.0-or-later
/* `why` where a memory snapshot is open: the allocation that failed, and what held the rest. */
#include "repl/commands/breakpoints/why_snapshot.h"

#include "engine/graph/graph.h"
#include "engine/session.h"
#include "repl/values/memory.h"

/* The allocator had as many bytes as it was asked for, but could not give them. Why is not
 * recorded: pieces, rounding, and pools of other streams and sizes look the same. */
static void show_pieces(struct command_call *call, const struct gd_memory *report, cJSON *oom)
{
    int64_t unheld = report->oom.reserved - report->oom.held;
    out_set(oom, OUT_IF(report->oom.reserved >= 0, OUT_INT("unheld", unheld)));
    if (report->oom.reserved < 0 || unheld < report->oom.asked) {
        return;
    }
    out_say(call->out, oom,
            "\n{unheld:bytes} of the reserved memory was not held, more than the {asked:bytes} "
            "asked for: it was in pieces that were too small, lost to rounding, or in other pools. "
            "[{?fixed}PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True makes fewer pieces.]\n",
            OUT_BOOL("fixed", !report->oom.expandable));
}

static void show_growth(struct command_call *call, const cJSON *memory)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(memory, "growth"))
    {
        out_say(call->out, row,
                "\nGrows by {per_step:bytes} each step: {name}[ ({where})], {count} blocks left "
                "by the steps {first_step} to {last_step}\n");
    }
}

static void show_oom(struct command_call *call, const struct gd_memory *report)
{
    cJSON *record = out_record(call->out, "oom");
    cJSON *memory = out_object(record, "memory");
    memory_record(memory, report);
    memory_show_oom(call, memory, false);
    show_pieces(call, report, cJSON_GetObjectItem(memory, "oom"));
    show_growth(call, memory);
}

int why_snapshot(struct command_call *call, bool *done, struct gd_err *err)
{
    struct gd_target *target = call->session->target;
    struct gd_graph_counts counts;
    struct gd_memory report;
    *done = false;
    if (!target || !target->ops->memory) {
        return GD_OK;
    }
    gd_memory_init(&report);
    int rc = target->ops->memory(target, &report, err);
    if (rc == GD_ENODATA) { /* it is not a snapshot */
        gd_memory_deinit(&report);
        return GD_OK;
    }
    gd_memory_sort(&report);
    gd_graph_counts(call->session->graph, &counts);
    if (rc == GD_OK && report.oom.asked >= 0) {
        show_oom(call, &report);
        *done = true;
    } else if (rc == GD_OK && counts.nodes == 0) {
        rc = gd_fail(err, GD_ENODATA,
                     "memory did not run out in this snapshot: info memory shows what holds it");
    }
    gd_memory_deinit(&report);
    return rc;
}
