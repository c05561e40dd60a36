// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: agent, aten, digest, memory, operators, scale, step-of, training */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/line/complete_agent.h"
#include "repl/values/inspect.h"

#define MAX_DEPTH 16 /* levels of a reply that are shown as text; deeper ones as JSON */

/* ---- a reply in JSON, for people ------------------------------------------------------------- */

static bool is_plain(const cJSON *value)
{
    return !cJSON_IsObject(value) && !cJSON_IsArray(value);
}

static void add_value(struct command_call *call, const cJSON *value, struct gd_buf *out)
{
    if (cJSON_IsString(value)) {
        gd_buf_puts(out, out_safe(call, value->valuestring));
    } else if (cJSON_IsNumber(value)) {
        gd_buf_puts(out, repl_scalar_text(call->arena, value->valuedouble, 6));
    } else if (cJSON_IsBool(value)) {
        gd_buf_puts(out, cJSON_IsTrue(value) ? "yes" : "no");
    } else if (cJSON_IsNull(value)) {
        gd_buf_puts(out, "-");
    } else {
        char *text = cJSON_PrintUnformatted(value);
        gd_buf_puts(out, text ? out_safe(call, text) : "");
        cJSON_free(text);
    }
}

/* Members and elements without parts of their own: "a, b" and "name a, size b". */
static bool add_line(struct command_call *call, const cJSON *value, struct gd_buf *out)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, value)
    {
        if (!is_plain(item)) {
            return false;
        }
    }
    cJSON_ArrayForEach(item, value)
    {
        gd_buf_puts(out, item == value->child ? "" : ", ");
        if (item->string) {
            gd_buf_printf(out, "%s ", out_safe(call, item->string));
        }
        add_value(call, item, out);
    }
    return true;
}

static void print_part(struct command_call *call, const cJSON *value, int depth)
{
    const cJSON *item;
    int width = 0;
    cJSON_ArrayForEach(item, value)
    {
        int len = item->string ? (int)strlen(item->string) : 0;
        width = len > width && len <= 24 ? len : width;
    }
    cJSON_ArrayForEach(item, value)
    {
        struct gd_buf line = GD_BUF_INIT(1 << 20);
        bool whole = is_plain(item) || depth >= MAX_DEPTH;
        if (whole) {
            add_value(call, item, &line);
        }
        whole = whole || (!(cJSON_IsObject(item) && item->string) && add_line(call, item, &line));
        out_printf(call->out, "%*s", 2 * depth, "");
        if (item->string) {
            out_printf(call->out, "%-*s  ", width, out_safe(call, item->string));
        }
        out_printf(call->out, "%s\n", whole ? gd_buf_text(&line) : "");
        gd_buf_deinit(&line);
        if (!whole) {
            print_part(call, item, depth + 1);
        }
    }
}

static void print_text(struct command_call *call, const char *text)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *line = gd_arena_strndup(call->arena, text, len);
        out_printf(call->out, "%s\n", line ? out_safe(call, line) : "");
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

/* Text or JSON. */
static void show_reply(struct command_call *call, const char *reply)
{
    cJSON *record = out_record(call->out, "agent");
    cJSON *value = reply[0] == '{' || reply[0] == '[' ? cJSON_Parse(reply) : NULL;
    if (!value) {
        print_text(call, reply);
        out_set(record, OUT_TEXT("text", reply));
        return;
    }
    if (out_is_text(call->out)) {
        print_part(call, value, 0);
    }
    out_set(record, OUT_JSON("reply", value));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_list(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"name", "Name", false}, {"usage", "Arguments", false}, {"summary", "What", false}};
    const char *text = NULL;
    int rc = repl_command(call, AGENT_LIST, "", GD_NO_NODE, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    out_record(call->out, "agent");
    cJSON *reply = cJSON_Parse(text);
    agent_take_names(call->repl, call->session, reply);
    struct out_table *table = out_table_begin(call->out, "commands", columns, 3);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "commands"))
    {
        if (repl_setting_of_command(out_text_of(item, "name"))) {
            continue;
        }
        out_put(table, OUT_TEXT("name", out_text_of(item, "name")),
                OUT_TEXT("usage", out_text_of(item, "usage")),
                OUT_TEXT("summary", out_text_of(item, "summary")));
    }
    out_table_end(table);
    cJSON_Delete(reply);
    return GD_OK;
}

/* Commands of the agent that only gradb's own commands send: these ask first, and note what was
 * changed. */
static int check_is_for_users(const char *name, struct gd_err *err)
{
    static const struct {
        const char *name, *instead;
    } own[] = {
        {"evaluate", "print EXPR` or `call EXPR"},
        {"evaluate-bytes", "print EXPR"},
        {"evaluate-last", "print EXPR"},
        {"change", "set NODE = VALUE` or `help set"},
        {"undo", "undo"},
    };
    const char *setting = repl_setting_of_command(name);

    if (setting) {
        return gd_fail(err, GD_EUSAGE, "use `set %s on` or `set %s off`", setting, setting);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(own[i].name, name) == 0) {
            return gd_fail(err, GD_EUSAGE, "use `%s`", own[i].instead);
        }
    }
    return GD_OK;
}

