// SPDX-License-Identifier: GPL-3.0-or-later
#include "mindspore/ms_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "mindspore/ms_graph_impl.h"
#include "mindspore/ms_value.h"

#define MAX_SLOTS     UINT16_MAX
#define FIRST_INPUTS  4096               /* room at first */
#define BUDGET_BASE   ((size_t)64 << 20) /* bytes that any graph may take while it is read, */
#define BUDGET_FACTOR 2                  /* plus this many times its length */

/* ---- operators ------------------------------------------------------------------------------- */

struct node_parts {
    struct ms_span name, type, scope, full_name, source, output_type, wire;
    uint32_t attr_count;
};

static bool split_node(const struct ms_item *item, struct node_parts *ret)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof(*ret));
    while (gd_pb_next(&reader, &field)) {
        if (field.wire != GD_PB_BYTES) {
            continue;
        }
        struct ms_span span = {field.data, field.len};
        switch (field.number) {
        case 2: ret->name = span; break;
        case 3: ret->type = span; break;
        case 4: ret->scope = span; break;
        case 5: ret->attr_count++; break;
        case 6: ret->output_type = span; break;
        case 8: ret->full_name = span; break;
        case 9: ret->source = span; break;
        case GD_MS_NODE_WIRE: ret->wire = span; break;
        default: break;
        }
    }
    return !reader.bad;
}

/* Appends a string of the current node and returns its offset: the buffer may move. */
static size_t keep_string(struct gd_ms_graph_load *load, const struct ms_span *span)
{
    size_t at = load->text.len;
    gd_buf_add(&load->text, span->data, span->len);
    gd_buf_putc(&load->text, '\0');
    return at;
}

static bool ends_in_bracket_tag(const struct ms_span *name)
{
    static const char *const tags[] = {"[:image]",           "[:scalar]",    "[:graph]",
                                       "[:optimized_graph]", "[:histogram]", "[:tensor]",
                                       "[:loss_landscape]"};
    if (!name->len || name->data[name->len - 1] != ']') {
        return false;
    }
    for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
        size_t len = strlen(tags[i]);
        if (name->len >= len &&
            strncasecmp((const char *)name->data + name->len - len, tags[i], len) == 0) {
            return true;
        }
    }
    return false;
}

/* The displayed name of an operator: its full name, unless that is empty or a generic one shared by
 * many operators; then it is composed of scope, type and number. */
static size_t keep_shown_name(struct gd_ms_graph_load *load, const struct node_parts *parts)
{
    static const struct ms_span load_type = {(const uint8_t *)"Load", 4};
    bool shared = parts->type.len == load_type.len &&
                  memcmp(parts->type.data, load_type.data, load_type.len) == 0;
    if (parts->full_name.len && !shared && !ends_in_bracket_tag(&parts->full_name)) {
        return keep_string(load, &parts->full_name);
    }

    struct ms_span id = parts->name;
    for (size_t i = id.len; i > 0; i--) {
        bool after_op = i >= 2 && id.data[i - 2] == 'o' && id.data[i - 1] == 'p';
        if (id.data[i - 1] == '/' || after_op) {
            id = (struct ms_span){id.data + i, id.len - i};
            break;
        }
    }
    size_t at = load->text.len;
    if (parts->scope.len) {
        gd_buf_add(&load->text, parts->scope.data, parts->scope.len);
        gd_buf_putc(&load->text, '/');
    }
    gd_buf_add(&load->text, parts->type.data, parts->type.len);
    gd_buf_puts(&load->text, "-op");
    gd_buf_add(&load->text, id.data, id.len);
    gd_buf_putc(&load->text, '\0');
    return at;
}

/* Keeps name and value of one AttributeProto; false if it is broken or too long to show. */
static bool keep_attribute(struct gd_ms_graph_load *load, const struct gd_pb_field *attr,
                           struct ms_attr *ret)
{
    bool bad = false;
    struct ms_span name = ms_string_field(attr->data, attr->len, 1, &bad);
    struct ms_span value = ms_string_field(attr->data, attr->len, 2, &bad);
    GD_CLEANUP(gd_buf_deinit) struct gd_buf text = GD_BUF_INIT(GD_MS_MAX_ATTRIBUTE);
    bool good = !bad && gd_ms_value_text(value.data, value.len, &text);
    if (!good) {
        load->info.broken++;
    }
    good = good && !text.failed && name.len && name.len <= GD_MS_MAX_ATTRIBUTE;
    if (good) {
        ret->name = keep_string(load, &name);
        struct ms_span shown = {(const uint8_t *)gd_buf_text(&text), text.len};
        ret->value = keep_string(load, &shown);
    }
    return good;
}

