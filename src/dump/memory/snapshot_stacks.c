// SPDX-License-Identifier: GPL-3.0-or-later
/* Texts, frames and stacks, each stored once; and what the frames say about an allocation. */
#include <string.h>

#include "base/grow.h"
#include "dump/io/file_name.h"
#include "dump/memory/snapshot_impl.h"

#define MAX_BYTES  ((size_t)1 << 30) /* of texts and stacks */
#define MAX_TEXTS  16000000
#define MAX_FRAMES 4000000

static const char *const words[SNAP_WORDS] = {
    [SNAP_SEGMENTS] = "segments",
    [SNAP_DEVICE_TRACES] = "device_traces",
    [SNAP_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
    [SNAP_DEVICE] = "device",
    [SNAP_ADDRESS] = "address",
    [SNAP_TOTAL_SIZE] = "total_size",
    [SNAP_ALLOCATED_SIZE] = "allocated_size",
    [SNAP_STREAM] = "stream",
    [SNAP_BLOCKS] = "blocks",
    [SNAP_SIZE] = "size",
    [SNAP_REQUESTED_SIZE] = "requested_size",
    [SNAP_STATE] = "state",
    [SNAP_HISTORY] = "history",
    [SNAP_REAL_SIZE] = "real_size",
    [SNAP_FRAMES] = "frames",
    [SNAP_ACTION] = "action",
    [SNAP_ADDR] = "addr",
    [SNAP_TIME_US] = "time_us",
    [SNAP_DEVICE_FREE] = "device_free",
    [SNAP_FILENAME] = "filename",
    [SNAP_LINE] = "line",
    [SNAP_NAME] = "name",
    [SNAP_ACTIVE_ALLOCATED] = "active_allocated",
    [SNAP_ACTIVE_PENDING_FREE] = "active_pending_free",
    [SNAP_ACTIVE_AWAITING_FREE] = "active_awaiting_free",
    [SNAP_INACTIVE] = "inactive",
    [SNAP_ALLOC] = "alloc",
    [SNAP_FREE_REQUESTED] = "free_requested",
    [SNAP_FREE_COMPLETED] = "free_completed",
    [SNAP_SEGMENT_ALLOC] = "segment_alloc",
    [SNAP_SEGMENT_FREE] = "segment_free",
    [SNAP_SEGMENT_MAP] = "segment_map",
    [SNAP_SEGMENT_UNMAP] = "segment_unmap",
    [SNAP_OOM] = "oom",
};

/* ---- what a frame says ----------------------------------------------------------------------- */

struct rule {         /* for files of the package torch */
    const char *file; /* a prefix of the path in the package */
    const char *name; /* of the function; NULL: any */
    uint8_t traits, kind;
};

/* The first that matches. */
static const struct rule rules[] = {
    {"optim/lr_scheduler.py", NULL, 0, 0},
    {"optim/swa_utils.py", NULL, 0, 0},
    {"optim/", "step", SNAP_HAS_KIND | SNAP_IS_STEP, GD_MEMORY_OPTIMIZER},
    {"optim/", NULL, SNAP_HAS_KIND, GD_MEMORY_OPTIMIZER},
    {"_tensor.py", "backward", SNAP_HAS_KIND, GD_MEMORY_GRADIENTS},
    {"autograd/__init__.py", "backward", SNAP_HAS_KIND, GD_MEMORY_GRADIENTS},
    {"autograd/__init__.py", "grad", SNAP_HAS_KIND, GD_MEMORY_GRADIENTS},
    {"autograd/graph.py", "_engine_run_backward", SNAP_HAS_KIND, GD_MEMORY_GRADIENTS},
    {"nn/modules/module.py", "_call_impl", SNAP_HAS_KIND, GD_MEMORY_ACTIVATIONS},
    {"nn/modules/module.py", "_wrapped_call_impl", SNAP_HAS_KIND, GD_MEMORY_ACTIVATIONS},
    {"nn/modules/module.py", "_apply", SNAP_HAS_KIND, GD_MEMORY_WEIGHTS},
    {"nn/modules/", "__init__", SNAP_HAS_KIND, GD_MEMORY_WEIGHTS},
    {"nn/modules/", "reset_parameters", SNAP_HAS_KIND, GD_MEMORY_WEIGHTS},
    {"nn/modules/", "forward", SNAP_HAS_KIND, GD_MEMORY_ACTIVATIONS},
    {"nn/init.py", NULL, SNAP_HAS_KIND, GD_MEMORY_WEIGHTS},
    {"nn/functional.py", NULL, SNAP_HAS_KIND, GD_MEMORY_ACTIVATIONS},
    {"utils/data/", NULL, SNAP_HAS_KIND, GD_MEMORY_INPUTS},
};

/* Parts of the package, for one that is not installed where packages are. */
static const char *const parts[] = {
    "_dynamo/",     "_functorch/",      "_higher_order_ops/",
    "_inductor/",   "_ops.py",          "_tensor.py",
    "amp/",         "autograd/",        "cuda/",
    "distributed/", "functional.py",    "fx/",
    "jit/",         "nn/functional.py", "nn/init.py",
    "nn/modules/",  "nn/parallel/",     "nn/parameter.py",
    "optim/",       "serialization.py", "utils/",
};

/* The path in the package torch; NULL: not one of its files. */
static const char *path_in_torch(const char *file)
{
    static const char package[] = "/torch/", installed[] = "-packages";
    const char *at = strstr(file, package);

    for (; at; at = strstr(at + 1, package)) {
        const char *inside = at + strlen(package);
        size_t before = (size_t)(at - file);

        if (before >= strlen(installed) &&
            strncmp(at - strlen(installed), installed, strlen(installed)) == 0) {
            return inside;
        }
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            if (gd_starts_with(inside, parts[i])) {
                return inside;
            }
        }
    }
    return NULL;
}

