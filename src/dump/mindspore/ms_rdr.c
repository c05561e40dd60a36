// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_rdr.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/msprobe/api_walk.h"

#define MAX_FILE  (UINT64_C(1) << 30)
#define MAX_VALUE 300 /* bytes of an attribute */

bool ms_rdr_is_name(const char *name)
{
    size_t module = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    const char *at = strrchr(name, '.');

    if (module < 2 || name[module] != '.' || !at) {
        return false;
    }
    for (const char *dot = strchr(name + module, '.'); dot && dot < at;
         dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 1, "0123456789");

        if (digits == 14 && (dot[15] == '.' || dot[15] == '_')) {
            return true;
        }
    }
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

struct reading { /* of one file */
    struct gd_graph *graph;
    const struct gd_file_text *text;
    uint32_t known; /* nodes that the file describes */
    gd_node_id node;
};

static gd_node_id node_named(const struct gd_graph *graph, const char *name, size_t len)
{
    gd_node_id node = gd_graph_lookup_wire(graph, name, len);

    return node == GD_NO_NODE ? gd_graph_lookup(graph, name, len) : node;
}

/* The node whose full name occurs in a line. */
static gd_node_id node_in(const struct gd_graph *graph, const char *text, size_t size)
{
    static const char part[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-.";

    for (size_t at = 0; at < size;) {
        size_t len = 0;

        while (at + len < size && text[at + len] && strchr(part, text[at + len])) {
            len++;
        }
        if (len > 2 && memchr(text + at, '/', len)) {
            gd_node_id node = gd_graph_lookup_wire(graph, text + at, len);

            if (node != GD_NO_NODE) {
                return node;
            }
        }
        at += len ? len : 1;
    }
    return GD_NO_NODE;
}

static int add_attribute(const struct reading *in, const char *name, const char *value, size_t len,
                         struct gd_err *err)
{
    char text[MAX_VALUE + 4];
    struct gd_attr attr = {.name = name, .value = text};

    while (len > 0 && strchr(" \t\r", value[len - 1])) {
        len--;
    }
    snprintf(text, sizeof(text), "%.*s%s", (int)(len > MAX_VALUE ? MAX_VALUE : len), value,
             len > MAX_VALUE ? "..." : "");
    for (char *at = text; *at; at++) {
        *at = *at == '\t' ? ' ' : *at;
    }
    return gd_graph_add_attrs(in->graph, in->node, &attr, 1, err);
}

/* The next line of the text; false: end. */
static bool next_line(const struct gd_file_text *text, size_t *at, const char **line, size_t *len)
{
    const char *end;

    if (*at >= text->size) {
        return false;
    }
    *line = text->data + *at;
    end = memchr(*line, '\n', text->size - *at);
    *len = end ? (size_t)(end - *line) : text->size - *at;
    *at += *len + 1;
    return true;
}

static bool begins_with(const char *line, size_t len, const char *word)
{
    size_t size = strlen(word);

    return len >= size && memcmp(line, word, size) == 0;
}

/* ---- graph_exec_order ------------------------------------------------------------------------ */

/* "0:" and the lines after it, the first of which names the node. */
static int take_order(struct reading *in, struct gd_err *err)
{
    const char *line;
    uint32_t order = 0;
    size_t at = 0, len;

    (void)err;
    while (next_line(in->text, &at, &line, &len)) {
        size_t digits = strspn(line, "0123456789");

        if (digits > 0 && digits < len && line[digits] == ':') {
            order++;
        } else if (len > 1 && (line[0] == '\t' || line[0] == ' ')) {
            gd_node_id node = node_in(in->graph, line, len);

            if (node != GD_NO_NODE) {
                gd_graph_set_order(in->graph, node, order - (order > 0));
                in->known++;
            }
        }
    }
    return GD_OK;
}

/* ---- assign_stream --------------------------------------------------------------------------- */

static int take_streams(struct reading *in, const cJSON *array, struct gd_err *err)
{
    static const char *const keys[] = {"logic_id", "stream_id", "event_id", "label_id",
                                       "active_stream_id"};
    const cJSON *item;
    int rc = GD_OK;

    cJSON_ArrayForEach(item, array)
    {
        const char *name =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "node_name"));

        in->node = name ? node_named(in->graph, name, strlen(name)) : GD_NO_NODE;
        for (size_t i = 0;
             rc == GD_OK && in->node != GD_NO_NODE && i < sizeof(keys) / sizeof(keys[0]); i++) {
            const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, keys[i]);

            if (cJSON_IsNumber(value) || cJSON_IsString(value)) {
                rc =
                    add_attribute(in, keys[i], value->valuestring, strlen(value->valuestring), err);
            }
        }
        in->known += in->node != GD_NO_NODE;
    }
    return rc;
}