static int reserve_attrs(struct gd_ms_graph_load *load, uint32_t count, struct gd_err *err)
{
    int rc = ms_graph_reserve(load, &load->attr_at, count, &load->attr_at_cap,
                              sizeof(*load->attr_at), err);

    return rc != GD_OK ? rc
                       : ms_graph_reserve(load, &load->attrs, count, &load->attr_cap,
                                          sizeof(*load->attrs), err);
}

static uint32_t keep_attributes(struct gd_ms_graph_load *load, const struct ms_item *item)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_find(&reader, 5, GD_PB_BYTES, &field)) {
        count += keep_attribute(load, &field, &load->attr_at[count]);
    }
    return count;
}

static int read_outputs(struct gd_ms_graph_load *load, const struct ms_span *type, uint32_t *ret,
                        struct gd_err *err)
{
    for (;;) {
        if (load->output_cap) {
            if (!gd_ms_type_outputs(type->data, type->len, load->outputs, load->output_cap, ret)) {
                load->info.broken++;
                *ret = 1;
            }
            if (*ret < load->output_cap || load->output_cap == MAX_SLOTS) {
                return GD_OK;
            }
        }
        uint32_t cap = load->output_cap ? load->output_cap * 8 : 64;
        cap = cap > MAX_SLOTS ? MAX_SLOTS : cap;
        struct gd_output *outputs = realloc(load->outputs, cap * sizeof(*outputs));
        if (!outputs) {
            return gd_fail(err, GD_ENOMEM, "out of memory for %u outputs of a node", cap);
        }
        load->outputs = outputs;
        load->output_cap = cap;
    }
}

/* Adds the node under another name if its own is taken; wire_name keeps the client's. */
static int add_node(struct gd_ms_graph_load *load, struct gd_node_desc *desc, gd_node_id *ret,
                    struct gd_err *err)
{
    struct gd_err local;
    int rc = gd_graph_add(load->graph, desc, ret, &local);
    const char *name = desc->name;
    if (rc == GD_EINVAL && *name) {
        char *other = NULL;
        load->info.renamed++;
        if (asprintf(&other, "%s(%u)", name, load->info.renamed + 1) < 0) {
            return gd_fail_nomem(err);
        }
        desc->name = other;
        if (!desc->wire_name) {
            desc->wire_name = name;
        }
        rc = gd_graph_add(load->graph, desc, ret, &local);
        free(other);
    }
    if (rc != GD_OK && err) {
        *err = local;
    }
    return rc;
}

static bool is_backward(const struct ms_span *scope)
{
    static const char word[] = "optimizer-";
    if (scope->len >= 9 && strncasecmp((const char *)scope->data, "gradients", 9) == 0) {
        return true;
    }
    for (size_t i = 0; i + sizeof(word) - 1 <= scope->len; i++) {
        if (strncasecmp((const char *)scope->data + i, word, sizeof(word) - 1) == 0) {
            return true;
        }
    }
    return false;
}

