// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: set */
#include <string.h>

#include "engine/watch/watchpoint.h"
#include "repl/commands/files/dump_live.h"
#include "repl/commands/support/support.h"
#include "repl/core/repl_impl.h"
#include "repl/core/settings_table.h"
#include "repl/out/logging.h"

/* Removes quotes around a whole value, which may contain blanks or be empty. */
static const char *strip_quotes(struct command_call *call, const char *value)
{
    size_t len = strlen(value);
    if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
        return gd_arena_strndup(call->arena, value + 1, len - 2);
    }
    return value;
}

/* A process that runs cannot be asked. */
static void say_when(struct command_call *call)
{
    for (size_t i = 0; i < call->debugger->session_count; i++) {
        const struct gd_session *session = call->debugger->sessions[i];
        if (session->state == GD_RUNNING && gd_session_is_live(session)) {
            out_printf(call->out, "Training process %d runs: at its next stop.\n", session->number);
        }
    }
}

/* Passes on settings that other parts keep a copy of. */
static int apply_setting(struct command_call *call, const struct gd_settings *before,
                         struct gd_err *err)
{
    const struct gd_settings *now = &call->debugger->settings;

    for (size_t i = 0; i < call->debugger->session_count; i++) {
        gd_session_limit_cache(call->debugger->sessions[i], now->max_cache);
    }
    if (now->evaluate != before->evaluate || now->watch_when != before->watch_when ||
        now->stop_on_hit != before->stop_on_hit || now->history_bytes != before->history_bytes) {
        gd_watchpoints_apply(call->debugger);
    }
    if (now->timing != before->timing || now->memory_metrics != before->memory_metrics) {
        repl_send_settings(call->repl);
        say_when(call);
    }
    if (now->evaluate_code != before->evaluate_code) {
        repl_send_settings(call->repl);
    }
    if (now->logging != before->logging) {
        int rc = logging_apply(call, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (strcmp(now->dump_config, before->dump_config) != 0) {
        int rc = repl_dump_set_config(call, now->dump_config, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return gd_debugger_apply_keep_previous(call->debugger, err);
}

static int run_set(struct command_call *call, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *value = NULL;
    struct gd_settings changed = call->debugger->settings;

    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "set: specify a setting");
    }
    if (set_lr_is_meant(call->line)) {
        return set_lr(call, err);
    }
    int rc = setting_find(call->line, &setting, &value, err);
    if (rc == GD_ENOTFOUND && set_node_is_meant(call->line)) {
        return set_node(call, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (*value == '=') {
        value += 1 + strspn(value + 1, " \t");
    }
    value = strip_quotes(call, value);
    if (!value) {
        return gd_fail_nomem(err);
    }
    rc = setting_parse(setting, value, &changed, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_settings before = call->debugger->settings;
    call->debugger->settings = changed;
    rc = apply_setting(call, &before, err);
    bool logs = rc != GD_OK && changed.logging && !before.logging;
    if (rc == GD_EINVAL || logs || strcmp(before.dump_config, changed.dump_config) != 0) {
        call->debugger->settings = rc == GD_OK ? changed : before;
    }
    if (rc != GD_OK) {
        return rc;
    }
    setting_record(setting, &call->debugger->settings, out_record(call->out, "setting"));
    return GD_OK;
}

const struct command cmd_set = {
    .name = "set",
    .group = "support",
    .usage = "set NAME VALUE | set lr[GROUP] = EXPR | set NODE[SLICE] = NUMBER |\n"
             "                                       set requires_grad NODE on|off",
    .summary = "Change a setting, or the learning rate or a value of the training",
    .help = "The name can be abbreviated as long as it is unambiguous; \"info settings\" lists\n"
            "all. Sizes take KiB, MiB, GiB.\n"
            "\n"
            "set lr changes the learning rate from the next step on. EXPR is a number or an\n"
            "expression over the metrics (\"info scalars\"), in which lr is the present rate\n"
            "of each group: lr / 2 halves them all. *=, /=, += and -= work, too. Without\n"
            "GROUP, all parameter groups of the main optimizer change, whose steps are the\n"
            "steps of the training; lr[1] is its group 1, lr[Adam] another optimizer by its\n"
            "name, lr[Adam:0] a group of that. All ranks of a job change. A scheduler of the\n"
            "framework's continues from the new rate.\n"
            "\n"
            "set NODE[SLICE] = NUMBER sets elements of a parameter, a buffer, a gradient or the\n"
            "state of an optimizer in a stopped PyTorch program; set requires_grad freezes a\n"
            "parameter or trains it again. `undo` takes the last change back, and `info events`\n"
            "lists them.",
    .examples = "set print precision 4\n"
                "set max-tensor 2 GiB\n"
                "set confirm off\n"
                "set lr = lr * 0.5\n"
                "set lr[1] = 1e-4\n"
                "set decoder/bias[0] = 0.5\n"
                "set requires_grad decoder/bias off",
    .args = {ARG_SETTING, ARG_WORD},
    .flags = CMD_RAW,
    .run = run_set,
};
