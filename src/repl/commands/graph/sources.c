// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: sources. Also "info source". */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/hash_index.h"
#include "repl/commands/status/info.h"

struct file_count {
    const char *file; /* the graph's; the index of names needs it first */
    uint32_t nodes;
    uint32_t low, high; /* lines */
};

struct file_table {
    struct file_count *item;
    size_t count, cap;
    struct gd_hash_index names;
};

/* NULL: out of memory. */
static struct file_count *find_file(struct file_table *table, const char *file)
{
    uint32_t at = gd_hash_index_find(&table->names, file, table->item, sizeof(*table->item));
    if (at != UINT32_MAX) {
        return &table->item[at];
    }
    struct file_count *grown = gd_grow(table->item, table->count, &table->cap, sizeof(*grown));
    if (!grown) {
        return NULL;
    }
    table->item = grown;
    if (gd_hash_index_add_name(&table->names, file, (uint32_t)table->count, NULL) != GD_OK) {
        return NULL;
    }
    grown[table->count] = (struct file_count){.file = file, .low = UINT32_MAX};
    return &grown[table->count++];
}

/* Counts the node once for each file in its stack. */
static bool count_files(struct file_table *table, const struct gd_frame *frame, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (frame[i].is_title || !frame[i].file[0]) {
            continue;
        }
        struct file_count *entry = find_file(table, frame[i].file);
        if (!entry) {
            return false;
        }
        entry->low = frame[i].line < entry->low ? frame[i].line : entry->low;
        entry->high = frame[i].line > entry->high ? frame[i].line : entry->high;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) {
            seen = strcmp(frame[j].file, frame[i].file) == 0;
        }
        entry->nodes += seen ? 0 : 1;
    }
    return true;
}

static int by_nodes(const void *a, const void *b)
{
    const struct file_count *x = a;
    const struct file_count *y = b;
    return x->nodes != y->nodes ? (x->nodes < y->nodes ? 1 : -1) : strcmp(x->file, y->file);
}

static void show_files(struct command_call *call, const struct file_table *table, const char *text)
{
    static const struct out_column columns[] = {{"nodes", "Nodes", true},
                                                {"first", "First", true},
                                                {"last", "Last", true},
                                                {"file", "File", false}};
    struct out_table *rows = out_table_begin(call->out, "sources", columns, 4);
    uint32_t shown = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct file_count *entry = &table->item[i];
        if (!strstr(entry->file, text)) {
            continue;
        }
        out_put(rows, OUT_INT("nodes", entry->nodes), OUT_INT("first", entry->low),
                OUT_INT("last", entry->high), OUT_TEXT("file", entry->file));
        shown++;
    }
    out_table_end(rows);
    if (shown == 0) {
        out_printf(call->out, table->count ? "No matching source file.\n"
                                           : "The training process sent no stacks.\n");
    }
}

int info_source(struct command_call *call, struct gd_err *err)
{
    struct file_table table = {0};
    struct gd_graph *graph = call->session->graph;
    uint32_t limit = gd_graph_node_limit(graph);
    int rc = GD_OK;
    for (gd_node_id node = 0; node < limit && rc == GD_OK; node++) {
        uint32_t count = 0;
        const struct gd_frame *frame = gd_graph_stack(graph, node, &count);
        if (count > 0 && !count_files(&table, frame, count)) {
            rc = gd_fail_nomem(err);
        }
    }
    if (rc == GD_OK) {
        if (table.count > 0) {
            qsort(table.item, table.count, sizeof(*table.item), by_nodes);
        }
        show_files(call, &table, call->argc ? call->argv[0] : "");
    }
    free(table.item);
    gd_hash_index_deinit(&table.names);
    return rc;
}

const struct command cmd_sources = {
    .name = "sources",
    .aliases = "ls",
    .group = "graph",
    .usage = "sources [TEXT]",
    .summary = "List the source files that created nodes, with node counts",
    .help = "TEXT keeps only files whose path contains it.",
    .examples = "sources\n"
                "ls model",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_source,
};
