// SPDX-License-Identifier: GPL-3.0-or-later
/* What a snapshot says, in the words of a report: who holds the memory, now, at the peak of the
 * trace and when memory ran out, and what grew. Lines are those of the user's code. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/memory/snapshot_impl.h"

#define MIN_WINDOW 3
#define NEVER_SEEN (UINT32_MAX - 1) /* a place: allocated before the trace, freed in it */

struct place { /* a line of code, and what it allocates */
    uint32_t frame;
    uint8_t kind;
    uint32_t steps; /* bits: the last steps from which something is left */
    struct snap_held now, at_peak, at_oom, left;
    int64_t replaced; /* bytes of older blocks that went meanwhile */
};

struct making {
    const struct gd_snapshot *snapshot;
    struct gd_memory *report;
    struct place *place;
    uint32_t count;
    size_t cap;
    struct gd_hash_index by_key;
    const struct snap_trace *peak, *oom; /* the traces whose moments are shown; NULL: none */
    struct snap_held *before;            /* by trace: what was there when it began, in bytes */
    uint64_t strays;                     /* blocks of traces that are in no segment */
};

/* ---- places ---------------------------------------------------------------------------------- */

static int place_at(struct making *making, uint32_t frame, uint8_t kind, struct place **ret)
{
    uint32_t key[2] = {frame, kind}, number;
    uint64_t hash = gd_hash_index_hash(&making->by_key, key, sizeof(key));

    for (size_t at = 0; gd_hash_index_next(&making->by_key, hash, &at, &number);) {
        *ret = &making->place[number];
        if ((*ret)->frame == frame && (*ret)->kind == kind) {
            return GD_OK;
        }
    }
    if (!gd_grow_list(&making->place, making->count, &making->cap, sizeof(*making->place))) {
        return GD_ENOMEM;
    }
    *ret = &making->place[making->count];
    **ret = (struct place){.frame = frame, .kind = kind};
    return gd_hash_index_add(&making->by_key, hash, making->count++, NULL);
}

/* The place of a stack: the user's line, or the innermost frame if there is none. */
static int place_of(struct making *making, uint32_t number, struct place **ret)
{
    const struct snap_stack *stack = &making->snapshot->stacks.stack[number];
    uint32_t frame = stack->place;

    if (frame == SNAP_NO_FRAME && stack->count) {
        frame = stack->frame[0];
    }
    return place_at(making, frame, stack->kind, ret);
}

static void add_held(struct snap_held *sum, int64_t bytes, int64_t count)
{
    sum->bytes += bytes;
    sum->count += count;
}

/* ---- what was held --------------------------------------------------------------------------- */

static const struct snap_trace *trace_of(const struct gd_snapshot *snapshot, int device)
{
    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        if (snapshot->trace[i].device == device) {
            return &snapshot->trace[i];
        }
    }
    return NULL;
}

/* A block that the trace did not see allocated was there throughout. */
static int count_block(struct making *making, const struct snap_block *block)
{
    const struct snap_trace *trace = trace_of(making->snapshot, block->device);
    const struct snap_live *live = trace ? snap_trace_find(trace, block->address) : NULL;
    struct place *place;
    int rc = place_of(making, block->stack, &place);

    if (rc != GD_OK) {
        return rc;
    }
    if (block->state == SNAP_ACTIVE_ALLOCATED) {
        add_held(&place->now, block->size, 1);
        making->report->kind[place->kind].bytes += block->size;
        making->report->kind[place->kind].count++;
    }
    if (live) {
        making->strays--;
        return GD_OK;
    }
    if (trace && trace == making->peak) {
        add_held(&place->at_peak, block->requested, 1);
    }
    if (trace && trace == making->oom) {
        add_held(&place->at_oom, block->requested, 1);
    }
    return GD_OK;
}

static int count_uses(struct making *making, const struct snap_trace *trace)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < trace->use_count; i++) {
        const struct snap_use *use = &trace->use[i];
        struct snap_held start = {0, 0}, held;
        struct place *place;

        if (i == 0) { /* all of this was there at the start, and freed since */
            start = (struct snap_held){-use->now.bytes, -use->now.count};
            rc = place_at(making, NEVER_SEEN, GD_MEMORY_OTHER, &place);
        } else {
            rc = place_of(making, use->stack, &place);
        }
        if (rc == GD_OK && trace == making->peak) {
            held = snap_use_at_peak(trace, use);
            add_held(&place->at_peak, start.bytes + held.bytes, start.count + held.count);
        }
        if (rc == GD_OK && trace == making->oom) {
            held = snap_use_at_oom(trace, use);
            add_held(&place->at_oom, start.bytes + held.bytes, start.count + held.count);
        }
    }
    return rc;
}

