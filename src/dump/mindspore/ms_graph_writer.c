// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_graph_writer.h"

#include <stdio.h>
#include <string.h>

#include "mindspore/ms_graph.h"

#define MAX_NODE  ((size_t)1 << 24) /* bytes of one node's message */
#define MAX_STACK ((size_t)1 << 16) /* bytes of a stack as text */

enum { /* numbers of MindSpore's DataType that are not in a table below */
       TYPE_TENSOR = 14,
       TYPE_TUPLE = 31
};

static void put_varint(struct gd_buf *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) {
        gd_buf_putc(out, (char)((value & 0x7f) | 0x80));
    }
    gd_buf_putc(out, (char)value);
}

static void put_number(struct gd_buf *out, unsigned field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

static void put_bytes(struct gd_buf *out, unsigned field, const void *data, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, size);
    gd_buf_add(out, data, size);
}

static void put_text(struct gd_buf *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

/* Writes an embedded message from `inner`, and empties it. */
static void put_message(struct gd_buf *out, unsigned field, struct gd_buf *inner)
{
    put_bytes(out, field, gd_buf_text(inner), inner->len);
    out->failed = out->failed || inner->failed;
    gd_buf_clear(inner);
}

static unsigned type_number(enum gd_dtype dtype)
{
    static const unsigned char number[GD_DT_COUNT] = {
        [GD_BOOL] = 1,    [GD_INT8] = 2,      [GD_INT16] = 3,      [GD_INT32] = 4,
        [GD_INT64] = 5,   [GD_UINT8] = 6,     [GD_UINT16] = 7,     [GD_UINT32] = 8,
        [GD_UINT64] = 9,  [GD_FLOAT16] = 10,  [GD_FLOAT32] = 11,   [GD_FLOAT64] = 12,
        [GD_STRING] = 13, [GD_BFLOAT16] = 46, [GD_COMPLEX64] = 43, [GD_COMPLEX128] = 44,
    };
    return dtype < GD_DT_COUNT ? number[dtype] : 0;
}

/* TypeProto of one slot. */
static void put_slot_type(struct gd_buf *out, unsigned field, const struct gd_output *output)
{
    struct gd_buf dim = GD_BUF_INIT(64), shape = GD_BUF_INIT(4096), tensor = GD_BUF_INIT(8192),
                  type = GD_BUF_INIT(16384);

    for (int i = 0; i < output->shape.rank; i++) {
        put_number(&dim, 1, (uint64_t)output->shape.dim[i]);
        put_message(&shape, 1, &dim);
    }
    put_number(&tensor, 1, type_number(output->dtype));
    put_message(&tensor, 2, &shape);
    put_number(&type, 1, TYPE_TENSOR);
    put_message(&type, 2, &tensor);
    put_message(out, field, &type);
    gd_buf_deinit(&dim);
    gd_buf_deinit(&shape);
    gd_buf_deinit(&tensor);
    gd_buf_deinit(&type);
}

static void put_output_type(struct gd_buf *out, const struct gd_graph *graph, gd_node_id node,
                            uint32_t count)
{
    struct gd_buf list = GD_BUF_INIT(MAX_NODE), type = GD_BUF_INIT(MAX_NODE);
    struct gd_output output;

    if (count == 1 && gd_graph_output(graph, node, 0, &output)) {
        put_slot_type(out, 6, &output);
    } else if (count > 1) {
        for (uint32_t slot = 0; slot < count && gd_graph_output(graph, node, slot, &output);
             slot++) {
            put_slot_type(&list, 1, &output);
        }
        put_number(&type, 1, TYPE_TUPLE);
        put_message(&type, 3, &list);
        put_message(out, 6, &type);
    }
    gd_buf_deinit(&list);
    gd_buf_deinit(&type);
}

/* Writes text on one line. */
static void put_flat(struct gd_buf *out, const char *text)
{
    for (; *text; text++) {
        gd_buf_putc(out, *text == '\n' || *text == '\r' ? ' ' : *text);
    }
}

/* In MindSpore's source_address format; the function at the end is our addition. */
static void put_stack(struct gd_buf *out, struct gd_graph *graph, gd_node_id node)
{
    struct gd_buf text = GD_BUF_INIT(MAX_STACK);
    uint32_t count = 0;
    const struct gd_frame *frame = gd_graph_stack(graph, node, &count);

    for (uint32_t i = 0; i < count && !text.failed; i++) {
        gd_buf_puts(&text, frame[i].is_title ? "# " : "      # ");
        if (frame[i].file[0]) {
            gd_buf_puts(&text, "In file ");
            put_flat(&text, frame[i].file);
            gd_buf_printf(&text, "(%lu)/", (unsigned long)frame[i].line);
        }
        put_flat(&text, frame[i].code);
        gd_buf_puts(&text, frame[i].file[0] ? "/" : "");
        if (frame[i].file[0] && frame[i].function[0]) {
            gd_buf_puts(&text, " in ");
            put_flat(&text, frame[i].function);
        }
        gd_buf_putc(&text, '\n');
    }
    if (text.len > 0 && !text.failed) { /* a stack too long is left out */
        put_bytes(out, 9, gd_buf_text(&text), text.len);
    }
    gd_buf_deinit(&text);
}

static void put_inputs(struct gd_buf *out, const struct gd_graph *graph,
                       const struct gd_node_info *info)
{
    struct gd_buf input = GD_BUF_INIT(256);
    char name[24];

    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct gd_edge *edge = &info->inputs[i];
        struct gd_node_info from;

        if (!gd_graph_node(graph, edge->node, &from) || from.subgraph != info->subgraph) {
            continue;
        }
        snprintf(name, sizeof(name), "%lu", (unsigned long)edge->node + 1);
        put_text(&input, 1, name);
        put_number(&input, 2, edge->control);
        if (edge->slot > 0) {
            put_number(&input, GD_MS_INPUT_SLOT, edge->slot);
        }
        put_message(out, 1, &input);
    }
    gd_buf_deinit(&input);
}

