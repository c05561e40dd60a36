// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A GraphProto of a million nodes: from bytes to a searchable graph, against protobuf-c's unpack
 * with its own allocator; then substring searches over all names. The best of a few runs counts.
 *
 *     bench_graph [NODES]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "debug_graph.pb-c.h"
#include "engine/graph/graph.h"
#include "mindspore/ms_graph.h"

#define RUNS        3
#define SEARCH_RUNS 7

static double get_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail_with(const char *what)
{
    fprintf(stderr, "bench_graph: %s\n", what);
    exit(1);
}

/* ---- input ----------------------------------------------------------------------------------- */

struct bytes {
    uint8_t *data;
    size_t len, cap;
};

static uint8_t *reserve_bytes(struct bytes *bytes, size_t more)
{
    while (bytes->cap - bytes->len < more) {
        bytes->cap = bytes->cap ? bytes->cap * 2 : 1 << 20;
        bytes->data = realloc(bytes->data, bytes->cap);
        if (!bytes->data) {
            fail_with("out of memory");
        }
    }
    return bytes->data + bytes->len;
}

/* A graph message is the concatenation of its fields: each node is packed separately, after its
 * tag. */
static void append_node(struct bytes *bytes, const Debugger__NodeProto *node)
{
    size_t size = debugger__node_proto__get_packed_size(node);
    uint8_t *out = reserve_bytes(bytes, size + 16);
    uint8_t *start = out;

    *out++ = 1 << 3 | 2;
    for (size_t left = size; left || out == start + 1; left >>= 7) {
        *out++ = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    }
    out += debugger__node_proto__pack(node, out);
    bytes->len += (size_t)(out - start);
}

/* The strings and messages of one node, reused for each. */
struct node_parts {
    Debugger__NodeProto node;
    Debugger__InputProto input[3], *inputs[3];
    Debugger__AttributeProto attr[2], *attrs[2];
    Debugger__ValueProto value[2];
    Debugger__TypeProto type;
    Debugger__TypeProto__Tensor tensor;
    Debugger__TensorShapeProto shape;
    Debugger__TensorShapeProto__Dimension dim[4], *dims[4];
    char name[16], input_name[3][16], scope[80], full_name[128], source[320];
};

static char kernel_size[] = "kernel_size", pad_mode[] = "pad_mode", same[] = "same";

static void init_parts(struct node_parts *p, bool full)
{
    debugger__node_proto__init(&p->node);
    debugger__type_proto__init(&p->type);
    debugger__type_proto__tensor__init(&p->tensor);
    debugger__tensor_shape_proto__init(&p->shape);
    for (int i = 0; i < 3; i++) {
        debugger__input_proto__init(&p->input[i]);
        p->input[i].name = p->input_name[i];
        p->input[i].has_type = 1;
        p->inputs[i] = &p->input[i];
    }
    for (int i = 0; i < 4; i++) {
        debugger__tensor_shape_proto__dimension__init(&p->dim[i]);
        p->dim[i].has_size = 1;
        p->dims[i] = &p->dim[i];
    }
    for (int i = 0; i < 2; i++) {
        debugger__attribute_proto__init(&p->attr[i]);
        debugger__value_proto__init(&p->value[i]);
        p->attr[i].name = i ? pad_mode : kernel_size;
        p->attr[i].value = &p->value[i];
        p->value[i].has_dtype = 1;
        p->value[i].dtype = i ? DEBUGGER__DATA_TYPE__DT_STRING : DEBUGGER__DATA_TYPE__DT_INT64;
        p->value[i].has_int_val = !i;
        p->value[i].str_val = i ? same : NULL;
        p->attrs[i] = &p->attr[i];
    }
    p->node.name = p->name;
    p->node.scope = p->scope;
    p->node.full_name = p->full_name;
    p->node.input = p->inputs;
    p->node.output_type = &p->type;
    p->type.has_data_type = 1;
    p->type.data_type = DEBUGGER__DATA_TYPE__DT_TENSOR;
    p->type.value_case = DEBUGGER__TYPE_PROTO__VALUE_TENSOR_TYPE;
    p->type.tensor_type = &p->tensor;
    p->tensor.has_elem_type = 1;
    p->tensor.elem_type = DEBUGGER__DATA_TYPE__DT_FLOAT32;
    p->tensor.shape = &p->shape;
    p->shape.n_dim = 4;
    p->shape.dim = p->dims;
    if (full) {
        p->node.n_attribute = 2;
        p->node.attribute = p->attrs;
        p->node.source_address = p->source;
    }
}

static void fill_parts(struct node_parts *p, uint32_t i)
{
    static char types[6][12] = {"MatMul", "BiasAdd", "ReLU", "Conv2D", "Mul", "TensorAdd"};
    uint32_t type = i % 6;

    p->node.op_type = types[type];
    p->node.n_input = i ? 2 + i % 2 : 0;
    snprintf(p->name, sizeof(p->name), "%u", i + 1);
    snprintf(p->input_name[0], sizeof(p->input_name[0]), "%u", i);
    snprintf(p->input_name[1], sizeof(p->input_name[1]), "%u", i / 2 + 1);
    snprintf(p->input_name[2], sizeof(p->input_name[2]), "%u", i > 100 ? i - 99 : 1);
    snprintf(p->scope, sizeof(p->scope), "%s/network-TrainCell/encoder-Block%u/layer%u",
             i % 3 ? "Default" : "Gradients/Default", i / 4000, i / 40 % 100);
    snprintf(p->full_name, sizeof(p->full_name), "%s/%s-op%u", p->scope, types[type], i);
    snprintf(p->source, sizeof(p->source),
             "      # In file /home/user/project/models/encoder.py(%u)/        x = self.layer(x)/\n"
             "      # In file /home/user/project/train.py(120)/    loss = self.network(*inputs)/\n",
             i / 40 % 100 + 40);
    for (int k = 0; k < 4; k++) {
        p->dim[k].size = 8 << (i / 40 + (uint32_t)k) % 5;
    }
}

