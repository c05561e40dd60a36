// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/line/line.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/session_impl.h"
#include "engine/watch/expected.h"
#include "engine/watch/numbers.h"

#define MAX_STACK 256

/* ---- what is typed ------------------------------------------------------------------------- */

static bool is_source_suffix(const char *suffix, size_t len)
{
    static const char *const known[] = {"py", "pyx", "pyw", "c",   "cc", "cpp", "cxx",
                                        "cu", "cuh", "h",   "hpp", "hh", "ipp", "inl"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i]) == len && memcmp(known[i], suffix, len) == 0) {
            return true;
        }
    }
    return false;
}

/* The length of FILE in "FILE:...", 0: there is none. */
static size_t file_length(const char *where)
{
    const char *colon = strrchr(where, ':');
    const char *dot = colon;
    while (dot && dot > where && *dot != '.' && *dot != '/') {
        dot--;
    }
    bool is_file = dot && dot > where && *dot == '.' &&
                   is_source_suffix(dot + 1, (size_t)(colon - dot - 1)) &&
                   strncmp(where, "at:", 3) != 0;
    return is_file ? (size_t)(colon - where) : 0;
}

static bool is_function(const char *text)
{
    bool starts = true, is_name = text[0] != '\0';
    for (; *text && is_name; text++) {
        is_name = *text == '.' ? !starts
                               : *text == '_' || isalpha((unsigned char)*text) ||
                                     (!starts && isdigit((unsigned char)*text));
        starts = *text == '.';
    }
    return is_name && !starts;
}

/* A line number from 1; 0: it is none. */
static uint32_t line_number(const char *text)
{
    char *end = NULL;
    unsigned long value = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
    return end && *end == '\0' && value <= INT32_MAX ? (uint32_t)value : 0;
}

int gd_line_parse(const char *where, bool functions, struct gd_line **ret, struct gd_err *err)
{
    size_t length = file_length(where);
    const char *rest = length > 0 ? where + length + 1 : where;
    uint32_t number = length > 0 ? line_number(rest) : 0;

    *ret = NULL;
    if (number == 0 && !(is_function(rest) && (length > 0 || functions))) {
        return GD_OK;
    }
    struct gd_line *line = calloc(1, sizeof(*line));
    if (line) {
        line->file = strndup(where, length);
        line->function = strdup(number > 0 ? "" : rest);
        line->line = number;
    }
    if (!line || !line->file || !line->function) {
        gd_line_destroy(line);
        return gd_fail_nomem(err);
    }
    *ret = line;
    return GD_OK;
}

bool gd_line_is_numbered(const struct gd_line *line)
{
    return line->line > 0;
}

static void drop_places(struct gd_line *line)
{
    for (size_t i = 0; i < line->place_count; i++) {
        free(line->place[i].file);
        free(line->place[i].function);
    }
    free(line->place);
    line->place = NULL;
    line->place_count = 0;
}

void gd_line_destroy(struct gd_line *line)
{
    if (line) {
        drop_places(line);
        free(line->file);
        free(line->function);
        free(line);
    }
}

/* ---- what the process is asked for --------------------------------------------------------- */

bool gd_session_has_lines(const struct gd_session *session)
{
    return session->target && session->target->capabilities & GD_CAN_LINES;
}

/* A function counts only as long as its name is not that of a node. */
static bool is_wanted(const struct gd_session *session, const struct gd_breakpoint *b)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;

    if (!b->enabled || !b->line || b->line->returns) {
        return b->enabled && b->line;
    }
    if (b->selector && !gd_line_is_numbered(b->line) && b->line->state != GD_LINE_FOUND) {
        gd_selector_resolve(b->selector, session->graph, &nodes, &count, NULL);
        free(nodes);
    }
    return count == 0;
}

static bool is_same(const struct gd_line_wish *a, size_t count, const struct session_lines *b)
{
    bool same = count == b->sent_count;
    for (size_t i = 0; same && i < count; i++) {
        same = a[i].number == b->sent[i];
    }
    return same;
}

