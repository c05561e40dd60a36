// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: exclude */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "repl/core/watch_args.h"
#include "repl/values/watch.h"

static size_t excluded_nodes(struct command_call *call, const char *where)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (!call->debugger->current || gd_selector_parse(where, &selector, NULL) != GD_OK) {
        return 0;
    }
    if (gd_selector_resolve(selector, call->debugger->current->graph, &nodes, &count, NULL) !=
        GD_OK) {
        count = 0;
        nodes = NULL;
    }
    free(nodes);
    gd_selector_destroy(selector);
    return count;
}

static void list_excluded(struct command_call *call)
{
    cJSON *list = out_list(out_record(call->out, "excluded"), "excluded");
    const char *where;
    if (!gd_exclude_at(call->debugger, 0)) {
        out_printf(call->out, "No nodes are excluded: non-finite values count everywhere.\n");
    } else {
        out_printf(call->out, "Non-finite values are expected on:\n");
    }
    for (size_t i = 0; (where = gd_exclude_at(call->debugger, i)); i++) {
        size_t nodes = excluded_nodes(call, where);
        cJSON *object = out_push(list);
        out_set(object, OUT_TEXT("where", where), OUT_INT("nodes", nodes));
        out_say(call->out, object, "  {where}: {nodes|node}\n");
    }
}

static int run_exclude(struct command_call *call, struct gd_err *err)
{
    const char *rest;
    bool remove = strcmp(watch_first_word(call, &rest), "-d") == 0;
    const char *where = remove ? rest : call->line;
    int rc = GD_OK;
    if (where[0] == '\'') {
        where = watch_args_unquote(call->arena, where);
    }
    if (!where) {
        return gd_fail_nomem(err);
    }
    if (remove && where[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "exclude -d: specify a selector");
    }
    if (where[0] != '\0') {
        rc = remove ? gd_exclude_delete(call->debugger, where, err)
                    : gd_exclude_add(call->debugger, where, err);
    }
    if (rc == GD_OK) {
        list_excluded(call);
    }
    return rc;
}

const struct command cmd_exclude = {
    .name = "exclude",
    .group = "breakpoints",
    .usage = "exclude [-d] [SELECTOR]",
    .summary = "Name nodes where NaN and infinity are expected, or list them",
    .help =
        "Masks often contain -inf on purpose. Conditions that look for non-finite values do not\n"
        "fire on these nodes, and other conditions do not report \"could not be checked\" because\n"
        "of them. -d removes a selector from the list.",
    .examples = "exclude type:softmax\n"
                "exclude -d type:softmax",
    .args = {ARG_SELECTOR},
    .flags = CMD_RAW | CMD_CHANGES,
    .run = run_exclude,
};
