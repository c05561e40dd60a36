// SPDX-License-Identifier: GPL-3.0-or-later
/* Walks through the spans of all threads in the order in which they begin. */
#include "dump/trace/trace_nest.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/file_name.h"

#define MODULE     "nn.Module: "
#define EVALUATION "autograd::engine::evaluate_function"
#define NO_CALL    SIZE_MAX

struct context { /* where a span was called */
    uint32_t module, place;
    uint32_t like; /* a node that has its frames; TRACE_NONE: the functions that are running */
};

struct call { /* a running operator or annotation */
    size_t span;
    struct context context;
    enum gd_time_phase phase;
    int64_t inside;  /* nanoseconds in those called */
    int64_t covered; /* the time until which they ran */
    uint32_t callees;
    size_t callee;  /* the last one: its span */
    uint32_t depth; /* operators around it */
};

struct function { /* a running function of the program */
    size_t span;
    uint32_t module, place;
};

struct lane { /* both stacks of a thread */
    struct call *call;
    size_t calls, call_cap;
    struct function *function;
    size_t functions, function_cap;
};

struct forward { /* the operator with which a sequence number began */
    uint32_t sequence, node, module, place;
    uint16_t lane;
    bool ambiguous;
};

struct external {
    uint32_t number, op;
};

struct walk {
    struct trace_run *run;
    struct trace_spans *spans;
    struct lane *lane;
    struct forward *forward;
    size_t forwards, forward_cap;
    struct gd_hash_index by_sequence;
    struct external *external;
    size_t externals, external_cap;
    uint16_t main_lane;
    int64_t slack; /* what times in whole microseconds may be wrong by */
};

static int64_t end_of(const struct trace_span *span)
{
    return span->start + span->duration;
}

static const char *name_of(const struct walk *walk, const struct trace_span *span)
{
    return walk->spans->text[span->name];
}

/* ---- functions of the program ---------------------------------------------------------------- */

static int enter_function(struct walk *walk, struct lane *lane, size_t index, struct gd_err *err)
{
    const struct trace_span *span = &walk->spans->span[index];
    const char *name = name_of(walk, span);
    struct function function = {.span = index};
    int rc = GD_OK;

    if (lane->functions > 0) {
        function = lane->function[lane->functions - 1];
        function.span = index;
    }
    if (gd_starts_with(name, MODULE)) {
        char path[TRACE_MAX_NAME * 2];
        const char *outer = walk->spans->text[function.module];
        int len = snprintf(path, sizeof(path), "%.1000s%s%s", outer, *outer ? "/" : "",
                           name + strlen(MODULE));
        size_t size = (size_t)len < sizeof(path) ? (size_t)len : sizeof(path) - 1;
        rc = trace_text(walk->spans, path, size, &function.module, err);
    } else {
        uint32_t place;
        rc = trace_place_text(walk->spans, name, strlen(name), &place, err);
        function.place = rc == GD_OK && place ? place : function.place;
    }
    if (rc == GD_OK && !gd_grow_list(&lane->function, lane->functions, &lane->function_cap,
                                     sizeof(*lane->function))) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        lane->function[lane->functions++] = function;
    }
    return rc;
}

/* Those that had ended when something begins. */
static void leave_functions(const struct walk *walk, struct lane *lane, int64_t start)
{
    while (lane->functions > 0 &&
           end_of(&walk->spans->span[lane->function[lane->functions - 1].span]) <= start) {
        lane->functions--;
    }
}

/* ---- where an operator was called ------------------------------------------------------------ */

static struct forward *find_forward(struct walk *walk, uint32_t sequence)
{
    uint64_t hash = gd_hash_index_hash(&walk->by_sequence, &sequence, sizeof(sequence));
    size_t at = 0;
    uint32_t number;

    while (gd_hash_index_next(&walk->by_sequence, hash, &at, &number)) {
        if (walk->forward[number].sequence == sequence) {
            return &walk->forward[number];
        }
    }
    return NULL;
}

/* The last operator with a sequence number takes it, so that its backward has it, too; those before
 * it only saw it. */
