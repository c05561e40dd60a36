// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * memory_usage_R.pb: for each graph its nodes in execution order and its tensors, with the nodes
 * between which each lives, as MindSpore's memory planner (SOMAS) placed them; and the memory that
 * does not change while the graph runs. The message is MemoryProto of MindSpore's
 * memory_usage.proto (1.2 to 2.2):
 *
 *   MemoryProto: 1 graphs, 2 size of the device's memory
 *   graph: 1 id, 2 static memory, 3 nodes, 4 tensors
 *   node: 1 name, 2 id, 4 ids of its output tensors (5, of its workspace, repeats the outputs)
 *   tensor: 1 id, 2 size, 4 first node, 5 last node, 6 lifetime ("LifeLongGraphAll", ...)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"
#include "engine/memory/memory.h"
#include "mindspore/pbread.h"

#define MAX_FILE   ((uint64_t)256 << 20)
#define MAX_COUNT  (UINT32_C(1) << 22) /* nodes, tensors of a graph */
#define MAX_TENSOR (INT64_C(1) << 38)  /* bytes: sums of MAX_COUNT stay below 2^61 */
#define MAX_STATIC (INT64_C(1) << 48)

struct planned_node {
    const uint8_t *name;
    size_t name_len;
    struct gd_memory_total peak;
};

struct planned_tensor {
    int64_t id, size;
    uint32_t first, last; /* nodes; alive in both */
    uint32_t maker;       /* UINT32_MAX: unknown */
    bool placed;
};

struct output { /* a tensor's id and the node that makes it */
    int64_t id;
    uint32_t node;
};

struct planned_graph {
    int64_t id, fixed;
    struct planned_node *node;
    struct planned_tensor *tensor;
    struct output *output;
    uint32_t nodes, tensors, outputs;
    size_t node_cap, tensor_cap, output_cap;
    int64_t peak;
    uint32_t peak_at;
};

static void free_graph(struct planned_graph *graph)
{
    free(graph->node);
    free(graph->tensor);
    free(graph->output);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool add_item(void *list, uint32_t count, size_t *cap, size_t size)
{
    return count < MAX_COUNT && gd_grow_list(list, count, cap, size);
}

static bool take_node(struct planned_graph *graph, const struct gd_pb_field *given)
{
    struct gd_pb reader = gd_pb_init(given->data, given->len);
    struct gd_pb_field field;
    struct planned_node *node;

    if (!add_item(&graph->node, graph->nodes, &graph->node_cap, sizeof(*node))) {
        return false;
    }
    node = &graph->node[graph->nodes++];
    *node = (struct planned_node){.name_len = 0};
    while (gd_pb_next(&reader, &field)) {
        size_t at = 0;
        int64_t id;

        if (field.number == 1 && field.wire == GD_PB_BYTES) {
            node->name = field.data;
            node->name_len = field.len;
        }
        while (field.number == 4 && gd_pb_integers(&reader, &field, &at, &id)) {
            if (!add_item(&graph->output, graph->outputs, &graph->output_cap,
                          sizeof(*graph->output))) {
                return false;
            }
            graph->output[graph->outputs++] = (struct output){id, graph->nodes - 1};
        }
    }
    return !reader.bad;
}

struct lifetime {
    int64_t first, last;
    struct gd_pb_field kind; /* len 0: none */
};

static bool take_tensor(struct planned_graph *graph, const struct gd_pb_field *given,
                        struct lifetime *ret)
{
    struct gd_pb reader = gd_pb_init(given->data, given->len);
    struct planned_tensor *tensor;

    if (!add_item(&graph->tensor, graph->tensors, &graph->tensor_cap, sizeof(*tensor))) {
        return false;
    }
    tensor = &graph->tensor[graph->tensors++];
    *tensor = (struct planned_tensor){.maker = UINT32_MAX};
    *ret = (struct lifetime){.first = 0}; /* proto3 leaves out zeros */
    for (struct gd_pb_field field; gd_pb_next(&reader, &field);) {
        switch (field.number) {
        case 1: tensor->id = (int64_t)field.value; break;
        case 2: tensor->size = (int64_t)field.value; break;
        case 4: ret->first = (int64_t)field.value; break;
        case 5: ret->last = (int64_t)field.value; break;
        case 6: ret->kind = field; break;
        default: break;
        }
    }
    return !reader.bad && tensor->size >= 0 && tensor->size <= MAX_TENSOR;
}

static bool is_lifetime(const struct lifetime *lifetime, const char *name)
{
    const struct gd_pb_field *kind = &lifetime->kind;

    return kind->data && kind->len == strlen(name) && memcmp(kind->data, name, kind->len) == 0;
}

/* The nodes are counted first: a tensor may live until the last one. */
static bool place_tensor(struct planned_graph *graph, const struct gd_pb_field *given)
{
    struct lifetime lifetime;
    int64_t end = (int64_t)graph->nodes - 1;
    struct planned_tensor *tensor;

    if (!take_tensor(graph, given, &lifetime)) {
        return false;
    }
    if (is_lifetime(&lifetime, "LifeLongGraphAll") ||
        is_lifetime(&lifetime, "LifeLongGraphStart")) {
        lifetime.first = 0;
    }
    if (is_lifetime(&lifetime, "LifeLongGraphAll") || is_lifetime(&lifetime, "LifeLongGraphEnd") ||
        lifetime.last > end) {
        lifetime.last = end;
    }
    tensor = &graph->tensor[graph->tensors - 1];
    tensor->placed = lifetime.first >= 0 && lifetime.first <= lifetime.last;
    tensor->first = tensor->placed ? (uint32_t)lifetime.first : 0;
    tensor->last = tensor->placed ? (uint32_t)lifetime.last : 0;
    return true;
}

static bool take_graph(struct planned_graph *graph, const struct gd_pb_field *given)
{
    struct gd_pb reader = gd_pb_init(given->data, given->len), again = reader;
    struct gd_pb_field field;

    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1) {
            graph->id = (int64_t)field.value;
        } else if (field.number == 2) {
            graph->fixed = (int64_t)field.value;
        } else if (field.number == 3 && field.wire == GD_PB_BYTES && !take_node(graph, &field)) {
            return false;
        }
    }
    while (gd_pb_find(&again, 4, GD_PB_BYTES, &field)) {
        if (!place_tensor(graph, &field)) {
            return false;
        }
    }
    return !reader.bad && graph->fixed >= 0 && graph->fixed <= MAX_STATIC;
}

