// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/graph_impl.h"
#include "engine/stack.h"

#include <stdlib.h>
#include <string.h>

/* ---- stacks are kept once: the nodes of a layer, and of a loop, share theirs ----------------- */

static int add_stack(struct gd_graph *graph, const struct graph_stack *stack, uint32_t hash,
                     uint32_t *ret, struct gd_err *err)
{
    int rc = graph_table_reserve(graph, &graph->stacks, err);

    if (rc == GD_OK) {
        rc = graph_grow(graph, &graph->stack, &graph->stack_cap, (uint64_t)graph->stack_count + 1,
                        sizeof(*stack), err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    graph->stack[graph->stack_count] = *stack;
    graph_table_insert(&graph->stacks, hash, graph->stack_count);
    *ret = graph->stack_count++;
    return GD_OK;
}

int graph_intern_source(struct gd_graph *graph, const char *source, uint32_t *ret,
                        struct gd_err *err)
{
    size_t len = strlen(source);
    uint32_t hash = (uint32_t)graph_hash(graph, source, len), id, at = 0;
    struct graph_stack stack = {0};

    if (len > UINT32_MAX / 2) {
        return gd_fail(err, GD_ELIMIT, "the source position of a node has %zu bytes", len);
    }
    while ((id = graph_table_next(&graph->stacks, hash, &at)) != GRAPH_NONE) {
        const struct graph_stack *have = &graph->stack[id];

        if (have->text && have->len == len && memcmp(have->text, source, len) == 0) {
            *ret = id;
            return GD_OK;
        }
    }
    stack.len = (uint32_t)len;
    stack.text = graph_text(graph, source, len, err);
    if (!stack.text) {
        return err->code;
    }
    return add_stack(graph, &stack, hash, ret, err);
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static bool same_frames(const struct graph_stack *have, const struct gd_frame *frames,
                        uint32_t count)
{
    if (have->text || have->frame_count != count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct gd_frame *a = &have->frames[i];
        const struct gd_frame *b = &frames[i];

        if (a->line != b->line || a->is_title != b->is_title || a->library != b->library ||
            a->told != b->told || strcmp(a->file, text_of(b->file)) != 0 ||
            strcmp(a->function, text_of(b->function)) != 0 ||
            strcmp(a->code, text_of(b->code)) != 0) {
            return false;
        }
    }
    return true;
}

static int copy_frame(struct gd_graph *graph, struct gd_frame *out, const struct gd_frame *in,
                      struct gd_err *err)
{
    int rc = graph_intern_word(graph, text_of(in->file), &out->file, err);

    if (rc == GD_OK) {
        rc = graph_intern_word(graph, text_of(in->function), &out->function, err);
    }
    if (rc == GD_OK) {
        rc = graph_intern_word(graph, text_of(in->code), &out->code, err);
    }
    out->line = in->line;
    out->is_title = in->is_title;
    out->library = in->library;
    out->told = in->told;
    return rc;
}

static uint32_t hash_frames(const struct gd_graph *graph, const struct gd_frame *frames,
                            uint32_t count)
{
    uint64_t hash = count;

    for (uint32_t i = 0; i < count; i++) {
        const char *file = text_of(frames[i].file);
        const char *function = text_of(frames[i].function);

        hash = hash * 31 + graph_hash(graph, file, strlen(file));
        hash = hash * 31 + graph_hash(graph, function, strlen(function));
        hash = hash * 31 + frames[i].line;
    }
    return (uint32_t)(hash ^ (hash >> 32));
}

int graph_intern_frames(struct gd_graph *graph, const struct gd_frame *frames, uint32_t count,
                        uint32_t *ret, struct gd_err *err)
{
    uint32_t hash = hash_frames(graph, frames, count), id, at = 0;
    struct graph_stack stack = {.parsed = true, .frame_count = count};

    while ((id = graph_table_next(&graph->stacks, hash, &at)) != GRAPH_NONE) {
        if (same_frames(&graph->stack[id], frames, count)) {
            *ret = id;
            return GD_OK;
        }
    }
    stack.frames = graph_pool_alloc(graph, &graph->data, count * sizeof(*stack.frames), 8, err);
    if (!stack.frames) {
        return err->code;
    }
    for (uint32_t i = 0; i < count; i++) {
        int rc = copy_frame(graph, &stack.frames[i], &frames[i], err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    return add_stack(graph, &stack, hash, ret, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void parse_stack(struct gd_graph *graph, struct graph_stack *stack)
{
    if (graph->max) {
        size_t left = graph->max > graph->memory ? graph->max - graph->memory : 0;

        graph->frames.max = left ? left : 1;
    }
    /* If out of memory the stack stays empty, and the next request tries again. */
    if (!stack->parsed && gd_stack_parse(stack->text, stack->len, &graph->frames, &stack->frames,
                                         &stack->frame_count) == GD_OK) {
        stack->parsed = true;
    }
}

const struct gd_frame *gd_graph_stack(struct gd_graph *graph, gd_node_id node, uint32_t *count)
{
    const struct graph_extra *extra;
    struct graph_stack *stack;

    *count = 0;
    if (node >= graph->node_count || graph->node[node].gone) {
        return NULL;
    }
    extra = graph->node[node].extra;
    if (!extra || extra->stack == GRAPH_NONE) {
        return NULL;
    }
    stack = &graph->stack[extra->stack];
    parse_stack(graph, stack);
    if (!stack->parsed) {
        return NULL;
    }
    *count = stack->frame_count;
    return stack->frames;
}

bool gd_frame_is_library(const struct gd_frame *frame)
{
    return frame->library || (!frame->told && (strstr(frame->file, "site-packages") ||
                                               strstr(frame->file, "dist-packages")));
}

const struct gd_frame *gd_frame_place(const struct gd_frame *frames, uint32_t count)
{
    const struct gd_frame *found = NULL;

    for (uint32_t i = 0; i < count; i++) {
        if (frames[i].is_title || frames[i].file[0] == '\0') {
            continue;
        }
        if (!gd_frame_is_library(&frames[i])) {
            return &frames[i];
        }
        found = found ? found : &frames[i];
    }
    return found;
}

const struct gd_frame *gd_graph_place(struct gd_graph *graph, gd_node_id node)
{
    uint32_t count = 0;
    const struct gd_frame *frames = gd_graph_stack(graph, node, &count);

    return gd_frame_place(frames, count);
}

/* Whether `path` ends in `file`, after a directory separator. */
static bool file_matches(const char *path, const char *file, size_t file_len)
{
    size_t len = strlen(path);

    return len >= file_len && memcmp(path + len - file_len, file, file_len) == 0 &&
           (len == file_len || path[len - file_len - 1] == '/' || file[0] == '/');
}

static bool stack_matches(const struct graph_stack *stack, const char *file, size_t len,
                          uint32_t line)
{
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct gd_frame *frame = &stack->frames[i];

        if (!frame->is_title && frame->file[0] && (line == 0 || frame->line == line) &&
            file_matches(frame->file, file, len)) {
            return true;
        }
    }
    return false;
}

bool gd_graph_is_at(struct gd_graph *graph, gd_node_id node, const char *file, uint32_t line)
{
    uint32_t count = 0;
    size_t len = strlen(file);

    return len > 0 && gd_graph_stack(graph, node, &count) &&
           stack_matches(&graph->stack[graph->node[node].extra->stack], file, len, line);
}

/* The index of source lines is the table of stacks itself: there are far fewer of them than nodes,
 * so each is checked once and the nodes only look up the answer. */
int gd_graph_search_source(struct gd_graph *graph, const char *file, uint32_t line, gd_node_fn fn,
                           void *ctx)
{
    unsigned char *wanted = calloc((size_t)graph->stack_count + 1, 1);
    size_t len = strlen(file);
    bool any = false;
    int rc = 0;

    if (!wanted) {
        return GD_ENOMEM;
    }
    for (uint32_t i = 0; len > 0 && i < graph->stack_count; i++) {
        parse_stack(graph, &graph->stack[i]);
        wanted[i] = graph->stack[i].parsed && stack_matches(&graph->stack[i], file, len, line);
        any = any || wanted[i];
    }
    for (gd_node_id i = 0; any && rc == GD_OK && i < graph->node_count; i++) {
        const struct graph_node *node = &graph->node[i];

        if (!node->gone && node->extra && node->extra->stack != GRAPH_NONE &&
            wanted[node->extra->stack]) {
            rc = fn(ctx, i);
        }
    }
    free(wanted);
    return rc;
}
