// SPDX-License-Identifier: GPL-3.0-or-later
/* break NODE if EXPR, tbreak NODE if EXPR. */
#include <string.h>

#include "engine/watch/expression.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch.h"
#include "repl/core/watch_args.h"

/* "if" begins here, and it is a word. */
static bool is_if(const char *text)
{
    return strncmp(text, "if", 2) == 0 && (text[2] == ' ' || text[2] == '\0');
}

static bool has_if(const char *line)
{
    bool found = is_if(line);
    for (const char *at = line; !found && (at = strchr(at, ' ')); at++) {
        found = is_if(at + 1);
    }
    return found;
}

/* "WHERE if EXPR", where both may be in quotes and WHERE may be missing: as "on WHERE if EXPR". */
static int parse_condition(struct command_call *call, struct watch_args *ret, struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    size_t added = is_if(call->line) ? 0 : strlen("on ");
    int rc = gd_buf_printf(&text, "%s%s", added > 0 ? "on " : "", call->line);
    if (rc == GD_OK) {
        size_t column = call->line_at > added ? call->line_at - added : 0;
        rc = watch_args_parse_edit(call->arena, gd_buf_text(&text), column, NULL, ret, err);
    }
    if (rc != GD_OK && err->offset >= added) {
        err->offset -= added;
    }
    gd_buf_deinit(&text);
    return rc;
}

/* An expression that no figure of the tensor occurs in is about the training: it guards, then. */
static int split_condition(const char *text, struct gd_watch_spec *ret, struct gd_err *err)
{
    struct gd_expr *expression = NULL;
    int rc = gd_expr_parse(text, &expression, err);
    if (rc != GD_OK) {
        return rc;
    }
    bool of_tensor = gd_expr_has_statistic(expression);
    gd_expr_destroy(expression);
    ret->expression = of_tensor ? text : "count >= 0";
    ret->guard = of_tensor ? NULL : text;
    return GD_OK;
}

int watch_current_node(struct command_call *call, const char **ret, struct gd_err *err)
{
    const struct gd_session *session = call->debugger->current;
    if (!session || session->current == GD_NO_NODE) {
        return gd_fail(err, GD_EUSAGE, "%s: name a node: there is no current one",
                       call->command->name);
    }
    *ret = gd_graph_name(session->graph, session->current);
    return GD_OK;
}

int watch_break_if(struct command_call *call, bool temporary, bool *ret, struct gd_err *err)
{
    struct watch_args args;
    struct gd_watchpoint *watch = NULL;
    *ret = has_if(call->line);
    int rc = *ret ? parse_condition(call, &args, err) : GD_OK;
    *ret = *ret && (rc != GD_OK || args.guard); /* it may stand in quotes */
    if (rc != GD_OK || !*ret) {
        return rc;
    }
    struct gd_watch_spec spec = {.where = args.where,
                                 .when = GD_WHEN_EXACT,
                                 .action = GD_WATCH_STOP,
                                 .temporary = temporary};
    rc = args.where ? GD_OK : watch_current_node(call, &spec.where, err);
    rc = rc == GD_OK ? split_condition(args.guard, &spec, err) : rc;
    rc = rc == GD_OK ? gd_watchpoint_add(call->debugger, &spec, &watch, err) : rc;
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}
