// SPDX-License-Identifier: GPL-3.0-or-later
/* Nodes of a trace, and what names of functions and modules say. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_nest.h"

#define MAX_NODES 1000000

void trace_run_deinit(struct trace_run *run)
{
    trace_spans_deinit(&run->spans);
    free(run->node);
    free(run->op);
    free(run->frame);
    free(run->phase);
    free(run->step);
    free(run->told);
    gd_hash_index_deinit(&run->by_node);
    gd_hash_index_deinit(&run->by_op);
    *run = (struct trace_run){.nodes = 0};
}

static bool same_node(const struct trace_node *a, const struct trace_node *b)
{
    return a->name == b->name && a->module == b->module && a->place == b->place &&
           a->phase == b->phase && a->lane == b->lane;
}

int trace_node_of(struct trace_run *run, const struct trace_node *key, uint32_t *ret,
                  struct gd_err *err)
{
    uint32_t words[5] = {key->name, key->module, key->place, key->phase, key->lane};
    uint64_t hash = gd_hash_index_hash(&run->by_node, words, sizeof(words));
    size_t at = 0;

    while (gd_hash_index_next(&run->by_node, hash, &at, ret)) {
        if (same_node(&run->node[*ret], key)) {
            return GD_OK;
        }
    }
    if (run->nodes == MAX_NODES) {
        return gd_fail(err, GD_ELIMIT, "more than %d different operators", MAX_NODES);
    }
    if (!gd_grow_list(&run->node, run->nodes, &run->node_cap, sizeof(*run->node))) {
        return gd_fail_nomem(err);
    }
    *ret = (uint32_t)run->nodes;
    run->node[run->nodes++] = *key;
    return gd_hash_index_add(&run->by_node, hash, *ret, err);
}

int trace_op_of(struct trace_run *run, uint32_t node, uint32_t args, uint32_t *ret,
                struct gd_err *err)
{
    uint32_t words[2] = {node, args};
    uint64_t hash = gd_hash_index_hash(&run->by_op, words, sizeof(words));
    size_t at = 0;

    while (gd_hash_index_next(&run->by_op, hash, &at, ret)) {
        if (run->op[*ret].node == node && run->op[*ret].args == args) {
            return GD_OK;
        }
    }
    if (!gd_grow_list(&run->op, run->ops, &run->op_cap, sizeof(*run->op))) {
        return gd_fail_nomem(err);
    }
    *ret = (uint32_t)run->ops;
    run->op[run->ops++] = (struct trace_op){.node = node, .args = args};
    return gd_hash_index_add(&run->by_op, hash, *ret, err);
}

/* Frames of a node are added one after another, before those of another node. */
int trace_add_frame(struct trace_run *run, struct trace_node *node, uint32_t text,
                    struct gd_err *err)
{
    if (node->frames == TRACE_FRAMES) {
        return GD_OK;
    }
    if (!gd_grow_list(&run->frame, run->frames, &run->frame_cap, sizeof(*run->frame))) {
        return gd_fail_nomem(err);
    }
    node->first_frame = node->frames ? node->first_frame : (uint32_t)run->frames;
    node->frames++;
    run->frame[run->frames++] = text;
    return GD_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

bool trace_place_parse(const char *text, size_t size, struct trace_place *ret)
{
    const char *end = text + size, *open = NULL;

    for (const char *at = text; at < end; at++) {
        if (*at == '(') {
            open = at;
            break;
        }
    }
    *ret = (struct trace_place){.file = text};
    if (!open || open == text) {
        return false;
    }
    ret->file_size = (size_t)(open - text);
    for (open++; open < end && *open >= '0' && *open <= '9' && ret->line < 100000000; open++) {
        ret->line = ret->line * 10 + (uint32_t)(*open - '0');
    }
    if (end - open < 3 || strncmp(open, "): ", 3) != 0 || ret->line == 0) {
        return false;
    }
    ret->function = open + 3;
    ret->function_size = (size_t)(end - open) - 3;
    return true;
}

static bool has_part(const char *text, size_t size, const char *part)
{
    return memmem(text, size, part, strlen(part)) != NULL;
}

/* The profiler cuts the directories of sys.path off, so modules of the interpreter have only their
 * names. Listed are those that call a program's functions. */
bool trace_place_is_library(const struct trace_place *place)
{
    static const char *const own[] = {
        "torch/",        "torchvision/", "mindspore/",   "numpy/",
        "contextlib.py", "functools.py", "threading.py", "runpy.py",
        "typing.py",     "enum.py",      "copy.py",      "logging/",
        "importlib/",    "asyncio/",     "concurrent/",  "multiprocessing/"};
    const char *file = place->file;
    size_t size = place->file_size;

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        size_t len = strlen(own[i]);
        if (size >= len && strncmp(file, own[i], len) == 0) {
            return true;
        }
    }
    return *file == '<' || has_part(file, size, "site-packages/") ||
           has_part(file, size, "dist-packages/") || has_part(file, size, "/lib/python3");
}

int trace_place_text(struct trace_spans *spans, const char *frame, size_t size, uint32_t *ret,
                     struct gd_err *err)
{
    struct trace_place place;
    char text[TRACE_MAX_NAME + 16];
    int len;

    *ret = 0;
    if (!trace_place_parse(frame, size, &place) || trace_place_is_library(&place)) {
        return GD_OK;
    }
    len = snprintf(text, sizeof(text), "%.*s:%u", (int)place.file_size, place.file, place.line);
    return trace_text(spans, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1, ret,
                      err);
}

/* Appends "/NAME" of one "NAME(TYPE)::FUNCTION". */
static size_t add_module(char *out, size_t used, size_t max, const char *part, size_t size)
{
    size_t name = 0, type;

    while (name < size && part[name] != '(' && part[name] != ':') {
        name++;
    }
    if (name == 3 && strncmp(part, "TOP", 3) == 0 && size > 4) {
        part += 4;
        for (type = 0; type < size - 4 && part[type] != ')'; type++) {
        }
        name = type;
    } else if (name == 4 && strncmp(part, "SELF", 4) == 0) {
        return used;
    }
    if (name == 0 || used + name + 1 >= max) {
        return used;
    }
    if (used > 0) {
        out[used++] = '/';
    }
    memcpy(out + used, part, name);
    return used + name;
}

int trace_module_text(struct trace_spans *spans, const char *text, size_t size, uint32_t *ret,
                      struct gd_err *err)
{
    char path[TRACE_MAX_NAME];
    size_t used = 0, start = 0;

    for (size_t i = 0; i <= size; i++) {
        if (i == size || text[i] == '.') {
            used = add_module(path, used, sizeof(path), text + start, i - start);
            start = i + 1;
        }
    }
    return trace_text(spans, path, used, ret, err);
}