const char *gd_ms_dumped_type(const struct gd_node_info *info)
{
    bool computed = info->order != GD_NO_ORDER || info->input_count > 0;

    return computed || strcmp(info->type, "Const") == 0 ? info->type : "Parameter";
}

static void put_node(struct gd_buf *out, struct gd_graph *graph, gd_node_id node,
                     const struct gd_node_info *info)
{
    char name[24];
    const char *slash = strrchr(info->own_name, '/');

    snprintf(name, sizeof(name), "%lu", (unsigned long)node + 1);
    put_inputs(out, graph, info);
    put_text(out, 2, name);
    put_text(out, 3, gd_ms_dumped_type(info));
    put_bytes(out, 4, info->own_name, slash ? (size_t)(slash - info->own_name) : 0);
    put_output_type(out, graph, node, info->output_count - info->input_slots);
    put_text(out, 8, info->own_name);
    if (strcmp(info->wire_name, info->own_name) != 0) {
        put_text(out, GD_MS_NODE_WIRE, info->wire_name);
    }
    put_stack(out, graph, node);
}

void gd_ms_graph_write(struct gd_graph *graph, uint32_t subgraph, struct gd_buf *out)
{
    struct gd_buf nodes = GD_BUF_INIT(out->max), one = GD_BUF_INIT(MAX_NODE);
    gd_node_id limit = gd_graph_node_limit(graph);
    struct gd_node_info info;

    for (gd_node_id node = 0; node < limit && !nodes.failed; node++) {
        if (gd_graph_node(graph, node, &info) && info.subgraph == subgraph) {
            put_node(&one, graph, node, &info);
            put_message(&nodes, 1, &one);
        }
    }
    put_text(&nodes, 2, gd_graph_subgraph_name(graph, subgraph));
    put_number(out, 1, 1);
    put_message(out, 4, &nodes);
    gd_buf_deinit(&nodes);
    gd_buf_deinit(&one);
}
