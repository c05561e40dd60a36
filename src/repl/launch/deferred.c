// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/launch/deferred.h"

#include <stdio.h>
#include <string.h>

#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

#define MAX_DEFERRED 256

bool deferred_is_due(const struct command_call *call)
{
    return call->debugger->session_count > 0;
}

int deferred_keep(struct command_call *call, const char *words, struct gd_err *err)
{
    struct repl_lines *lines = &call->repl->deferred;
    size_t size = strlen(call->command->name) + strlen(words) + 2;
    char *line = gd_arena_alloc(call->arena, size);
    if (lines->count >= MAX_DEFERRED) {
        return gd_fail(err, GD_ELIMIT, "more than %d commands wait for a training process",
                       MAX_DEFERRED);
    }
    if (!line) {
        return gd_fail_nomem(err);
    }
    snprintf(line, size, "%s %s", call->command->name, words);
    if (repl_lines_add(lines, line) != GD_OK) {
        return gd_fail_nomem(err);
    }
    cJSON *record = out_record(call->out, "deferred");
    out_set(record, OUT_TEXT("line", line));
    out_say(call->out, record, "\"{line}\" runs when a training process has connected.\n");
    return GD_OK;
}

void deferred_run(struct repl *repl)
{
    struct repl_lines lines = repl->deferred;
    repl->deferred = (struct repl_lines){.line = NULL};
    repl->script.user_lines = 0;
    for (size_t i = 0; i < lines.count && !repl->end.quit; i++) {
        repl_run_line(repl, lines.line[i], LINE_SCRIPT); /* reports its failure */
    }
    repl_lines_clear(&lines);
}
