// SPDX-License-Identifier: GPL-3.0-or-later
/* What the dicts of a snapshot are, by their keys: frames, blocks, segments, events. Order of keys
 * and further keys do not matter. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/memory/snapshot_impl.h"

struct fields { /* the pairs of a dict whose keys have a meaning */
    uint32_t seen;
    const char *what; /* "block" */
    struct snap_value *at[SNAP_KEYS];
};

static bool has_key(const struct fields *fields, enum snap_word key)
{
    return fields->seen & UINT32_C(1) << key;
}

static const char *key_name(const struct snap_machine *m, enum snap_word key)
{
    return m->snapshot->stacks.text[key].text;
}

static int missing_key(const struct snap_machine *m, const struct fields *fields,
                       enum snap_word key)
{
    return snap_fail(m, "the %s has no \"%s\"", fields->what, key_name(m, key));
}

static int wrong_value(const struct snap_machine *m, const struct fields *fields,
                       enum snap_word key)
{
    return snap_fail(m, "\"%s\" of the %s is %s", key_name(m, key), fields->what,
                     snap_kind_name(m, fields->at[key]));
}

/* A key that may be missing, or None: *ret keeps its value then. */
static int get_int(const struct snap_machine *m, const struct fields *fields, enum snap_word key,
                   int64_t *ret)
{
    if (!has_key(fields, key) || fields->at[key]->kind == SNAP_IS_NONE) {
        return GD_OK;
    }
    if (fields->at[key]->kind != SNAP_IS_INT) {
        return wrong_value(m, fields, key);
    }
    *ret = fields->at[key]->integer;
    return GD_OK;
}

static int get_size(const struct snap_machine *m, const struct fields *fields, enum snap_word key,
                    int64_t *ret)
{
    int rc = get_int(m, fields, key, ret);

    if (rc == GD_OK && (*ret < 0 || *ret > SNAP_MAX_SIZE)) {
        return snap_fail(m, "\"%s\" of the %s is %" PRId64 ": %s", key_name(m, key), fields->what,
                         *ret, *ret < 0 ? "negative" : "more than any device has");
    }
    return rc;
}

static int need_size(const struct snap_machine *m, const struct fields *fields, enum snap_word key,
                     int64_t *ret)
{
    *ret = 0;
    return has_key(fields, key) ? get_size(m, fields, key, ret) : missing_key(m, fields, key);
}

static int need_text(const struct snap_machine *m, const struct fields *fields, enum snap_word key,
                     uint32_t *ret)
{
    *ret = 0;
    if (!has_key(fields, key)) {
        return missing_key(m, fields, key);
    }
    if (fields->at[key]->kind != SNAP_IS_TEXT) {
        return wrong_value(m, fields, key);
    }
    *ret = fields->at[key]->id;
    return GD_OK;
}

static int get_stack(struct snap_machine *m, const struct fields *fields, uint32_t *ret)
{
    int rc;

    *ret = 0;
    if (!has_key(fields, SNAP_FRAMES) || fields->at[SNAP_FRAMES]->kind == SNAP_IS_NONE) {
        return GD_OK;
    }
    rc = snap_settle_stack(m, fields->at[SNAP_FRAMES]);
    if (rc == GD_OK && fields->at[SNAP_FRAMES]->kind != SNAP_IS_STACK) {
        return wrong_value(m, fields, SNAP_FRAMES);
    }
    *ret = fields->at[SNAP_FRAMES]->id;
    return rc;
}

/* The list under a key; *ret is NULL for an empty one that occurs repeatedly. */
static int need_list(const struct snap_machine *m, const struct fields *fields, enum snap_word key,
                     enum snap_shape shape, const struct snap_object **ret)
{
    const struct snap_value *value = fields->at[key];

    *ret = snap_object_of(m, value);
    if (value->kind == SNAP_IS_STACK && !value->id) {
        return GD_OK;
    }
    if (!*ret || !(*ret)->is_list || ((*ret)->shape != shape && (*ret)->shape != SNAP_EMPTY)) {
        return value->kind == SNAP_IS_OBJECT && *ret && (*ret)->is_list
                   ? snap_fail(m, "\"%s\" of the %s has other items than it should",
                               key_name(m, key), fields->what)
                   : wrong_value(m, fields, key);
    }
    return GD_OK;
}

/* ---- frames, events -------------------------------------------------------------------------- */