/* ---- the peak -------------------------------------------------------------------------------- */

static int order_outputs(const void *a, const void *b)
{
    const struct output *x = a, *y = b;

    return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
                          : (x->node > y->node) - (x->node < y->node);
}

static int order_ids(const void *key, const void *item)
{
    const int64_t *id = key;
    const struct output *output = item;

    return (*id > output->id) - (*id < output->id);
}

static void find_makers(struct planned_graph *graph)
{
    if (graph->outputs == 0) {
        return;
    }
    qsort(graph->output, graph->outputs, sizeof(*graph->output), order_outputs);
    for (uint32_t i = 0; i < graph->tensors; i++) {
        const struct output *found = bsearch(&graph->tensor[i].id, graph->output, graph->outputs,
                                             sizeof(*graph->output), order_ids);
        graph->tensor[i].maker = found ? found->node : UINT32_MAX;
    }
}

static int find_peak(struct planned_graph *graph, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_free)
    int64_t *change = calloc((size_t)graph->nodes + 1, sizeof(*change));
    int64_t now = graph->fixed;

    if (!change) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; i < graph->tensors; i++) {
        const struct planned_tensor *tensor = &graph->tensor[i];

        if (tensor->placed) {
            change[tensor->first] += tensor->size;
            change[tensor->last + 1] -= tensor->size;
        }
    }
    graph->peak = graph->fixed;
    for (uint32_t i = 0; i < graph->nodes; i++) {
        now += change[i];
        if (i == 0 || now > graph->peak) {
            graph->peak = now;
            graph->peak_at = i;
        }
    }
    return GD_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

static int add_row(struct gd_memory *report, const char *name, const char *detail,
                   struct gd_memory_total held)
{
    report->kind[GD_MEMORY_OTHER].bytes += held.bytes;
    report->kind[GD_MEMORY_OTHER].count += held.count;
    return gd_memory_add_peak_node(report, &(struct gd_memory_row){.name = name,
                                                                   .where = "",
                                                                   .detail = detail,
                                                                   .kind = GD_MEMORY_OTHER,
                                                                   .bytes = held.bytes,
                                                                   .count = held.count});
}

static void name_of(const struct planned_node *node, char *out, size_t size)
{
    snprintf(out, size, "%.*s", node->name_len < size ? (int)node->name_len : (int)size - 1,
             node->name_len ? (const char *)node->name : "");
}

