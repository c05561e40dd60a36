// SPDX-License-Identifier: GPL-3.0-or-later
/* The tools: which commands they are, and their schemas, made from the command table. */
#include "drive/mcp_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/request/permit.h"

#define TOOLS_PER_PAGE 25

/* The other commands are reached by the tool `command`. */
static const struct mcp_tool tools[] = {
    {"run", "run", NULL, ""},
    {"open", "open", NULL, ""},
    {"continue", "continue", NULL, ""},
    {"step", "step", NULL, ""},
    {"next", "next", NULL, ""},
    {"run-to", "run-to", NULL, ""},
    {"finish", "finish", NULL, ""},
    {"goto", "goto", NULL, ""},
    {"interrupt", "interrupt", NULL, ""},
    {"wait", NULL, NULL,
     "Wait until the training stops, after a tool said that it still runs. The answer is what the "
     "stop reports."},
    {"watch", "watch", NULL, "\"TO\" is the condition for a NaN or an infinity."},
    {"break", "break", NULL, ""},
    {"catch", "catch", NULL, ""},
    {"delete", "delete", NULL, ""},
    {"recommend", "recommend", NULL, ""},
    {"scan", "scan", NULL, ""},
    {"hits", "info", "hits", ""},
    {"hit", "hit", NULL, ""},
    {"why", "why", NULL, ""},
    {"diagnose", "diagnose", NULL, ""},
    {"print", "print", NULL, ""},
    {"stats", "stats", NULL, ""},
    {"find", "find", NULL, ""},
    {"tensors", "tensors", NULL, ""},
    {"compare", "compare", NULL, ""},
    {"first-divergence", "first-divergence", NULL, ""},
    {"first-nonfinite", "first-nonfinite", NULL, ""},
    {"history", "info", "history", ""},
    {"log", "info", "log", ""},
    {"info", "info", NULL, ""},
    {"search", "search", NULL, ""},
    {"inputs", "inputs", NULL, ""},
    {"outputs", "outputs", NULL, ""},
    {"node-info", "node-info", NULL, ""},
    {"scope", "scope", NULL, ""},
    {"list", "list", NULL, ""},
    {"backtrace", "backtrace", NULL, ""},
    {"rank", "rank", NULL, ""},
    {"session", "session", NULL, ""},
    {"set", "set", NULL, ""},
    {"show", "show", NULL, ""},
    {"help", "help", NULL, ""},
    {"command", NULL, NULL,
     "Run any command line of gradb, as typed at its prompt; `help` lists the commands. Several "
     "lines run one after the other."},
};

const struct mcp_tool *mcp_find_tool(const char *name)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        if (strcmp(tools[i].name, name) == 0) {
            return &tools[i];
        }
    }
    return NULL;
}

const struct command *mcp_tool_command(const struct mcp_tool *tool)
{
    const struct command *command = NULL;

    if (!tool->command ||
        command_find(NULL, tool->command, strlen(tool->command), &command, NULL) != GD_OK) {
        return NULL;
    }
    for (const struct command *sub = tool->sub ? command->sub : NULL; sub && sub->name; sub++) {
        if (strcmp(sub->name, tool->sub) == 0) {
            return sub;
        }
    }
    return command;
}

bool mcp_tool_may_run(const struct mcp *mcp, const struct mcp_tool *tool)
{
    const struct command *command = NULL;

    return !mcp->read_only || !tool->command ||
           (command_find(NULL, tool->command, strlen(tool->command), &command, NULL) == GD_OK &&
            permit_may(mcp->repl, command));
}

/* ---- schemas ---- */

static void add_property(cJSON *properties, const char *name, const char *type, const char *text)
{
    cJSON *property = out_object(properties, name);

    out_set(property, OUT_TEXT("type", type), OUT_TEXT("description", text));
}