static int make_frame(struct snap_machine *m, struct fields *fields, struct snap_value *dict)
{
    struct snap_value frame = {.kind = SNAP_IS_FRAME};
    struct gd_err why;
    uint32_t name, file;
    int64_t line = 0;
    int rc;

    fields->what = "frame";
    rc = need_text(m, fields, SNAP_NAME, &name);
    rc = rc != GD_OK ? rc : need_text(m, fields, SNAP_FILENAME, &file);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_LINE, &line);
    if (rc != GD_OK) {
        return rc;
    }
    rc = snap_intern_frame(&m->snapshot->stacks, name, file, line, &frame.id, &why);
    if (rc != GD_OK) {
        return pickle_fail(&m->input, m->err, rc, "%s", why.text);
    }
    snap_release(m, dict, &frame);
    *dict = frame;
    return GD_OK;
}

static int make_event(struct snap_machine *m, struct fields *fields, struct snap_object *dict)
{
    struct snap_event *event = &dict->event;
    int64_t addr = 0;
    int rc;

    fields->what = "event";
    *event = (struct snap_event){.time = -1, .device_free = -1};
    rc = need_text(m, fields, SNAP_ACTION, &event->action);
    rc = rc != GD_OK ? rc : need_size(m, fields, SNAP_SIZE, &event->size);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_ADDR, &addr);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_TIME_US, &event->time);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_DEVICE_FREE, &event->device_free);
    rc = rc != GD_OK ? rc : get_stack(m, fields, &event->stack);
    event->addr = (uint64_t)addr;
    dict->shape = SNAP_DICT_EVENT;
    return rc;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* An entry of the history of a block, in old snapshots. */
static int make_history(struct snap_machine *m, struct fields *fields, struct snap_object *dict)
{
    int rc;

    fields->what = "history of a block";
    rc = need_size(m, fields, SNAP_REAL_SIZE, &dict->one.requested);
    rc = rc != GD_OK ? rc : get_stack(m, fields, &dict->one.stack);
    dict->shape = SNAP_DICT_HISTORY;
    return rc;
}

static int make_block(struct snap_machine *m, struct fields *fields, struct snap_object *dict)
{
    struct snap_block *block = &dict->one;
    const struct snap_object *history = NULL;
    int rc;

    fields->what = "block";
    *block = (struct snap_block){.size = 0};
    rc = need_text(m, fields, SNAP_STATE, &block->state);
    rc = rc != GD_OK ? rc : need_size(m, fields, SNAP_SIZE, &block->size);
    block->requested = block->size;
    rc = rc != GD_OK ? rc : get_size(m, fields, SNAP_REQUESTED_SIZE, &block->requested);
    rc = rc != GD_OK ? rc : get_stack(m, fields, &block->stack);
    if (rc == GD_OK && has_key(fields, SNAP_HISTORY)) {
        rc = need_list(m, fields, SNAP_HISTORY, SNAP_LIST_HISTORY, &history);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (history && history->count) {
        block->requested = history->one.requested;
        block->stack = history->one.stack;
    }
    if (block->state < SNAP_ACTIVE_ALLOCATED || block->state > SNAP_INACTIVE) {
        return snap_fail(m, "\"%.60s\" is not a state of a block",
                         m->snapshot->stacks.text[block->state].text);
    }
    if (block->state != SNAP_INACTIVE && block->requested > block->size) {
        return snap_fail(m, "a block of %" PRId64 " bytes for a request of %" PRId64, block->size,
                         block->requested);
    }
    dict->shape = SNAP_DICT_BLOCK;
    return GD_OK;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int device_of(struct snap_machine *m, int64_t number, struct snap_device **ret)
{
    struct gd_snapshot *snapshot = m->snapshot;

    if (number < 0 || number >= SNAP_MAX_DEVICES) {
        return snap_fail(m, "%" PRId64 " is not the number of a device", number);
    }
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        if (snapshot->device[i].number == number) {
            *ret = &snapshot->device[i];
            return GD_OK;
        }
    }
    if (!gd_grow_list(&snapshot->device, snapshot->device_count, &snapshot->device_cap,
                      sizeof(*snapshot->device))) {
        return gd_fail_nomem(m->err);
    }
    *ret = &snapshot->device[snapshot->device_count++];
    **ret = (struct snap_device){.number = (int)number};
    return GD_OK;
}

static int keep_block(struct snap_machine *m, const struct snap_block *block)
{
    struct gd_snapshot *snapshot = m->snapshot;

    if (!gd_grow_list(&snapshot->block, snapshot->block_count, &snapshot->block_cap,
                      sizeof(*snapshot->block))) {
        return gd_fail_nomem(m->err);
    }
    snapshot->block[snapshot->block_count++] = *block;
    return GD_OK;
}

static int count_block(struct snap_machine *m, struct snap_device *device, struct snap_block *block,
                       bool alone, int64_t *allocated)
{
    if (block->state == SNAP_INACTIVE) {
        device->free_blocks++;
        device->unused += block->size;
        device->split += alone ? 0 : block->size;
        device->largest_free =
            block->size > device->largest_free ? block->size : device->largest_free;
        return GD_OK;
    }
    if (block->state == SNAP_ACTIVE_ALLOCATED) {
        device->blocks++;
        device->allocated += block->size;
        device->requested += block->requested;
        *allocated += block->size;
    } else {
        device->pending_blocks++;
        device->pending += block->size;
    }
    block->device = device->number;
    return keep_block(m, block);
}

static int count_blocks(struct snap_machine *m, struct snap_device *device,
                        const struct snap_object *list, const struct snap_range *range,
                        int64_t *allocated)
{
    uint64_t address = range->address;
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && list && i < list->count; i++) {
        struct snap_block *block = &list->block[i];

        if ((int64_t)(address - range->address) > range->size - block->size) {
            return snap_fail(m,
                             "the blocks of the segment at 0x%" PRIx64
                             " have more than its %" PRId64 " bytes",
                             range->address, range->size);
        }
        block->address = address;
        address += (uint64_t)block->size;
        rc = count_block(m, device, block, list->count == 1, allocated);
    }
    if (rc == GD_OK && address - range->address != (uint64_t)range->size) {
        return snap_fail(m,
                         "the blocks of the segment at 0x%" PRIx64 " have %" PRIu64
                         " bytes, the segment %" PRId64,
                         range->address, address - range->address, range->size);
    }
    return rc;
}

