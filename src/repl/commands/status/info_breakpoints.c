// SPDX-License-Identifier: GPL-3.0-or-later
/* `info breakpoints`. */
#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/break.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch.h"

static void print_body(struct command_call *call, int number)
{
    const struct repl_lines *body = repl_commands_of(call->repl, number);
    for (size_t i = 0; body && i < body->count; i++) {
        out_printf(call->out, "        %s\n", out_safe(call, body->line[i]));
    }
}

static void print_breakpoint(struct command_call *call, const struct gd_breakpoint *at)
{
    struct gd_buf place = GD_BUF_INIT(1 << 20);

    breakpoint_place(call, at, &place);
    out_printf(call->out, "%-3d  %-10s  %-4s  %-3s  %s\n", at->number, "breakpoint",
               at->temporary ? "del" : "keep", at->enabled ? "y" : "n", gd_buf_text(&place));
    if (at->hits > 0) {
        out_printf(call->out, "        already hit %llu time%s\n", (unsigned long long)at->hits,
                   at->hits == 1 ? "" : "s");
    }
    if (at->ignore > 0) {
        out_printf(call->out, "        ignore next %llu hit%s\n", (unsigned long long)at->ignore,
                   at->ignore == 1 ? "" : "s");
    }
    print_body(call, at->number);
    gd_buf_deinit(&place);
}

static void print_watchpoint(struct command_call *call, const struct gd_watchpoint *watch)
{
    out_printf(call->out, "%-3d  %-10s  %-4s  %-3s  %s\n", watch->number,
               watch->event                      ? "catchpoint"
               : watch->action == GD_WATCH_TRACE ? "trace"
                                                 : "watchpoint",
               watch->temporary ? "del" : "keep", watch->enabled ? "y" : "n",
               watch_text(call, watch));
    print_body(call, watch->number);
}

/* Both kinds, in order of their numbers, as gdb lists them. */
int info_breakpoints(struct command_call *call, struct gd_err *err)
{
    cJSON *list = out_list(out_record(call->out, "breakpoints"), "breakpoints");
    const struct gd_breakpoint *b = call->debugger->breakpoints;
    const struct gd_watchpoint *w = call->debugger->watchpoints;

    (void)err;
    if (!b && !w) {
        out_printf(call->out, "No breakpoints.\n");
        return GD_OK;
    }
    out_printf(call->out, "Num  Type        Disp  Enb  Where\n");
    while (b || w) {
        if (!b || (w && w->number < b->number)) {
            print_watchpoint(call, w); /* their records belong to info watchpoints */
            w = w->next;
            continue;
        }
        if (out_is_json(call->out)) {
            cJSON *object = out_push(list);
            breakpoint_record(call, object, b);
        } else {
            print_breakpoint(call, b);
        }
        b = b->next;
    }
    return GD_OK;
}