/* Several arrays one after the other: the file is appended to. */
static int take_stream_file(struct reading *in, struct gd_err *err)
{
    size_t at = 0;
    int rc = GD_OK;

    while (rc == GD_OK && at < in->text->size) {
        struct gd_json json = {.text = in->text->data + at,
                               .size = in->text->size - at,
                               .max_depth = 16,
                               .what = "assign_stream"};
        struct gd_json_token token;
        cJSON *tree = NULL;

        if (strspn(json.text, " \t\r\n") >= json.size) {
            break;
        }
        rc = gd_json_next(&json, &token, err);
        if (rc == GD_OK && token.kind != GD_JSON_ARRAY) {
            rc = gd_json_fail(&json, token.at, GD_EPROTO, err, "expected an array");
        }
        rc = rc != GD_OK ? rc : gd_json_skip(&json, &token, err);
        rc = rc != GD_OK ? rc : gd_json_parse(json.text, json.at, NULL, &tree, err);
        rc = rc != GD_OK ? rc : take_streams(in, tree, err);
        at += json.at ? json.at : 1;
        cJSON_Delete(tree);
        gd_json_deinit(&json);
    }
    return rc;
}

/* ---- task_info_graph, mem_address_list ------------------------------------------------------- */

static int take_tasks(struct reading *in, struct gd_err *err)
{
    static const char *const parts[] = {"input address:", "output address:", "workspace address:"};
    static const char *const names[] = {"input address", "output address", "workspace address"};
    const char *line;
    size_t at = 0, len;
    int rc = GD_OK;

    in->node = GD_NO_NODE;
    while (rc == GD_OK && next_line(in->text, &at, &line, &len)) {
        if (begins_with(line, len, "op_name:")) {
            in->node = node_named(in->graph, line + 8, len - 8);
            in->known += in->node != GD_NO_NODE;
        } else if (begins_with(line, len, "task_index:")) {
            rc = add_attribute(in, "task", line, len, err);
        }
        for (size_t i = 0; rc == GD_OK && i < 3; i++) {
            if (begins_with(line, len, parts[i])) {
                rc = add_attribute(in, names[i], line + strlen(parts[i]), len - strlen(parts[i]),
                                   err);
            }
        }
    }
    return rc;
}

/* Blocks of a name, then "kernel_inputs N", "kernel_workspaces N", "kernel_outputs N", each
 * followed by N lines "&ADDRESS #SIZE". */
static int take_addresses(struct reading *in, struct gd_err *err)
{
    static const char *const parts[] = {"kernel_inputs", "kernel_workspaces", "kernel_outputs"};
    struct gd_buf list = GD_BUF_INIT(4 * MAX_VALUE);
    const char *line, *part = NULL;
    size_t at = 0, len;
    bool more;
    int rc = GD_OK;

    in->node = GD_NO_NODE;
    do {
        more = next_line(in->text, &at, &line, &len);
        if (more && line[0] == '&') {
            gd_buf_printf(&list, "%s%.*s", list.len ? ", " : "", (int)(len > 80 ? 80 : len), line);
            continue;
        }
        if (part && list.len) {
            rc = add_attribute(in, part, gd_buf_text(&list), list.len, err);
        }
        gd_buf_clear(&list);
        part = NULL;
        for (size_t i = 0; more && i < 3; i++) {
            part = begins_with(line, len, parts[i]) ? parts[i] : part;
        }
        if (more && !part && len > 0) {
            in->node = node_named(in->graph, line, len);
            in->known += in->node != GD_NO_NODE;
        }
    } while (more && rc == GD_OK);
    gd_buf_deinit(&list);
    return rc;
}

/* ---- a directory ----------------------------------------------------------------------------- */

static const struct {
    const char *part; /* of the file's name */
    const char *fact; /* counts the nodes it describes; NULL: not read */
    int (*take)(struct reading *in, struct gd_err *err);
} kinds[] = {
    {"graph_exec_order", "order of execution", take_order},
    {"assign_stream", "streams", take_stream_file},
    {"task_info_graph", "tasks of the device", take_tasks},
    {"mem_address_list", "addresses of kernels", take_addresses},
    {"somas_", NULL, NULL},
};

static int take_file(const char *path, size_t kind, struct gd_catalog *catalog,
                     struct gd_dump *dump, struct gd_err *err)
{
    struct reading in = {.graph = gd_catalog_graph(catalog)};
    struct gd_file_text text;
    struct gd_err why = {.code = GD_OK};
    char fact[96];
    int rc;

    if (!kinds[kind].take) {
        return gd_dump_left_out(
            dump, path, "notes of the memory planner in free text: read them directly", err);
    }
    rc = gd_file_text_read(path, MAX_FILE, &text, &why);
    if (rc == GD_OK) {
        in.text = &text;
        rc = kinds[kind].take(&in, &why);
        free(text.data);
    }
    if (rc != GD_OK) {
        rc = api_leave_out(dump, path, &why, err);
    }
    snprintf(fact, sizeof(fact), "%u nodes", in.known);
    return rc != GD_OK ? rc : gd_catalog_add_fact(catalog, kinds[kind].fact, fact, err);
}

int ms_rdr_take(const struct gd_listing *listing, uint32_t directory, struct gd_catalog *catalog,
                struct gd_dump *dump, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = listing->entry[directory].first_child; rc == GD_OK && i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        const char *name = listing->entry[i].name;
        char path[PATH_MAX];

        if (!ms_rdr_is_name(name) || listing->entry[i].is_directory ||
            gd_listing_path(listing, i, path, sizeof(path), NULL) != GD_OK) {
            continue;
        }
        for (size_t kind = 0; rc == GD_OK && kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
            if (strstr(name, kinds[kind].part)) {
                rc = take_file(path, kind, catalog, dump, err);
                break;
            }
        }
    }
    return rc;
}
