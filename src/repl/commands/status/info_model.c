// SPDX-License-Identifier: GPL-3.0-or-later
/* `info model`, and how subjects of info ask the training process. */
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

#define ROWS_SHOWN 60

int info_ask(struct command_call *call, const char *command, cJSON *record, struct gd_err *err)
{
    struct gd_session *session = call->session;
    const char *text = NULL;

    if (!gd_session_is_live(session) || !session->target ||
        (session->target->capabilities & GD_CAN_COMMAND) == 0) {
        return gd_fail(err, GD_EUNSUPPORTED, "it is not known here");
    }
    int rc = repl_check_needs(call, call->command->usage, CMD_NEEDS_STOP, err);
    rc = rc == GD_OK ? repl_command(call, command, "", GD_NO_NODE, &text, err) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *reply = cJSON_Parse(text);
    if (!cJSON_IsObject(reply)) {
        cJSON_Delete(reply);
        return gd_fail(err, GD_EPROTO, "the reply of the training process is not understood");
    }
    info_add_moment(call, record);
    cJSON_DeleteItemFromObject(reply, "rank");
    out_move(record, reply);
    cJSON_Delete(reply);
    return GD_OK;
}

void info_add_moment(struct command_call *call, cJSON *record)
{
    const struct gd_session *session = call->session;

    out_set(record, OUT_IF(session->peer.world_size > 1, OUT_INT("rank", session->peer.rank)));
}

void info_say_moment(struct command_call *call, const cJSON *record)
{
    const struct gd_peer *peer = &call->session->peer;

    out_say(call->out, record, "Step {step}[{?ranked}, rank {at} of {ranks}]",
            OUT_BOOL("ranked", peer->world_size > 1), OUT_INT("at", peer->rank),
            OUT_INT("ranks", peer->world_size));
}

/* ---- from the graph: programs that do not tell, and dumps -------------------------------------
 */

/* The row of the scope, made at the end where there is none. */
static cJSON *row_of(cJSON *rows, const char *scope, int depth)
{
    cJSON *row;

    cJSON_ArrayForEach(row, rows)
    {
        if (strcmp(out_text_of(row, "module"), scope) == 0) {
            return row;
        }
    }
    row = out_push(rows);
    out_set(row, OUT_TEXT("module", scope), OUT_INT("depth", depth), OUT_INT("parameters", 0),
            OUT_INT("elements", 0), OUT_INT("bytes", 0));
    return row;
}

static void add_to(cJSON *row, const char *key, double more)
{
    cJSON_SetNumberValue(cJSON_GetObjectItem(row, key), out_number_of(row, key) + more);
}

static void add_output(cJSON *row, const struct gd_output *output, size_t bytes)
{
    add_to(row, "parameters", 1);
    add_to(row, "elements", (double)gd_shape_count(&output->shape));
    add_to(row, "bytes", (double)bytes);
}

#define MOST_SCOPES 2000

/* Adds a parameter to the rows of its scope and of those above it. */
static void add_to_scopes(cJSON *rows, const char *name, const struct gd_output *output,
                          size_t bytes)
{
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    const char *end = dot && (!slash || dot > slash) ? dot : slash;
    size_t len = end ? (size_t)(end - name) : 0;
    char scope[512];
    int depth = 0;

    for (size_t i = 1; i <= len && i < sizeof(scope); i++) {
        if ((i == len || name[i] == '/') && cJSON_GetArraySize(rows) < MOST_SCOPES) {
            snprintf(scope, sizeof(scope), "%.*s", (int)i, name);
            add_output(row_of(rows, scope, depth++), output, bytes);
        }
    }
}

static int model_of_graph(struct command_call *call, cJSON *record, struct gd_err *err)
{
    struct gd_graph *graph = call->session->graph;
    struct gd_graph_counts counts;
    struct node_list list = {0};
    int rc = info_need_graph(call, &counts, err);

    if (rc != GD_OK) {
        return rc;
    }
    info_add_moment(call, record);
    out_set(record, OUT_INT("step", gd_session_step(call->session)), OUT_TEXT("source", "graph"));
    cJSON *rows = out_list(record, "modules"), *total = out_object(record, "total");
    out_set(total, OUT_INT("parameters", 0), OUT_INT("elements", 0), OUT_INT("bytes", 0));
    gd_graph_search_kind(graph, GD_NODE_WEIGHT, node_list_add, &list);
    for (size_t i = 0; i < list.count; i++) {
        struct gd_output output;
        size_t bytes = 0;
        if (gd_graph_output(graph, list.node[i], 0, &output) &&
            gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK) {
            add_to_scopes(rows, gd_graph_name(graph, list.node[i]), &output, bytes);
            add_output(total, &output, bytes);
        }
    }
    node_list_deinit(&list);
    return GD_OK;
}

