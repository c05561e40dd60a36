// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/trace/trace_events.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- times ----------------------------------------------------------------------------------- */

/* With an exponent. */
static bool parse_real(const char *text, int64_t *ret)
{
    char *end;
    double value = strtod(text, &end) * 1000;

    if (end == text || *end || !(fabs(value) < (double)TRACE_MAX_TIME)) {
        return false;
    }
    *ret = llround(value);
    return true;
}

/* Exact, unlike a double, which has no nanoseconds left in the time since 1970. */
bool trace_time_parse(const char *text, int64_t *ret)
{
    const char *at = text + (*text == '-');
    int64_t value = 0, part = 0;
    int digits = 0, decimals = 0;

    for (; isdigit((unsigned char)*at) && digits < 17; at++, digits++) {
        value = value * 10 + (*at - '0');
    }
    if (*at == '.') {
        for (at++; isdigit((unsigned char)*at); at++, decimals++) {
            part = decimals < 3    ? part * 10 + (*at - '0')
                   : decimals == 3 ? part + (*at >= '5')
                                   : part;
        }
    }
    at += strspn(at, " \t"); /* CANN ends times in its tables with a tab */
    if (*at || digits == 0 || value > TRACE_MAX_TIME / 1000 - 1) {
        return parse_real(text, ret);
    }
    for (; decimals < 3; decimals++) {
        part *= 10;
    }
    value = value * 1000 + part;
    *ret = *text == '-' ? -value : value;
    return true;
}

/* ---- what an event says ---------------------------------------------------------------------- */

enum part { NAME, CATEGORY, PROCESS, THREAD, LABEL, DIMS, TYPES, STACK, MODULES, PARTS };

struct parsing {
    struct trace_stream *stream;
    const struct trace_reader *reader;
    struct trace_event event;
    struct gd_buf part[PARTS];
    uint64_t events;
    char key[64];
};

static int next_token(struct parsing *in, struct gd_json_token *ret, struct gd_err *err)
{
    return gd_json_next(&in->stream->json, ret, err);
}

static int skip_value(struct parsing *in, const struct gd_json_token *token, struct gd_err *err)
{
    return gd_json_skip(&in->stream->json, token, err);
}

/* Cuts the text, never within a character. */
static void keep_text(struct parsing *in, enum part part, const char *text, size_t size)
{
    size_t max = part >= DIMS ? TRACE_MAX_ARGS : TRACE_MAX_NAME;

    if (size > max) {
        for (size = max; size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80; size--) {
        }
    }
    gd_buf_clear(&in->part[part]);
    gd_buf_add(&in->part[part], text, size);
}

static bool is_text(const struct gd_json_token *token)
{
    return token->kind == GD_JSON_STRING || token->kind == GD_JSON_NUMBER;
}

/* A text or number; anything else is skipped. */
static int take_text(struct parsing *in, const struct gd_json_token *token, enum part part,
                     struct gd_err *err)
{
    if (is_text(token)) {
        keep_text(in, part, token->text, token->size);
    }
    return skip_value(in, token, err);
}

/* A list of lists without blanks. The rest of a very long one is left out. */
static int take_list(struct parsing *in, const struct gd_json_token *first, enum part part,
                     struct gd_err *err)
{
    struct gd_buf *out = &in->part[part];
    struct gd_json_token token = *first;
    int depth = 0, rc = GD_OK;
    bool comma = false;

    if (first->kind != GD_JSON_ARRAY) {
        return take_text(in, first, part, err);
    }
    gd_buf_clear(out);
    do {
        bool ends = token.kind == GD_JSON_ARRAY_END || token.kind == GD_JSON_OBJECT_END;
        bool begins = token.kind == GD_JSON_ARRAY || token.kind == GD_JSON_OBJECT;

        if (out->len < TRACE_MAX_ARGS) {
            gd_buf_puts(out, comma && !ends ? "," : "");
            gd_buf_puts(out, begins ? "[" : ends ? "]" : "");
            if (is_text(&token)) {
                const char *quote = token.kind == GD_JSON_STRING ? "\"" : "";
                gd_buf_puts(out, quote);
                gd_buf_add(out, token.text, token.size < 256 ? token.size : 256);
                gd_buf_puts(out, quote);
            }
        }
        depth += begins ? 1 : ends ? -1 : 0;
        comma = !begins;
        rc = depth > 0 ? next_token(in, &token, err) : GD_OK;
    } while (rc == GD_OK && depth > 0);
    return rc;
}

