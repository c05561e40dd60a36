// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: tensor */
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

/* Asks a process that keeps previous values on request. Others have them or not; the grid shows
 * which. */
static void keep_previous(struct command_call *call, gd_node_id node)
{
    struct gd_err err = {.code = GD_OK};

    if (!gd_session_is_record(call->session) && gd_session_is_live(call->session) &&
        call->session->target->ops->keep_previous &&
        inspect_keep_previous(call, node, &err) != GD_OK) {
        out_printf(call->out, "The previous value is not kept: %s.\n", err.text);
    }
}

static int open_grid(struct command_call *call, enum value_which which, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    const char *text = NULL;
    struct value value = {.label = NULL};
    int rc = value_parse(call, call->argc > 0 ? call->argv[0] : NULL, &value, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_node_id node = value.arg.ref.node;
    if (call->argc > 0 && strcmp(call->argv[0], ".") != 0) {
        text = inspect_printf(call, "%s:%s%s", gd_graph_name(call->session->graph, node),
                              inspect_slot(call, node, value.arg.ref.slot),
                              value_slice_text(call, &value.arg.slice));
    }
    if (which != VALUE_CURRENT) {
        keep_previous(call, node);
    }
    rc = screen->tensor(call->repl->front.screen_ctx, text, value_which_name(which), err);
    value_deinit(&value);
    return rc;
}

/* "-to 3,17": actions of the grid. Node names never begin with a dash. */
static const struct action {
    const char *name;
    enum { NO_ARGUMENT, ONE_ARGUMENT, MAYBE_ARGUMENT } takes;
} actions[] = {{"-to", ONE_ARGUMENT},   {"-find", MAYBE_ARGUMENT}, {"-back", NO_ARGUMENT},
               {"-heat", ONE_ARGUMENT}, {"-axes", ONE_ARGUMENT},   {"-plane", ONE_ARGUMENT}};

static const struct action *action_find(const char *word)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(word, actions[i].name) == 0) {
            return &actions[i];
        }
    }
    return NULL;
}

static int run_action(struct command_call *call, const struct action *action, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    const char *argument = inspect_join(call, 1, call->argc);
    bool given = call->argc > 1;

    if ((given && action->takes == NO_ARGUMENT) || (!given && action->takes == ONE_ARGUMENT)) {
        return gd_fail(err, GD_EUSAGE, "tensor %s takes %s argument", action->name,
                       given ? "no" : "an");
    }
    if (!screen || !screen->tensor_act || !call->repl->front.screen_ctx) {
        return gd_fail(err, GD_ESTATE, "tensor %s needs the panes: open them with \"tui\"",
                       action->name);
    }
    return screen->tensor_act(call->repl->front.screen_ctx, action->name + 1, given ? argument : "",
                              err);
}

extern const struct command cmd_print; /* print.c */

static int run_tensor(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    bool panes =
        screen && call->repl->front.screen_ctx && screen->tensor && !out_is_json(call->out);
    bool history =
        call->argc > 0 && call->argv[0][0] == '$' && strncmp(call->argv[0], "$_", 2) != 0;

    const struct action *action = call->argc > 0 ? action_find(call->argv[0]) : NULL;
    if (action) {
        return run_action(call, action, err);
    }
    if (!panes || history) {
        return cmd_print.run(call, err);
    }
    int rc = repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    enum value_which which = value_take_which(call);
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "tensor: specify one tensor");
    }
    return open_grid(call, which, err);
}

const struct command cmd_tensor = {
    .name = "tensor",
    .group = "data",
    .usage = "tensor [NODE[:SLOT][SLICE]|$N] [prev|diff] | "
             "tensor -to|-find|-back|-heat|-axes|-plane [ARGUMENT]",
    .summary = "Show a tensor as a grid",
    .help = "In the panes, the grid shows two axes of the value or slice and fetches only what is\n"
            "visible; x and y choose other axes, [ and ] step through the rest, m shows the value\n"
            "of the previous step, the difference or a heat map, / goes to an index (3,17) or\n"
            "searches (>1e3, nan). Without an argument, the grid follows the current node. C-x o\n"
            "moves the keyboard to the grid; until then, input goes to the prompt. Without panes,\n"
            "and for a history value, the same as print.\n"
            "\n"
            "  prev   the value of the previous step, which is kept from now on\n"
            "  diff   the current value minus the previous one\n"
            "\n"
            "Options that act like keys in the grid:\n"
            "  -to INDEX              move the cursor there: 3,17\n"
            "  -find [CONDITION]      move to the next match: abs>2, 1..2, nan, inf, \">1e3\"\n"
            "  -back                  move to the previous match\n"
            "  -heat range|rank|off   show a heat map, by range or by rank, or numbers\n"
            "  -axes ROWS,COLUMNS     choose the two axes\n"
            "  -plane next|back       move along the other axes",
    .examples = "tensor model/head/weight\n"
                "tensor -to 3,17\n"
                "tensor -find abs>0.1\n"
                "tensor model/block0/attn/softmax[0, :, :, 3]",
    .args = {ARG_TENSOR},
    .run = run_tensor,
};
