// SPDX-License-Identifier: GPL-3.0-or-later
/* Resources: the graph, the hits and a few more, as JSON. */
#include "drive/mcp_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RESOURCE_SECONDS 30.
#define NAME_PLACE       "{name}"

static const struct resource {
    const char *uri; /* with "{name}" at its end: a template */
    const char *name, *text;
    const char *command; /* the decoded name follows it, quoted */
} resources[] = {
    {"gradb://graph", "graph", "Counts of the graph: nodes, kinds, types", "info graph"},
    {"gradb://graph/nodes", "nodes", "The nodes of the graph, weights first", "info nodes -a"},
    {"gradb://hits", "hits", "The hits of the watchpoints so far", "info hits"},
    {"gradb://target", "target", "The training process, and where it is stopped", "info target"},
    {"gradb://watchpoints", "watchpoints", "The watchpoints", "info watchpoints"},
    {"gradb://log", "log", "The end of the training's output", "info log"},
    {"gradb://node/" NAME_PLACE, "node", "A node: type, shape, inputs, source line", "node-info "},
    {"gradb://scope/" NAME_PLACE, "scope", "What is in a scope of the graph", "scope "},
    {"gradb://hit/" NAME_PLACE, "hit", "A hit by its number", "hit "},
};

static bool is_template(const struct resource *resource)
{
    return strchr(resource->uri, '{') != NULL;
}

static cJSON *list_some(const struct mcp_request *request, bool templates)
{
    cJSON *result = cJSON_CreateObject();
    cJSON *list = out_list(result, templates ? "resourceTemplates" : "resources");

    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        const struct resource *r = &resources[i];
        if (is_template(r) == templates) {
            out_set(out_push(list), OUT_TEXT(templates ? "uriTemplate" : "uri", r->uri),
                    OUT_TEXT("name", r->name), OUT_TEXT("description", r->text),
                    OUT_TEXT("mimeType", "application/json"));
        }
    }
    return rpc_result(request->message.id, mcp_finish(request, result, true));
}

cJSON *mcp_list_resources(struct mcp *mcp, const struct mcp_request *request)
{
    (void)mcp;
    return list_some(request, false);
}

cJSON *mcp_list_templates(struct mcp *mcp, const struct mcp_request *request)
{
    (void)mcp;
    return list_some(request, true);
}

/* Adds text with %41 decoded. False: a bad escape, or a control character. */
static bool decode_name(const char *text, struct gd_buf *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '%') {
            if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2])) {
                return false;
            }
            char digits[3] = {text[1], text[2], '\0'};
            c = (unsigned char)strtoul(digits, NULL, 16);
            text += 2;
        }
        if (c < ' ' || c == 0x7f) {
            return false;
        }
        gd_buf_putc(out, (char)c);
    }
    return true;
}

static bool add_name(const char *text, struct gd_buf *line)
{
    struct gd_buf name = GD_BUF_INIT(4096);
    bool added = decode_name(text, &name) && !name.failed;

    if (added) {
        gd_buf_put_quoted(line, gd_buf_text(&name));
    }
    gd_buf_deinit(&name);
    return added && !line->failed;
}

/* The command line for a URI. */
static bool find_line(const char *uri, struct gd_buf *line)
{
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        const struct resource *r = &resources[i];
        size_t fixed = strcspn(r->uri, "{");
        if (is_template(r) ? strncmp(uri, r->uri, fixed) == 0 && uri[fixed] != '\0'
                           : strcmp(uri, r->uri) == 0) {
            gd_buf_puts(line, r->command);
            return !is_template(r) || add_name(uri + fixed, line);
        }
    }
    return false;
}

cJSON *mcp_read_resource(struct mcp *mcp, const struct mcp_request *request)
{
    const char *uri =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request->message.params, "uri"));
    struct gd_buf line = GD_BUF_INIT(16384);
    struct drive_answer answer;
    cJSON *message = NULL;

    if (!uri || !find_line(uri, &line)) {
        gd_buf_deinit(&line);
        return rpc_error(request->message.id,
                         request->modern || !uri ? RPC_PARAMS : RPC_NO_RESOURCE,
                         "there is no resource \"%.200s\": see resources/list", uri ? uri : "");
    }
    drive_run(mcp->drive, gd_buf_text(&line), RESOURCE_SECONDS, &answer);
    drive_return_events(mcp->drive, &answer);
    gd_buf_deinit(&line);
    if (answer.rc != GD_OK) {
        message = rpc_error(request->message.id, RPC_INTERNAL, "%s",
                            out_text_of(answer.record, "message"));
    } else {
        cJSON *result = cJSON_CreateObject();
        cJSON *content = out_push(out_list(result, "contents"));
        cJSON *record = page_record(answer.record, PAGE_MOST);
        char *text = cJSON_PrintUnformatted(record);
        out_set(content, OUT_TEXT("uri", uri), OUT_TEXT("mimeType", "application/json"),
                OUT_TEXT("text", text ? text : ""));
        free(text);
        cJSON_Delete(record);
        message = rpc_result(request->message.id, mcp_finish(request, result, true));
    }
    drive_answer_free(&answer);
    return message;
}
