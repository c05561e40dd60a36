// SPDX-License-Identifier: GPL-3.0-or-later
/* `info line`: what is at a source line: its function, and the nodes that it made. */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/lines.h"
#include "repl/values/nodes.h"
#include "repl/values/srcfile.h"

#define PLACES_COMMAND "line-places" /* of the training process */

static void show_place(struct command_call *call, const cJSON *place, uint32_t asked)
{
    const cJSON *file = cJSON_GetObjectItem(place, "file");
    const cJSON *line = cJSON_GetObjectItem(place, "line");
    const cJSON *function = cJSON_GetObjectItem(place, "function");

    if (!cJSON_IsString(file) || !cJSON_IsNumber(line) || !cJSON_IsString(function) ||
        !(line->valuedouble >= 1 && line->valuedouble <= INT32_MAX)) {
        return;
    }
    uint32_t at = (uint32_t)line->valuedouble;
    bool moved = asked > 0 && asked != at;
    cJSON *item = out_push(out_list(out_record(call->out, "nodes"), "places"));
    out_set(item, OUT_TEXT("file", file->valuestring), OUT_INT("line", at),
            OUT_TEXT("function", function->valuestring));
    out_say(call->out, item,
            "[Line {asked} of {file} has no code: the next is line {line}, in {function}\n]"
            "[{!asked}Line {line} of {file} is in {function}\n]",
            OUT_INT("asked", moved ? asked : 0));
}

/* What the training process knows about the line: it may not be stopped, or have no lines. */
static void show_code(struct command_call *call, const char *place, uint32_t line)
{
    const char *text = NULL;
    struct gd_err ignored;

    if (!gd_session_has_lines(call->session) || call->session->state != GD_STOPPED ||
        repl_command(call, PLACES_COMMAND, place, GD_NO_NODE, &text, &ignored) != GD_OK) {
        return;
    }
    cJSON *reply = cJSON_Parse(text);
    const cJSON *item = NULL, *places = cJSON_GetObjectItem(reply, "places");
    const cJSON *why = cJSON_GetObjectItem(reply, "why");
    cJSON_ArrayForEach(item, places)
    {
        show_place(call, item, line);
    }
    if (cJSON_GetArraySize(places) == 0) {
        bool known = cJSON_IsString(why) && why->valuestring[0] != '\0';
        out_printf(call->out, "%s.\n",
                   known ? out_safe(call, why->valuestring)
                         : inspect_printf(call, "No source file that is loaded has %s",
                                          out_safe(call, place)));
    }
    cJSON_Delete(reply);
}

int info_line(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    const char *file = NULL;
    uint32_t line = 0;
    const char *place = NULL;
    const char *typed = call->argc == 1 ? call->argv[0] : "";
    int rc = call->argc <= 1 ? lines_place_of(call, typed, true, &place, err) : GD_OK;
    if (rc != GD_OK) {
        return rc;
    }
    if (!place && (call->argc != 1 || !srcfile_parse_place(call, call->argv[0], &file, &line))) {
        return gd_fail(err, GD_EUSAGE, "info line: specify FILE:LINE");
    }
    place = place ? place : call->argv[0];
    bool numbered = srcfile_parse_place(call, place, &file, &line);
    show_code(call, place, line);
    if (!numbered) {
        return GD_OK;
    }
    struct node_list list = {0};
    gd_graph_search_source(call->session->graph, file, line, node_list_add, &list);
    if (list.failed) {
        node_list_deinit(&list);
        return gd_fail_nomem(err);
    }
    nodes_show(call, &list, all, inspect_printf(call, "info line %s -a", out_safe(call, place)));
    node_list_deinit(&list);
    return GD_OK;
}