static int take_number(struct parsing *in, const struct gd_json_token *token, uint64_t *ret,
                       struct gd_err *err)
{
    uint64_t value;

    if (is_text(token) && gd_json_unsigned(token->text, &value)) {
        *ret = value;
    }
    return skip_value(in, token, err);
}

/* Versions spell them with and without capitals. */
static bool same_key(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

/* The key was read, and the first token of its value. */
static int take_argument(struct parsing *in, const char *key, const struct gd_json_token *token,
                         struct gd_err *err)
{
    struct trace_event *event = &in->event;

    if (same_key(key, "input dims") || same_key(key, "input shapes")) {
        return take_list(in, token, DIMS, err);
    }
    if (same_key(key, "input type")) {
        return take_list(in, token, TYPES, err);
    }
    if (same_key(key, "external id")) {
        return take_number(in, token, &event->external, err);
    }
    if (same_key(key, "sequence number")) {
        return take_number(in, token, &event->sequence, err);
    }
    if (same_key(key, "fwd thread id")) {
        event->is_backward = token->kind == GD_JSON_NUMBER && strcmp(token->text, "0") != 0;
        return skip_value(in, token, err);
    }
    if (same_key(key, "call stack")) {
        return take_text(in, token, STACK, err);
    }
    if (same_key(key, "module hierarchy")) {
        return take_text(in, token, MODULES, err);
    }
    if (event->phase == 'M' || in->part[LABEL].len == 0) {
        if (same_key(key, "name") || same_key(key, "labels")) {
            return take_text(in, token, LABEL, err);
        }
    }
    if (token->kind == GD_JSON_NUMBER && !event->has_value) {
        event->value = strtod(token->text, NULL);
        event->has_value = true;
    }
    return skip_value(in, token, err);
}

/* ---- an object, member by member ------------------------------------------------------------- */

typedef int (*member_fn)(struct parsing *in, const char *key, const struct gd_json_token *token,
                         struct gd_err *err);

/* Its opening brace was read. */
static int each_member(struct parsing *in, member_fn fn, struct gd_err *err)
{
    struct gd_json_token token;
    char key[64];
    int rc = next_token(in, &token, err);

    while (rc == GD_OK && token.kind == GD_JSON_KEY) {
        snprintf(key, sizeof(key), "%s", token.text);
        rc = next_token(in, &token, err);
        rc = rc != GD_OK ? rc : fn(in, key, &token, err);
        rc = rc != GD_OK ? rc : next_token(in, &token, err);
    }
    return rc;
}

static int take_time(struct parsing *in, const struct gd_json_token *token, int64_t *ret, bool *has,
                     struct gd_err *err)
{
    *has = is_text(token) && trace_time_parse(token->text, ret);
    in->event.bad_time |= !*has;
    return skip_value(in, token, err);
}

static int take_member(struct parsing *in, const char *key, const struct gd_json_token *token,
                       struct gd_err *err)
{
    static const struct {
        const char *key;
        enum part part;
    } texts[] = {{"name", NAME}, {"cat", CATEGORY}, {"pid", PROCESS}, {"tid", THREAD}};
    struct trace_event *event = &in->event;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            return take_text(in, token, texts[i].part, err);
        }
    }
    if (strcmp(key, "ph") == 0) {
        event->phase = token->kind == GD_JSON_STRING && token->size == 1 ? token->text[0] : '\0';
        return skip_value(in, token, err);
    }
    if (strcmp(key, "ts") == 0) {
        return take_time(in, token, &event->start, &event->has_start, err);
    }
    if (strcmp(key, "dur") == 0) {
        return take_time(in, token, &event->duration, &event->has_duration, err);
    }
    return strcmp(key, "args") == 0 && token->kind == GD_JSON_OBJECT
               ? each_member(in, take_argument, err)
               : skip_value(in, token, err);
}