static void add_common(cJSON *properties)
{
    char text[96];

    add_property(properties, "timeout_s", "number", "seconds to wait at most; 30 by default");
    snprintf(text, sizeof(text), "bytes of the answer at most, %d to %d; %d by default", PAGE_LEAST,
             PAGE_MOST, PAGE_DEFAULT);
    add_property(properties, "max_bytes", "integer", text);
    add_property(properties, "cursor", "string",
                 "from an earlier answer: give what it left out; other arguments are ignored");
}

static void add_schema(cJSON *to, const struct mcp_tool *tool, const struct command *command)
{
    cJSON *schema = out_object(to, "inputSchema");
    cJSON *properties, *required;

    out_set(schema, OUT_TEXT("type", "object"));
    properties = out_object(schema, "properties");
    required = cJSON_CreateArray();
    if (command) {
        struct usage usage;
        usage_read(command, &usage);
        usage_add_schema(&usage, command, properties, required);
        add_property(properties, "arguments", "string", "more of the command line, as typed");
    } else if (strcmp(tool->name, "command") == 0) {
        add_property(properties, "line", "string", "the command line: \"info graph\"");
        out_push_text(required, "line");
    }
    add_common(properties);
    if (required->child) {
        out_set(schema, OUT_JSON("required", required));
    } else {
        cJSON_Delete(required);
    }
    out_set(schema, OUT_BOOL("additionalProperties", false));
}

static void add_description(cJSON *to, const struct mcp_tool *tool, const struct command *command)
{
    struct gd_buf text = GD_BUF_INIT(65536);

    if (command) {
        gd_buf_printf(&text, "%s.%s%s\nCommand: %s", command->summary,
                      tool->more[0] != '\0' ? " " : "", tool->more, command->usage);
        if (command->examples) {
            gd_buf_printf(&text, "\nExamples of the command:\n%s", command->examples);
        }
    } else {
        gd_buf_puts(&text, tool->more);
    }
    out_set(to, OUT_TEXT("description", gd_buf_text(&text)));
    gd_buf_deinit(&text);
}

static void add_tool(cJSON *list, const struct mcp_tool *tool)
{
    const struct command *command = mcp_tool_command(tool);
    bool shows = tool->command ? permit_shows(tool->command) : strcmp(tool->name, "wait") == 0;
    cJSON *to = out_push(list);

    out_set(to, OUT_TEXT("name", tool->name));
    add_description(to, tool, command);
    add_schema(to, tool, command);
    out_set(out_object(to, "annotations"), OUT_BOOL("readOnlyHint", shows),
            OUT_BOOL("destructiveHint", !shows && strcmp(tool->name, "command") == 0),
            OUT_BOOL("openWorldHint", false));
}

/* The cursor of a list is the index of its next member. */
cJSON *mcp_list_tools(struct mcp *mcp, const struct mcp_request *request)
{
    const cJSON *cursor = cJSON_GetObjectItemCaseSensitive(request->message.params, "cursor");
    const char *text = cJSON_GetStringValue(cursor);
    size_t count = sizeof(tools) / sizeof(tools[0]), at = 0;
    int listed = 0;
    char *end = NULL;

    if (cursor && !cJSON_IsNull(cursor)) {
        at = text ? strtoul(text, &end, 10) : count + 1;
        if (at > count || !text || text[0] < '0' || text[0] > '9' || *end != '\0') {
            return rpc_error(request->message.id, RPC_PARAMS, "not a cursor of tools/list");
        }
    }
    cJSON *result = cJSON_CreateObject();
    cJSON *list = out_list(result, "tools");
    for (; at < count && listed < TOOLS_PER_PAGE; at++) {
        if (mcp_tool_may_run(mcp, &tools[at])) {
            add_tool(list, &tools[at]);
            listed++;
        }
    }
    if (at < count) {
        char next[24];
        snprintf(next, sizeof(next), "%zu", at);
        out_set(result, OUT_TEXT("nextCursor", next));
    }
    return rpc_result(request->message.id, mcp_finish(request, result, true));
}
