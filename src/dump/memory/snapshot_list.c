// SPDX-License-Identifier: GPL-3.0-or-later
/* What the lists of a snapshot contain. A list is what its first item is. */
#include <string.h>

#include "base/grow.h"
#include "dump/memory/snapshot_impl.h"

static const char *shape_name(unsigned shape)
{
    switch ((enum snap_shape)shape) {
    case SNAP_LIST_FRAMES: return "frames";
    case SNAP_LIST_BLOCKS: return "blocks";
    case SNAP_LIST_EVENTS: return "events";
    case SNAP_LIST_SEGMENTS: return "segments";
    case SNAP_LIST_TRACES: return "lists of events";
    case SNAP_LIST_HISTORY: return "entries of a block's history";
    default: return "other values";
    }
}

static int set_shape(const struct snap_machine *m, struct snap_object *list, enum snap_shape shape)
{
    if (list->shape == SNAP_EMPTY) {
        list->shape = (uint8_t)shape;
    }
    if (list->shape != shape) {
        return snap_fail(m, "a list contains %s and %s", shape_name(list->shape),
                         shape_name(shape));
    }
    return GD_OK;
}

static int add_number(struct snap_machine *m, struct snap_object *list, uint32_t number)
{
    if (list->count == UINT32_MAX) {
        return snap_fail(m, "a list has too many items");
    }
    if (!gd_grow_list(&list->item, list->count, &list->cap, sizeof(*list->item))) {
        return gd_fail_nomem(m->err);
    }
    list->item[list->count++] = number;
    return GD_OK;
}

static int add_block(struct snap_machine *m, struct snap_object *list,
                     const struct snap_block *block)
{
    if (list->count == UINT32_MAX) {
        return snap_fail(m, "a segment has too many blocks");
    }
    if (!gd_grow_list(&list->block, list->count, &list->cap, sizeof(*list->block))) {
        return gd_fail_nomem(m->err);
    }
    list->block[list->count++] = *block;
    return GD_OK;
}

static int new_trace(struct snap_machine *m, uint32_t *ret)
{
    struct gd_snapshot *snapshot = m->snapshot;

    if (snapshot->trace_count >= SNAP_MAX_DEVICES) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %d lists of events",
                           SNAP_MAX_DEVICES);
    }
    if (!gd_grow_list(&snapshot->trace, snapshot->trace_count, &snapshot->trace_cap,
                      sizeof(*snapshot->trace))) {
        return gd_fail_nomem(m->err);
    }
    snapshot->trace[snapshot->trace_count] =
        (struct snap_trace){.device = -1, .number = snapshot->trace_count + 1};
    *ret = ++snapshot->trace_count;
    return GD_OK;
}

static int add_event(struct snap_machine *m, struct snap_object *list,
                     const struct snap_event *event)
{
    struct gd_err why;
    int rc = list->count ? GD_OK : new_trace(m, &list->trace);

    if (rc != GD_OK) {
        return rc;
    }
    list->count = 1;
    rc = snap_trace_add(&m->snapshot->trace[list->trace - 1], &m->snapshot->stacks, event, &why);
    return rc != GD_OK ? pickle_fail(&m->input, m->err, rc, "%s", why.text) : GD_OK;
}

/* A list in a list: the events of a device, or something of no interest. */
static int add_list(struct snap_machine *m, struct snap_object *list,
                    const struct snap_object *item)
{
    bool is_trace = item->shape == SNAP_LIST_EVENTS || item->shape == SNAP_EMPTY;
    int rc;

    if (!is_trace || list->shape == SNAP_OTHER) {
        return set_shape(m, list, SNAP_OTHER);
    }
    rc = set_shape(m, list, SNAP_LIST_TRACES);
    return rc != GD_OK ? rc
                       : add_number(m, list, item->shape == SNAP_LIST_EVENTS ? item->trace : 0);
}

static int add_dict(struct snap_machine *m, struct snap_object *list,
                    const struct snap_object *item)
{
    int rc;

    switch ((enum snap_shape)item->shape) {
    case SNAP_DICT_EVENT:
        rc = set_shape(m, list, SNAP_LIST_EVENTS);
        return rc != GD_OK ? rc : add_event(m, list, &item->event);
    case SNAP_DICT_BLOCK:
        rc = set_shape(m, list, SNAP_LIST_BLOCKS);
        return rc != GD_OK ? rc : add_block(m, list, &item->one);
    case SNAP_DICT_HISTORY:
        rc = set_shape(m, list, SNAP_LIST_HISTORY);
        if (rc == GD_OK && !list->count++) { /* the first is what the block has now */
            list->one = item->one;
        }
        return rc;
    default: return set_shape(m, list, SNAP_OTHER);
    }
}

int snap_list_add(struct snap_machine *m, struct snap_value *target, struct snap_value *value)
{
    struct snap_object *list = snap_object_of(m, target), *item = NULL;
    int rc;

    if (!list || !list->is_list) {
        return snap_fail(m, "the target of appended items is %s", snap_kind_name(m, target));
    }
    if (value->kind == SNAP_IS_FRAME) {
        rc = set_shape(m, list, SNAP_LIST_FRAMES);
        return rc != GD_OK ? rc : add_number(m, list, value->id);
    }
    if (value->kind == SNAP_IS_SEGMENT) {
        rc = set_shape(m, list, SNAP_LIST_SEGMENTS);
        list->count++;
        return rc;
    }
    if (value->kind == SNAP_IS_STACK && !value->id && list->shape != SNAP_OTHER) {
        rc = set_shape(m, list, SNAP_LIST_TRACES); /* an empty list that occurs repeatedly */
        return rc != GD_OK ? rc : add_number(m, list, 0);
    }
    if (value->kind != SNAP_IS_OBJECT) {
        return set_shape(m, list, SNAP_OTHER);
    }
    item = snap_object_of(m, value);
    if (!item || item == list) {
        return snap_fail(m, item ? "a list contains itself"
                                 : "a container is used again, or changed after its use");
    }
    rc = item->is_list ? add_list(m, list, item) : add_dict(m, list, item);
    snap_release(m, value, NULL);
    return rc;
}
