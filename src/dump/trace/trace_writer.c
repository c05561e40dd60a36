// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/trace/trace_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "engine/utf8.h"

#define PIECE     ((size_t)1 << 16)
#define EVERY     4096 /* events between two calls of go_on */
#define TRACK     1    /* of steps; lanes follow */
#define MAX_STACK 16

struct writing {
    FILE *file;
    z_stream *packer; /* NULL: plain */
    struct gd_buf text;
    bool any;      /* an event was written */
    int64_t shift; /* of the session: nanoseconds that its times are later than the file's */
    int process;
    uint64_t events;
    struct trace_written done;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static int put_bytes(struct writing *out, const void *data, size_t size, struct gd_err *err)
{
    return fwrite(data, 1, size, out->file) == size
               ? GD_OK
               : gd_fail_errno(err, GD_EIO, "cannot write the trace");
}

static int pack_bytes(struct writing *out, int flush, struct gd_err *err)
{
    unsigned char piece[PIECE / 4];
    z_stream *z = out->packer;
    int rc = GD_OK;

    z->next_in = (unsigned char *)(uintptr_t)gd_buf_text(&out->text);
    z->avail_in = (uInt)out->text.len;
    do {
        z->next_out = piece;
        z->avail_out = sizeof(piece);
        deflate(z, flush);
        rc = put_bytes(out, piece, sizeof(piece) - z->avail_out, err);
    } while (rc == GD_OK && z->avail_out == 0);
    return rc;
}

static int flush_text(struct writing *out, bool last, struct gd_err *err)
{
    int rc;

    if (out->text.failed) {
        return gd_fail_nomem(err);
    }
    rc = out->packer ? pack_bytes(out, last ? Z_FINISH : Z_NO_FLUSH, err)
                     : put_bytes(out, gd_buf_text(&out->text), out->text.len, err);
    gd_buf_clear(&out->text);
    return rc;
}

/* In quotes. Bytes that are not UTF-8 become the replacement character. */
static void put_string(struct gd_buf *out, const char *text)
{
    uint32_t code;

    gd_buf_putc(out, '"');
    while (*text) {
        size_t len = (unsigned char)*text < 0x80 ? 1 : gd_utf8_decode(text, &code);

        if (len == 0) {
            gd_buf_puts(out, "\\ufffd");
            len = 1;
        } else if (len > 1) {
            gd_buf_add(out, text, len);
        } else if (*text == '"' || *text == '\\') {
            gd_buf_printf(out, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            gd_buf_printf(out, "\\u%04x", (unsigned char)*text);
        } else {
            gd_buf_putc(out, *text);
        }
        text += len;
    }
    gd_buf_putc(out, '"');
}

/* Nanoseconds as microseconds, exactly. */
static void put_time(struct gd_buf *out, const char *key, int64_t time)
{
    uint64_t size = time < 0 ? -(uint64_t)time : (uint64_t)time;

    gd_buf_printf(out, ",\"%s\":%s%" PRIu64 ".%03" PRIu64, key, time < 0 ? "-" : "", size / 1000,
                  size % 1000);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct gd_buf *begin_event(struct writing *out, const char *phase, const char *category,
                                  const char *name, unsigned track)
{
    gd_buf_printf(&out->text,
                  "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u,\"name\":", out->any ? "," : "", phase,
                  out->process, track);
    out->any = true;
    out->events++;
    put_string(&out->text, name);
    if (category) {
        gd_buf_printf(&out->text, ",\"cat\":\"%s\"", category);
    }
    return &out->text;
}

static void name_track(struct writing *out, const char *what, unsigned track, const char *name)
{
    struct gd_buf *text = begin_event(out, "M", NULL, what, track);

    gd_buf_puts(text, ",\"args\":{\"name\":");
    put_string(text, name);
    gd_buf_puts(text, "}}");
    text = begin_event(
        out, "M", NULL,
        strcmp(what, "process_name") == 0 ? "process_sort_index" : "thread_sort_index", track);
    gd_buf_printf(text, ",\"args\":{\"sort_index\":%u}}", track);
}

static void put_member(struct gd_buf *text, bool *any, const char *key, const char *value)
{
    gd_buf_puts(text, *any ? "," : "");
    put_string(text, key);
    gd_buf_putc(text, ':');
    put_string(text, value);
    *any = true;
}

/* A stack as Kineto writes it, innermost first. */
static void put_stack(struct gd_buf *text, struct gd_graph *graph, gd_node_id node)
{
    uint32_t count;
    const struct gd_frame *frames = gd_graph_stack(graph, node, &count);
    char stack[4096];
    size_t used = 0;

    for (uint32_t i = 0; i < count && i < MAX_STACK && used < sizeof(stack); i++) {
        if (frames[i].line > 0 && !frames[i].is_title) {
            int len = snprintf(stack + used, sizeof(stack) - used, "%s%.200s(%u): %.100s",
                               used ? ";" : "", frames[i].file, frames[i].line, frames[i].function);
            used += (size_t)len < sizeof(stack) - used ? (size_t)len : sizeof(stack) - used;
        }
    }
    if (used > 0 && used < sizeof(stack)) {
        bool any = true;
        put_member(text, &any, "Call stack", stack);
    }
}

static void put_shape(struct gd_buf *text, bool *any, const struct gd_output *output)
{
    gd_buf_puts(text, *any ? ",[" : "[");
    for (int i = 0; i < output->shape.rank; i++) {
        gd_buf_printf(text, "%s%lld", i ? "," : "", (long long)output->shape.dim[i]);
    }
    gd_buf_putc(text, ']');
    *any = true;
}

/* Shapes of the inputs: as the trace had them, or of the nodes they come from. */
static void put_inputs(struct gd_buf *text, const struct gd_graph *graph,
                       const struct gd_node_info *info)
{
    const char *shapes = gd_node_attr(info, "input shapes"),
               *types = gd_node_attr(info, "input types");
    struct gd_output output;
    bool any = false;

    if (shapes && strspn(shapes, "[]0123456789,") == strlen(shapes) && gd_ends_with(shapes, "]")) {
        gd_buf_printf(text, ",\"Input Dims\":%s", shapes);
    } else if (!shapes) {
        gd_buf_puts(text, ",\"Input Dims\":[");
        for (uint32_t i = 0; i < info->input_count; i++) {
            if (!info->inputs[i].control &&
                gd_graph_output(graph, info->inputs[i].node, info->inputs[i].slot, &output)) {
                put_shape(text, &any, &output);
            }
        }
        gd_buf_putc(text, ']');
    }
    if (types) {
        any = true;
        put_member(text, &any, "Input type", types);
    }
}

static void put_operator(struct writing *out, const struct gd_session *session,
                         const struct gd_timeline_span *span)
{
    struct gd_node_info info;
    struct gd_scope_info scope = {.name = ""};
    struct gd_buf *text;
    bool any = false;
    const char *on;

    if (!gd_graph_node(session->graph, span->what, &info)) {
        return;
    }
    on = gd_node_attr(&info, "runs on");
    text = begin_event(out, "X", on && strcmp(on, "host") != 0 ? "kernel" : "cpu_op", info.type,
                       TRACK + 1U + span->lane);
    put_time(text, "ts", gd_time_add(span->start, out->shift));
    put_time(text, "dur", span->duration);
    gd_buf_puts(text, ",\"args\":{");
    put_member(text, &any, "node", info.name);
    if (span->step >= 0) {
        gd_buf_printf(text, ",\"step\":\"%lld\"", (long long)span->step);
    }
    gd_graph_scope(session->graph, info.scope, &scope);
    if (*scope.name) {
        put_member(text, &any, "scope", scope.name);
    }
    if (gd_starts_with(info.name, "backward/")) {
        gd_buf_puts(text, ",\"Fwd thread id\":1");
    }
    put_inputs(text, session->graph, &info);
    put_stack(text, session->graph, span->what);
    gd_buf_puts(text, "}}");
    out->done.operators++;
}

static void put_span(struct writing *out, const struct gd_session *session,
                     const struct gd_timeline_span *span)
{
    char name[40];
    struct gd_buf *text;

    switch (span->kind) {
    case GD_ON_STEP:
    case GD_ON_PART:
        snprintf(name, sizeof(name), "ProfilerStep#%lld", (long long)span->step);
        text = begin_event(out, "X", "user_annotation",
                           span->kind == GD_ON_STEP ? name : gd_time_name(span->what), TRACK);
        put_time(text, "ts", gd_time_add(span->start, out->shift));
        put_time(text, "dur", span->duration);
        gd_buf_putc(text, '}');
        out->done.steps += span->kind == GD_ON_STEP;
        break;
    case GD_ON_METRIC:
        if (span->what < session->timeline->metrics && isfinite(span->value)) {
            text = begin_event(out, "C", NULL, session->timeline->metric[span->what], TRACK);
            put_time(text, "ts", gd_time_add(span->start, out->shift));
            gd_buf_printf(text, ",\"args\":{\"value\":%.17g}}", span->value);
            out->done.metrics++;
        }
        break;
    default: put_operator(out, session, span);
    }
}

/* ---- sessions -------------------------------------------------------------------------------- */

static int put_spans(struct writing *out, const struct gd_session *session,
                     const struct gd_timeline_span *span, size_t count,
                     bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        put_span(out, session, &span[i]);
        if (out->text.len >= PIECE) {
            rc = flush_text(out, false, err);
        }
        if (rc == GD_OK && go_on && out->events % EVERY == 0 && !go_on(ctx, out->events)) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    return rc;
}

static int put_session(struct writing *out, const struct gd_session *session,
                       bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_err *err)
{
    const struct gd_timeline *timeline = session->timeline;
    GD_CLEANUP(gd_cleanup_free) struct gd_timeline_span *copy = NULL;
    size_t count = timeline->count;
    char name[400];

    out->process = session->peer.rank;
    snprintf(name, sizeof(name), "%.250s rank %d", session->peer.program, session->peer.rank);
    name_track(out, "process_name", TRACK, name);
    name_track(out, "thread_name", TRACK, "steps");
    for (size_t i = 0; i < timeline->lanes; i++) {
        name_track(out, "thread_name", TRACK + 1U + (unsigned)i, timeline->lane[i]);
    }
    out->done.dropped += timeline->dropped;
    out->done.laid |= !timeline->is_measured;
    if (timeline->is_measured || count == 0) {
        return put_spans(out, session, timeline->span, count, go_on, ctx, err);
    }
    copy = malloc(count * sizeof(*copy)); /* the training may run, and add others meanwhile */
    if (!copy) {
        return gd_fail_nomem(err);
    }
    memcpy(copy, timeline->span, count * sizeof(*copy));
    return put_spans(out, session, copy, count, go_on, ctx, err);
}

/* Small times: a double of microseconds since 1970 has no nanoseconds. */
static int64_t first_time(struct gd_session *const *sessions, size_t count)
{
    int64_t first = 0;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        const struct gd_timeline *timeline = sessions[i]->timeline;

        for (size_t k = 0; timeline && k < timeline->count; k++) {
            int64_t at = gd_time_add(timeline->base, timeline->span[k].start);
            first = !any || at < first ? at : first;
            any = true;
        }
    }
    return first;
}

static void put_head(struct writing *out, struct gd_session *const *sessions, size_t count,
                     int64_t first)
{
    const struct gd_peer *peer = &sessions[0]->peer;

    gd_buf_printf(&out->text,
                  "{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%lld,"
                  "\"writer\":\"gradb %s\",\"framework\":",
                  (long long)first, GRADB_VERSION);
    put_string(&out->text, peer->framework);
    if (count == 1 && peer->world_size > 1) {
        gd_buf_printf(&out->text, ",\"distributedInfo\":{\"rank\":%d,\"world_size\":%d}",
                      peer->rank, peer->world_size);
    }
    gd_buf_puts(&out->text, ",\"traceEvents\":[");
}

int trace_write(FILE *file, bool packed, struct gd_session *const *sessions, size_t count,
                bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct trace_written *ret,
                struct gd_err *err)
{
    z_stream packer = {.next_in = NULL};
    struct writing out = {
        .file = file, .packer = packed ? &packer : NULL, .text = GD_BUF_INIT(SIZE_MAX)};
    int64_t first = first_time(sessions, count);
    int rc = GD_OK;

    if (packed && deflateInit2(&packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                               Z_DEFAULT_STRATEGY) != Z_OK) {
        return gd_fail_nomem(err);
    }
    put_head(&out, sessions, count, first);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        if (sessions[i]->timeline) {
            out.shift = gd_time_sub(sessions[i]->timeline->base, first);
            rc = put_session(&out, sessions[i], go_on, ctx, err);
        }
    }
    gd_buf_puts(&out.text, "\n]}\n");
    rc = rc != GD_OK ? rc : flush_text(&out, true, err);
    if (packed) {
        deflateEnd(&packer);
    }
    gd_buf_deinit(&out.text);
    *ret = out.done;
    return rc;
}
