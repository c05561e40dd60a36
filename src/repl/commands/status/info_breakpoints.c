// SPDX-License-Identifier: GPL-3.0-or-later
/* `info breakpoints`. */
#include "engine/watch/expression.h"
#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/values/watch.h"

static void show_breakpoint(struct command_call *call, const struct gd_breakpoint *at, cJSON *list)
{
    cJSON *object = out_push(list);
    struct gd_buf line = GD_BUF_INIT(1 << 20);

    breakpoint_record(call, object, at);
    if (at->print) {
        breakpoint_line(at, &line);
    }
    out_say(call->out, object,
            "{number:-3}  {kind:-10}  {disp:-4}  {enb:-3}  {place}\n"
            "[        {line}\n]"
            "[        already hit {hits|time}\n][        ignore next {ignore|hit}\n]",
            OUT_TEXT("line", gd_buf_text(&line)),
            OUT_TEXT("kind", at->print     ? "dprintf"
                             : !at->event  ? "breakpoint"
                             : at->command ? "on"
                                           : "catchpoint"),
            OUT_TEXT("disp", at->temporary ? "del" : "keep"),
            OUT_TEXT("enb", at->enabled ? "y" : "n"),
            OUT_TEXT("place", breakpoint_place(call, at)));
    out_say_each(call->out, cJSON_GetObjectItem(object, "commands"), "        {}\n");
    gd_buf_deinit(&line);
}

/* Its record belongs to info watchpoints. */
static void print_watchpoint(struct command_call *call, const struct gd_watchpoint *watch)
{
    const struct repl_lines *body = repl_commands_of(call->repl, watch->number);
    const char *type = watch->event                      ? "catchpoint"
                       : watch->action == GD_WATCH_TRACE ? "trace"
                                                         : "watchpoint";

    out_printf(call->out, "%-3d  %-10s  %-4s  %-3s  %s\n", watch->number, type,
               watch->temporary ? "del" : "keep", watch->enabled ? "y" : "n",
               watch_text(call, watch));
    for (size_t i = 0; body && i < body->count; i++) {
        out_printf(call->out, "        %s\n", out_safe(call, body->line[i]));
    }
}

/* Both kinds, in order of their numbers, as gdb lists them. */
int info_breakpoints(struct command_call *call, struct gd_err *err)
{
    cJSON *list = out_list(out_record(call->out, "breakpoints"), "breakpoints");
    const struct gd_breakpoint *b = call->debugger->breakpoints;
    const struct gd_watchpoint *w = call->debugger->watchpoints;

    (void)err;
    out_printf(call->out, b || w ? "Num  Type        Disp  Enb  Where\n" : "No breakpoints.\n");
    while (b || w) {
        if (!b || (w && w->number < b->number)) {
            print_watchpoint(call, w);
            w = w->next;
        } else {
            show_breakpoint(call, b, list);
            b = b->next;
        }
    }
    return GD_OK;
}