// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: sources. Also "info source". */
#include <stdlib.h>
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

struct file_count {
    const char *file; /* the graph's */
    uint32_t nodes;
    uint32_t low, high; /* lines */
};

struct file_table { /* open addressing, by the file's text */
    struct file_count *slot;
    uint32_t used, room; /* room is a power of two */
};

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

static struct file_count *find_slot(struct file_count *slot, uint32_t room, const char *file)
{
    uint32_t at = hash_text(file) & (room - 1);
    while (slot[at].file && strcmp(slot[at].file, file) != 0) {
        at = (at + 1) & (room - 1);
    }
    return &slot[at];
}

static struct file_count *file_entry(struct file_table *table, const char *file)
{
    if (2 * (table->used + 1) > table->room) {
        uint32_t room = table->room ? 2 * table->room : 64;
        struct file_count *grown = calloc(room, sizeof(*grown));
        if (!grown) {
            return NULL;
        }
        for (uint32_t i = 0; i < table->room; i++) {
            if (table->slot[i].file) {
                *find_slot(grown, room, table->slot[i].file) = table->slot[i];
            }
        }
        free(table->slot);
        table->slot = grown;
        table->room = room;
    }
    struct file_count *entry = find_slot(table->slot, table->room, file);
    if (!entry->file) {
        entry->file = file;
        entry->low = UINT32_MAX;
        table->used++;
    }
    return entry;
}

/* Counts the node once for each file in its stack. */
static bool count_files(struct file_table *table, const struct gd_frame *frame, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (frame[i].is_title || !frame[i].file[0]) {
            continue;
        }
        struct file_count *entry = file_entry(table, frame[i].file);
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
    if (!x->file || !y->file) {
        return (x->file ? 0 : 1) - (y->file ? 0 : 1);
    }
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
    for (uint32_t i = 0; i < table->used; i++) {
        const struct file_count *entry = &table->slot[i];
        if (!strstr(entry->file, text)) {
            continue;
        }
        out_put(rows, OUT_INT("nodes", entry->nodes), OUT_INT("first", entry->low),
                OUT_INT("last", entry->high), OUT_TEXT("file", entry->file));
        shown++;
    }
    out_table_end(rows);
    if (shown == 0) {
        out_printf(call->out, table->used ? "No matching source file.\n"
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
            rc = gd_fail(err, GD_ENOMEM, "out of memory");
        }
    }
    if (rc == GD_OK) {
        if (table.used > 0) {
            qsort(table.slot, table.room, sizeof(*table.slot), by_nodes);
        }
        show_files(call, &table, call->argc ? call->argv[0] : "");
    }
    free(table.slot);
    return rc;
}

const struct command cmd_sources = {
    .name = "sources",
    .aliases = "ls",
    .group = "graph",
    .usage = "sources [TEXT]",
    .summary = "List the source files that created nodes, with node counts",
    .help = "TEXT keeps only files whose path contains it.\n\n"
            "  sources\n"
            "  ls model\n",
    .args = {ARG_WORD},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_source,
};
