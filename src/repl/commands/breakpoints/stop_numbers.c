// SPDX-License-Identifier: GPL-3.0-or-later
/* The numbers of breakpoints and watchpoints as arguments: "3", "2-5", "$bpnum". */
#include <limits.h>
#include <string.h>

#include "engine/watch/watchpoint.h"
#include "repl/commands/breakpoints/breakpoints.h"

int stop_range_parse(struct command_call *call, const char *text, struct stop_range *ret,
                     struct gd_err *err)
{
    if (strcmp(text, "$bpnum") == 0) {
        ret->first = call->debugger->next_breakpoint - 1;
        ret->last = ret->first;
        return GD_OK;
    }
    int64_t first = 0;
    int64_t last = 0;
    const char *dash = strchr(text, '-');
    char *head = gd_arena_strndup(call->arena, text, dash ? (size_t)(dash - text) : strlen(text));
    struct gd_err ignored;
    if (!head || arg_count(head, 1, INT_MAX, &first, &ignored) != GD_OK ||
        (dash && arg_count(dash + 1, 1, INT_MAX, &last, &ignored) != GD_OK)) {
        return gd_fail(err, GD_EINVAL, "\"%.40s\" is not a breakpoint number: write 2 or 2-5",
                       text);
    }
    ret->first = (int)first;
    ret->last = dash ? (int)last : ret->first;
    return GD_OK;
}

int stop_number_missing(int number, struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND,
                   "there is no breakpoint or watchpoint %d: see \"info breakpoints\"", number);
}

static bool is_in(const struct stop_range *range, int number)
{
    return number >= range->first && number <= range->last;
}

/* Calls fn, which may delete it, for each in the range. *any: there is at least one. */
static int for_range(struct command_call *call, const struct stop_range *range, stop_number_fn fn,
                     void *ctx, bool *any, struct gd_err *err)
{
    int rc = GD_OK;
    for (const struct gd_breakpoint *b = call->debugger->breakpoints, *next; rc == GD_OK && b;
         b = next) {
        next = b->next;
        if (is_in(range, b->number)) {
            *any = true;
            rc = fn(call, b->number, ctx, err);
        }
    }
    for (const struct gd_watchpoint *w = call->debugger->watchpoints, *next; rc == GD_OK && w;
         w = next) {
        next = w->next;
        if (is_in(range, w->number)) {
            *any = true;
            rc = fn(call, w->number, ctx, err);
        }
    }
    return rc;
}

int stop_numbers_each(struct command_call *call, int first, stop_number_fn fn, void *ctx,
                      struct gd_err *err)
{
    struct stop_range range = {1, INT_MAX};
    bool any = false;
    int rc = first < call->argc ? GD_OK : for_range(call, &range, fn, ctx, &any, err);

    for (int i = first; rc == GD_OK && i < call->argc; i++) {
        any = false;
        rc = stop_range_parse(call, call->argv[i], &range, err);
        rc = rc != GD_OK ? rc : for_range(call, &range, fn, ctx, &any, err);
        if (rc == GD_OK && !any) {
            rc = stop_number_missing(range.first, err);
        }
    }
    return rc;
}
