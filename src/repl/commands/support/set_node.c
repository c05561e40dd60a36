// SPDX-License-Identifier: GPL-3.0-or-later
/* `set NODE[SLICE] = VALUE` and `set requires_grad NODE on|off`: see python/gradb/changes.py. */
#include <string.h>

#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"
#include "repl/values/change.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define REQUIRES "requires_grad"

/* The '=' of an assignment, outside of brackets; NULL: there is none. */
static const char *find_equals(const char *line)
{
    int depth = 0;

    for (; *line != '\0'; line++) {
        depth += *line == '[' ? 1 : *line == ']' ? -1 : 0;
        if (*line == '=' && depth == 0) {
            return line;
        }
    }
    return NULL;
}

bool set_node_is_meant(const char *line)
{
    return arg_after(line, REQUIRES) || find_equals(line);
}

static const char *trim_text(struct command_call *call, const char *from, const char *end)
{
    from += strspn(from, " \t");
    while (end > from && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return inspect_printf(call, "%.*s", (int)(end > from ? end - from : 0), from);
}

static int set_requires_grad(struct command_call *call, const char *rest, struct gd_err *err)
{
    const char *end = rest + strlen(rest);
    const char *blank = strrchr(rest, ' ');
    const char *word = blank ? blank + 1 : end;
    bool on = strcmp(word, "on") == 0;
    gd_node_id node;

    if (!blank || (!on && strcmp(word, "off") != 0)) {
        return gd_fail(err, GD_EINVAL, "set requires_grad: specify a parameter and on or off");
    }
    int rc = arg_node(call, trim_text(call, rest, blank), &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *request = change_request(REQUIRES);
    cJSON_AddStringToObject(request, "node", gd_graph_name(call->session->graph, node));
    cJSON_AddBoolToObject(request, "on", on);
    return change_send(call, "change", request, err);
}

static int set_value(struct command_call *call, const char *equals, struct gd_err *err)
{
    const char *name = trim_text(call, call->line, equals);
    const char *number = trim_text(call, equals + 1, equals + strlen(equals));
    struct tensor_arg arg;
    int rc = name[0] == '$' ? gd_fail(err, GD_EINVAL, "set: %s is a copy, name a node", name)
                            : arg_tensor(call, name, &arg, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (number[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "set: specify a number after the =");
    }
    cJSON *request = change_request("value");
    cJSON_AddStringToObject(request, "node", gd_graph_name(call->session->graph, arg.ref.node));
    cJSON_AddStringToObject(request, "slice", value_slice_text(call, &arg.slice));
    cJSON_AddStringToObject(request, "value", number);
    return change_send(call, "change", request, err);
}

int set_node(struct command_call *call, struct gd_err *err)
{
    const char *rest = arg_after(call->line, REQUIRES);
    int rc = repl_check_needs(call, "set", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);

    if (rc != GD_OK) {
        return rc;
    }
    return rest ? set_requires_grad(call, rest, err)
                : set_value(call, find_equals(call->line), err);
}