static int keep_range(struct snap_machine *m, const struct snap_range *range)
{
    struct gd_snapshot *snapshot = m->snapshot;

    if (!gd_grow_list(&snapshot->range, snapshot->range_count, &snapshot->range_cap,
                      sizeof(*snapshot->range))) {
        return gd_fail_nomem(m->err);
    }
    snapshot->range[snapshot->range_count++] = *range;
    return GD_OK;
}

static int make_segment(struct snap_machine *m, struct fields *fields, struct snap_value *dict)
{
    struct snap_value segment = {.kind = SNAP_IS_SEGMENT};
    struct snap_range range = {.size = 0};
    struct snap_device *device = NULL;
    const struct snap_object *blocks;
    int64_t number = 0, address = 0, allocated = 0, told = -1;
    uint32_t stack;
    int rc;

    fields->what = "segment";
    rc = need_size(m, fields, SNAP_TOTAL_SIZE, &range.size);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_ADDRESS, &address);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_DEVICE, &number);
    rc = rc != GD_OK ? rc : get_int(m, fields, SNAP_ALLOCATED_SIZE, &told);
    rc = rc != GD_OK ? rc : get_stack(m, fields, &stack);
    rc = rc != GD_OK ? rc : need_list(m, fields, SNAP_BLOCKS, SNAP_LIST_BLOCKS, &blocks);
    rc = rc != GD_OK ? rc : device_of(m, number, &device);
    if (rc != GD_OK) {
        return rc;
    }
    range.address = (uint64_t)address;
    range.device = device->number;
    device->segments++;
    device->reserved += range.size;
    if (device->reserved > SNAP_MAX_TOTAL) {
        return snap_fail(m, "the segments are larger than any device");
    }
    rc = keep_range(m, &range);
    rc = rc != GD_OK ? rc : count_blocks(m, device, blocks, &range, &allocated);
    m->snapshot->disagreeing += told >= 0 && told != allocated ? 1 : 0;
    snap_release(m, dict, &segment);
    *dict = segment;
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int take_segments(struct snap_machine *m, const struct snap_object *list)
{
    if (m->snapshot->has_segments) {
        return snap_fail(m, "\"segments\" occurs twice");
    }
    m->snapshot->has_segments = true;
    m->listed = list ? list->count : 0;
    return GD_OK;
}

static int take_traces(struct snap_machine *m, const struct snap_object *list)
{
    if (m->snapshot->has_traces) {
        return snap_fail(m, "\"device_traces\" occurs twice");
    }
    m->snapshot->has_traces = true;
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (list->item[i]) {
            m->snapshot->trace[list->item[i] - 1].device = (int)i;
        }
    }
    return GD_OK;
}

static int make_root(struct snap_machine *m, struct fields *fields, struct snap_object *dict)
{
    const struct snap_object *list;
    int rc = GD_OK;

    fields->what = "snapshot";
    dict->shape = SNAP_DICT_ROOT;
    if (has_key(fields, SNAP_SEGMENTS)) {
        rc = need_list(m, fields, SNAP_SEGMENTS, SNAP_LIST_SEGMENTS, &list);
        rc = rc != GD_OK ? rc : take_segments(m, list);
    }
    if (rc == GD_OK && has_key(fields, SNAP_DEVICE_TRACES)) {
        rc = need_list(m, fields, SNAP_DEVICE_TRACES, SNAP_LIST_TRACES, &list);
        rc = rc != GD_OK ? rc : take_traces(m, list);
    }
    return rc;
}