static int run_agent(struct command_call *call, struct gd_err *err)
{
    const char *reply = NULL;
    int rc = repl_need_commands(call, "agent", "has no commands of its own", err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc == 0) {
        return run_list(call, err);
    }
    rc = check_is_for_users(call->argv[0], err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *args = call->line + strcspn(call->line, " \t");
    args += strspn(args, " \t");
    rc = repl_command(call, call->argv[0], args, GD_NO_NODE, &reply, err);
    if (rc == GD_OK) {
        show_reply(call, reply);
    }
    return rc;
}

/* The command of that name in the training process. */
static int run_own(struct command_call *call, struct gd_err *err)
{
    const char *reply = NULL;
    int rc = repl_need_commands(call, call->command->name, "cannot do that", err);

    rc = rc == GD_OK ? repl_command(call, call->command->name, call->line, GD_NO_NODE, &reply, err)
                     : rc;
    if (rc == GD_OK) {
        show_reply(call, reply);
    }
    return rc;
}

const struct command cmd_agent = {
    .name = "agent",
    .group = "status",
    .usage = "agent [NAME [ARGUMENTS]]",
    .summary = "Run a command of the training process itself",
    .help =
        "Without a name, list the commands that the process offers (PyTorch programs have some).\n"
        "The process must be stopped to answer. Most have a command of their own by now: "
        "\"aten\",\n"
        "\"scale\", \"step-of\", \"training\", \"digest\", \"operators\".",
    .examples = "agent\n"
                "agent memory",
    .args = {ARG_AGENT, ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
    .run = run_agent,
};

#define OWN_NEEDS (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

const struct command cmd_aten = {
    .name = "aten",
    .group = "status",
    .usage = "aten [on | off]",
    .summary = "Show the ATen calls inside each operator as nodes (PyTorch)",
    .help =
        "From the next step on; it costs several times what watching operators does. Without an\n"
        "argument, say whether it is on.",
    .examples = "aten on",
    .args = {ARG_CHOICE},
    .flags = OWN_NEEDS,
    .run = run_own,
};

const struct command cmd_digest = {
    .name = "digest",
    .group = "status",
    .usage = "digest [parameters | optimizer | gradients | buffers | all | PATTERN]",
    .summary = "Show 64 bits over the bytes of each tensor, to compare runs or ranks",
    .help = "Equal digests mean equal bytes. Without an argument, those of the parameters and of\n"
            "the optimizer. \"rank check\" compares the ranks of a job.",
    .examples = "digest\n"
                "digest gradients",
    .args = {ARG_CHOICE},
    .flags = OWN_NEEDS,
    .run = run_own,
};

const struct command cmd_operators = {
    .name = "operators",
    .group = "status",
    .usage = "operators [on | off]",
    .summary = "Watch the operators of each step, or only when they are asked for (MindSpore)",
    .help = "Without an argument, say whether it is on.",
    .args = {ARG_CHOICE},
    .flags = OWN_NEEDS,
    .run = run_own,
};

const struct command cmd_scale = {
    .name = "scale",
    .group = "status",
    .usage = "scale [NODE]",
    .summary = "Show the scale of GradScaler; with NODE, a gradient with and without it (PyTorch)",
    .help = "gradb shows gradients without the scale everywhere else.",
    .examples = "scale",
    .args = {ARG_NODE},
    .flags = OWN_NEEDS,
    .run = run_own,
};

const struct command cmd_step_of = {
    .name = "step-of",
    .group = "status",
    .usage = "step-of [OPTIMIZER]",
    .summary = "Choose the optimizer whose steps are the steps of the training (PyTorch)",
    .help = "By default it is the first one that steps. Without a name, say which it is. \"info\n"
            "optimizer\" lists the names.",
    .args = {ARG_WORD},
    .flags = OWN_NEEDS,
    .run = run_own,
};

const struct command cmd_training = {
    .name = "training",
    .group = "status",
    .usage = "training [NODE | audit]",
    .summary = "Show what is known of the training: loss, what updates NODE, what raised",
    .help = "With audit, at the end of a step, count the gradients of the main optimizer that are\n"
            "missing, all zero, or not finite. \"info gradients\" shows each.",
    .examples = "training\n"
                "training audit",
    .args = {ARG_NODE},
    .flags = OWN_NEEDS,
    .run = run_own,
};

static int run_memory(struct command_call *call, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    const char *reply = NULL;
    int rc = info_memory(call, err);

    if (rc != GD_OK || out_is_json(call->out) || !gd_session_is_live(session) ||
        (session->target->capabilities & GD_CAN_COMMAND) == 0 ||
        repl_command(call, "memory", "", GD_NO_NODE, &reply, NULL) != GD_OK) {
        return rc;
    }
    cJSON *held = cJSON_Parse(reply), *kept = cJSON_GetObjectItem(held, "kept for the next step");
    double bytes = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, kept)
    {
        bytes += out_number_of(item, "bytes");
    }
    cJSON_Delete(held);
    out_printf(call->out, "Kept for gradb until the next step: %s\n",
               inspect_bytes(call, bytes > 0 && bytes < 1e18 ? (uint64_t)bytes : 0));
    return GD_OK;
}

const struct command cmd_memory = {
    .name = "memory",
    .group = "status",
    .usage = "memory [-a]",
    .summary = "Show who holds the memory (same as info memory), and what is kept for gradb",
    .help =
        "\"info memory\" explains the report. Previous values that gradb compares with are kept\n"
        "in the training process (\"set keep-previous\").",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION,
    .run = run_memory,
};
