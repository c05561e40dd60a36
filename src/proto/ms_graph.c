// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "engine/buf.h"
#include "proto/ms_value.h"
#include "proto/pbread.h"

#define MAX_SLOTS UINT16_MAX
#define NO_ITEM   UINT32_MAX

struct span {
    const uint8_t *data;
    size_t len;
};

enum item_kind { ITEM_NODE, ITEM_PARAMETER, ITEM_CONSTANT };

/* An operator, a parameter or a constant, as the bytes hold it. Items are numbered over all three:
 * inputs are resolved to these numbers first, and to node ids when all nodes exist. */
struct item {
    const uint8_t *data;
    uint32_t len;
    uint32_t name_at, name_len; /* inside data: found once, however often the name is compared */
    gd_node_id node;            /* GD_NO_NODE until added */
    uint8_t kind;
    bool is_slot;  /* a constant that can choose an element of a tuple: */
    uint16_t slot; /* this one */
};

struct use { /* where a parameter or constant is used first */
    struct span scope;
    bool backward;
};

struct load {
    struct gd_graph *graph;
    struct item *items;
    uint32_t count, cap;
    uint32_t *table; /* open addressing: item number + 1, 0 is free */
    uint32_t table_mask;
    uint32_t seed;
    bool dense; /* node i is called i + 1, as every release does it: no table needed for nodes */
    uint32_t *inputs; /* all resolved inputs, operator after operator */
    size_t input_count, input_cap;
    struct use *first_use; /* of parameters and constants */
    struct gd_output *outputs;
    uint32_t output_cap;
    struct gd_attr *attrs;
    size_t *attr_at; /* pairs of offsets into text */
    uint32_t attr_cap;
    struct gd_buf text; /* the strings of the node at hand */
    struct gd_ms_graph_info info;
};

/* ---- the index: what is there, and how inputs call it -------------------------------------- */

static struct span string_field(const uint8_t *data, size_t len, uint32_t number, bool *bad)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    struct span found = {NULL, 0};
    while (gd_pb_next(&reader, &field))
        if (field.number == number && field.wire == GD_PB_BYTES)
            found = (struct span){field.data, field.len};
    if (reader.bad)
        *bad = true;
    return found;
}

/* NodeProto.name is field 2, the others' name or key is field 1. */
static bool find_name(struct item *item)
{
    bool bad = false;
    struct span name = string_field(item->data, item->len, item->kind == ITEM_NODE ? 2 : 1, &bad);
    item->name_at = name.len ? (uint32_t)(name.data - item->data) : 0;
    item->name_len = (uint32_t)name.len;
    return !bad;
}

static struct span item_name(const struct item *item)
{
    return (struct span){item->data + item->name_at, item->name_len};
}

static bool is_number(const struct span *name, uint32_t number)
{
    size_t at = name->len;
    while (at > 0 && number > 0 && name->data[at - 1] == '0' + number % 10) {
        number /= 10;
        at--;
    }
    return at == 0 && number == 0 && name->len > 0;
}

static int add_item(struct load *load, const struct gd_pb_field *field, enum item_kind kind,
                    struct gd_err *err)
{
    if (load->count == GD_MS_MAX_NODES)
        return gd_fail(err, GD_ELIMIT, "the graph has more than %u nodes", GD_MS_MAX_NODES);
    if (field->len > UINT32_MAX)
        return gd_fail(err, GD_ELIMIT, "one node of the graph is larger than 4 GiB");
    if (load->count == load->cap) {
        uint32_t cap = load->cap ? load->cap * 2 : 1024;
        struct item *items = realloc(load->items, cap * sizeof *items);
        if (!items)
            return gd_fail(err, GD_ENOMEM, "out of memory for the graph's %u nodes", cap);
        load->items = items;
        load->cap = cap;
    }
    load->items[load->count++] = (struct item){.data = field->data,
                                               .len = (uint32_t)field->len,
                                               .kind = (uint8_t)kind,
                                               .node = GD_NO_NODE};
    return GD_OK;
}

/* One kind at a time, so that operators come first and the dense numbering can be seen. */
static int collect(struct load *load, const uint8_t *data, size_t len, uint32_t number,
                   enum item_kind kind, struct gd_err *err)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        if (field.number != number || field.wire != GD_PB_BYTES)
            continue;
        int rc = add_item(load, &field, kind, err);
        if (rc)
            return rc;
        struct item *item = &load->items[load->count - 1];
        if (!find_name(item))
            return gd_fail(err, GD_EPROTO, "the graph's bytes are broken in node number %u",
                           load->count);
        struct span name = item_name(item);
        if (kind == ITEM_NODE && load->dense && !is_number(&name, load->count))
            load->dense = false;
    }
    if (reader.bad)
        return gd_fail(err, GD_EPROTO, "the bytes are no graph: broken at byte %zu of %zu",
                       (size_t)(reader.at - data), len);
    return GD_OK;
}