static int push_input(struct gd_ms_graph_load *load, uint32_t found, struct gd_err *err)
{
    if (load->input_count == load->input_cap) {
        int rc = ms_graph_reserve(load, &load->inputs,
                                  load->input_cap ? load->input_cap * 2 : FIRST_INPUTS,
                                  &load->input_cap, sizeof(*load->inputs), err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    load->inputs[load->input_count++] = found;
    return GD_OK;
}

/* Resolves operands, and places parameters and constants among them. */
static int resolve_inputs(struct gd_ms_graph_load *load, const struct ms_item *item,
                          const struct ms_span *scope, struct gd_err *err)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    struct ms_use here = {{NULL, 0}, false};
    while (gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        bool bad = false;
        struct ms_span name = ms_string_field(field.data, field.len, 1, &bad);
        load->info.broken += bad;
        uint32_t found = bad ? MS_NO_ITEM : ms_graph_find_item(load, &name);
        int rc = push_input(load, found, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (found == MS_NO_ITEM || found < load->info.nodes) {
            continue;
        }
        if (!here.scope.data) {
            here.scope = scope->data ? *scope : (struct ms_span){(const uint8_t *)"", 0};
            here.backward = is_backward(scope);
        }
        struct ms_use *first = &load->first_use[found - load->info.nodes];
        if (!first->scope.data || (first->backward && !here.backward)) {
            *first = here;
        }
    }
    return GD_OK;
}

static int add_operator(struct gd_ms_graph_load *load, struct ms_item *item, struct gd_err *err)
{
    struct node_parts parts;
    uint32_t output_count = 0;
    if (!split_node(item, &parts)) {
        return gd_fail(err, GD_EPROTO, "a node in the graph's bytes is broken");
    }
    gd_buf_clear(&load->text);
    int rc = resolve_inputs(load, item, &parts.scope, err);
    rc = rc != GD_OK ? rc : reserve_attrs(load, parts.attr_count, err);
    rc = rc != GD_OK ? rc : read_outputs(load, &parts.output_type, &output_count, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!parts.name.len || (!parts.full_name.len && !parts.type.len)) {
        load->info.skipped++;
        return GD_OK;
    }
    size_t name = keep_shown_name(load, &parts);
    size_t wire = keep_string(load, parts.wire.len ? &parts.wire : &parts.full_name);
    size_t type = keep_string(load, &parts.type);
    size_t source = keep_string(load, &parts.source);
    uint32_t attr_count = keep_attributes(load, item);
    if (load->text.failed) {
        return gd_fail_nomem(err);
    }
    const char *text = gd_buf_text(&load->text);
    for (uint32_t i = 0; i < attr_count; i++) {
        load->attrs[i] =
            (struct gd_attr){text + load->attr_at[i].name, text + load->attr_at[i].value};
    }
    struct gd_node_desc desc = {
        .name = text + name,
        .wire_name = text[wire] && strcmp(text + name, text + wire) != 0 ? text + wire : NULL,
        .type = text + type,
        .outputs = load->outputs,
        .output_count = output_count,
        .attrs = load->attrs,
        .attr_count = attr_count,
        .source = parts.source.len ? text + source : NULL,
        .order = GD_NO_ORDER,
    };
    return add_node(load, &desc, &item->node, err);
}

/* ---- parameters and constants ---------------------------------------------------------------- */

/* The client stores tensors under names in which every '/' became "--", and looks them up by what
 * follows the last '/' of the name it is given: so the last component must use "--". */
static size_t keep_stored_name(struct gd_ms_graph_load *load, const struct ms_span *name)
{
    size_t at = load->text.len;
    for (size_t i = 0; i < name->len; i++) {
        if (name->data[i] == '/') {
            gd_buf_puts(&load->text, "--");
        } else {
            gd_buf_putc(&load->text, (char)name->data[i]);
        }
    }
    gd_buf_putc(&load->text, '\0');
    return at;
}

static size_t keep_placed_name(struct gd_ms_graph_load *load, uint32_t number, size_t stored)
{
    const struct ms_span *scope = &load->first_use[number - load->info.nodes].scope;
    size_t len = strlen(gd_buf_text(&load->text) + stored);
    size_t at = load->text.len;
    gd_buf_reserve(&load->text, scope->len + len + 2);
    gd_buf_add(&load->text, scope->data, scope->len);
    if (scope->len) {
        gd_buf_putc(&load->text, '/');
    }
    if (!load->text.failed) {
        gd_buf_add(&load->text, load->text.data + stored, len);
    }
    gd_buf_putc(&load->text, '\0');
    return at;
}

static int add_placed(struct gd_ms_graph_load *load, uint32_t number, size_t stored,
                      struct gd_node_desc *desc, size_t value, struct gd_err *err)
{
    struct ms_item *item = &load->items[number];
    size_t placed = keep_placed_name(load, number, stored);
    if (load->text.failed) {
        return gd_fail_nomem(err);
    }
    const char *text = gd_buf_text(&load->text);
    struct gd_attr attr = {"value", text + value};
    desc->name = text + placed;
    desc->wire_name = text + stored;
    desc->outputs = load->outputs;
    desc->order = GD_NO_ORDER;
    if (value && text[value]) {
        desc->attrs = &attr;
        desc->attr_count = 1;
    }
    if (!text[placed]) {
        load->info.skipped++;
        return GD_OK;
    }
    return add_node(load, desc, &item->node, err);
}

static int add_parameter(struct gd_ms_graph_load *load, uint32_t number, struct gd_err *err)
{
    struct ms_item *item = &load->items[number];
    bool bad = false;
    struct ms_span name = ms_string_field(item->data, item->len, 1, &bad);
    struct ms_span type = ms_string_field(item->data, item->len, 2, &bad);
    uint32_t outputs = 0;
    int rc = read_outputs(load, &type, &outputs, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_buf_clear(&load->text);
    size_t stored = keep_stored_name(load, &name);
    /* The client would take an unused one for a weight because of its name. */
    bool used = load->first_use[number - load->info.nodes].scope.data != NULL;
    struct gd_node_desc desc = {
        .type = "Parameter", .kind = used ? GD_NODE_AUTO : GD_NODE_PARAMETER, .output_count = 1};
    return add_placed(load, number, stored, &desc, 0, err);
}

static int add_constant(struct gd_ms_graph_load *load, uint32_t number, struct gd_err *err)
{
    struct ms_item *item = &load->items[number];
    bool bad = false, is_int = false;
    int64_t integer = 0;
    struct ms_span key = ms_string_field(item->data, item->len, 1, &bad);
    struct ms_span value = ms_string_field(item->data, item->len, 2, &bad);
    struct ms_span full_name = ms_string_field(item->data, item->len, 3, &bad);
    uint32_t outputs;
    /* reserves one element */
    int rc = read_outputs(load, &(struct ms_span){NULL, 0}, &outputs, err);
    if (rc != GD_OK) {
        return rc;
    }
    bool good = gd_ms_value_output(value.data, value.len, &load->outputs[0], &is_int, &integer);
    item->is_slot = good && is_int && integer >= 0 && integer <= UINT16_MAX;
    item->slot = item->is_slot ? (uint16_t)integer : 0;
    gd_buf_clear(&load->text);
    gd_buf_putc(&load->text, '\0'); /* offset 0 means no value */
    struct gd_buf shown = GD_BUF_INIT(GD_MS_MAX_ATTRIBUTE);
    good = gd_ms_value_text(value.data, value.len, &shown) && good && !bad;
    size_t value_at = 0;
    if (good && !shown.failed && shown.len) {
        struct ms_span span = {(const uint8_t *)shown.data, shown.len};
        value_at = keep_string(load, &span);
    }
    gd_buf_deinit(&shown);
    load->info.broken += !good;
    size_t stored = keep_stored_name(load, full_name.len ? &full_name : &key);
    struct gd_node_desc desc = {.type = "Const", .kind = GD_NODE_CONSTANT, .output_count = 1};
    return add_placed(load, number, stored, &desc, value_at, err);
}

/* Slots are not transmitted: the element that a TupleGetItem takes is its second, constant
 * operand. */
static void give_slot(const struct gd_ms_graph_load *load, uint32_t operand, struct gd_edge *edge)
{
    const struct ms_item *item = operand == MS_NO_ITEM ? NULL : &load->items[operand];

    if (item && item->is_slot) {
        edge->slot = item->slot;
    }
}

static void read_edges(const struct gd_ms_graph_load *load, const struct ms_item *item,
                       const uint32_t *found, struct gd_edge *edges)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        struct gd_pb input = gd_pb_init(field.data, field.len);
        struct gd_pb_field part;
        bool control = false;
        uint16_t slot = 0;
        while (gd_pb_next(&input, &part)) {
            if (part.number == 2 && part.wire == GD_PB_VARINT) {
                control = part.value == 1;
            } else if (part.number == GD_MS_INPUT_SLOT && part.wire == GD_PB_VARINT &&
                       part.value <= UINT16_MAX) {
                slot = (uint16_t)part.value;
            }
        }
        gd_node_id node = found[count] == MS_NO_ITEM ? GD_NO_NODE : load->items[found[count]].node;
        edges[count++] = (struct gd_edge){node, slot, control};
    }
}

static uint32_t count_inputs(const struct ms_item *item)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        count++;
    }
    return count;
}

