// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_graph_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/json.h"
#include "dump/mindspore/ms_file_name.h"
#include "mindspore/ms_graph.h"
#include "mindspore/pbread.h"

#define MAX_GRAPH    (UINT64_C(2) << 30) /* of a file; protobuf's own limit */
#define MAX_ORDER    (UINT64_C(1) << 30)
#define MAX_METADATA (UINT64_C(1) << 20)
#define MAX_LINE     8192

/* ---- the graph ------------------------------------------------------------------------------- */

/* Finds the GraphProto: field 4 of a ModelProto, or the whole file. */
static bool find_graph(const uint8_t *data, size_t len, const uint8_t **ret, size_t *ret_len)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    bool nodes = false, found = false;

    while (gd_pb_next(&reader, &field)) {
        if (field.number == 4 && field.wire == GD_PB_BYTES && !nodes) {
            *ret = field.data;
            *ret_len = field.len;
            found = true;
        }
        nodes = nodes || (field.number == 1 && field.wire == GD_PB_BYTES);
    }
    if (!found || nodes) {
        *ret = data;
        *ret_len = len;
    }
    return !reader.bad && (found || nodes);
}

int ms_graph_file_read(struct gd_disk *disk, struct gd_graph *graph, const char *other,
                       uint32_t *ret, struct gd_err *err)
{
    struct gd_ms_graph_info info;
    const uint8_t *part = NULL;
    size_t part_len = 0;
    struct gd_file_text text;
    int rc = gd_disk_read_text(disk, MAX_GRAPH, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!find_graph((const uint8_t *)text.data, text.size, &part, &part_len) ||
        !gd_ms_graph_is_whole(part, part_len)) {
        rc = gd_fail(err, GD_EPROTO, "%.300s is not a ModelProto or GraphProto, or is truncated",
                     gd_disk_path(disk));
    } else {
        rc = gd_ms_graph_load(graph, part, part_len, other, &info, err);
    }
    free(text.data);
    if (rc == GD_OK) {
        *ret = info.subgraph;
    }
    return rc;
}

/* ---- files of a rank ------------------------------------------------------------------------- */

/* DIRECTORY/FILE of the rank; NULL: it does not exist. */
static struct gd_disk *open_file(const struct gd_listing *listing, uint32_t rank_dir,
                                 const char *directory, const char *file, struct gd_err *err)
{
    char path[PATH_MAX];
    struct gd_disk *disk;
    uint32_t entry =
        rank_dir == GD_NO_ENTRY ? GD_NO_ENTRY : gd_listing_child(listing, rank_dir, directory);

    err->code = GD_OK;
    entry = entry == GD_NO_ENTRY ? entry : gd_listing_child(listing, entry, file);
    if (entry == GD_NO_ENTRY || listing->entry[entry].is_directory ||
        gd_listing_path(listing, entry, path, sizeof(path), err) != GD_OK ||
        gd_disk_open(AT_FDCWD, path, false, &disk, err) != GD_OK) {
        return NULL;
    }
    return disk;
}

static int take_nodes(struct gd_graph *graph, uint32_t subgraph, struct ms_nodes *nodes,
                      struct gd_err *err)
{
    uint32_t limit = gd_graph_node_limit(graph);
    int rc = ms_nodes_begin(graph, gd_graph_subgraph_name(graph, subgraph), nodes, err);

    for (gd_node_id node = 0; rc == GD_OK && node < limit; node++) {
        struct gd_node_info info;

        if (gd_graph_node(graph, node, &info) && info.subgraph == subgraph) {
            rc = ms_nodes_add(nodes, node, err);
        }
    }
    return rc;
}

static int begin_nodes(const struct gd_listing *listing, uint32_t rank_dir, const char *id,
                       struct gd_catalog *catalog, struct gd_dump *dump, struct ms_nodes *nodes,
                       struct gd_err *err)
{
    struct gd_graph *graph = gd_catalog_graph(catalog);
    char name[128], other[128];
    struct gd_err why;
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    uint32_t subgraph;
    int rc;