static struct bytes make_graph(uint32_t nodes, bool full)
{
    static const char tail[] = "\x12\x04main"; /* field 2: name */
    struct node_parts *parts = calloc(1, sizeof(*parts));
    struct bytes bytes = {0};

    if (!parts) {
        fail_with("out of memory");
    }
    init_parts(parts, full);
    for (uint32_t i = 0; i < nodes; i++) {
        fill_parts(parts, i);
        append_node(&bytes, &parts->node);
    }
    memcpy(reserve_bytes(&bytes, sizeof(tail)), tail, sizeof(tail) - 1);
    bytes.len += sizeof(tail) - 1;
    free(parts);
    return bytes;
}

/* ---- measurements ---------------------------------------------------------------------------- */

static double time_unpack(const struct bytes *bytes, uint32_t nodes)
{
    double start = get_seconds();
    Debugger__GraphProto *graph = debugger__graph_proto__unpack(NULL, bytes->len, bytes->data);
    double took = get_seconds() - start;

    if (!graph || graph->n_node != nodes) {
        fail_with("unpack failed");
    }
    debugger__graph_proto__free_unpacked(graph, NULL);
    return took;
}

static double time_ingest(const struct bytes *bytes, uint32_t nodes, struct gd_graph **ret)
{
    struct gd_ms_graph_info info;
    struct gd_graph_counts counts;
    struct gd_graph *graph;
    struct gd_err err = {0};
    double start = get_seconds();
    double took;

    if (gd_graph_create(0, &graph, &err) != GD_OK ||
        gd_ms_graph_load(graph, bytes->data, bytes->len, NULL, &info, &err) != GD_OK) {
        fail_with(err.text);
    }
    took = get_seconds() - start;
    gd_graph_counts(graph, &counts);
    if (counts.nodes != nodes || counts.edges < nodes || counts.missing_inputs) {
        fail_with("the graph differs from the input");
    }
    *ret = graph;
    return took;
}

static int count_node(void *ctx, gd_node_id node)
{
    (void)node;
    ++*(uint32_t *)ctx;
    return 0;
}

/* The slowest of several searches: rare, frequent, upper case, missing, one letter. */
static double time_search(const struct gd_graph *graph)
{
    static const char *const needles[] = {"op123456",       "relu", "LAYER7/", "encoder",
                                          "nowhere-at-all", "e",    "/",       "block24/layer99"};
    double slowest = 0;

    for (size_t i = 0; i < sizeof(needles) / sizeof(needles[0]); i++) {
        double best = 1e9;
        uint32_t found = 0;

        for (int run = 0; run < SEARCH_RUNS; run++) {
            double start = get_seconds();

            found = 0;
            gd_graph_search_name(graph, needles[i], count_node, &found);
            best = get_seconds() - start < best ? get_seconds() - start : best;
        }
        fprintf(stderr, "bench_graph: search '%s': %u nodes in %.1f ms\n", needles[i], found,
                best * 1e3);
        slowest = best > slowest ? best : slowest;
    }
    return slowest;
}

static double measure_ingest(const char *figure, uint32_t nodes, bool full, struct gd_graph **ret)
{
    struct bytes bytes = make_graph(nodes, full);
    double unpack = 1e9, ingest = 1e9;

    *ret = NULL;
    for (int run = 0; run < RUNS; run++) {
        double took = time_unpack(&bytes, nodes);

        unpack = took < unpack ? took : unpack;
        gd_graph_destroy(*ret);
        took = time_ingest(&bytes, nodes, ret);
        ingest = took < ingest ? took : ingest;
    }
    fprintf(stderr, "bench_graph: %s: %.0f MB, unpack %.3f s, ingest %.3f s\n", figure,
            (double)bytes.len / 1e6, unpack, ingest);
    free(bytes.data);
    return ingest / unpack;
}

static void print_result(const char *name, double value, double target)
{
    printf("%s %.2f target %.2f %s\n", name, value, target, value <= target ? "pass" : "short");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    struct gd_graph_counts counts;
    struct gd_graph *graph;

    if (nodes < 1000) {
        fail_with("at least 1000 nodes are needed");
    }
    print_result("graph.ingest", measure_ingest("plain nodes", nodes, false, &graph), 3.0);
    print_result("graph.search_ms", time_search(graph) * 1e3, 100.0);
    gd_graph_counts(graph, &counts);
    printf("graph.bytes_per_node %.0f\n", (double)counts.memory / nodes);
    gd_graph_destroy(graph);
    print_result("graph.ingest_with_attributes_and_stacks",
                 measure_ingest("all fields", nodes, true, &graph), 3.0);
    gd_graph_counts(graph, &counts);
    printf("graph.bytes_per_node_with_attributes_and_stacks %.0f\n", (double)counts.memory / nodes);
    gd_graph_destroy(graph);
    return 0;
}