/* Blocks that steps left behind, the last steps before the one in progress. */
static int count_left(struct making *making, const struct snap_trace *trace, uint32_t window)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < trace->live_cap; i++) {
        const struct snap_live *live = &trace->live[i];
        struct place *place;

        if (!live->use || live->round >= trace->round || live->round + window < trace->round) {
            continue;
        }
        rc = place_of(making, trace->use[live->use].stack, &place);
        if (rc == GD_OK) {
            place->steps |= UINT32_C(1) << (trace->round - 1 - live->round);
            add_held(&place->left, live->size, 1);
        }
    }
    return rc;
}

static int count_replaced(struct making *making, const struct snap_trace *trace)
{
    int rc = GD_OK;

    for (uint32_t i = 1; rc == GD_OK && i < trace->use_count; i++) {
        int64_t bytes = snap_use_replaced(trace, &trace->use[i]);
        struct place *place;

        if (bytes > 0) {
            rc = place_of(making, trace->use[i].stack, &place);
            place->replaced += rc == GD_OK ? bytes : 0;
        }
    }
    return rc;
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct spot { /* the texts of a frame */
    const char *name;
    char where[SNAP_MAX_TEXT + 16];
};

static void spell_frame(const struct gd_snapshot *snapshot, uint32_t number, struct spot *ret)
{
    const struct snap_stacks *stacks = &snapshot->stacks;

    ret->where[0] = '\0';
    if (number == NEVER_SEEN || number == SNAP_NO_FRAME) {
        ret->name = number == NEVER_SEEN ? "(allocated before the trace)" : "(no stack recorded)";
        return;
    }
    ret->name = stacks->text[stacks->frame[number].name].text;
    ret->name = *ret->name ? ret->name : "(no name)";
    snprintf(ret->where, sizeof(ret->where), "%s:%d", stacks->text[stacks->frame[number].file].text,
             (int)stacks->frame[number].line);
}

static uint32_t frame_of_stack(const struct gd_snapshot *snapshot, uint32_t number)
{
    const struct snap_stack *stack = &snapshot->stacks.stack[number];

    return stack->place != SNAP_NO_FRAME || !stack->count ? stack->place : stack->frame[0];
}

static int add_row(struct making *making, const struct place *place, const struct snap_held *held,
                   int (*add)(struct gd_memory *report, const struct gd_memory_row *row))
{
    struct spot spot;

    if (held->bytes <= 0 && held->count <= 0) {
        return GD_OK;
    }
    spell_frame(making->snapshot, place->frame, &spot);
    struct gd_memory_row row = {.name = spot.name,
                                .where = spot.where,
                                .detail = "",
                                .kind = (enum gd_memory_kind)place->kind,
                                .bytes = held->bytes,
                                .count = held->count};
    return add(making->report, &row);
}

static int add_growth(struct making *making, const struct place *place, uint32_t window)
{
    struct spot spot;

    /* a cache of fixed size keeps blocks of the last steps, too, but loses older ones */
    if (place->steps != (UINT32_C(1) << window) - 1 || place->replaced > place->left.bytes / 2) {
        return GD_OK;
    }
    spell_frame(making->snapshot, place->frame, &spot);
    struct gd_memory_growth growth = {.name = spot.name,
                                      .where = spot.where,
                                      .holder = "",
                                      .bytes = place->left.bytes,
                                      .count = place->left.count,
                                      .per_step =
                                          (double)(place->left.bytes - place->replaced) / window,
                                      .first_step = making->report->growth_from,
                                      .last_step = making->report->growth_to};
    return gd_memory_add_growth(making->report, &growth);
}

/* ---- the parts of a report ------------------------------------------------------------------- */

static int add_growths(struct making *making)
{
    const struct snap_trace *trace = making->peak;
    uint32_t steps = trace && trace->round ? trace->round - 1 : 0; /* that are over */
    uint32_t window = steps < SNAP_WINDOW ? steps : SNAP_WINDOW;
    int rc = GD_OK;

    if (window < MIN_WINDOW) {
        return trace ? gd_memory_add_note(making->report,
                                          "growth: the trace has fewer than three whole steps of "
                                          "an optimizer")
                     : GD_OK;
    }
    making->report->growth_from = trace->round - window;
    making->report->growth_to = steps;
    rc = count_left(making, trace, window);
    rc = rc != GD_OK ? rc : count_replaced(making, trace);
    for (uint32_t i = 0; rc == GD_OK && i < making->count; i++) {
        rc = add_growth(making, &making->place[i], window);
    }
    return rc;
}

static int add_devices(struct making *making)
{
    const struct gd_snapshot *snapshot = making->snapshot;
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < snapshot->device_count; i++) {
        const struct snap_device *device = &snapshot->device[i];
        const struct snap_trace *trace = trace_of(snapshot, device->number);
        char name[32];

        snprintf(name, sizeof(name), "device %d", device->number);
        struct gd_memory_device row = {
            .name = name,
            .allocated = device->allocated,
            .requested = device->requested,
            .reserved = device->reserved,
            .peak = -1,
            .peak_reserved = trace ? device->reserved - trace->reserved + trace->reserved_peak : -1,
            .unused = device->unused,
            .largest_free = device->largest_free,
            .split = device->split,
            .segments = device->segments,
            .blocks = device->blocks,
            .free = -1,
            .total = -1};
        rc = gd_memory_add_device(making->report, &row);
        if (rc == GD_OK && device->pending_blocks) {
            char note[160];

            snprintf(note, sizeof(note),
                     "%s: %" PRId64 " bytes in %" PRId64 " blocks that were freed, but that "
                     "another stream still uses",
                     name, device->pending, device->pending_blocks);
            rc = gd_memory_add_note(making->report, note);
        }
    }
    return rc;
}