/* Adds up what each node's outputs hold at the peak. */
static struct gd_memory_total add_up(struct planned_graph *graph)
{
    struct gd_memory_total other = {0, 0};

    for (uint32_t i = 0; i < graph->tensors; i++) {
        const struct planned_tensor *tensor = &graph->tensor[i];
        bool known = tensor->maker != UINT32_MAX;
        struct gd_memory_total *held = known ? &graph->node[tensor->maker].peak : &other;

        if (tensor->placed && tensor->first <= graph->peak_at && tensor->last >= graph->peak_at) {
            held->bytes += tensor->size;
            held->count++;
        }
    }
    return other;
}

static int report_graph(struct planned_graph *graph, struct gd_memory *report)
{
    struct gd_memory_total other = add_up(graph);
    char text[300], name[256];
    int rc = GD_OK;

    report->peak.bytes = graph->peak;
    if (graph->nodes > 0) {
        name_of(&graph->node[graph->peak_at], name, sizeof(name));
        report->peak.name = gd_memory_text(report, name);
        snprintf(text, sizeof(text), "node %u of %u of graph %lld", graph->peak_at + 1,
                 graph->nodes, (long long)graph->id);
        report->peak.note = gd_memory_text(report, text);
    }
    if (graph->fixed > 0) {
        rc = add_row(report, "(static memory)", "weights, constants, inputs",
                     (struct gd_memory_total){graph->fixed, 1});
    }
    if (rc == GD_OK && other.count > 0) {
        rc = add_row(report, "(of no node)", "", other);
    }
    for (uint32_t i = 0; rc == GD_OK && i < graph->nodes; i++) {
        if (graph->node[i].peak.count > 0) {
            name_of(&graph->node[i], name, sizeof(name));
            rc = add_row(report, name, "", graph->node[i].peak);
        }
    }
    return rc;
}

static int add_report(struct profile *profile, struct planned_graph *best, uint32_t graphs,
                      int64_t capacity, struct gd_err *err)
{
    struct gd_memory_device device = {
        "planned for the device", -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    struct gd_memory *report;
    char text[200];
    int rc = gd_catalog_memory(profile->catalog, &report, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(text, sizeof(text),
             "planned, at the peak (memory_usage_%lld.pb, %u graph%s; the one with the most)",
             (long long)profile->rank, graphs, graphs == 1 ? "" : "s");
    report->source = gd_memory_text(report, text);
    device.peak = best->peak;
    device.total = capacity > 0 && capacity <= MAX_STATIC ? capacity : -1;
    return report_graph(best, report) == GD_OK && gd_memory_add_device(report, &device) == GD_OK
               ? GD_OK
               : gd_fail_nomem(err);
}

static int read_graphs(struct profile *profile, const char *path, struct gd_pb reader,
                       struct gd_err *err)
{
    struct planned_graph best = {.peak = -1};
    struct gd_pb_field field;
    uint32_t graphs = 0;
    int64_t capacity = -1;
    int rc = GD_OK;

    while (rc == GD_OK && gd_pb_next(&reader, &field)) {
        struct planned_graph graph = {.peak = -1};

        capacity = field.number == 2 ? (int64_t)field.value : capacity;
        if (field.number != 1 || field.wire != GD_PB_BYTES) {
            continue;
        }
        graphs++;
        rc = take_graph(&graph, &field)
                 ? find_peak(&graph, err)
                 : gd_fail(err, GD_EPROTO, "%.300s: graph %u is broken, or impossibly large", path,
                           graphs);
        find_makers(&graph);
        if (rc == GD_OK && graph.peak > best.peak) {
            free_graph(&best);
            best = graph;
        } else {
            free_graph(&graph);
        }
    }
    if (rc == GD_OK && reader.bad) {
        rc = gd_fail(err, GD_EPROTO, "%.300s is truncated or broken after graph %u", path, graphs);
    }
    if (rc == GD_OK && graphs > 0) {
        rc = add_report(profile, &best, graphs, capacity, err);
    }
    free_graph(&best);
    return rc;
}

int profile_add_planned_memory(struct profile *profile, const char *path, struct gd_err *err)
{
    struct gd_file_text bytes;
    int rc = gd_file_text_read(path, MAX_FILE, &bytes, err);

    if (rc == GD_OK) {
        rc = read_graphs(profile, path, gd_pb_init((const uint8_t *)bytes.data, bytes.size), err);
        free(bytes.data);
    }
    return rc;
}