static uint32_t hash_name(const struct load *load, const struct span *name)
{
    uint64_t hash = load->seed ^ 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < name->len; i++)
        hash = (hash ^ name->data[i]) * 0x100000001b3ull;
    hash ^= hash >> 32;
    return (uint32_t)(hash * 0xd6e8feb86659fd93ull >> 32);
}

/* The slot of the table that holds the name, or the free one where it belongs. */
static uint32_t *table_slot(const struct load *load, const struct span *name)
{
    for (uint32_t at = hash_name(load, name) & load->table_mask;;
         at = (at + 1) & load->table_mask) {
        uint32_t *slot = &load->table[at];
        if (!*slot)
            return slot;
        struct span other = item_name(&load->items[*slot - 1]);
        if (other.len == name->len && memcmp(other.data, name->data, name->len) == 0)
            return slot;
    }
}

static int build_table(struct load *load, struct gd_err *err)
{
    uint32_t first = load->dense ? load->info.nodes : 0;
    uint32_t size = 64;
    while (size / 2 < load->count - first)
        size *= 2;
    load->table = calloc(size, sizeof *load->table);
    if (!load->table)
        return gd_fail(err, GD_ENOMEM, "out of memory for the names of %u nodes", load->count);
    load->table_mask = size - 1;
    for (uint32_t i = first; i < load->count; i++) {
        struct span name = item_name(&load->items[i]);
        if (!name.len)
            continue;
        uint32_t *slot = table_slot(load, &name);
        if (!*slot) /* the first of two with one name wins */
            *slot = i + 1;
    }
    return GD_OK;
}

static uint32_t find_item(const struct load *load, const struct span *name)
{
    if (load->dense && name->len && name->len <= 9 && name->data[0] != '0') {
        uint32_t number = 0;
        size_t i = 0;
        for (; i < name->len && name->data[i] >= '0' && name->data[i] <= '9'; i++)
            number = number * 10 + (uint32_t)(name->data[i] - '0');
        if (i == name->len && number && number <= load->info.nodes)
            return number - 1;
    }
    if (!name->len)
        return NO_ITEM;
    uint32_t found = *table_slot(load, name);
    return found ? found - 1 : NO_ITEM;
}

/* ---- operators ----------------------------------------------------------------------------- */

struct node_parts {
    struct span name, type, scope, full_name, source, output_type;
    uint32_t attr_count;
};

static bool split_node(const struct item *item, struct node_parts *ret)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    memset(ret, 0, sizeof *ret);
    while (gd_pb_next(&reader, &field)) {
        if (field.wire != GD_PB_BYTES)
            continue;
        struct span span = {field.data, field.len};
        switch (field.number) {
        case 2: ret->name = span; break;
        case 3: ret->type = span; break;
        case 4: ret->scope = span; break;
        case 5: ret->attr_count++; break;
        case 6: ret->output_type = span; break;
        case 8: ret->full_name = span; break;
        case 9: ret->source = span; break;
        default: break;
        }
    }
    return !reader.bad;
}

/* Appends a string of the node at hand and returns its offset: the buffer may move. */
static size_t keep(struct load *load, const struct span *span)
{
    size_t at = load->text.len;
    gd_buf_add(&load->text, span->data, span->len);
    gd_buf_putc(&load->text, '\0');
    return at;
}

static bool ends_in_bracket_tag(const struct span *name)
{
    static const char *const tags[] = {"[:image]",           "[:scalar]",    "[:graph]",
                                       "[:optimized_graph]", "[:histogram]", "[:tensor]",
                                       "[:loss_landscape]"};
    if (!name->len || name->data[name->len - 1] != ']')
        return false;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t len = strlen(tags[i]);
        if (name->len >= len &&
            strncasecmp((const char *)name->data + name->len - len, tags[i], len) == 0)
            return true;
    }
    return false;
}

/* What operators are shown as: their full name, unless that is empty or one of those that many
 * operators share; then a name is made of scope, type and number. */