/* "event 120 of 4,000, 3.2 s after the first; requested bytes" */
static void say_when(const struct snap_trace *trace, const struct snap_moment *moment, char *ret,
                     size_t size)
{
    int len = moment->event
                  ? snprintf(ret, size, "event %" PRIu64 " of %" PRIu64 " on device %d",
                             moment->event, trace->events, trace->device)
                  : snprintf(ret, size, "at the start of the trace of device %d", trace->device);

    if (moment->event && moment->time >= 0 && trace->first_time >= 0 &&
        moment->time >= trace->first_time) {
        snprintf(ret + len, size - (size_t)len, ", %.3f s after the first",
                 (double)(moment->time - trace->first_time) / 1e6);
    }
}

static int64_t held_at_start(const struct making *making, const struct snap_trace *trace)
{
    return making->before[trace->number - 1].bytes - trace->use[0].now.bytes;
}

static void add_peak(struct making *making)
{
    const struct snap_trace *trace = making->peak;
    struct gd_memory *report = making->report;
    char when[200];
    struct spot spot;

    if (!trace) {
        report->peak.note = gd_memory_text(
            report, "the snapshot has no trace: call torch.cuda.memory._record_memory_history()");
        return;
    }
    say_when(trace, &trace->peak, when, sizeof(when) - 40);
    snprintf(when + strlen(when), sizeof(when) - strlen(when), "; requested bytes");
    report->peak.bytes = held_at_start(making, trace) + trace->peak.bytes;
    report->peak.note = gd_memory_text(report, when);
    if (trace->peak.event) {
        spell_frame(making->snapshot, frame_of_stack(making->snapshot, trace->peak.stack), &spot);
        report->peak.name = gd_memory_text(report, spot.name);
        report->peak.where = gd_memory_text(report, spot.where);
    }
}

static void add_oom(struct making *making)
{
    const struct snap_trace *trace = making->oom;
    struct gd_memory *report = making->report;
    struct gd_memory_oom *oom = &report->oom;
    char text[240];
    struct spot spot;

    if (!trace) {
        return;
    }
    spell_frame(making->snapshot, frame_of_stack(making->snapshot, trace->oom.stack), &spot);
    oom->asked = trace->oom_size;
    oom->free = trace->oom_free;
    oom->expandable = strstr(making->snapshot->stacks.text[making->snapshot->conf].text,
                             "expandable_segments:True") != NULL;
    oom->held = held_at_start(making, trace) + trace->oom.bytes;
    for (uint32_t i = 0; i < making->snapshot->device_count; i++) {
        const struct snap_device *device = &making->snapshot->device[i];

        if (device->number == trace->device) {
            oom->reserved = device->reserved - trace->reserved + trace->oom.reserved;
        }
    }
    snprintf(text, sizeof(text), "device %d", trace->device);
    oom->device = gd_memory_text(report, text);
    oom->name = gd_memory_text(report, spot.name);
    oom->where = gd_memory_text(report, spot.where);
    say_when(trace, &trace->oom, text, sizeof(text) - 40);
    if (trace->ooms > 1) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ", the last of %" PRIu64,
                 trace->ooms);
    }
    oom->note = gd_memory_text(report, text);
}

static int add_places(struct making *making)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < making->count; i++) {
        const struct place *place = &making->place[i];

        rc = add_row(making, place, &place->now, gd_memory_add_node);
        rc = rc != GD_OK ? rc : add_row(making, place, &place->at_peak, gd_memory_add_peak_node);
        rc = rc != GD_OK ? rc : add_row(making, place, &place->at_oom, gd_memory_add_oom_node);
    }
    return rc;
}