/* ---- any dict -------------------------------------------------------------------------------- */

static int read_fields(struct snap_machine *m, struct snap_value *pairs, uint32_t count,
                       struct fields *ret)
{
    ret->seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct snap_value *key = &pairs[(size_t)i * 2];

        if (key->kind != SNAP_IS_TEXT || key->id >= SNAP_KEYS) {
            continue;
        }
        if (has_key(ret, (enum snap_word)key->id)) {
            return snap_fail(m, "a dict has the key \"%s\" twice",
                             key_name(m, (enum snap_word)key->id));
        }
        ret->seen |= UINT32_C(1) << key->id;
        ret->at[key->id] = key + 1;
    }
    return GD_OK;
}

/* What nobody took over. */
static void drop_pairs(struct snap_machine *m, struct snap_value *pairs, uint32_t count)
{
    for (size_t i = 0; i < (size_t)count * 2; i++) {
        if (pairs[i].kind == SNAP_IS_OBJECT && snap_object_of(m, &pairs[i])) {
            snap_release(m, &pairs[i], NULL);
        }
    }
}

static int make_dict(struct snap_machine *m, struct fields *fields, struct snap_value *value)
{
    struct snap_object *dict = snap_object_of(m, value);

    if (has_key(fields, SNAP_SEGMENTS) || has_key(fields, SNAP_DEVICE_TRACES)) {
        return make_root(m, fields, dict);
    }
    if (has_key(fields, SNAP_CONF) && fields->at[SNAP_CONF]->kind == SNAP_IS_TEXT) {
        m->snapshot->conf = fields->at[SNAP_CONF]->id;
    }
    if (dict->shape != SNAP_EMPTY) { /* more keys of the whole, or of something of no interest */
        return GD_OK;
    }
    if (has_key(fields, SNAP_ACTION)) {
        return make_event(m, fields, dict);
    }
    if (has_key(fields, SNAP_BLOCKS)) {
        return make_segment(m, fields, value);
    }
    if (has_key(fields, SNAP_STATE) && has_key(fields, SNAP_SIZE)) {
        return make_block(m, fields, dict);
    }
    if (has_key(fields, SNAP_FILENAME) && has_key(fields, SNAP_LINE)) {
        return make_frame(m, fields, value);
    }
    if (has_key(fields, SNAP_REAL_SIZE)) {
        return make_history(m, fields, dict);
    }
    dict->shape = SNAP_OTHER;
    return GD_OK;
}

int snap_dict_add(struct snap_machine *m, struct snap_value *target, struct snap_value *pairs,
                  uint32_t count)
{
    const struct snap_object *dict = snap_object_of(m, target);
    struct fields fields;
    int rc;

    if (!dict || dict->is_list) {
        return snap_fail(m, "the target of keys is %s", snap_kind_name(m, target));
    }
    if (dict->shape != SNAP_EMPTY && dict->shape != SNAP_OTHER && dict->shape != SNAP_DICT_ROOT) {
        return snap_fail(m, "a dict is changed after it was complete");
    }
    for (size_t i = 0; i < (size_t)count * 2; i++) {
        if (pairs[i].kind == SNAP_IS_OBJECT &&
            (!snap_object_of(m, &pairs[i]) || snap_object_of(m, &pairs[i]) == dict)) {
            return snap_fail(m, snap_object_of(m, &pairs[i])
                                    ? "a dict contains itself"
                                    : "a container is used again, or changed after its use");
        }
    }
    rc = read_fields(m, pairs, count, &fields);
    rc = rc != GD_OK ? rc : make_dict(m, &fields, target);
    drop_pairs(m, pairs, count);
    return rc;
}

/* ---- after the last byte --------------------------------------------------------------------- */

static int compare_ranges(const void *a, const void *b)
{
    const struct snap_range *left = a, *right = b;

    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    return left->address < right->address ? -1 : left->address > right->address;
}

int snap_check_ranges(struct snap_machine *m)
{
    struct snap_range *range = m->snapshot->range;
    uint32_t count = m->snapshot->range_count;

    if (count) {
        qsort(range, count, sizeof(*range), compare_ranges);
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct snap_range *last = &range[i - 1];

        if (last->device == range[i].device &&
            range[i].address - last->address < (uint64_t)last->size) {
            return snap_fail(m,
                             "the segments at 0x%" PRIx64 " and 0x%" PRIx64 " of device %d overlap",
                             last->address, range[i].address, last->device);
        }
    }
    return GD_OK;
}