static int note_forward(struct walk *walk, const struct trace_span *span,
                        const struct context *context, uint32_t node, struct gd_err *err)
{
    struct forward *known = find_forward(walk, span->sequence), *forward = known;
    uint64_t hash;

    if (!known) {
        if (!gd_grow_list(&walk->forward, walk->forwards, &walk->forward_cap,
                          sizeof(*walk->forward))) {
            return gd_fail_nomem(err);
        }
        forward = &walk->forward[walk->forwards];
    }
    *forward = (struct forward){.sequence = span->sequence,
                                .node = node,
                                .module = context->module,
                                .place = context->place,
                                .lane = span->lane,
                                .ambiguous = known && known->lane != span->lane};
    if (known) {
        return GD_OK;
    }
    hash = gd_hash_index_hash(&walk->by_sequence, &span->sequence, sizeof(span->sequence));
    return gd_hash_index_add(&walk->by_sequence, hash, (uint32_t)walk->forwards++, err);
}

/* The stack and modules that the event itself has. */
static int context_by_args(struct walk *walk, const struct trace_span *span,
                           struct context *context, struct gd_err *err)
{
    size_t size, len;
    const char *stack = trace_arg(walk->spans, span->args, TRACE_STACK, &size);
    int rc = GD_OK;

    for (size_t at = 0; rc == GD_OK && at < size && !context->place; at += len + 1) {
        const char *end = memchr(stack + at, ';', size - at);
        len = end ? (size_t)(end - stack) - at : size - at;
        rc = trace_place_text(walk->spans, stack + at, len, &context->place, err);
    }
    stack = trace_arg(walk->spans, span->args, TRACE_MODULES, &size);
    return rc != GD_OK || size == 0
               ? rc
               : trace_module_text(walk->spans, stack, size, &context->module, err);
}

static int find_context(struct walk *walk, const struct lane *lane, const struct trace_span *span,
                        const struct call *outer, enum gd_time_phase phase, struct context *ret,
                        struct gd_err *err)
{
    *ret = (struct context){.like = TRACE_NONE};
    if (phase == GD_TIME_IN_BACKWARD) {
        const struct forward *forward = (span->flags & TRACE_BACKWARD) && span->sequence
                                            ? find_forward(walk, span->sequence)
                                            : NULL;
        if (forward && !forward->ambiguous) {
            *ret = (struct context){forward->module, forward->place, forward->node};
            return GD_OK;
        }
        if (outer && outer->phase == GD_TIME_IN_BACKWARD) {
            *ret = outer->context;
            return GD_OK;
        }
    }
    if (lane->functions > 0) {
        ret->module = lane->function[lane->functions - 1].module;
        ret->place = lane->function[lane->functions - 1].place;
    } else if (outer) {
        *ret = outer->context;
    }
    return context_by_args(walk, span, ret, err);
}

static enum gd_time_phase find_phase(const struct walk *walk, const struct trace_span *span,
                                     const struct call *outer)
{
    const char *name = name_of(walk, span);

    switch (trace_part_of(name, (enum trace_kind)span->kind)) {
    case GD_TIME_DATA: return GD_TIME_IN_OTHER;
    case GD_TIME_FORWARD: return GD_TIME_IN_FORWARD;
    case GD_TIME_BACKWARD: return GD_TIME_IN_BACKWARD;
    case GD_TIME_OPTIMIZER: return GD_TIME_IN_OPTIMIZER;
    default: break;
    }
    if (gd_starts_with(name, EVALUATION) || (span->flags & TRACE_BACKWARD) ||
        gd_starts_with(name, "Gradients/")) {
        return GD_TIME_IN_BACKWARD;
    }
    if ((span->flags & TRACE_FLAT) && strstr(name, "/optimizer-")) {
        return GD_TIME_IN_OPTIMIZER;
    }
    return outer ? outer->phase : GD_TIME_IN_FORWARD;
}

/* ---- operators ------------------------------------------------------------------------------- */