static int add_notes(struct making *making)
{
    const struct gd_snapshot *snapshot = making->snapshot;
    uint64_t lost = 0;
    char text[160];
    int rc = GD_OK;

    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        lost += snapshot->trace[i].lost_frees;
    }
    if (lost) {
        snprintf(text, sizeof(text), "%" PRIu64 " frees that are missing in the trace", lost);
        rc = gd_memory_add_note(making->report, text);
    }
    if (rc == GD_OK && making->strays) {
        snprintf(text, sizeof(text),
                 "%" PRIu64 " blocks that the trace allocates and no segment contains",
                 making->strays);
        rc = gd_memory_add_note(making->report, text);
    }
    if (rc == GD_OK && snapshot->disagreeing) {
        snprintf(text, sizeof(text),
                 "%" PRIu64 " segments state another allocated_size than their blocks have",
                 snapshot->disagreeing);
        rc = gd_memory_add_note(making->report, text);
    }
    return rc;
}

/* The traces with the highest peak and with the last failure. */
static void choose_traces(struct making *making)
{
    const struct gd_snapshot *snapshot = making->snapshot;
    int64_t highest = -1;

    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        const struct snap_trace *trace = &snapshot->trace[i];
        int64_t peak = held_at_start(making, trace) + trace->peak.bytes;

        if (trace->device < 0) {
            continue;
        }
        if (peak > highest) {
            highest = peak;
            making->peak = trace;
        }
        if (trace->ooms && (!making->oom || trace->oom.time > making->oom->oom.time)) {
            making->oom = trace;
        }
    }
}

/* What was there when the traces began and still is: needed to compare their peaks. */
static void count_before(struct making *making)
{
    const struct gd_snapshot *snapshot = making->snapshot;

    for (uint32_t i = 0; i < snapshot->block_count; i++) {
        const struct snap_block *block = &snapshot->block[i];
        const struct snap_trace *trace = trace_of(snapshot, block->device);

        if (trace && !snap_trace_find(trace, block->address)) {
            add_held(&making->before[trace->number - 1], block->requested, 1);
        }
    }
    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        making->strays += snapshot->trace[i].device >= 0 ? snapshot->trace[i].live_count : 0;
    }
}

static int fill_report(struct making *making)
{
    const struct gd_snapshot *snapshot = making->snapshot;
    int rc = GD_OK;

    count_before(making);
    choose_traces(making);
    for (uint32_t i = 0; rc == GD_OK && i < snapshot->block_count; i++) {
        rc = count_block(making, &snapshot->block[i]);
    }
    for (uint32_t i = 0; rc == GD_OK && i < snapshot->trace_count; i++) {
        rc = count_uses(making, &snapshot->trace[i]);
    }
    add_peak(making);
    add_oom(making);
    rc = rc != GD_OK ? rc : add_growths(making);
    rc = rc != GD_OK ? rc : add_places(making);
    rc = rc != GD_OK ? rc : add_devices(making);
    return rc != GD_OK ? rc : add_notes(making);
}

int gd_snapshot_report(const struct gd_snapshot *snapshot, struct gd_memory *report)
{
    struct making making = {.snapshot = snapshot, .report = report};
    char text[200];
    int rc = GD_ENOMEM;

    report->unit = "block";
    report->counted = true;
    gd_snapshot_say(snapshot, text, sizeof(text));
    report->source = gd_memory_text(report, text);
    making.before = calloc(snapshot->trace_count + 1, sizeof(*making.before));
    if (making.before) {
        rc = fill_report(&making);
    }
    gd_memory_sort(report);
    free(making.before);
    free(making.place);
    gd_hash_index_deinit(&making.by_key);
    return rc;
}

void gd_snapshot_say(const struct gd_snapshot *snapshot, char *ret, size_t size)
{
    uint64_t events = 0;
    int64_t blocks = 0;

    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        events += snapshot->trace[i].events;
    }
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const struct snap_device *device = &snapshot->device[i];

        blocks += device->blocks + device->pending_blocks + device->free_blocks;
    }
    snprintf(ret, size,
             "PyTorch's allocator: %u device%s, %u segment%s, %" PRId64 " block%s, %" PRIu64
             " event%s",
             snapshot->device_count, snapshot->device_count == 1 ? "" : "s", snapshot->range_count,
             snapshot->range_count == 1 ? "" : "s", blocks, blocks == 1 ? "" : "s", events,
             events == 1 ? "" : "s");
}