void lines_push(struct gd_session *session)
{
    struct session_lines *lines = &session->impl->lines;
    struct gd_line_wish wish[GD_MAX_LINES];
    struct gd_err err = {.text = "out of memory for lines: they may not stop the run"};
    size_t count = 0;

    if (!gd_session_is_live(session) || !gd_session_has_lines(session)) {
        return;
    }
    for (const struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        if (count < GD_MAX_LINES && is_wanted(session, b)) {
            bool returns = b->line->returns; /* the process knows the frame by the number */
            wish[count++] = (struct gd_line_wish){.number = b->number,
                                                  .file = returns ? "" : b->line->file,
                                                  .line = returns ? 0 : b->line->line,
                                                  .function = b->line->function};
        }
    }
    if (is_same(wish, count, lines)) {
        return;
    }
    int *sent = malloc((count + 1) * sizeof(*sent));
    if (!sent || gd_target_set_lines(session->target, wish, count, &err) != GD_OK) {
        free(sent);
        gd_session_on_warning(session, err.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sent[i] = wish[i].number;
    }
    free(lines->sent);
    lines->sent = sent;
    lines->sent_count = count;
}

static int copy_places(struct gd_line *line, const struct gd_frame *place, size_t count)
{
    drop_places(line);
    line->place = calloc(count + 1, sizeof(*line->place));
    for (size_t i = 0; line->place && i < count; i++) {
        line->place[i] = (struct gd_line_place){.file = strdup(place[i].file),
                                                .line = place[i].line,
                                                .function = strdup(place[i].function)};
        line->place_count++;
        if (!line->place[i].file || !line->place[i].function) {
            drop_places(line);
        }
    }
    return line->place ? GD_OK : GD_ENOMEM;
}

void gd_session_on_line_place(struct gd_session *session, int number, const struct gd_frame *place,
                              size_t count, const char *why)
{
    struct gd_breakpoint *at = gd_debugger_breakpoint(session->debugger, number);
    struct gd_event event = {.type = GD_EV_BREAKPOINTS};

    if (!at || !at->line || session_has_ended(session)) {
        return;
    }
    if (count > 0) {
        at->matched = true;
        at->line->state = GD_LINE_FOUND;
        if (copy_places(at->line, place, count) != GD_OK) {
            at->line->state = GD_LINE_ASKED;
        }
    } else if (at->line->state != GD_LINE_FOUND) { /* other ranks may have loaded it */
        at->line->state = why[0] ? GD_LINE_NOWHERE : GD_LINE_PENDING;
        snprintf(at->line->why, sizeof(at->line->why), "%s", why);
    }
    gd_expected_push(session); /* it waits for no node now */
    gd_debugger_emit(session->debugger, &event);
}

/* ---- the stop ------------------------------------------------------------------------------ */

static void drop_stack(struct session_lines *lines)
{
    for (size_t i = 0; i < lines->frame_count; i++) {
        free((char *)lines->frame[i].file);
        free((char *)lines->frame[i].function);
        free((char *)lines->frame[i].code);
    }
    free(lines->frame);
    lines->frame = NULL;
    lines->frame_count = 0;
}

void lines_free(struct gd_session *session)
{
    drop_stack(&session->impl->lines);
    free(session->impl->lines.sent);
}

static void keep_stack(struct session_lines *lines, const struct gd_frame *frames,
                       size_t frame_count)
{
    drop_stack(lines);
    frame_count = frame_count < MAX_STACK ? frame_count : MAX_STACK;
    lines->frame = calloc(frame_count + 1, sizeof(*lines->frame));
    for (size_t i = 0; lines->frame && i < frame_count; i++) {
        struct gd_frame *frame = &lines->frame[i];
        *frame = frames[i];
        frame->told = true;
        frame->file = strdup(frames[i].file);
        frame->function = strdup(frames[i].function);
        frame->code = strdup(frames[i].code);
        lines->frame_count++;
        if (!frame->file || !frame->function || !frame->code) {
            drop_stack(lines);
        }
    }
}

void gd_session_on_line(struct gd_session *session, const uint32_t *numbers, size_t number_count,
                        const struct gd_frame *frames, size_t frame_count)
{
    struct session_lines *lines = &session->impl->lines;

    keep_stack(lines, frames, frame_count);
    lines->asked = 0;
    lines->number_count = number_count < GD_MAX_FIRED ? number_count : GD_MAX_FIRED;
    for (size_t i = 0; i < lines->number_count; i++) {
        lines->number[i] = numbers[i] <= INT32_MAX ? (int)numbers[i] : 0;
    }
}

bool gd_session_begin_stack(struct gd_session *session)
{
    struct session_lines *lines = &session->impl->lines;
    bool first = lines->begun != session->stop.sequence && lines->asked != session->stop.sequence;

    lines->begun = session->stop.sequence;
    return first;
}

void gd_session_on_stack(struct gd_session *session, const struct gd_frame *frames,
                         size_t frame_count)
{
    struct session_lines *lines = &session->impl->lines;
    struct gd_event event = {.type = GD_EV_STACK, .session = session};

    keep_stack(lines, frames, frame_count);
    lines->asked = session->stop.sequence;
    gd_debugger_emit(session->debugger, &event);
}

const struct gd_frame *gd_session_line_stack(const struct gd_session *session, uint32_t *count)
{
    const struct session_lines *lines = &session->impl->lines;
    bool of_stop =
        lines->asked == 0 ? session->stop.at_line : lines->asked == session->stop.sequence;
    bool here = session->state == GD_STOPPED && of_stop && session->current == GD_NO_NODE &&
                lines->frame_count > 0;

    *count = here ? (uint32_t)lines->frame_count : 0;
    return here ? lines->frame : NULL;
}

static struct gd_breakpoint *breakpoint_here(const struct gd_session *session, size_t i)
{
    struct gd_breakpoint *at =
        gd_debugger_breakpoint(session->debugger, session->impl->lines.number[i]);
    return at && at->enabled && at->line ? at : NULL;
}

static bool is_guard_true(struct gd_session *session, struct gd_breakpoint *at)
{
    struct gd_numbers numbers = {.session = session, .step = session->stop.step};
    unsigned error = 0;
    char text[300];

    enum gd_truth truth = at->guard ? gd_numbers_judge(&numbers, at->guard, &error) : GD_TRUE;
    if (truth == GD_UNKNOWN && !at->told_unknown) {
        at->told_unknown = true;
        snprintf(
            text, sizeof(text),
            "breakpoint %d (%.80s): its condition \"%.100s\" is unknown here: see info scalars",
            at->number, at->where, gd_expr_text(at->guard));
        gd_session_on_warning(session, text);
    }
    return truth == GD_TRUE;
}

enum breakpoint_verdict lines_pass(struct gd_session *session)
{
    enum breakpoint_verdict verdict = BREAKPOINT_IGNORE;

    for (struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        b->caused = false;
    }
    for (size_t i = 0; i < session->impl->lines.number_count; i++) {
        struct gd_breakpoint *at = breakpoint_here(session, i);
        if (!at || at->print || !is_guard_true(session, at)) {
            continue;
        }
        at->hits++;
        at->caused = at->ignore == 0;
        verdict = at->caused ? BREAKPOINT_STOP : verdict;
        at->ignore -= at->ignore > 0;
    }
    return verdict;
}

bool lines_print(const struct gd_session *session)
{
    bool prints = false;
    for (size_t i = 0; i < session->impl->lines.number_count; i++) {
        const struct gd_breakpoint *at = breakpoint_here(session, i);
        prints = prints || (at && at->print);
    }
    return prints;
}

struct gd_breakpoint *lines_next_print(const struct gd_session *session,
                                       const struct gd_breakpoint *previous)
{
    struct gd_breakpoint *found = NULL;
    for (size_t i = 0; i < session->impl->lines.number_count; i++) {
        struct gd_breakpoint *at = breakpoint_here(session, i);
        if (at && at->print && (!previous || at->number > previous->number) &&
            (!found || at->number < found->number)) {
            found = at;
        }
    }
    return found;
}

void lines_delete_temporary(struct gd_session *session)
{
    for (size_t i = 0; i < session->impl->lines.number_count; i++) {
        const struct gd_breakpoint *at = breakpoint_here(session, i);
        if (at && at->temporary && at->caused) {
            gd_debugger_delete_breakpoint(session->debugger, at->number, NULL);
        }
    }
}