static int add_frames(struct walk *walk, const struct lane *lane, uint32_t number, uint32_t like,
                      uint32_t args, struct gd_err *err)
{
    struct trace_run *run = walk->run;
    struct trace_node *node = &run->node[number];
    size_t size, len;
    const char *stack = trace_arg(walk->spans, args, TRACE_STACK, &size);
    int rc = GD_OK;

    if (like != TRACE_NONE) {
        node->first_frame = run->node[like].first_frame;
        node->frames = run->node[like].frames;
        return GD_OK;
    }
    for (size_t at = 0; rc == GD_OK && at < size; at += len + 1) {
        const char *end = memchr(stack + at, ';', size - at);
        uint32_t text;
        len = end ? (size_t)(end - stack) - at : size - at;
        rc = trace_text(walk->spans, stack + at, len, &text, err);
        rc = rc != GD_OK ? rc : trace_add_frame(run, node, text, err);
    }
    for (size_t i = lane->functions; rc == GD_OK && size == 0 && i-- > 0;) {
        uint32_t name = walk->spans->span[lane->function[i].span].name;
        if (!gd_starts_with(walk->spans->text[name], MODULE)) {
            rc = trace_add_frame(run, node, name, err);
        }
    }
    return rc;
}

static int note_external(struct walk *walk, const struct trace_span *span, struct gd_err *err)
{
    if (!gd_grow_list(&walk->external, walk->externals, &walk->external_cap,
                      sizeof(*walk->external))) {
        return gd_fail_nomem(err);
    }
    walk->external[walk->externals++] = (struct external){span->external, span->op};
    return GD_OK;
}

static int find_op(struct walk *walk, struct trace_span *span, const struct lane *lane,
                   const struct context *context, enum gd_time_phase phase, enum gd_time_lane where,
                   struct gd_err *err)
{
    struct trace_node key = {.name = span->name,
                             .module = context->module,
                             .place = context->place,
                             .phase = phase,
                             .lane = where,
                             .args = span->args,
                             .id = GD_NO_NODE};
    size_t before = walk->run->nodes;
    uint32_t node;
    int rc = trace_node_of(walk->run, &key, &node, err);

    if (rc == GD_OK && walk->run->nodes > before) {
        rc = add_frames(walk, lane, node, context->like, span->args, err);
    }
    rc = rc != GD_OK ? rc : trace_op_of(walk->run, node, span->args, &span->op, err);
    if (rc == GD_OK && span->external && where == GD_LANE_HOST) {
        rc = note_external(walk, span, err);
    }
    if (rc == GD_OK && span->sequence && phase == GD_TIME_IN_FORWARD && where == GD_LANE_HOST) {
        rc = note_forward(walk, span, context, node, err);
    }
    return rc;
}

static struct trace_node *node_of(const struct walk *walk, const struct trace_span *span)
{
    return &walk->run->node[walk->run->op[span->op].node];
}

static void count_call(const struct walk *walk, struct trace_span *span, int sign)
{
    struct trace_node *node = node_of(walk, span);

    node->calls += (uint64_t)(int64_t)sign;
    node->total += sign * (double)span->duration;
    node->self += sign * (double)span->self;
}

/* It has ended: all that it called is known. */
static void leave_call(const struct walk *walk, struct lane *lane)
{
    const struct call *call = &lane->call[--lane->calls];
    struct trace_span *span = &walk->spans->span[call->span];

    span->self = span->duration - call->inside;
    span->self = span->self < 0 ? 0 : span->self; /* rounded */
    if (call->callees == 1) {
        struct trace_span *inner = &walk->spans->span[call->callee];

        if (inner->name == span->name && inner->op != TRACE_NONE) {
            span->self += inner->self;
            count_call(walk, inner, -1);
            inner->op = TRACE_NONE;
        }
    }
    if (span->op != TRACE_NONE) {
        count_call(walk, span, 1);
    }
}

/* Ends the calls that the span is not inside of. */
static void leave_calls(const struct walk *walk, struct lane *lane, const struct trace_span *span)
{
    while (lane->calls > 0) {
        int64_t end = end_of(&walk->spans->span[lane->call[lane->calls - 1].span]);

        if (span && span->start < end && end_of(span) <= end + walk->slack) {
            break;
        }
        leave_call(walk, lane);
    }
}

static bool is_operator(const struct trace_span *span)
{
    return span->kind == TRACE_OP || span->kind == TRACE_RUNTIME;
}