static size_t keep_shown_name(struct load *load, const struct node_parts *parts)
{
    static const struct span load_type = {(const uint8_t *)"Load", 4};
    bool shared = parts->type.len == load_type.len &&
                  memcmp(parts->type.data, load_type.data, load_type.len) == 0;
    if (parts->full_name.len && !shared && !ends_in_bracket_tag(&parts->full_name))
        return keep(load, &parts->full_name);

    struct span id = parts->name;
    for (size_t i = id.len; i > 0; i--) {
        bool after_op = i >= 2 && id.data[i - 2] == 'o' && id.data[i - 1] == 'p';
        if (id.data[i - 1] == '/' || after_op) {
            id = (struct span){id.data + i, id.len - i};
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

/* Keeps name and value of one AttributeProto; false when it is broken or too long to show. */
static bool keep_attribute(struct load *load, const struct gd_pb_field *attr, size_t at[2])
{
    struct gd_pb reader = gd_pb_init(attr->data, attr->len);
    struct gd_pb_field field;
    struct span name = {NULL, 0}, value = {NULL, 0};
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 1 && field.wire == GD_PB_BYTES)
            name = (struct span){field.data, field.len};
        else if (field.number == 2 && field.wire == GD_PB_BYTES)
            value = (struct span){field.data, field.len};
    }
    struct gd_buf text = GD_BUF_INIT(GD_MS_MAX_ATTRIBUTE);
    bool good = !reader.bad && gd_ms_value_text(value.data, value.len, &text);
    if (!good)
        load->info.broken++;
    good = good && !text.failed && name.len && name.len <= GD_MS_MAX_ATTRIBUTE;
    if (good) {
        at[0] = keep(load, &name);
        struct span shown = {(const uint8_t *)gd_buf_text(&text), text.len};
        at[1] = keep(load, &shown);
    }
    gd_buf_deinit(&text);
    return good;
}

static int reserve_attrs(struct load *load, uint32_t count, struct gd_err *err)
{
    if (count <= load->attr_cap)
        return GD_OK;
    size_t *at = realloc(load->attr_at, count * 2 * sizeof *at);
    if (at)
        load->attr_at = at;
    struct gd_attr *attrs = realloc(load->attrs, count * sizeof *attrs);
    if (attrs)
        load->attrs = attrs;
    if (!at || !attrs)
        return gd_fail(err, GD_ENOMEM, "out of memory for %u attributes", count);
    load->attr_cap = count;
    return GD_OK;
}

static uint32_t keep_attributes(struct load *load, const struct item *item)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_next(&reader, &field)) {
        if (field.number == 5 && field.wire == GD_PB_BYTES &&
            keep_attribute(load, &field, &load->attr_at[count * 2]))
            count++;
    }
    return count;
}

static int read_outputs(struct load *load, const struct span *type, uint32_t *ret,
                        struct gd_err *err)
{
    for (;;) {
        if (load->output_cap) {
            if (!gd_ms_type_outputs(type->data, type->len, load->outputs, load->output_cap, ret)) {
                load->info.broken++;
                *ret = 1;
            }
            if (*ret < load->output_cap || load->output_cap == MAX_SLOTS)
                return GD_OK;
        }
        uint32_t cap = load->output_cap ? load->output_cap * 8 : 64;
        cap = cap > MAX_SLOTS ? MAX_SLOTS : cap;
        struct gd_output *outputs = realloc(load->outputs, cap * sizeof *outputs);
        if (!outputs)
            return gd_fail(err, GD_ENOMEM, "out of memory for %u outputs of a node", cap);
        load->outputs = outputs;
        load->output_cap = cap;
    }
}

/* Adds under another name when the name is taken; wire_name keeps what the client calls it. */
static int add_node(struct load *load, struct gd_node_desc *desc, gd_node_id *ret,
                    struct gd_err *err)
{
    struct gd_err local;
    int rc = gd_graph_add(load->graph, desc, ret, &local);
    const char *name = desc->name;
    if (rc == GD_EINVAL && *name) {
        char *other = NULL;
        load->info.renamed++;
        if (asprintf(&other, "%s(%u)", name, load->info.renamed + 1) < 0)
            return gd_fail(err, GD_ENOMEM, "out of memory for a node's name");
        desc->name = other;
        if (!desc->wire_name)
            desc->wire_name = name;
        rc = gd_graph_add(load->graph, desc, ret, &local);
        free(other);
    }
    if (rc && err)
        *err = local;
    return rc;
}