/* Code that nobody wrote for this training: C++, Python's own library, what PyTorch generates. */
static bool is_internal(const char *file)
{
    if (!gd_ends_with(file, ".py") && file[0] != '<') {
        return true;
    }
    return gd_starts_with(file, "<frozen ") || strcmp(file, "<string>") == 0 ||
           gd_starts_with(file, "<eval_with_key>") || strstr(file, "/torchinductor_") ||
           strstr(file, "/torch_npu/") ||
           (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
}

static void judge_frame(const struct snap_stacks *stacks, struct snap_frame *frame)
{
    const char *file = stacks->text[frame->file].text, *name = stacks->text[frame->name].text;
    const char *inside = path_in_torch(file);

    if (!inside) {
        frame->traits = is_internal(file) ? SNAP_INTERNAL : 0;
        if (strstr(name, "torch::autograd::Engine::")) {
            frame->traits |= SNAP_HAS_KIND;
            frame->kind = GD_MEMORY_GRADIENTS;
        }
        return;
    }
    frame->traits = SNAP_INTERNAL;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct rule *rule = &rules[i];

        if (gd_starts_with(inside, rule->file) && (!rule->name || strcmp(name, rule->name) == 0)) {
            frame->traits |= rule->traits;
            frame->kind = rule->kind;
            return;
        }
    }
}

static void judge_stack(const struct snap_stacks *stacks, struct snap_stack *stack)
{
    bool has_kind = false;

    stack->place = SNAP_NO_FRAME;
    stack->kind = GD_MEMORY_OTHER;
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct snap_frame *frame = &stacks->frame[stack->frame[i]];

        if (!has_kind && frame->traits & SNAP_HAS_KIND) {
            has_kind = true;
            stack->kind = frame->kind;
        }
        if (stack->place == SNAP_NO_FRAME && !(frame->traits & SNAP_INTERNAL)) {
            stack->place = stack->frame[i];
        }
        stack->is_step = stack->is_step || frame->traits & SNAP_IS_STEP;
    }
}

/* ---- interning ------------------------------------------------------------------------------- */

int snap_intern_text(struct snap_stacks *stacks, const char *text, size_t len, uint32_t *ret,
                     struct gd_err *err)
{
    uint64_t hash;
    uint32_t number;
    char *copy;

    len = len < SNAP_MAX_TEXT ? len : SNAP_MAX_TEXT;
    hash = gd_hash_index_hash(&stacks->texts, text, len);
    for (size_t at = 0; gd_hash_index_next(&stacks->texts, hash, &at, &number);) {
        if (stacks->text[number].len == len && memcmp(stacks->text[number].text, text, len) == 0) {
            *ret = number;
            return GD_OK;
        }
    }
    if (stacks->text_count >= MAX_TEXTS) {
        return gd_fail(err, GD_ELIMIT, "more than %d different strings", MAX_TEXTS);
    }
    copy = gd_arena_strndup(&stacks->arena, text, len);
    if (!copy) {
        return gd_fail(err, GD_ELIMIT, "its strings and stacks take more than 1 GiB");
    }
    if (!gd_grow_list(&stacks->text, stacks->text_count, &stacks->text_cap,
                      sizeof(*stacks->text))) {
        return gd_fail_nomem(err);
    }
    *ret = stacks->text_count;
    stacks->text[stacks->text_count] = (struct snap_text){.text = copy, .len = (uint32_t)len};
    return gd_hash_index_add(&stacks->texts, hash, stacks->text_count++, err);
}