static int connect_operator(struct gd_ms_graph_load *load, const struct ms_item *item,
                            struct gd_err *err)
{
    uint32_t count = count_inputs(item);
    struct gd_node_info info;
    int rc =
        ms_graph_reserve(load, &load->edges, count, &load->edge_cap, sizeof(*load->edges), err);
    if (rc == GD_OK && count && gd_graph_node(load->graph, item->node, &info)) {
        const uint32_t *found = load->inputs + load->next_input; /* empty: there is no table */
        read_edges(load, item, found, load->edges);
        if (count >= 2 && strcmp(info.type, "TupleGetItem") == 0) {
            give_slot(load, found[1], &load->edges[0]);
        }
        rc = gd_graph_connect(load->graph, item->node, load->edges, count, err);
    }
    load->next_input += count;
    return rc;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static void copy_text(char *out, size_t size, const struct ms_span *span)
{
    size_t len = span->len < size ? span->len : size - 1;
    if (len) {
        memcpy(out, span->data, len);
    }
    out[len] = '\0';
}

enum phase { NODES, PARAMETERS, CONSTANTS, OPEN, ADD, CONNECT, COMMIT, DONE };

static int next_phase(struct gd_ms_graph_load *load)
{
    load->reader = gd_pb_init(load->data, load->len);
    load->next = 0;
    load->phase++;
    return GD_OK;
}

static int collect_items(struct gd_ms_graph_load *load, uint32_t most, struct gd_err *err)
{
    static const uint32_t field[] = {1, 3, 5};
    bool more;
    uint32_t kind = (uint32_t)load->phase;
    uint32_t *const count[] = {&load->info.nodes, &load->info.parameters, &load->info.constants};
    uint32_t before = load->count;
    int rc = ms_graph_collect(load, field[kind], (enum ms_item_kind)kind, most, &more, err);
    *count[kind] += load->count - before;
    return rc != GD_OK || more ? rc : next_phase(load);
}

/* Everything received has been checked as far as it was read: modify the graph only now. */
static int open_subgraph(struct gd_ms_graph_load *load, struct gd_err *err)
{
    size_t count = (size_t)load->info.parameters + load->info.constants + 1;
    int rc = ms_graph_spend(load, count, sizeof(*load->first_use), err);
    if (rc != GD_OK) {
        return rc;
    }
    load->first_use = calloc(count, sizeof(*load->first_use));
    if (!load->first_use) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %u parameters", load->info.parameters);
    }
    rc = ms_graph_build_table(load, err);
    if (rc == GD_OK) {
        rc = gd_graph_subgraph(load->graph, load->info.name, true, &load->info.subgraph, err);
    }
    return rc != GD_OK ? rc : next_phase(load);
}

