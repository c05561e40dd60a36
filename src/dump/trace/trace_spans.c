// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/trace/trace_spans.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "dump/io/file_name.h"

#define MAX_COUNTERS 1000000
#define MAX_OPEN     100000
#define SEPARATOR    '\x1f'

void trace_spans_deinit(struct trace_spans *spans)
{
    free(spans->span);
    free(spans->lane);
    free(spans->counter);
    free((void *)spans->text);
    free(spans->open);
    gd_arena_deinit(&spans->arena);
    gd_hash_index_deinit(&spans->by_text);
    gd_buf_deinit(&spans->scratch);
    *spans = (struct trace_spans){.rank = -1};
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int add_text(struct trace_spans *spans, const char *text, size_t size, uint64_t hash,
                    struct gd_err *err)
{
    const char *copy;

    if (spans->arena.max == 0) {
        gd_arena_init(&spans->arena, TRACE_MAX_TEXT);
    }
    if (!gd_grow_list(&spans->text, spans->texts, &spans->text_cap, sizeof(*spans->text))) {
        return gd_fail_nomem(err);
    }
    copy = gd_arena_strndup(&spans->arena, text, size);
    if (!copy) {
        return gd_fail(err, GD_ELIMIT, "more than %zu MiB of names and shapes",
                       TRACE_MAX_TEXT >> 20);
    }
    if (gd_hash_index_add(&spans->by_text, hash, (uint32_t)spans->texts, err) != GD_OK) {
        return GD_ENOMEM;
    }
    spans->text[spans->texts++] = copy;
    return GD_OK;
}

int trace_text(struct trace_spans *spans, const char *text, size_t size, uint32_t *ret,
               struct gd_err *err)
{
    uint64_t hash;
    size_t at = 0;
    int rc;

    if (spans->texts == 0 && size > 0) {
        uint32_t empty;
        rc = trace_text(spans, "", 0, &empty, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    hash = gd_hash_index_hash(&spans->by_text, text, size);
    while (gd_hash_index_next(&spans->by_text, hash, &at, ret)) {
        if (strncmp(spans->text[*ret], text, size) == 0 && spans->text[*ret][size] == '\0') {
            return GD_OK;
        }
    }
    rc = add_text(spans, text, size, hash, err);
    *ret = (uint32_t)spans->texts - 1;
    return rc;
}

static int keep_args(struct trace_spans *spans, const struct trace_event *event, uint32_t *ret,
                     struct gd_err *err)
{
    struct gd_buf *text = &spans->scratch;

    if (!*event->dims && !*event->types && !*event->stack && !*event->modules) {
        return trace_text(spans, "", 0, ret, err);
    }
    text->max = SIZE_MAX;
    gd_buf_clear(text);
    gd_buf_printf(text, "%s%c%s%c%s%c%s", event->dims, SEPARATOR, event->types, SEPARATOR,
                  event->stack, SEPARATOR, event->modules);
    return text->failed ? gd_fail_nomem(err)
                        : trace_text(spans, gd_buf_text(text), text->len, ret, err);
}

const char *trace_arg(const struct trace_spans *spans, uint32_t args, enum trace_arg which,
                      size_t *size)
{
    const char *at = spans->text[args];

    for (int i = 0; i < (int)which; i++) {
        const char *end = strchr(at, SEPARATOR);
        if (!end) {
            *size = 0;
            return "";
        }
        at = end + 1;
    }
    *size = strcspn(at, (char[]){SEPARATOR, '\0'});
    return at;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

int trace_lane_of(struct trace_spans *spans, const char *process, const char *thread, uint16_t *ret,
                  struct gd_err *err)
{
    struct trace_lane lane = {.process = 0};
    int rc = trace_text(spans, process, strlen(process), &lane.process, err);

    rc = rc != GD_OK ? rc : trace_text(spans, thread, strlen(thread), &lane.thread, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; i < spans->lanes; i++) {
        if (spans->lane[i].process == lane.process && spans->lane[i].thread == lane.thread) {
            *ret = (uint16_t)i;
            return GD_OK;
        }
    }
    if (spans->lanes == TRACE_MAX_LANES) {
        return gd_fail(err, GD_ELIMIT, "more than %d threads and streams", TRACE_MAX_LANES);
    }
    if (!gd_grow_list(&spans->lane, spans->lanes, &spans->lane_cap, sizeof(*spans->lane))) {
        return gd_fail_nomem(err);
    }
    *ret = (uint16_t)spans->lanes;
    spans->lane[spans->lanes++] = lane;
    return GD_OK;
}

static int name_lane(struct trace_spans *spans, const struct trace_event *event, struct gd_err *err)
{
    bool is_thread = strcmp(event->name, "thread_name") == 0;
    uint16_t lane;
    uint32_t label;
    int rc;

    if (!is_thread && strcmp(event->name, "process_name") != 0) {
        return GD_OK;
    }
    rc = trace_lane_of(spans, event->process, event->thread, &lane, err);
    rc = rc != GD_OK ? rc : trace_text(spans, event->label, strlen(event->label), &label, err);
    if (rc == GD_OK && is_thread) {
        spans->lane[lane].thread_label = label;
    } else if (rc == GD_OK) {
        spans->lane[lane].process_label = label;
    }
    return rc;
}

/* A process is named once, for one of its lanes. */
static uint32_t process_label(const struct trace_spans *spans, uint16_t lane)
{
    for (size_t i = 0; i < spans->lanes; i++) {
        if (spans->lane[i].process == spans->lane[lane].process && spans->lane[i].process_label) {
            return spans->lane[i].process_label;
        }
    }
    return 0;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

struct kind_name {
    const char *name;
    enum trace_kind kind;
};

static enum trace_kind find_kind(const struct kind_name *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(names[i].name, name) == 0) {
            return names[i].kind;
        }
    }
    return TRACE_UNKNOWN;
}

/* Names of collectives as the libraries' kernels have them. */
static bool is_collective(const char *name)
{
    return gd_starts_with(name, "nccl") || gd_starts_with(name, "hcom_") ||
           gd_starts_with(name, "gloo:") || gd_starts_with(name, "mpi:");
}

static enum trace_kind kind_of(const struct trace_event *event)
{
    static const struct kind_name names[] = {
        {"cpu_op", TRACE_OP},
        {"operator", TRACE_OP},
        {"user_annotation", TRACE_ANNOTATION},
        {"python_function", TRACE_PYTHON},
        {"cuda_runtime", TRACE_RUNTIME},
        {"cuda_driver", TRACE_RUNTIME},
        {"runtime", TRACE_RUNTIME},
        {"privateuse1_runtime", TRACE_RUNTIME},
        {"privateuse1_driver", TRACE_RUNTIME},
        {"kernel", TRACE_KERNEL},
        {"gpu_memcpy", TRACE_COPY},
        {"gpu_memset", TRACE_COPY},
        {"memcpy", TRACE_COPY},
        {"memset", TRACE_COPY},
        {"communication", TRACE_COMMUNICATION},
        {"gpu_user_annotation", TRACE_LEFT_OUT},
        {"cpu_instant_event", TRACE_LEFT_OUT},
        {"overhead", TRACE_LEFT_OUT},
        {"trace", TRACE_LEFT_OUT},
    };
    enum trace_kind kind = find_kind(names, sizeof(names) / sizeof(names[0]), event->category);

    if ((kind == TRACE_ANNOTATION || kind == TRACE_OP || kind == TRACE_UNKNOWN) &&
        gd_starts_with(event->name, "ProfilerStep#")) {
        return TRACE_STEP;
    }
    if (kind == TRACE_UNKNOWN && (gd_starts_with(event->name, "Optimizer.") ||
                                  gd_starts_with(event->name, "enumerate(DataLoader)"))) {
        return TRACE_ANNOTATION;
    }
    return kind == TRACE_KERNEL && is_collective(event->name) ? TRACE_COMMUNICATION : kind;
}

/* Of an event without a category: by the name of its process, as MindSpore and CANN give them. */
static enum trace_kind kind_by_process(const char *label, const char *name)
{
    static const struct kind_name names[] = {
        {"Scope Layer", TRACE_LEFT_OUT},        {"Overlap Analysis", TRACE_LEFT_OUT},
        {"Ascend Hardware", TRACE_KERNEL},      {"HCCL", TRACE_COMMUNICATION},
        {"Communication", TRACE_COMMUNICATION}, {"CANN", TRACE_RUNTIME},
        {"AI Core Freq", TRACE_LEFT_OUT},       {"Python GC", TRACE_LEFT_OUT},
    };
    enum trace_kind kind = find_kind(names, sizeof(names) / sizeof(names[0]), label);

    if (kind == TRACE_COMMUNICATION && !gd_starts_with(name, "hcom_")) {
        return TRACE_LEFT_OUT; /* a part of a collective */
    }
    return kind == TRACE_UNKNOWN ? TRACE_OP : kind;
}

/* ---- reading --------------------------------------------------------------------------------- */

int trace_add_span(struct trace_spans *spans, const struct trace_span *span, struct gd_err *err)
{
    if (spans->count == TRACE_MAX_SPANS) {
        spans->dropped++;
        return GD_OK;
    }
    if (!gd_grow_list(&spans->span, spans->count, &spans->cap, sizeof(*spans->span))) {
        return gd_fail_nomem(err);
    }
    spans->span[spans->count] = *span;
    spans->span[spans->count].order = (uint32_t)spans->count;
    spans->count++;
    return GD_OK;
}

/* "<built-in ...>" says neither a place nor a module; torch.profiler does not count the others
 * either. */
static bool is_wanted(enum trace_kind kind, const struct trace_event *event)
{
    static const char *const own[] = {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "aten::is_leaf",
        "aten::output_nr",
        "profiler::_record_function_enter_new",
        "aten::_version",
        "profiler::_record_function_exit",
    };

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(event->name, own[i]) == 0) {
            return false;
        }
    }
    return kind != TRACE_LEFT_OUT && event->name[0] &&
           !(kind == TRACE_PYTHON && gd_starts_with(event->name, "<built-in"));
}

static int add_event(struct trace_spans *spans, const struct trace_event *event, struct gd_err *err)
{
    enum trace_kind kind = kind_of(event);
    struct trace_span span = {.start = event->start,
                              .duration = event->duration,
                              .op = TRACE_NONE,
                              .kind = (uint8_t)kind,
                              .flags = (event->is_backward ? TRACE_BACKWARD : 0) |
                                       (event->phase == 'B' ? TRACE_BEGUN : 0)};
    int rc;

    if (!is_wanted(kind, event)) {
        return GD_OK;
    }
    if (event->bad_time || !event->has_start || !trace_is_possible(event->start, event->duration) ||
        (event->phase == 'X' && !event->has_duration)) {
        spans->bad_times++;
        return GD_OK;
    }
    spans->has_parts |= event->start % 1000 != 0 || event->duration % 1000 != 0;
    span.external = event->external < TRACE_NONE ? (uint32_t)event->external : 0;
    span.sequence = event->sequence < TRACE_NONE ? (uint32_t)event->sequence : 0;
    rc = trace_lane_of(spans, event->process, event->thread, &span.lane, err);
    rc = rc != GD_OK ? rc : trace_text(spans, event->name, strlen(event->name), &span.name, err);
    rc = rc != GD_OK ? rc : keep_args(spans, event, &span.args, err);
    if (rc == GD_OK && event->phase == 'B' && spans->count < TRACE_MAX_SPANS) {
        if (spans->open_count == MAX_OPEN ||
            !gd_grow_list(&spans->open, spans->open_count, &spans->open_cap,
                          sizeof(*spans->open))) {
            return gd_fail(err, GD_ELIMIT, "more than %d events began and did not end", MAX_OPEN);
        }
        spans->open[spans->open_count++] = (uint32_t)spans->count;
    }
    return rc != GD_OK ? rc : trace_add_span(spans, &span, err);
}

/* Ends the last span that began in its lane. */
static int end_event(struct trace_spans *spans, const struct trace_event *event, struct gd_err *err)
{
    uint16_t lane;
    int rc = trace_lane_of(spans, event->process, event->thread, &lane, err);

    for (size_t i = spans->open_count; rc == GD_OK && i-- > 0;) {
        struct trace_span *span = &spans->span[spans->open[i]];

        if (span->lane == lane && event->has_start && event->start >= span->start &&
            trace_is_possible(event->start, 0)) {
            span->duration = event->start - span->start;
            span->flags &= (uint8_t)~TRACE_BEGUN;
            memmove(&spans->open[i], &spans->open[i + 1],
                    (spans->open_count - i - 1) * sizeof(*spans->open));
            spans->open_count--;
            return GD_OK;
        }
    }
    spans->unpaired++;
    return rc;
}

static int add_counter(struct trace_spans *spans, const struct trace_event *event,
                       struct gd_err *err)
{
    struct trace_counter counter = {.at = event->start, .value = event->value};
    int rc;

    if (!event->has_start || !event->has_value || spans->counters == MAX_COUNTERS) {
        return GD_OK;
    }
    rc = trace_text(spans, event->name, strlen(event->name), &counter.name, err);
    if (rc == GD_OK && !gd_grow_list(&spans->counter, spans->counters, &spans->counter_cap,
                                     sizeof(*spans->counter))) {
        return gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        spans->counter[spans->counters++] = counter;
    }
    return rc;
}

static int on_event(void *ctx, const struct trace_event *event, struct gd_err *err)
{
    switch (event->phase) {
    case 'X':
    case 'B': return add_event(ctx, event, err);
    case 'E': return end_event(ctx, event, err);
    case 'M': return name_lane(ctx, event, err);
    case 'C': return add_counter(ctx, event, err);
    default: return GD_OK;
    }
}

static int on_fact(void *ctx, const char *name, const char *value, struct gd_err *err)
{
    struct trace_spans *spans = ctx;
    uint64_t number;

    (void)err;
    if (strcmp(name, "schemaVersion") == 0) {
        spans->is_kineto = true;
    } else if (strcmp(name, "framework") == 0) {
        snprintf(spans->framework, sizeof(spans->framework), "%.63s", value);
    } else if (strcmp(name, "baseTimeNanoseconds") == 0 && gd_json_unsigned(value, &number)) {
        spans->base = number < (UINT64_C(1) << 62) ? (int64_t)number : 0;
    } else if (strcmp(name, "distributedInfo.rank") == 0 && gd_json_unsigned(value, &number)) {
        spans->rank = number < INT32_MAX ? (int64_t)number : -1;
    } else if (strcmp(name, "distributedInfo.world_size") == 0 &&
               gd_json_unsigned(value, &number)) {
        spans->world_size = number < INT32_MAX ? (int64_t)number : 0;
    } else if (strcmp(name, "distributedInfo.backend") == 0) {
        snprintf(spans->backend, sizeof(spans->backend), "%.31s", value);
    } else if (strcmp(name, "host_name") == 0) {
        snprintf(spans->host, sizeof(spans->host), "%.63s", value);
    }
    return GD_OK;
}

static int order_spans(const void *a, const void *b)
{
    const struct trace_span *x = a, *y = b;

    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    if (x->duration != y->duration) {
        return x->duration > y->duration ? -1 : 1;
    }
    return x->order < y->order ? -1 : 1;
}

void trace_spans_sort(struct trace_spans *spans)
{
    size_t kept = 0;

    for (size_t i = 0; i < spans->count; i++) {
        struct trace_span *span = &spans->span[i];

        if (span->flags & TRACE_BEGUN) {
            spans->unpaired++;
            continue;
        }
        if (span->kind == TRACE_UNKNOWN) {
            const char *label = spans->text[process_label(spans, span->lane)];

            span->kind = (uint8_t)kind_by_process(label, spans->text[span->name]);
            span->flags |= strcmp(label, "CPU OP") == 0 ? TRACE_FLAT : 0;
        }
        if (span->kind != TRACE_LEFT_OUT) {
            spans->span[kept++] = *span;
        }
    }
    spans->count = kept;
    spans->open_count = 0;
    if (spans->count > 0) {
        qsort(spans->span, spans->count, sizeof(*spans->span), order_spans);
    }
}

int trace_spans_read(struct trace_spans *spans, struct gd_disk *disk,
                     bool (*go_on)(void *ctx, uint64_t done), void *ctx, uint64_t *cut,
                     struct gd_err *err)
{
    struct trace_stream stream = {.disk = disk, .go_on = go_on, .ctx = ctx};
    struct trace_reader reader = {.on_event = on_event, .on_fact = on_fact, .ctx = spans};
    uint64_t events = 0;
    int rc = trace_stream_open(&stream, err);

    *cut = 0;
    spans->rank = -1;
    if (rc != GD_OK) {
        return rc;
    }
    rc = trace_events_read(&stream, &reader, &events, err);
    if (rc == GD_EPROTO && trace_stream_is_cut(&stream, err) && events > 0) {
        *cut = trace_stream_is_open_list(&stream) ? 0 : gd_disk_size(disk);
        rc = GD_OK;
    } else if (stream.err.code != GD_OK) {
        rc = gd_fail(err, stream.err.code, "%s", stream.err.text);
    }
    trace_stream_close(&stream);
    if (rc == GD_OK) {
        trace_spans_sort(spans);
    }
    return rc;
}