static int take_event(struct parsing *in, struct gd_err *err)
{
    const char **const texts[PARTS] = {&in->event.name,   &in->event.category, &in->event.process,
                                       &in->event.thread, &in->event.label,    &in->event.dims,
                                       &in->event.types,  &in->event.stack,    &in->event.modules};
    int rc;

    in->event = (struct trace_event){.phase = '\0'};
    for (int i = 0; i < PARTS; i++) {
        gd_buf_clear(&in->part[i]);
    }
    rc = each_member(in, take_member, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (int i = 0; i < PARTS; i++) {
        *texts[i] = gd_buf_text(&in->part[i]);
    }
    in->events++;
    return in->reader->on_event(in->reader->ctx, &in->event, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Its opening bracket was read. */
static int take_events(struct parsing *in, struct gd_err *err)
{
    struct gd_json_token token;
    int rc = next_token(in, &token, err);

    while (rc == GD_OK && token.kind != GD_JSON_ARRAY_END) {
        rc = token.kind == GD_JSON_OBJECT ? take_event(in, err) : skip_value(in, &token, err);
        rc = rc != GD_OK ? rc : next_token(in, &token, err);
    }
    return rc;
}

static int take_fact(struct parsing *in, const char *name, const struct gd_json_token *token,
                     struct gd_err *err)
{
    if (is_text(token) && in->reader->on_fact) {
        return in->reader->on_fact(in->reader->ctx, name, token->text, err);
    }
    return skip_value(in, token, err);
}

static int take_world(struct parsing *in, const char *key, const struct gd_json_token *token,
                      struct gd_err *err)
{
    char name[96];

    snprintf(name, sizeof(name), "distributedInfo.%s", key);
    return take_fact(in, name, token, err);
}

static int take_top(struct parsing *in, const char *key, const struct gd_json_token *token,
                    struct gd_err *err)
{
    if (strcmp(key, "traceEvents") == 0 && token->kind == GD_JSON_ARRAY) {
        snprintf(in->key, sizeof(in->key), "%s", key);
        return take_events(in, err);
    }
    if (strcmp(key, "distributedInfo") == 0 && token->kind == GD_JSON_OBJECT) {
        return each_member(in, take_world, err);
    }
    return take_fact(in, key, token, err);
}

static int take_file(struct parsing *in, struct gd_err *err)
{
    struct gd_json_token token;
    int rc = next_token(in, &token, err);

    if (rc == GD_OK && token.kind == GD_JSON_ARRAY) {
        rc = take_events(in, err);
    } else if (rc == GD_OK && token.kind == GD_JSON_OBJECT) {
        rc = each_member(in, take_top, err);
        if (rc == GD_OK && !in->key[0]) {
            return gd_fail(err, GD_EPROTO, "%.300s is not a trace: it has no \"traceEvents\"",
                           gd_disk_path(in->stream->disk));
        }
    } else if (rc == GD_OK) {
        return gd_fail(err, GD_EPROTO, "%.300s is not a trace: it is not a list of events",
                       gd_disk_path(in->stream->disk));
    }
    return rc != GD_OK ? rc : next_token(in, &token, err);
}

int trace_events_read(struct trace_stream *stream, const struct trace_reader *reader, uint64_t *ret,
                      struct gd_err *err)
{
    struct parsing in = {.stream = stream, .reader = reader};
    int rc;

    for (int i = 0; i < PARTS; i++) {
        gd_buf_init(&in.part[i], SIZE_MAX);
    }
    rc = take_file(&in, err);
    for (int i = 0; i < PARTS; i++) {
        gd_buf_deinit(&in.part[i]);
    }
    *ret = in.events;
    return rc;
}