int snap_intern_frame(struct snap_stacks *stacks, uint32_t name, uint32_t file, int64_t line,
                      uint32_t *ret, struct gd_err *err)
{
    struct snap_frame frame = {.name = name, .file = file};
    uint32_t key[3] = {name, file, 0}, number;
    uint64_t hash;

    frame.line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
    key[2] = (uint32_t)frame.line;
    hash = gd_hash_index_hash(&stacks->frames, key, sizeof(key));
    for (size_t at = 0; gd_hash_index_next(&stacks->frames, hash, &at, &number);) {
        const struct snap_frame *known = &stacks->frame[number];

        if (known->name == name && known->file == file && known->line == frame.line) {
            *ret = number;
            return GD_OK;
        }
    }
    if (stacks->frame_count >= MAX_FRAMES) {
        return gd_fail(err, GD_ELIMIT, "more than %d different frames", MAX_FRAMES);
    }
    if (!gd_grow_list(&stacks->frame, stacks->frame_count, &stacks->frame_cap,
                      sizeof(*stacks->frame))) {
        return gd_fail_nomem(err);
    }
    judge_frame(stacks, &frame);
    *ret = stacks->frame_count;
    stacks->frame[stacks->frame_count] = frame;
    return gd_hash_index_add(&stacks->frames, hash, stacks->frame_count++, err);
}

static int add_stack(struct snap_stacks *stacks, const uint32_t *frame, uint32_t count,
                     struct gd_err *err)
{
    struct snap_stack stack = {.count = count};

    if (stacks->stack_count >= SNAP_MAX_STACKS) {
        return gd_fail(err, GD_ELIMIT, "more than %d different stacks", SNAP_MAX_STACKS);
    }
    if (count) {
        uint32_t *copy = gd_arena_alloc(&stacks->arena, count * sizeof(*copy));

        if (!copy) {
            return gd_fail(err, GD_ELIMIT, "its strings and stacks take more than 1 GiB");
        }
        memcpy(copy, frame, count * sizeof(*copy));
        stack.frame = copy;
    }
    if (!gd_grow_list(&stacks->stack, stacks->stack_count, &stacks->stack_cap,
                      sizeof(*stacks->stack))) {
        return gd_fail_nomem(err);
    }
    judge_stack(stacks, &stack);
    stacks->stack[stacks->stack_count++] = stack;
    return GD_OK;
}

int snap_intern_stack(struct snap_stacks *stacks, const uint32_t *frame, uint32_t count,
                      uint32_t *ret, struct gd_err *err)
{
    size_t size = count * sizeof(*frame);
    uint64_t hash;
    uint32_t number;
    int rc;

    if (!count) {
        *ret = 0;
        return GD_OK;
    }
    hash = gd_hash_index_hash(&stacks->stacks, frame, size);
    for (size_t at = 0; gd_hash_index_next(&stacks->stacks, hash, &at, &number);) {
        const struct snap_stack *known = &stacks->stack[number];

        if (known->count == count && memcmp(known->frame, frame, size) == 0) {
            *ret = number;
            return GD_OK;
        }
    }
    *ret = stacks->stack_count;
    rc = add_stack(stacks, frame, count, err);
    return rc != GD_OK ? rc : gd_hash_index_add(&stacks->stacks, hash, *ret, err);
}

int snap_stacks_init(struct snap_stacks *stacks, struct gd_err *err)
{
    int rc = GD_OK;

    gd_arena_init(&stacks->arena, MAX_BYTES);
    for (uint32_t i = 0; rc == GD_OK && i < SNAP_WORDS; i++) {
        uint32_t number;

        rc = snap_intern_text(stacks, words[i], strlen(words[i]), &number, err);
    }
    return rc != GD_OK ? rc : add_stack(stacks, NULL, 0, err);
}

void snap_stacks_deinit(struct snap_stacks *stacks)
{
    gd_hash_index_deinit(&stacks->texts);
    gd_hash_index_deinit(&stacks->frames);
    gd_hash_index_deinit(&stacks->stacks);
    free(stacks->text);
    free(stacks->frame);
    free(stacks->stack);
    gd_arena_deinit(&stacks->arena);
}
