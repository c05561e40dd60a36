// SPDX-License-Identifier: GPL-3.0-or-later
/* `info line`: the nodes that a source line made. */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/srcfile.h"

int info_line(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    const char *file = NULL;
    uint32_t line = 0;
    if (call->argc != 1 || !srcfile_parse_place(call, call->argv[0], &file, &line)) {
        return gd_fail(err, GD_EUSAGE, "info line: specify FILE:LINE");
    }
    struct node_list list = {0};
    gd_graph_search_source(call->session->graph, file, line, node_list_add, &list);
    if (list.failed) {
        node_list_deinit(&list);
        return gd_fail_nomem(err);
    }
    nodes_show(call, &list, all,
               inspect_printf(call, "info line %s -a", out_safe(call, call->argv[0])));
    node_list_deinit(&list);
    return GD_OK;
}