static bool is_collective(const struct walk *walk, const struct trace_span *span)
{
    const char *name = name_of(walk, span);

    return span->kind != TRACE_PYTHON && span->kind != TRACE_KERNEL &&
           (gd_starts_with(name, "gloo:") || gd_starts_with(name, "nccl:") ||
            gd_starts_with(name, "mpi:") || gd_starts_with(name, "ucc:"));
}

/* The outermost operator of a part of the step, in the thread that runs the steps. */
static int note_phase(struct walk *walk, const struct trace_span *span, const struct call *call,
                      struct gd_err *err)
{
    static const enum gd_time parts[GD_TIME_IN_COUNT] = {GD_TIMES, GD_TIME_FORWARD,
                                                         GD_TIME_BACKWARD, GD_TIME_OPTIMIZER};
    enum gd_time part = trace_part_of(name_of(walk, span), (enum trace_kind)span->kind);

    if (part == GD_TIMES && span->kind == TRACE_OP && call->depth == 0) {
        part = parts[call->phase];
    }
    if (part == GD_TIMES || (span->lane != walk->main_lane && part != GD_TIME_BACKWARD)) {
        return GD_OK;
    }
    return trace_add_phase(walk->run, span->start, end_of(span), part, err);
}

static int enter_call(struct walk *walk, struct lane *lane, size_t index, struct gd_err *err)
{
    struct trace_span *span = &walk->spans->span[index];
    struct call *outer, call = {.span = index, .covered = INT64_MIN};
    int rc = GD_OK;

    leave_calls(walk, lane, span);
    outer = lane->calls ? &lane->call[lane->calls - 1] : NULL;
    call.phase = find_phase(walk, span, outer);
    rc = find_context(walk, lane, span, outer, call.phase, &call.context, err);
    if (rc == GD_OK && is_operator(span)) {
        rc = find_op(walk, span, lane, &call.context, call.phase, GD_LANE_HOST, err);
    }
    if (outer) {
        int64_t from = span->start > outer->covered ? span->start : outer->covered;

        outer->inside += end_of(span) > from ? end_of(span) - from : 0;
        outer->covered = end_of(span) > outer->covered ? end_of(span) : outer->covered;
        outer->callees++;
        outer->callee = index;
        call.depth = outer->depth + is_operator(&walk->spans->span[outer->span]);
    }
    rc = rc != GD_OK ? rc : note_phase(walk, span, &call, err);
    if (rc == GD_OK &&
        !gd_grow_list(&lane->call, lane->calls, &lane->call_cap, sizeof(*lane->call))) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        lane->call[lane->calls++] = call;
    }
    return rc;
}

/* Nothing is inside of it: a kernel, or what may end in another thread. */
static int add_alone(struct walk *walk, struct trace_span *span, const struct context *context,
                     enum gd_time_phase phase, enum gd_time_lane where, struct gd_err *err)
{
    static const struct lane nothing;
    int rc = find_op(walk, span, &nothing, context, phase, where, err);

    span->self = span->duration;
    if (where == GD_LANE_COMMUNICATION) {
        span->kind = TRACE_COMMUNICATION;
        walk->run->has_communication = true;
    }
    if (rc == GD_OK) {
        count_call(walk, span, 1);
    }
    return rc;
}

static int add_flat(struct walk *walk, struct trace_span *span, const struct context *context,
                    struct gd_err *err)
{
    struct call call = {.phase = find_phase(walk, span, NULL)};
    int rc = add_alone(walk, span, context, call.phase, GD_LANE_HOST, err);

    return rc != GD_OK ? rc : note_phase(walk, span, &call, err);
}