static int add_some(struct gd_ms_graph_load *load, uint32_t most, struct gd_err *err)
{
    int rc = GD_OK;
    for (; most && load->next < load->count && rc == GD_OK; most--, load->next++) {
        uint32_t i = load->next;
        switch ((enum ms_item_kind)load->items[i].kind) {
        case MS_ITEM_NODE: rc = add_operator(load, &load->items[i], err); break;
        case MS_ITEM_PARAMETER: rc = add_parameter(load, i, err); break;
        case MS_ITEM_CONSTANT: rc = add_constant(load, i, err); break;
        }
    }
    return rc != GD_OK || load->next < load->count ? rc : next_phase(load);
}

static int connect_some(struct gd_ms_graph_load *load, uint32_t most, struct gd_err *err)
{
    int rc = GD_OK;
    for (; most && load->next < load->info.nodes && rc == GD_OK; most--, load->next++) {
        rc = connect_operator(load, &load->items[load->next], err);
    }
    return rc != GD_OK || load->next < load->info.nodes ? rc : next_phase(load);
}

static int commit_graph(struct gd_ms_graph_load *load, struct gd_err *err)
{
    int rc = gd_graph_commit(load->graph, err);
    return rc != GD_OK ? rc : next_phase(load);
}

bool gd_ms_graph_is_whole(const uint8_t *data, size_t len)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    bool bad = false;
    while (!bad && gd_pb_find(&reader, 1, GD_PB_BYTES, &field)) {
        ms_string_field(field.data, field.len, 2, &bad);
    }
    return !bad && !reader.bad;
}

