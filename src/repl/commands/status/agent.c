// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: agent */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "repl/core/repl_impl.h"
#include "repl/line/complete_agent.h"

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
        if (repl_is_passed_setting(out_text_of(item, "name"))) {
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
    if (repl_is_passed_setting(call->argv[0])) {
        return gd_fail(err, GD_EUSAGE, "use `set %s on` or `set %s off`", call->argv[0],
                       call->argv[0]);
    }
    const char *args = call->line + strcspn(call->line, " \t");
    args += strspn(args, " \t");
    rc = repl_command(call, call->argv[0], args, GD_NO_NODE, &reply, err);
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
        "The process must be stopped to answer.",
    .examples = "agent\n"
                "agent memory",
    .args = {ARG_AGENT, ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
    .run = run_agent,
};
