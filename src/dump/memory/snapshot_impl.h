// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by the sources of the snapshot reader. */
#ifndef GD_DUMP_SNAPSHOT_IMPL_H
#define GD_DUMP_SNAPSHOT_IMPL_H

#include "base/arena.h"
#include "dump/memory/snapshot.h"
#include "dump/torch/pickle_token.h"
#include "engine/hash_index.h"

#define SNAP_MAX_SIZE    (INT64_C(1) << 48) /* of a block, a segment */
#define SNAP_MAX_TOTAL   (INT64_C(1) << 61)
#define SNAP_MAX_TEXT    4096 /* bytes of a name that are kept */
#define SNAP_MAX_STACKS  4000000
#define SNAP_MAX_DEVICES 1024
#define SNAP_WINDOW      8 /* steps in which something must grow, at most */

/* ---- texts, frames, stacks (snapshot_stacks.c) ----------------------------------------------- */

/* Words that mean something: interned first, so that their numbers are these. */
enum snap_word {
    /* of the whole */
    SNAP_SEGMENTS,
    SNAP_DEVICE_TRACES,
    SNAP_CONF,
    /* keys of segments, blocks, events, frames */
    SNAP_DEVICE,
    SNAP_ADDRESS,
    SNAP_TOTAL_SIZE,
    SNAP_ALLOCATED_SIZE,
    SNAP_STREAM,
    SNAP_BLOCKS,
    SNAP_SIZE,
    SNAP_REQUESTED_SIZE,
    SNAP_STATE,
    SNAP_HISTORY,
    SNAP_REAL_SIZE,
    SNAP_FRAMES,
    SNAP_ACTION,
    SNAP_ADDR,
    SNAP_TIME_US,
    SNAP_DEVICE_FREE,
    SNAP_FILENAME,
    SNAP_LINE,
    SNAP_NAME,
    SNAP_KEYS, /* the number of words that are keys */
    /* states of blocks */
    SNAP_ACTIVE_ALLOCATED = SNAP_KEYS,
    SNAP_ACTIVE_PENDING_FREE,
    SNAP_ACTIVE_AWAITING_FREE,
    SNAP_INACTIVE,
    /* actions of events */
    SNAP_ALLOC,
    SNAP_FREE_REQUESTED,
    SNAP_FREE_COMPLETED,
    SNAP_SEGMENT_ALLOC,
    SNAP_SEGMENT_FREE,
    SNAP_SEGMENT_MAP,
    SNAP_SEGMENT_UNMAP,
    SNAP_OOM,
    SNAP_WORDS,
};

struct snap_text {
    const char *text; /* NUL-terminated */
    uint32_t len;
};

enum snap_trait {                    /* what a frame says about its stack */
                  SNAP_INTERNAL = 1, /* PyTorch's, Python's or C++ code, not the user's */
                  SNAP_IS_STEP = 2,  /* the step of an optimizer */
                  SNAP_HAS_KIND = 4, /* `kind` is known */
};

struct snap_frame {
    uint32_t name, file; /* texts */
    int32_t line;
    uint8_t traits, kind; /* enum snap_trait, enum gd_memory_kind */
};

#define SNAP_NO_FRAME UINT32_MAX

struct snap_stack {
    const uint32_t *frame; /* innermost first */
    uint32_t count;
    uint32_t place; /* the innermost frame of the user's code; SNAP_NO_FRAME: none */
    uint8_t kind;   /* what is allocated there: enum gd_memory_kind */
    bool is_step;
    uint32_t trace, use; /* private to snapshot_trace.c: where its use is counted */
};

struct snap_stacks {
    struct gd_arena arena;
    struct snap_text *text;
    struct snap_frame *frame;
    struct snap_stack *stack; /* [0] is empty */
    uint32_t text_count, frame_count, stack_count;
    size_t text_cap, frame_cap, stack_cap;
    struct gd_hash_index texts, frames, stacks;
};

int snap_stacks_init(struct snap_stacks *stacks, struct gd_err *err);
void snap_stacks_deinit(struct snap_stacks *stacks);
/* The number of a text, a frame, a stack. Equal ones have one number. GD_ELIMIT, GD_ENOMEM. */
int snap_intern_text(struct snap_stacks *stacks, const char *text, size_t len, uint32_t *ret,
                     struct gd_err *err);
int snap_intern_frame(struct snap_stacks *stacks, uint32_t name, uint32_t file, int64_t line,
                      uint32_t *ret, struct gd_err *err);
