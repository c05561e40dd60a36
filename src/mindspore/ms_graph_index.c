// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "mindspore/ms_graph_impl.h"

#define FIRST_ITEMS 1024 /* room at first */

struct ms_span ms_string_field(const uint8_t *data, size_t len, uint32_t number, bool *bad)
{
    struct gd_pb reader = gd_pb_init(data, len);
    struct gd_pb_field field;
    struct ms_span found = {NULL, 0};
    while (gd_pb_find(&reader, number, GD_PB_BYTES, &field)) {
        found = (struct ms_span){field.data, field.len};
    }
    *bad = *bad || reader.bad;
    return found;
}

/* The name is field 2 of a NodeProto; name or key of the others is field 1. */
static bool find_name(struct ms_item *item)
{
    bool bad = false;
    struct ms_span name =
        ms_string_field(item->data, item->len, item->kind == MS_ITEM_NODE ? 2 : 1, &bad);
    item->name_at = name.len ? (uint32_t)(name.data - item->data) : 0;
    item->name_len = (uint32_t)name.len;
    return !bad;
}

static struct ms_span item_name(const struct ms_item *item)
{
    return (struct ms_span){item->data + item->name_at, item->name_len};
}

static bool is_number(const struct ms_span *name, uint32_t number)
{
    size_t at = name->len;
    while (at > 0 && number > 0 && name->data[at - 1] == '0' + number % 10) {
        number /= 10;
        at--;
    }
    return at == 0 && number == 0 && name->len > 0;
}

int ms_graph_spend(struct gd_ms_graph_load *load, size_t count, size_t size, struct gd_err *err)
{
    if (count > load->budget / size) {
        return gd_fail(err, GD_ELIMIT, "it has too many elements for its %zu bytes", load->len);
    }
    load->budget -= count * size;
    return GD_OK;
}

int ms_graph_reserve(struct gd_ms_graph_load *load, void *list, size_t need, size_t *cap,
                     size_t size, struct gd_err *err)
{
    void *items;
    int rc = need > *cap ? ms_graph_spend(load, need - *cap, size, err) : GD_OK;

    if (rc != GD_OK || need <= *cap) {
        return rc;
    }
    memcpy(&items, list, sizeof(items));
    items = reallocarray(items, need, size);
    if (!items) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu elements of the graph", need);
    }
    memcpy(list, &items, sizeof(items));
    *cap = need;
    return GD_OK;
}

static int add_item(struct gd_ms_graph_load *load, const struct gd_pb_field *field,
                    enum ms_item_kind kind, struct gd_err *err)
{
    if (load->count == GD_MS_MAX_NODES) {
        return gd_fail(err, GD_ELIMIT, "the graph has more than %u nodes", GD_MS_MAX_NODES);
    }
    if (field->len > UINT32_MAX) {
        return gd_fail(err, GD_ELIMIT, "a node of the graph is larger than 4 GiB");
    }
    if (load->count == load->cap) {
        int rc = ms_graph_reserve(load, &load->items, load->cap ? load->cap * 2 : FIRST_ITEMS,
                                  &load->cap, sizeof(*load->items), err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    load->items[load->count++] = (struct ms_item){.data = field->data,
                                                  .len = (uint32_t)field->len,
                                                  .kind = (uint8_t)kind,
                                                  .node = GD_NO_NODE};
    return GD_OK;
}

int ms_graph_collect(struct gd_ms_graph_load *load, uint32_t number, enum ms_item_kind kind,
                     uint32_t most, bool *more, struct gd_err *err)
{
    struct gd_pb_field field;
    uint32_t seen = 0;
    while (seen < most && gd_pb_next(&load->reader, &field)) {
        seen++;
        if (field.number != number || field.wire != GD_PB_BYTES) {
            continue;
        }
        int rc = add_item(load, &field, kind, err);
        if (rc != GD_OK) {
            return rc;
        }
        struct ms_item *item = &load->items[load->count - 1];
        if (!find_name(item)) {
            return gd_fail(err, GD_EPROTO, "node number %u in the graph's bytes is broken",
                           load->count);
        }
        struct ms_span name = item_name(item);
        if (kind == MS_ITEM_NODE && load->dense && !is_number(&name, load->count)) {
            load->dense = false;
        }
    }
    *more = seen == most;
    if (load->reader.bad) {
        return gd_fail(err, GD_EPROTO, "the bytes are not a graph: broken at byte %zu of %zu",
                       (size_t)(load->reader.at - load->data), load->len);
    }
    return GD_OK;
}

static uint32_t hash_name(const struct gd_ms_graph_load *load, const struct ms_span *name)
{
    uint64_t hash = load->seed ^ 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < name->len; i++) {
        hash = (hash ^ name->data[i]) * 0x100000001b3ull;
    }
    hash ^= hash >> 32;
    return (uint32_t)(hash * 0xd6e8feb86659fd93ull >> 32);
}

/* The table's slot with the name, or the free slot for it. */
static uint32_t *table_slot(const struct gd_ms_graph_load *load, const struct ms_span *name)
{
    for (uint32_t at = hash_name(load, name) & load->table_mask;;
         at = (at + 1) & load->table_mask) {
        uint32_t *slot = &load->table[at];
        if (!*slot) {
            return slot;
        }
        struct ms_span other = item_name(&load->items[*slot - 1]);
        if (other.len == name->len && memcmp(other.data, name->data, name->len) == 0) {
            return slot;
        }
    }
}

int ms_graph_build_table(struct gd_ms_graph_load *load, struct gd_err *err)
{
    uint32_t first = load->dense ? load->info.nodes : 0;
    uint32_t size = 64;
    while (size / 2 < load->count - first) {
        size *= 2;
    }
    int rc = ms_graph_spend(load, size, sizeof(*load->table), err);
    if (rc != GD_OK) {
        return rc;
    }
    load->table = calloc(size, sizeof(*load->table));
    if (!load->table) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the names of %u nodes", load->count);
    }
    load->table_mask = size - 1;
    for (uint32_t i = first; i < load->count; i++) {
        struct ms_span name = item_name(&load->items[i]);
        if (!name.len) {
            continue;
        }
        uint32_t *slot = table_slot(load, &name);
        if (!*slot) { /* of equal names the first wins */
            *slot = i + 1;
        }
    }
    return GD_OK;
}

uint32_t ms_graph_find_item(const struct gd_ms_graph_load *load, const struct ms_span *name)
{
    if (load->dense && name->len && name->len <= 9 && name->data[0] != '0') {
        uint32_t number = 0;
        size_t i = 0;
        for (; i < name->len && name->data[i] >= '0' && name->data[i] <= '9'; i++) {
            number = number * 10 + (uint32_t)(name->data[i] - '0');
        }
        if (i == name->len && number && number <= load->info.nodes) {
            return number - 1;
        }
    }
    if (!name->len) {
        return MS_NO_ITEM;
    }
    uint32_t found = *table_slot(load, name);
    return found ? found - 1 : MS_NO_ITEM;
}