static bool is_backward(const struct span *scope)
{
    static const char word[] = "optimizer-";
    if (scope->len >= 9 && strncasecmp((const char *)scope->data, "gradients", 9) == 0)
        return true;
    for (size_t i = 0; i + sizeof word - 1 <= scope->len; i++)
        if (strncasecmp((const char *)scope->data + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}

static int push_input(struct load *load, uint32_t found, struct gd_err *err)
{
    if (load->input_count == load->input_cap) {
        size_t cap = load->input_cap ? load->input_cap * 2 : 4096;
        uint32_t *inputs = realloc(load->inputs, cap * sizeof *inputs);
        if (!inputs)
            return gd_fail(err, GD_ENOMEM, "out of memory for %zu edges", cap);
        load->inputs = inputs;
        load->input_cap = cap;
    }
    load->inputs[load->input_count++] = found;
    return GD_OK;
}

/* Resolves the operands, and gives parameters and constants among them a place to be shown. */
static int resolve_inputs(struct load *load, const struct item *item, const struct span *scope,
                          struct gd_err *err)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    struct use here = {{NULL, 0}, false};
    while (gd_pb_next(&reader, &field)) {
        if (field.number != 1 || field.wire != GD_PB_BYTES)
            continue;
        bool bad = false;
        struct span name = string_field(field.data, field.len, 1, &bad);
        load->info.broken += bad;
        uint32_t found = bad ? NO_ITEM : find_item(load, &name);
        int rc = push_input(load, found, err);
        if (rc)
            return rc;
        if (found == NO_ITEM || found < load->info.nodes)
            continue;
        if (!here.scope.data) {
            here.scope = scope->data ? *scope : (struct span){(const uint8_t *)"", 0};
            here.backward = is_backward(scope);
        }
        struct use *first = &load->first_use[found - load->info.nodes];
        if (!first->scope.data || (first->backward && !here.backward))
            *first = here;
    }
    return GD_OK;
}

static int add_operator(struct load *load, struct item *item, struct gd_err *err)
{
    struct node_parts parts;
    uint32_t output_count = 0;
    if (!split_node(item, &parts))
        return gd_fail(err, GD_EPROTO, "the graph's bytes are broken in a node");
    gd_buf_clear(&load->text);
    int rc = resolve_inputs(load, item, &parts.scope, err);
    if (!rc)
        rc = reserve_attrs(load, parts.attr_count, err);
    if (!rc)
        rc = read_outputs(load, &parts.output_type, &output_count, err);
    if (rc)
        return rc;
    if (!parts.name.len || (!parts.full_name.len && !parts.type.len)) {
        load->info.skipped++;
        return GD_OK;
    }
    size_t name = keep_shown_name(load, &parts);
    size_t full_name = keep(load, &parts.full_name);
    size_t type = keep(load, &parts.type);
    size_t source = keep(load, &parts.source);
    uint32_t attr_count = keep_attributes(load, item);
    if (load->text.failed)
        return gd_fail(err, GD_ENOMEM, "out of memory for the strings of a node");
    const char *text = gd_buf_text(&load->text);
    for (uint32_t i = 0; i < attr_count; i++)
        load->attrs[i] =
            (struct gd_attr){text + load->attr_at[i * 2], text + load->attr_at[i * 2 + 1]};
    struct gd_node_desc desc = {
        .name = text + name,
        .wire_name =
            text[full_name] && strcmp(text + name, text + full_name) != 0 ? text + full_name : NULL,
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

/* ---- parameters and constants -------------------------------------------------------------- */

/* The client stores tensors under names in which every '/' became "--", and looks them up by what
 * follows the last '/' of the name it is given: so the last component must be spelled that way. */
static size_t keep_stored_name(struct load *load, const struct span *name)
{
    size_t at = load->text.len;
    for (size_t i = 0; i < name->len; i++)
        if (name->data[i] == '/')
            gd_buf_puts(&load->text, "--");
        else
            gd_buf_putc(&load->text, (char)name->data[i]);
    gd_buf_putc(&load->text, '\0');
    return at;
}

static size_t keep_placed_name(struct load *load, uint32_t number, size_t stored)
{
    const struct span *scope = &load->first_use[number - load->info.nodes].scope;
    size_t len = strlen(gd_buf_text(&load->text) + stored);
    size_t at = load->text.len;
    gd_buf_reserve(&load->text, scope->len + len + 2);
    gd_buf_add(&load->text, scope->data, scope->len);
    if (scope->len)
        gd_buf_putc(&load->text, '/');
    if (!load->text.failed)
        gd_buf_add(&load->text, load->text.data + stored, len);
    gd_buf_putc(&load->text, '\0');
    return at;
}

static int add_placed(struct load *load, uint32_t number, size_t stored, struct gd_node_desc *desc,
                      size_t value, struct gd_err *err)
{
    struct item *item = &load->items[number];
    size_t placed = keep_placed_name(load, number, stored);
    if (load->text.failed)
        return gd_fail(err, GD_ENOMEM, "out of memory for the strings of a node");
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

static int add_parameter(struct load *load, uint32_t number, struct gd_err *err)
{
    struct item *item = &load->items[number];
    bool bad = false;
    struct span name = string_field(item->data, item->len, 1, &bad);
    struct span type = string_field(item->data, item->len, 2, &bad);
    uint32_t outputs = 0;
    int rc = read_outputs(load, &type, &outputs, err);
    if (rc)
        return rc;
    gd_buf_clear(&load->text);
    size_t stored = keep_stored_name(load, &name);
    /* One that no operator uses would be taken for a weight by its name alone. */
    bool used = load->first_use[number - load->info.nodes].scope.data != NULL;
    struct gd_node_desc desc = {
        .type = "Parameter", .kind = used ? GD_NODE_AUTO : GD_NODE_PARAMETER, .output_count = 1};
    return add_placed(load, number, stored, &desc, 0, err);
}

static int add_constant(struct load *load, uint32_t number, struct gd_err *err)
{
    struct item *item = &load->items[number];
    bool bad = false, is_int = false;
    int64_t integer = 0;
    struct span key = string_field(item->data, item->len, 1, &bad);
    struct span value = string_field(item->data, item->len, 2, &bad);
    struct span full_name = string_field(item->data, item->len, 3, &bad);
    uint32_t outputs;
    int rc = read_outputs(load, &(struct span){NULL, 0}, &outputs, err); /* makes room for one */
    if (rc)
        return rc;
    bool good = gd_ms_value_output(value.data, value.len, &load->outputs[0], &is_int, &integer);
    item->is_slot = good && is_int && integer >= 0 && integer <= UINT16_MAX;
    item->slot = item->is_slot ? (uint16_t)integer : 0;
    gd_buf_clear(&load->text);
    gd_buf_putc(&load->text, '\0'); /* offset 0 stands for no value */
    struct gd_buf shown = GD_BUF_INIT(GD_MS_MAX_ATTRIBUTE);
    good = gd_ms_value_text(value.data, value.len, &shown) && good && !bad;
    size_t value_at = 0;
    if (good && !shown.failed && shown.len) {
        struct span span = {(const uint8_t *)shown.data, shown.len};
        value_at = keep(load, &span);
    }
    gd_buf_deinit(&shown);
    load->info.broken += !good;
    size_t stored = keep_stored_name(load, full_name.len ? &full_name : &key);
    struct gd_node_desc desc = {.type = "Const", .kind = GD_NODE_CONSTANT, .output_count = 1};
    return add_placed(load, number, stored, &desc, value_at, err);
}

/* ---- edges --------------------------------------------------------------------------------- */

static bool has_type(const struct gd_node_info *node, const char *type)
{
    return strcmp(node->type, type) == 0;
}

/* Slots are not on the wire: the element that a TupleGetItem takes is its second, constant operand.
 */
static void give_slot(const struct load *load, const uint32_t *found, struct gd_edge *edges)
{
    if (found[1] == NO_ITEM || load->items[found[1]].kind != ITEM_CONSTANT)
        return;
    const struct item *item = &load->items[found[1]];
    if (item->is_slot)
        edges[0].slot = item->slot;
}

static uint32_t read_edges(const struct load *load, const struct item *item, const uint32_t *found,
                           struct gd_edge *edges)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_next(&reader, &field)) {
        if (field.number != 1 || field.wire != GD_PB_BYTES)
            continue;
        struct gd_pb input = gd_pb_init(field.data, field.len);
        struct gd_pb_field part;
        bool control = false;
        while (gd_pb_next(&input, &part))
            if (part.number == 2 && part.wire == GD_PB_VARINT)
                control = part.value == 1;
        gd_node_id node = found[count] == NO_ITEM ? GD_NO_NODE : load->items[found[count]].node;
        edges[count++] = (struct gd_edge){node, 0, control};
    }
    return count;
}

static uint32_t count_inputs(const struct item *item)
{
    struct gd_pb reader = gd_pb_init(item->data, item->len);
    struct gd_pb_field field;
    uint32_t count = 0;
    while (gd_pb_next(&reader, &field))
        count += field.number == 1 && field.wire == GD_PB_BYTES;
    return count;
}

static int connect_all(struct load *load, struct gd_err *err)
{
    struct gd_edge *edges = NULL;
    uint32_t cap = 0;
    size_t at = 0;
    int rc = GD_OK;
    for (uint32_t i = 0; i < load->info.nodes && !rc; i++) {
        const struct item *item = &load->items[i];
        uint32_t count = count_inputs(item);
        if (count > cap) {
            struct gd_edge *more = realloc(edges, count * sizeof *edges);
            if (!more) {
                rc = gd_fail(err, GD_ENOMEM, "out of memory for %u edges of a node", count);
                break;
            }
            edges = more;
            cap = count;
        }
        struct gd_node_info info;
        if (count && gd_graph_node(load->graph, item->node, &info)) {
            read_edges(load, item, load->inputs + at, edges);
            if (count >= 2 && has_type(&info, "TupleGetItem"))
                give_slot(load, load->inputs + at, edges);
            rc = gd_graph_connect(load->graph, item->node, edges, count, err);
        }
        at += count;
    }
    free(edges);
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void copy_text(char *out, size_t size, const struct span *span)
{
    size_t len = span->len < size ? span->len : size - 1;
    if (len)
        memcpy(out, span->data, len);
    out[len] = '\0';
}

/* Checks every level that is read later, before the graph is touched. */
static int index_items(struct load *load, const uint8_t *data, size_t len, struct gd_err *err)
{
    bool bad = false;
    struct span name = string_field(data, len, 2, &bad);
    struct span root = string_field(data, len, 6, &bad);
    copy_text(load->info.name, sizeof load->info.name, &name);
    copy_text(load->info.root_name, sizeof load->info.root_name, &root);
    load->dense = true;
    int rc = collect(load, data, len, 1, ITEM_NODE, err);
    load->info.nodes = load->count;
    if (!rc)
        rc = collect(load, data, len, 3, ITEM_PARAMETER, err);
    load->info.parameters = load->count - load->info.nodes;
    if (!rc)
        rc = collect(load, data, len, 5, ITEM_CONSTANT, err);
    load->info.constants = load->count - load->info.nodes - load->info.parameters;
    if (rc)
        return rc;
    load->first_use =
        calloc((size_t)load->info.parameters + load->info.constants + 1, sizeof *load->first_use);
    if (!load->first_use)
        return gd_fail(err, GD_ENOMEM, "out of memory for %u parameters", load->info.parameters);
    return build_table(load, err);
}

static int add_all(struct load *load, struct gd_err *err)
{
    int rc = gd_graph_subgraph(load->graph, load->info.name, true, &load->info.subgraph, err);
    uint32_t i = 0;
    for (; i < load->info.nodes && !rc; i++)
        rc = add_operator(load, &load->items[i], err);
    for (; i < load->info.nodes + load->info.parameters && !rc; i++)
        rc = add_parameter(load, i, err);
    for (; i < load->count && !rc; i++)
        rc = add_constant(load, i, err);
    if (!rc)
        rc = connect_all(load, err);
    int committed = gd_graph_commit(load->graph, rc ? NULL : err);
    return rc ? rc : committed;
}

bool gd_ms_graph_is_whole(const uint8_t *data, size_t len)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    while (gd_pb_next(&reader, &field)) {
        bool bad = false;
        if (field.number == 1 && field.wire == GD_PB_BYTES)
            string_field(field.data, field.len, 2, &bad);
        if (bad)
            return false;
    }
    return !reader.bad;
}

int gd_ms_graph_load(struct gd_graph *graph, const uint8_t *data, size_t len,
                     struct gd_ms_graph_info *ret, struct gd_err *err)
{
    struct load load = {.graph = graph};
    gd_buf_init(&load.text, len + (1u << 20));
    if (getrandom(&load.seed, sizeof load.seed, GRND_NONBLOCK) < 0)
        load.seed = 1;
    int rc = index_items(&load, data, len, err);
    if (!rc)
        rc = add_all(&load, err);
    if (!rc)
        *ret = load.info;
    free(load.items);
    free(load.table);
    free(load.inputs);
    free(load.first_use);
    free(load.outputs);
    free(load.attrs);
    free(load.attr_at);
    gd_buf_deinit(&load.text);
    return rc;
}