int snap_intern_stack(struct snap_stacks *stacks, const uint32_t *frame, uint32_t count,
                      uint32_t *ret, struct gd_err *err);

/* ---- the trace of a device (snapshot_trace.c) ------------------------------------------------ */

struct snap_event {
    uint32_t action; /* a text */
    uint32_t stack;
    uint64_t addr;
    int64_t size, time; /* time: in microseconds; -1: unknown */
    int64_t device_free;
};

struct snap_live { /* a block that was allocated in the trace and not freed */
    uint64_t addr;
    int64_t size;
    uint32_t use, round;
};

struct snap_held {
    int64_t bytes, count;
};

/* What a stack has allocated. Uses of one stack may be several. */
struct snap_use {
    uint32_t stack;
    uint32_t peak_mark, oom_mark; /* the moment that at_peak, at_oom are of */
    struct snap_held now, at_peak, at_oom;
    int64_t replaced[2]; /* bytes freed of blocks that were SNAP_WINDOW steps old: in the newest
                            SNAP_WINDOW steps or fewer, and in as many before them */
    uint32_t era;        /* the steps that [0] is of, divided by SNAP_WINDOW */
};

struct snap_moment {
    uint64_t event; /* counted from 1; 0: there was none */
    int64_t time;
    int64_t bytes, reserved; /* in addition to those at the start */
    uint32_t stack;
};

struct snap_trace {
    int device;      /* -1: not known yet */
    uint32_t number; /* in the snapshot, from 1 */
    struct snap_live *live;
    size_t live_cap, live_count; /* cap is 0 or a power of two */
    uint64_t seed;
    struct snap_use *use; /* [0]: what was allocated before the trace */
    uint32_t use_count;
    size_t use_cap;
    uint64_t events, unknown, lost_frees; /* unknown actions; blocks allocated twice */
    int64_t first_time, last_time;
    int64_t bytes, reserved, reserved_peak; /* since the start */
    struct snap_moment peak, oom;           /* oom: the last */
    uint32_t peaks;                         /* number of moments so far */
    uint64_t ooms;
    int64_t oom_size, oom_free;
    uint32_t round; /* optimizer steps so far */
    uint32_t step_place;
    bool in_step;
};

int snap_trace_add(struct snap_trace *trace, struct snap_stacks *stacks,
                   const struct snap_event *event, struct gd_err *err);
/* The block at an address; NULL: none. */
const struct snap_live *snap_trace_find(const struct snap_trace *trace, uint64_t addr);
/* What the stack of a use held at the peak, or when memory ran out the last time. */
struct snap_held snap_use_at_peak(const struct snap_trace *trace, const struct snap_use *use);
struct snap_held snap_use_at_oom(const struct snap_trace *trace, const struct snap_use *use);
/* Bytes of old blocks that were freed in the last SNAP_WINDOW steps or somewhat more: a cache of
 * fixed size replaces its blocks. */
int64_t snap_use_replaced(const struct snap_trace *trace, const struct snap_use *use);
void snap_trace_deinit(struct snap_trace *trace);

/* ---- the whole ------------------------------------------------------------------------------- */

struct snap_block {
    uint64_t address;
    int64_t size, requested;
    uint32_t state; /* a word */
    uint32_t stack;
    int device;
};

struct snap_device {
    int number;
    int64_t allocated, requested, reserved; /* bytes */
    int64_t pending;                        /* freed, but another stream may still use it */
    int64_t unused, split, largest_free; /* split: of unused, in segments that have other blocks */
    int64_t segments, blocks, pending_blocks, free_blocks;
};

struct snap_range { /* a segment */
    uint64_t address;
    int64_t size;
    int device;
};

struct gd_snapshot {
    struct snap_stacks stacks;
    struct snap_device *device; /* sorted by number when read */
    struct snap_trace *trace;
    struct snap_block *block; /* those in use */
    struct snap_range *range;
    uint32_t device_count, trace_count, range_count, block_count;
    size_t device_cap, trace_cap, range_cap, block_cap;
    uint32_t conf;        /* a text: PYTORCH_CUDA_ALLOC_CONF; 0: none */
    uint64_t disagreeing; /* segments whose allocated_size is not that of their blocks */
    bool has_segments, has_traces;
};

/* ---- the machine (snapshot.c) ---------------------------------------------------------------- */

