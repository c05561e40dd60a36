// SPDX-License-Identifier: GPL-3.0-or-later
/* `info scopes`. */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/tree.h"

int info_scopes(struct command_call *call, struct gd_err *err)
{
    int64_t depth = 3;
    bool all = inspect_take_flag(call, "-a");
    if (inspect_take_flag(call, "-r")) {
        depth = TREE_MAX_DEPTH;
    }
    int rc = inspect_take_count(call, "-d", 0, TREE_MAX_DEPTH, &depth, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    gd_scope_id scope = 0;
    if (rc == GD_OK && call->argc > 0) {
        rc = nodes_find_scope(call, inspect_join(call, 0, call->argc), &scope, err);
    }
    if (rc == GD_OK) {
        tree_show_scopes(call, scope, depth, all);
    }
    return rc;
}