int gd_ms_graph_begin(struct gd_graph *graph, const uint8_t *data, size_t len,
                      struct gd_ms_graph_load **ret, struct gd_err *err)
{
    struct gd_ms_graph_load *load = calloc(1, sizeof(*load));
    bool bad = false;
    if (!load) {
        return gd_fail_nomem(err);
    }
    *load = (struct gd_ms_graph_load){.graph = graph, .data = data, .len = len, .dense = true};
    load->budget = BUDGET_BASE + BUDGET_FACTOR * len;
    gd_buf_init(&load->text, len + (1u << 20));
    if (getrandom(&load->seed, sizeof(load->seed), GRND_NONBLOCK) < 0) {
        load->seed = 1;
    }
    struct ms_span name = ms_string_field(data, len, 2, &bad);
    struct ms_span root = ms_string_field(data, len, 6, &bad);
    copy_text(load->info.name, sizeof(load->info.name), &name);
    copy_text(load->info.root_name, sizeof(load->info.root_name), &root);
    load->reader = gd_pb_init(data, len);
    *ret = load;
    return GD_OK;
}

int gd_ms_graph_step(struct gd_ms_graph_load *load, uint32_t most, bool *done, struct gd_err *err)
{
    int rc = GD_OK;
    switch ((enum phase)load->phase) {
    case NODES:
    case PARAMETERS:
    case CONSTANTS: rc = collect_items(load, most, err); break;
    case OPEN: rc = open_subgraph(load, err); break;
    case ADD: rc = add_some(load, most, err); break;
    case CONNECT: rc = connect_some(load, most, err); break;
    case COMMIT: rc = commit_graph(load, err); break;
    case DONE: break;
    }
    if (rc != GD_OK && load->phase > OPEN && load->phase < COMMIT) {
        gd_graph_commit(load->graph, NULL); /* what was added stays */
    }
    *done = load->phase == DONE;
    return rc;
}

int gd_ms_graph_drop(struct gd_ms_graph_load *load, struct gd_err *err)
{
    if (load->phase <= OPEN) {
        return GD_OK;
    }
    int rc = gd_graph_subgraph(load->graph, load->info.name, true, NULL, err);
    return rc != GD_OK ? rc : gd_graph_commit(load->graph, err);
}

const struct gd_ms_graph_info *gd_ms_graph_info(const struct gd_ms_graph_load *load)
{
    return &load->info;
}

/* An operator counts half when added, and fully when connected. */
void gd_ms_graph_at(const struct gd_ms_graph_load *load, uint64_t *done, uint64_t *total)
{
    uint64_t half = 0;
    if (load->phase == ADD) {
        half = load->next < load->info.nodes ? load->next : load->info.nodes;
    } else if (load->phase > ADD) {
        half = load->info.nodes + (load->phase == CONNECT ? load->next : load->info.nodes);
    }
    *done = half / 2;
    *total = load->phase > NODES ? load->info.nodes : 0;
}

void gd_ms_graph_end(struct gd_ms_graph_load *load)
{
    if (!load) {
        return;
    }
    free(load->items);
    free(load->table);
    free(load->inputs);
    free(load->first_use);
    free(load->outputs);
    free(load->attrs);
    free(load->attr_at);
    free(load->edges);
    gd_buf_deinit(&load->text);
    free(load);
}

static void take_other_name(struct gd_ms_graph_load *load, const char *other)
{
    char *name = load->info.name;
    if (!gd_graph_has_subgraph(load->graph, name)) {
        return;
    }
    snprintf(name, sizeof(load->info.name), "%s", other);
    for (unsigned i = 2; gd_graph_has_subgraph(load->graph, name); i++) {
        snprintf(name, sizeof(load->info.name), "%.200s_%u", other, i);
    }
}

int gd_ms_graph_load(struct gd_graph *graph, const uint8_t *data, size_t len, const char *other,
                     struct gd_ms_graph_info *ret, struct gd_err *err)
{
    struct gd_ms_graph_load *load;
    bool done = false;
    int rc = gd_ms_graph_begin(graph, data, len, &load, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (other) {
        take_other_name(load, other);
    }
    while (rc == GD_OK && !done) {
        rc = gd_ms_graph_step(load, UINT32_MAX, &done, err);
    }
    if (rc == GD_OK) {
        *ret = load->info;
    }
    gd_ms_graph_end(load);
    return rc;
}