enum snap_kind {
    SNAP_IS_NONE,
    SNAP_IS_BOOL,
    SNAP_IS_INT,
    SNAP_IS_BIG,
    SNAP_IS_FLOAT,
    SNAP_IS_TEXT,
    SNAP_IS_BYTES,
    SNAP_IS_OTHER,   /* a tuple, a set, a container of no interest */
    SNAP_IS_OBJECT,  /* a list or dict: an entry of snap_machine.object */
    SNAP_IS_FRAME,   /* a complete frame */
    SNAP_IS_STACK,   /* a complete list of frames */
    SNAP_IS_SEGMENT, /* a complete segment, which is added up already */
    SNAP_IS_HOLE,    /* in the memo: no entry */
};

struct snap_value {
    uint8_t kind;
    uint32_t id;     /* TEXT, FRAME, STACK: its number; OBJECT: its slot; BOOL: 0 or 1 */
    int64_t integer; /* INT; OBJECT: its generation */
};

enum snap_shape { /* what a container is, as far as its contents say */
                  SNAP_EMPTY,
                  SNAP_OTHER,
                  /* lists of: */
                  SNAP_LIST_FRAMES,
                  SNAP_LIST_BLOCKS,
                  SNAP_LIST_EVENTS,
                  SNAP_LIST_SEGMENTS,
                  SNAP_LIST_TRACES,
                  SNAP_LIST_HISTORY,
                  /* dicts */
                  SNAP_DICT_BLOCK,
                  SNAP_DICT_EVENT,
                  SNAP_DICT_HISTORY,
                  SNAP_DICT_ROOT,
};

#define SNAP_NO_MEMO UINT64_MAX

struct snap_object {
    uint32_t generation; /* changes when the slot is freed */
    bool used, is_list;
    bool shared;    /* was referred to again */
    uint8_t shape;  /* enum snap_shape */
    uint64_t memo;  /* key of its memo entry; SNAP_NO_MEMO: none */
    uint32_t count; /* items of a list */
    size_t cap;
    union {
        uint32_t *item; /* LIST_FRAMES: frames; LIST_TRACES: traces, 0: none */
        struct snap_block
            *block;     /* LIST_BLOCKS, or one of DICT_BLOCK, DICT_HISTORY, LIST_HISTORY */
        uint32_t trace; /* LIST_EVENTS: its number */
    };
    struct snap_block one;   /* DICT_BLOCK, DICT_HISTORY, and the first of LIST_HISTORY */
    struct snap_event event; /* DICT_EVENT */
};

struct snap_mark {
    uint32_t depth;
    bool eager; /* items above it are already in the list below it */
};

struct snap_machine {
    struct gd_snapshot *snapshot;
    struct pickle_input input;
    struct gd_err *err; /* never NULL */

    struct snap_value *stack;
    uint32_t depth, top; /* top: the depth before the current opcode */
    size_t stack_cap;
    struct snap_mark *mark;
    uint32_t marks;
    size_t mark_cap;

    bool complete; /* the top is, but may still get a memo entry */

    uint64_t *memo; /* packed values */
    uint64_t memo_count;
    size_t memo_cap;

    struct snap_object *object;
    uint32_t object_count;
    size_t object_cap;
    uint32_t *spare; /* free slots */
    uint32_t spare_count;
    size_t spare_cap;
    uint64_t listed; /* segments in the list of the whole */
};

int snap_fail(const struct snap_machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *snap_kind_name(const struct snap_machine *machine, const struct snap_value *value);
/* The container; NULL: it is none, or was used before. */
struct snap_object *snap_object_of(const struct snap_machine *machine,
                                   const struct snap_value *value);
/* Frees the slot of a container. Its memo entry becomes `instead` (NULL: what it was). */
void snap_release(struct snap_machine *machine, const struct snap_value *value,
                  const struct snap_value *instead);
/* Makes a list of frames a stack: *value becomes it. An empty list is a stack, too. */
int snap_settle_stack(struct snap_machine *machine, struct snap_value *value);

/* snapshot_list.c: adds a value to a list, which takes it over. */
int snap_list_add(struct snap_machine *machine, struct snap_value *list, struct snap_value *value);
/* snapshot_dict.c: adds pairs to a dict, *dict, which may become a frame or segment. */
int snap_dict_add(struct snap_machine *machine, struct snap_value *dict, struct snap_value *pairs,
                  uint32_t count);
int snap_check_ranges(struct snap_machine *machine); /* segments must not overlap */

#endif