static int take_span(struct walk *walk, size_t index, struct gd_err *err)
{
    struct trace_span *span = &walk->spans->span[index];
    struct lane *lane = &walk->lane[span->lane];
    struct context nowhere = {.like = TRACE_NONE};

    leave_functions(walk, lane, span->start);
    if (is_collective(walk, span)) {
        return add_alone(walk, span, &nowhere, GD_TIME_IN_OTHER, GD_LANE_COMMUNICATION, err);
    }
    if (span->flags & TRACE_FLAT) {
        return add_flat(walk, span, &nowhere, err);
    }
    switch (span->kind) {
    case TRACE_PYTHON: return enter_function(walk, lane, index, err);
    case TRACE_KERNEL:
    case TRACE_COPY:
    case TRACE_COMMUNICATION: return GD_OK;
    default: return enter_call(walk, lane, index, err);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int order_externals(const void *a, const void *b)
{
    const struct external *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* The operator that launched it; NULL: unknown. */
static struct trace_node *launcher_of(const struct walk *walk, const struct trace_span *span)
{
    struct external key = {.number = span->external};
    const struct external *found =
        span->external && walk->externals
            ? bsearch(&key, walk->external, walk->externals, sizeof(key), order_externals)
            : NULL;

    return found ? &walk->run->node[walk->run->op[found->op].node] : NULL;
}

static int take_kernel(struct walk *walk, struct trace_span *span, struct gd_err *err)
{
    struct trace_node *launcher = launcher_of(walk, span);
    struct context context = {.like = TRACE_NONE};
    enum gd_time_phase phase = GD_TIME_IN_OTHER;

    if (launcher) {
        context = (struct context){launcher->module, launcher->place,
                                   (uint32_t)(launcher - walk->run->node)};
        phase = launcher->phase;
        launcher->device += (double)span->duration;
    }
    return add_alone(walk, span, &context, phase,
                     span->kind == TRACE_COMMUNICATION ? GD_LANE_COMMUNICATION : GD_LANE_DEVICE,
                     err);
}

static int take_kernels(struct walk *walk, struct gd_err *err)
{
    int rc = GD_OK;

    if (walk->externals > 0) {
        qsort(walk->external, walk->externals, sizeof(*walk->external), order_externals);
    }
    for (size_t i = 0; rc == GD_OK && i < walk->spans->count; i++) {
        struct trace_span *span = &walk->spans->span[i];

        if (span->op == TRACE_NONE && (span->kind == TRACE_KERNEL || span->kind == TRACE_COPY ||
                                       span->kind == TRACE_COMMUNICATION)) {
            rc = take_kernel(walk, span, err);
        }
    }
    return rc;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The thread of the steps or, without them, the one with most operators. */
static int find_main_lane(struct walk *walk, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_free) size_t *count = calloc(walk->spans->lanes + 1, sizeof(*count));

    if (!count) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < walk->spans->count; i++) {
        const struct trace_span *span = &walk->spans->span[i];

        if (span->kind == TRACE_STEP) {
            walk->main_lane = span->lane;
            return GD_OK;
        }
        count[span->lane] += span->kind == TRACE_OP;
        if (count[span->lane] > count[walk->main_lane]) {
            walk->main_lane = span->lane;
        }
    }
    return GD_OK;
}

static int walk_spans(struct walk *walk, struct gd_err *err)
{
    struct trace_run *run = walk->run;
    int rc = find_main_lane(walk, err);

    for (size_t i = 0; rc == GD_OK && i < walk->spans->count; i++) {
        const struct trace_span *span = &walk->spans->span[i];

        run->start = i == 0 ? span->start : run->start;
        run->end = i == 0 || end_of(span) > run->end ? end_of(span) : run->end;
        rc = take_span(walk, i, err);
    }
    for (size_t i = 0; i < walk->spans->lanes; i++) {
        leave_calls(walk, &walk->lane[i], NULL);
    }
    return rc != GD_OK ? rc : take_kernels(walk, err);
}

int trace_run_analyse(struct trace_run *run, struct gd_err *err)
{
    struct walk walk = {.run = run, .spans = &run->spans, .slack = run->spans.has_parts ? 0 : 1000};
    uint32_t empty;
    int rc = trace_text(&run->spans, "", 0, &empty, err);

    walk.lane = calloc(run->spans.lanes + 1, sizeof(*walk.lane));
    rc = rc != GD_OK ? rc : walk.lane ? walk_spans(&walk, err) : gd_fail_nomem(err);
    for (size_t i = 0; walk.lane && i < run->spans.lanes; i++) {
        free(walk.lane[i].call);
        free(walk.lane[i].function);
    }
    free(walk.lane);
    free(walk.forward);
    free(walk.external);
    gd_hash_index_deinit(&walk.by_sequence);
    return rc != GD_OK ? rc : trace_find_steps(run, err);
}