    snprintf(other, sizeof(other), "graph_%.60s", id);
    snprintf(name, sizeof(name), "ms_output_trace_code_graph_%.60s.pb", id);
    disk = open_file(listing, rank_dir, "graphs", name, &why);
    if (disk) {
        rc = ms_graph_file_read(disk, graph, other, &subgraph, &why);
        if (rc == GD_OK) {
            return take_nodes(graph, subgraph, nodes, err);
        }
        rc = gd_dump_leave_out(dump, gd_disk_path(disk), &why, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return ms_nodes_begin(graph, id[0] ? other : "graph", nodes, err);
}

/* ---- orders ---------------------------------------------------------------------------------- */

struct lines {
    struct gd_file_text text;
    size_t at;
};

/* The next line that is not empty, without its end; NULL: none. */
static char *next_line(struct lines *lines)
{
    while (lines->at < lines->text.size) {
        char *line = lines->text.data + lines->at;
        size_t len = strcspn(line, "\n");

        lines->at += len + 1;
        line[len] = '\0';
        if (len > 0 && line[len - 1] == '\r') {
            line[--len] = '\0';
        }
        if (len > 0 && len <= MAX_LINE) {
            return line;
        }
    }
    return NULL;
}

/* "Default/network/Conv2D-op3": Conv2D */
static void type_of_line(const char *line, char *out, size_t size)
{
    const char *last = gd_ms_short_name(line);
    const char *end = NULL;

    for (const char *op = strstr(last, "-op"); op; op = strstr(op + 1, "-op")) {
        end = op;
    }
    snprintf(out, size, "%.*s", end ? (int)(end - last) : (int)strlen(last), last);
}

static int take_order_line(struct ms_nodes *nodes, const char *line, uint32_t order,
                           struct gd_err *err)
{
    char type[256];
    struct gd_node_info info;
    gd_node_id node;
    int rc;

    type_of_line(line, type, sizeof(type));
    rc = ms_nodes_get(nodes, type, line, &node, err);
    if (rc == GD_OK && gd_graph_node(nodes->graph, node, &info) && info.order == GD_NO_ORDER) {
        gd_graph_set_order(nodes->graph, node, order);
    }
    return rc;
}

static int take_order(const struct gd_listing *listing, uint32_t rank_dir, const char *id,
                      struct gd_dump *dump, struct ms_nodes *nodes, uint32_t *next_order,
                      struct gd_err *err)
{
    struct lines lines = {.at = 0};
    char name[128], *line;
    struct gd_err why;
    struct gd_disk *disk;
    int rc;

    snprintf(name, sizeof(name), "ms_execution_order_graph_%.60s.csv", id);
    disk = open_file(listing, rank_dir, "execution_order", name, &why);
    if (!disk) {
        return GD_OK;
    }
    rc = gd_disk_read_text(disk, MAX_ORDER, &lines.text, &why);
    line = rc != GD_OK ? NULL : next_line(&lines);
    if (line && strcmp(line, "NodeExecutionOrder-FullNameWithScope") == 0) {
        line = next_line(&lines);
    }
    for (; rc == GD_OK && line && *next_order < GD_NO_ORDER - 1; line = next_line(&lines)) {
        rc = take_order_line(nodes, line, (*next_order)++, &why);
    }
    rc = rc != GD_OK ? gd_dump_leave_out(dump, gd_disk_path(disk), &why, err) : GD_OK;
    free(lines.text.data);
    gd_disk_unref(disk);
    return rc;
}

int ms_graph_take(const struct gd_listing *listing, uint32_t rank_dir, const char *id,
                  struct gd_catalog *catalog, struct gd_dump *dump, struct ms_nodes *nodes,
                  uint32_t *next_order, struct gd_err *err)
{
    int rc = begin_nodes(listing, rank_dir, id, catalog, dump, nodes, err);

    return rc != GD_OK ? rc : take_order(listing, rank_dir, id, dump, nodes, next_order, err);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsString(item) ? item->valuestring : "";
}

static int take_config(struct gd_disk *disk, struct gd_catalog *catalog, struct gd_err *err)
{
    struct gd_peer *peer = gd_catalog_peer(catalog);
    struct gd_json_options options = {.max_bytes = MAX_METADATA, .max_depth = 16};
    cJSON *root;
    int rc = gd_json_read(disk, &options, &root, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(peer->device, sizeof(peer->device), "%s", text_of(root, "device_target"));
    snprintf(peer->version, sizeof(peer->version), "%s", text_of(root, "ms_version"));
    cJSON_Delete(root);
    return GD_OK;
}

/* "3, from 0 to 2" for the numbers in one file. */
static int take_iterations(struct gd_disk *disk, struct gd_catalog *catalog, struct gd_err *err)
{
    struct lines lines = {.at = 0};
    uint64_t number, first = 0, last = 0, count = 0;
    char text[96], *line;
    int rc = gd_disk_read_text(disk, MAX_ORDER, &lines.text, err);

    while (rc == GD_OK && (line = next_line(&lines))) {
        if (gd_ms_number(line, strlen(line), INT64_MAX, &number)) {
            first = count == 0 || number < first ? number : first;
            last = number > last ? number : last;
            count++;
        }
    }
    if (rc == GD_OK && count > 0) {
        snprintf(text, sizeof(text), "%llu, from %llu to %llu", (unsigned long long)count,
                 (unsigned long long)first, (unsigned long long)last);
        rc = gd_catalog_add_fact(catalog, "iterations that ran", text, err);
    }
    free(lines.text.data);
    return rc;
}

/* stood_at.csv, written by gradb: steps that had run only in part. */
static int take_stood_at(struct gd_disk *disk, struct gd_catalog *catalog, struct gd_err *err)
{
    struct lines lines = {.at = 0};
    char name[64], *line;
    int rc = gd_disk_read_text(disk, MAX_METADATA, &lines.text, err);

    while (rc == GD_OK && (line = next_line(&lines))) {
        size_t len = strcspn(line, ",");
        uint64_t step;
        if (line[len] == ',' && gd_ms_number(line, len, INT64_MAX, &step)) {
            snprintf(name, sizeof(name), "step %llu is dumped only up to",
                     (unsigned long long)step);
            rc = gd_catalog_add_fact(catalog, name, line + len + 1, err);
        }
    }
    free(lines.text.data);
    return rc;
}

/* The first of the files, one per root graph. */
static struct gd_disk *open_iterations(const struct gd_listing *listing, uint32_t rank_dir,
                                       struct gd_err *err)
{
    uint32_t directory = gd_listing_child(listing, rank_dir, "execution_order");

    if (directory == GD_NO_ENTRY) {
        return NULL;
    }
    for (uint32_t i = listing->entry[directory].first_child; i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        if (strncmp(listing->entry[i].name, "ms_global_execution_order_graph_", 32) == 0) {
            return open_file(listing, rank_dir, "execution_order", listing->entry[i].name, err);
        }
    }
    return NULL;
}

/* Reads a file if it exists; what is broken is left out. Releases the disk. */
static int take_facts(struct gd_disk *disk, struct gd_catalog *catalog, struct gd_dump *dump,
                      int (*take)(struct gd_disk *disk, struct gd_catalog *catalog,
                                  struct gd_err *err),
                      struct gd_err *err)
{
    struct gd_err why = {.code = GD_OK};
    int rc = disk ? take(disk, catalog, &why) : GD_OK;

    rc = rc != GD_OK ? gd_dump_leave_out(dump, gd_disk_path(disk), &why, err) : GD_OK;
    gd_disk_unref(disk);
    return rc;
}

int ms_metadata_take(const struct gd_listing *listing, uint32_t rank_dir,
                     struct gd_catalog *catalog, struct gd_dump *dump, struct gd_err *err)
{
    struct gd_err why;
    int rc;

    if (rank_dir == GD_NO_ENTRY) {
        return GD_OK;
    }
    rc = take_facts(open_file(listing, rank_dir, ".dump_metadata", "config.json", &why), catalog,
                    dump, take_config, err);
    if (rc == GD_OK) {
        rc = take_facts(open_iterations(listing, rank_dir, &why), catalog, dump, take_iterations,
                        err);
    }
    if (rc == GD_OK) {
        rc = take_facts(open_file(listing, rank_dir, ".dump_metadata", "stood_at.csv", &why),
                        catalog, dump, take_stood_at, err);
    }
    return rc;
}
