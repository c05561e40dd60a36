// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The events of one device, replayed as they come: which blocks are live, and what each stack held
 * at the moments of interest. A trace keeps the last events only, so it begins with blocks that
 * nobody knows: sums count from the start, and what was there before is added at the end.
 *
 * A moment costs nothing: each use remembers the first value that it had after the last moment,
 * when it changes for the first time since.
 */
#include <string.h>

#include "base/grow.h"
#include "dump/memory/snapshot_impl.h"

#define FIRST_LIVE 1024

/* ---- live blocks: a table with linear probing ------------------------------------------------ */

static size_t slot_of(const struct snap_trace *trace, uint64_t addr)
{
    uint64_t hash = (addr ^ trace->seed) * UINT64_C(0xd6e8feb86659fd93);

    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(hash ^ hash >> 29) & (trace->live_cap - 1);
}

/* Where the address is, or would be. */
static struct snap_live *find_slot(const struct snap_trace *trace, uint64_t addr)
{
    size_t at = slot_of(trace, addr);

    while (trace->live[at].use && trace->live[at].addr != addr) {
        at = (at + 1) & (trace->live_cap - 1);
    }
    return &trace->live[at];
}

const struct snap_live *snap_trace_find(const struct snap_trace *trace, uint64_t addr)
{
    const struct snap_live *slot = trace->live_cap ? find_slot(trace, addr) : NULL;

    return slot && slot->use ? slot : NULL;
}

static int grow_live(struct snap_trace *trace, struct gd_err *err)
{
    struct snap_live *old = trace->live;
    size_t old_cap = trace->live_cap;

    if (trace->live_count < old_cap - old_cap / 4) {
        return GD_OK;
    }
    trace->live = calloc(old_cap ? old_cap * 2 : FIRST_LIVE, sizeof(*old));
    if (!trace->live) {
        trace->live = old;
        return gd_fail_nomem(err);
    }
    trace->live_cap = old_cap ? old_cap * 2 : FIRST_LIVE;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].use) {
            *find_slot(trace, old[i].addr) = old[i];
        }
    }
    free(old);
    return GD_OK;
}

/* Empties a slot; those after it that would not be found any more move up. */
static void remove_live(struct snap_trace *trace, struct snap_live *slot)
{
    size_t mask = trace->live_cap - 1, hole = (size_t)(slot - trace->live);

    for (size_t at = (hole + 1) & mask; trace->live[at].use; at = (at + 1) & mask) {
        size_t home = slot_of(trace, trace->live[at].addr);

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            trace->live[hole] = trace->live[at];
            hole = at;
        }
    }
    trace->live[hole].use = 0;
    trace->live_count--;
}

/* ---- uses ------------------------------------------------------------------------------------ */

struct snap_held snap_use_at_peak(const struct snap_trace *trace, const struct snap_use *use)
{
    return use->peak_mark == trace->peaks ? use->at_peak : use->now;
}

struct snap_held snap_use_at_oom(const struct snap_trace *trace, const struct snap_use *use)
{
    return use->oom_mark == (uint32_t)trace->ooms ? use->at_oom : use->now;
}

int64_t snap_use_replaced(const struct snap_trace *trace, const struct snap_use *use)
{
    uint32_t past = trace->round / SNAP_WINDOW - use->era;

    return past == 0 ? use->replaced[0] + use->replaced[1] : past == 1 ? use->replaced[0] : 0;
}

static void note_replaced(const struct snap_trace *trace, struct snap_use *use,
                          const struct snap_live *slot)
{
    uint32_t era = trace->round / SNAP_WINDOW;

    if (trace->round - slot->round < SNAP_WINDOW) {
        return;
    }
    if (era != use->era) {
        use->replaced[1] = era - use->era == 1 ? use->replaced[0] : 0;
        use->replaced[0] = 0;
        use->era = era;
    }
    use->replaced[0] += slot->size;
}

static void change_use(const struct snap_trace *trace, struct snap_use *use, int64_t bytes,
                       int64_t count)
{
    if (use->peak_mark != trace->peaks) {
        use->peak_mark = trace->peaks;
        use->at_peak = use->now;
    }
    if (use->oom_mark != (uint32_t)trace->ooms) {
        use->oom_mark = (uint32_t)trace->ooms;
        use->at_oom = use->now;
    }
    use->now.bytes += bytes;
    use->now.count += count;
}

static int new_use(struct snap_trace *trace, uint32_t stack, struct gd_err *err)
{
    if (!gd_grow_list(&trace->use, trace->use_count, &trace->use_cap, sizeof(*trace->use))) {
        return gd_fail_nomem(err);
    }
    trace->use[trace->use_count++] = (struct snap_use){.stack = stack};
    return GD_OK;
}

