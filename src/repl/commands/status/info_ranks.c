// SPDX-License-Identifier: GPL-3.0-or-later
/* `info ranks`. */
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

/* The program without its path, and shortened. */
static const char *program_name(struct command_call *call, const char *program)
{
    size_t name = strcspn(program, " ");
    while (name > 0 && program[name - 1] != '/') {
        name--;
    }
    const char *text = out_safe(call, program + name);
    return strlen(text) > 28 ? inspect_printf(call, "%.25s...", text) : text;
}

/* By job in order of appearance, then by rank. */
static int compare_rows(const void *a, const void *b)
{
    const struct gd_session *x = *(struct gd_session *const *)a;
    const struct gd_session *y = *(struct gd_session *const *)b;
    bool same_job = gd_ranks_of(x) && gd_ranks_of(x) == gd_ranks_of(y);
    if (same_job && x->peer.rank != y->peer.rank) {
        return x->peer.rank < y->peer.rank ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* All sessions in the order of the table; ranks of a job are adjacent. */
static struct gd_session **rows_of(struct command_call *call)
{
    const struct gd_debugger *debugger = call->debugger;
    size_t count = debugger->session_count;
    struct gd_session **rows = gd_arena_alloc(call->arena, (count + 1) * sizeof(*rows));
    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = debugger->sessions[i];
    }
    if (rows) {
        qsort(rows, count, sizeof(struct gd_session *), compare_rows);
    }
    return rows;
}

int info_ranks(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"selected", " ", false, "[{?selected}*]"},
        {"session", "Num", true},
        {"rank", "Rank", false, "{rank}[{?job} of {world_size}]"},
        {"pid", "Pid", true, "[{pid}]"},
        {"host", "Host", false},
        {"device", "Device", false},
        {"state", "State", false},
        {"step", "Step", true},
        {"node", "Node", false, "[{?here}[{node}[ {batch}]]]"},
        {"hits", "Hits", true},
        {"program", "Program", false, "{name}"},
    };
    struct gd_session **rows = rows_of(call);
    size_t count = call->debugger->session_count;
    if (!rows) {
        return gd_fail_nomem(err);
    }
    struct out_table *table =
        out_table_begin(call->out, "ranks", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct gd_session *session = rows[i];
        cJSON *row = out_row(table);
        info_add_session(call, row, session);
        out_set(row, OUT_INT("hits", session->hits_dropped + session->hit_count));
        out_put_text(table, OUT_BOOL("job", session->peer.world_size > 1),
                     OUT_BOOL("here", session->state == GD_STOPPED && !session->stop.at_step_end),
                     OUT_TEXT("batch", inspect_micro_batch(call, session, session->stop.node)),
                     OUT_TEXT("name", program_name(call, session->peer.program)));
    }
    out_table_end(table);
    if (count == 0) {
        out_printf(call->out, "No training process has connected.\n");
    }
    return GD_OK;
}