/* ---- showing ----------------------------------------------------------------------------------
 */

static void show_rows(struct command_call *call, const cJSON *rows, bool told, bool all)
{
    static const struct out_column columns[] = {
        {"elements", "Parameters", true, ":n"}, {"frozen", "Frozen", true, ":n"},
        {"bytes", "Size", true, ":bytes"},      {"dtypes", "Type", false},
        {"devices", "Device", false},           {"text", "Module", false},
    };
    size_t left = all ? SIZE_MAX : ROWS_SHOWN, hidden = 0;
    struct out_table *table =
        out_is_json(call->out) ? NULL : out_table_begin(call->out, NULL, columns, 6);
    const cJSON *row;

    cJSON_ArrayForEach(row, rows)
    {
        if (!table || left == 0) {
            hidden++;
            continue;
        }
        left--;
        const char *name = out_text_of(row, "module"), *leaf = strrchr(name, '/');
        const char *kind = out_text_of(row, "class"), *mode = out_text_of(row, "mode");
        double depth = out_number_of(row, "depth");
        int indent = told && depth > 0 && depth < 40 ? 2 * (int)depth : 0;
        cJSON *copy = cJSON_Duplicate(row, true);
        cJSON *item = out_row(table);
        if (copy) {
            out_move(item, copy);
        }
        cJSON_Delete(copy);
        if (out_number_of(row, "frozen") == 0) {
            cJSON_DeleteItemFromObject(item, "frozen");
        }
        name = indent > 0 && leaf ? leaf + 1 : name;
        out_set(item, OUT_TEXT("text", inspect_printf(call, "%*s%s%s%s%s", indent, "", name,
                                                      kind[0] != '\0' ? ": " : "", kind,
                                                      strcmp(mode, "eval") == 0 ? " (eval)" : "")));
    }
    out_table_end(table);
    if (table && hidden > 0) {
        out_printf(call->out, "... %s more (info model -a)\n", inspect_number(call, hidden));
    }
}

/* Leaves only the module and those below it; *total becomes its row. */
static int keep_below(struct command_call *call, cJSON *rows, const char *typed,
                      const cJSON **total, struct gd_err *err)
{
    char *path = gd_arena_strdup(call->arena, typed);
    size_t len = path ? strlen(path) : 0;
    const cJSON *found = NULL;
    cJSON *row;

    for (char *p = path; p && *p != '\0'; p++) {
        *p = *p == '.' ? '/' : *p;
    }
    cJSON_ArrayForEach(row, rows)
    {
        const char *name = out_text_of(row, "module");
        size_t size = strlen(name);
        bool ends =
            size > len && name[size - len - 1] == '/' && strcmp(name + size - len, path) == 0;
        if (strcmp(name, path) == 0 || (ends && !found)) {
            found = row;
        }
    }
    if (!found) {
        return gd_fail(err, GD_ENOTFOUND,
                       "there is no module \"%.200s\": \"info model\" lists them", typed);
    }
    *total = found;
    const char *name = gd_arena_strdup(call->arena, out_text_of(found, "module"));
    size_t size = name ? strlen(name) : 0;
    for (row = rows->child; row && name;) {
        cJSON *next = row->next;
        const char *other = out_text_of(row, "module");
        if (strncmp(other, name, size) != 0 || (other[size] != '\0' && other[size] != '/')) {
            cJSON_Delete(cJSON_DetachItemViaPointer(rows, row));
        }
        row = next;
    }
    return GD_OK;
}

int info_model(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *record = out_record(call->out, "model");
    rc = info_ask(call, "model", record, err);
    bool told = rc == GD_OK;
    if (rc == GD_EUNSUPPORTED) {
        rc = model_of_graph(call, record, err);
    }
    cJSON *rows = cJSON_GetObjectItem(record, "modules");
    const cJSON *total = cJSON_GetObjectItem(record, "total");
    if (rc == GD_OK && call->argc > 0 && rows) {
        rc = keep_below(call, rows, inspect_join(call, 0, call->argc), &total, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    info_say_moment(call, record);
    out_say(call->out, total,
            ": {parameters|parameter}, {elements|element}, {bytes:bytes}"
            "[; {frozen|element} frozen][; {buffers|element} of buffers]\n");
    show_rows(call, rows, told, all);
    if (!told) {
        out_printf(call->out, "From the graph: classes, devices and what is frozen are unknown.\n");
    }
    return GD_OK;
}