static int use_of(struct snap_trace *trace, struct snap_stacks *stacks, uint32_t number,
                  uint32_t *ret, struct gd_err *err)
{
    struct snap_stack *stack = &stacks->stack[number];

    if (stack->trace != trace->number) {
        int rc = new_use(trace, number, err);

        if (rc != GD_OK) {
            return rc;
        }
        stack->trace = trace->number;
        stack->use = trace->use_count - 1;
    }
    *ret = stack->use;
    return GD_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_moment(const struct snap_trace *trace, const struct snap_event *event,
                        struct snap_moment *ret)
{
    *ret = (struct snap_moment){.event = trace->events,
                                .time = event->time,
                                .bytes = trace->bytes,
                                .reserved = trace->reserved,
                                .stack = event->stack};
}

static void take_away(struct snap_trace *trace, struct snap_live *slot)
{
    trace->bytes -= slot->size;
    note_replaced(trace, &trace->use[slot->use], slot);
    change_use(trace, &trace->use[slot->use], -slot->size, -1);
    remove_live(trace, slot);
}

static int add_block(struct snap_trace *trace, struct snap_stacks *stacks,
                     const struct snap_event *event, struct gd_err *err)
{
    struct snap_live *slot;
    uint32_t use;
    int rc = grow_live(trace, err);

    rc = rc != GD_OK ? rc : use_of(trace, stacks, event->stack, &use, err);
    if (rc != GD_OK) {
        return rc;
    }
    slot = find_slot(trace, event->addr);
    if (slot->use) { /* events are missing: its free was not recorded */
        trace->lost_frees++;
        take_away(trace, slot);
        slot = find_slot(trace, event->addr);
    }
    *slot = (struct snap_live){
        .addr = event->addr, .size = event->size, .use = use, .round = trace->round};
    trace->live_count++;
    trace->bytes += event->size;
    change_use(trace, &trace->use[use], event->size, 1);
    if (trace->bytes > trace->peak.bytes) {
        trace->peaks++;
        take_moment(trace, event, &trace->peak);
    }
    return trace->bytes <= SNAP_MAX_TOTAL
               ? GD_OK
               : gd_fail(err, GD_EPROTO, "more bytes are allocated than any device has");
}

static int free_block(struct snap_trace *trace, const struct snap_event *event, struct gd_err *err)
{
    struct snap_live *slot = trace->live_cap ? find_slot(trace, event->addr) : NULL;

    if (slot && slot->use) {
        take_away(trace, slot);
        return GD_OK;
    }
    trace->bytes -= event->size; /* allocated before the trace */
    change_use(trace, &trace->use[0], -event->size, -1);
    return trace->bytes >= -SNAP_MAX_TOTAL
               ? GD_OK
               : gd_fail(err, GD_EPROTO, "more bytes are freed than any device has");
}

static int change_reserved(struct snap_trace *trace, int64_t size, struct gd_err *err)
{
    trace->reserved += size;
    trace->reserved_peak =
        trace->reserved > trace->reserved_peak ? trace->reserved : trace->reserved_peak;
    return trace->reserved <= SNAP_MAX_TOTAL && trace->reserved >= -SNAP_MAX_TOTAL
               ? GD_OK
               : gd_fail(err, GD_EPROTO, "more bytes are reserved than any device has");
}

static void run_out(struct snap_trace *trace, const struct snap_event *event)
{
    trace->ooms++;
    take_moment(trace, event, &trace->oom);
    trace->oom_size = event->size;
    trace->oom_free = event->device_free;
}

/* A step begins when the optimizer's step is entered from the line that called it first. */
static void follow_steps(struct snap_trace *trace, const struct snap_stacks *stacks,
                         uint32_t number)
{
    const struct snap_stack *stack = &stacks->stack[number];
    bool in_step;

    if (!stack->count) { /* says nothing */
        return;
    }
    if (stack->is_step && !trace->round) {
        trace->step_place = stack->place;
    }
    in_step = stack->is_step && stack->place == trace->step_place;
    trace->round += in_step && !trace->in_step ? 1 : 0;
    trace->in_step = in_step;
}

static int start_trace(struct snap_trace *trace, const struct snap_event *event, struct gd_err *err)
{
    static const char nothing;
    struct gd_hash_index random = {.seed = 0};

    gd_hash_index_hash(&random, &nothing, 0);
    trace->seed = random.seed;
    trace->first_time = event->time;
    return new_use(trace, 0, err);
}

int snap_trace_add(struct snap_trace *trace, struct snap_stacks *stacks,
                   const struct snap_event *event, struct gd_err *err)
{
    int rc = trace->events ? GD_OK : start_trace(trace, event, err);

    if (rc != GD_OK) {
        return rc;
    }
    trace->events++;
    trace->last_time = event->time;
    follow_steps(trace, stacks, event->stack);
    switch (event->action) {
    case SNAP_ALLOC: return add_block(trace, stacks, event, err);
    case SNAP_FREE_COMPLETED: return free_block(trace, event, err);
    case SNAP_SEGMENT_ALLOC:
    case SNAP_SEGMENT_MAP: return change_reserved(trace, event->size, err);
    case SNAP_SEGMENT_FREE:
    case SNAP_SEGMENT_UNMAP: return change_reserved(trace, -event->size, err);
    case SNAP_OOM: run_out(trace, event); return GD_OK;
    default: return GD_OK; /* free_requested, snapshot, and what is unknown */
    }
}

void snap_trace_deinit(struct snap_trace *trace)
{
    free(trace->live);
    free(trace->use);
}
