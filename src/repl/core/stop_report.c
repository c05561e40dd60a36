// SPDX-License-Identifier: GPL-3.0-or-later
/* The report of a stop: why, where, and what the training reported there. */
#include <math.h>
#include <string.h>

#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/core/announce.h"
#include "repl/core/command.h"
#include "repl/core/events.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"

/* ---- the record ---- */

static void add_scalar(cJSON *to, const struct gd_scalar *scalar)
{
    out_set(to, isfinite(scalar->value) ? OUT_JSON(scalar->name, cJSON_CreateNumber(scalar->value))
                                        : OUT_REAL(scalar->name, scalar->value));
}

/* It came since the previous step, to which it belongs, has ended. */
static bool is_late(const struct gd_session *session, const struct gd_scalar *scalar)
{
    return scalar->late && scalar->step + 1 == session->stop.step;
}

static void add_scalars(cJSON *object, const struct gd_session *session)
{
    cJSON *scalars = out_object(object, "scalars"), *late = NULL;

    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        if (scalar->step == session->stop.step) {
            add_scalar(scalars, scalar);
        } else if (is_late(session, scalar)) {
            late = late ? late : out_object(object, "late_scalars");
            add_scalar(late, scalar);
        }
    }
}

static void add_stop(cJSON *object, const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    struct gd_node_info info = {.type = ""};
    bool has_node = stop->node != GD_NO_NODE && gd_graph_node(session->graph, stop->node, &info);

    int batch = has_node ? gd_session_micro_batch(session, stop->node) : 0;
    int batches = gd_session_micro_batches(session);

    event_add_session(object, session);
    out_set(object, OUT_TEXT("reason", gd_stop_reason_name(stop->reason)),
            OUT_INT("step", stop->step), OUT_BOOL("at_step_end", stop->at_step_end),
            OUT_IF(gd_ranks_of(session), OUT_BOOL("together", stop->together)),
            OUT_SOME("node", stop->node_name), OUT_IF(has_node, OUT_TEXT("node_type", info.type)),
            OUT_SOME("phase", stop->phase),
            OUT_SOME("pass", has_node ? inspect_pass(session, stop->node) : ""),
            OUT_IF(batch > 0, OUT_INT("micro_batch", batch)),
            OUT_IF(batch > 0 && batches >= batch, OUT_INT("micro_batches", batches)),
            OUT_SOME("text", stop->text));
    if (stop->reason == GD_STOP_EVENT) {
        const struct gd_happened *what = &stop->happened;
        out_set(object, OUT_TEXT("event", gd_happening_name(what->kind)),
                OUT_IF(what->epoch > 0, OUT_INT("epoch", what->epoch)),
                OUT_IF(what->batch > 0, OUT_INT("batch", what->batch)),
                OUT_SOME("path", what->text));
    }
    uint32_t count;
    const struct gd_frame *line = gd_session_line_stack(session, &count);
    if (line) {
        out_set(object, OUT_TEXT("file", line->file), OUT_INT("line", line->line),
                OUT_SOME("function", line->function));
    }
    if (stop->at_step_end) {
        add_scalars(object, session);
    }
}

/* ---- the text ---- */

/* The source line as the process sent it, or from the file if it exists here. */
static const char *source_text(struct repl *repl, struct gd_arena *arena,
                               const struct gd_frame *frame)
{
    struct command_call call = {.repl = repl, .debugger = repl->debugger, .arena = arena};
    struct srcfile_part part;

    if (frame->code[0] != '\0') {
        return repl_safe(repl, arena, frame->code);
    }
    if (frame->line == 0 ||
        srcfile_read(&call, frame->file, frame->line, 1, &part, NULL) != GD_OK || part.count == 0) {
        return "";
    }
    return part.line[0];
}

/* "model.c:42 <tab> y = x * w;", as gdb prints it. */
static void say_source(struct repl_out *out, const struct gd_session *session)
{
    uint32_t count;
    const struct gd_frame *line = gd_session_line_stack(session, &count);
    const struct gd_frame *frame = line ? line
                                   : session->stop.node != GD_NO_NODE
                                       ? gd_graph_place(session->graph, session->stop.node)
                                       : NULL;
    if (frame) {
        out_say(out, NULL, "{file}:{line}", OUT_TEXT("file", frame->file),
                OUT_INT("line", frame->line));
        const char *code = source_text(out->repl, out->arena, frame);
        out_printf(out, "%s%s\n", code[0] != '\0' ? "\t" : "", code);
    }
}

const char *repl_scalar_text(struct gd_arena *arena, double value, int digits)
{
    char text[64];

    if (isnan(value)) {
        return "nan";
    }
    if (value == trunc(value) && fabs(value) < 1e15) {
        snprintf(text, sizeof(text), "%.0f", value);
    } else {
        snprintf(text, sizeof(text), "%.*g", digits, value);
    }
    const char *copy = gd_arena_strdup(arena, text);
    return copy ? copy : "";
}

/* With six digits, so that a loss's change from step to step is visible. */
static void say_scalars(struct repl_out *out, const struct gd_session *session)
{
    const char *before = "";

    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        bool late = is_late(session, scalar);
        if (scalar->step == session->stop.step || late) {
            out_say(out, NULL, "{before}{name} = {value}[ (step {step})]",
                    OUT_TEXT("before", before), OUT_TEXT("name", scalar->name),
                    OUT_REAL("value", scalar->value), OUT_IF(late, OUT_INT("step", scalar->step)));
            before = ", ";
        }
    }
    out_printf(out, "%s", before[0] != '\0' ? "\n" : "");
}

/* The event of a catchpoint that fired at this stop, or "". */
static const char *caught_event(const struct gd_session *session, int number)
{
    size_t first = hits_first_of_stop(session);
    for (size_t i = session->hit_count; i-- > first;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->watchpoint == number) {
            return hit->event;
        }
    }
    return "";
}

/* "Watchpoint 2, ", "Watchpoints 2, 5 and 7, ", "Catchpoint 3 (lr), " */
static void add_watchpoint_numbers(const struct repl *repl, const struct gd_session *session,
                                   struct gd_buf *out)
{
    int count = repl->stop.number_count, caught = 0;
    const char *event = "";

    for (int i = 0; i < count; i++) {
        event = caught_event(session, repl->stop.numbers[i]);
        caught += event[0] != '\0' ? 1 : 0;
    }
    if (count == 1 && caught == 1) {
        const struct gd_watchpoint *watch = gd_watchpoint_at(repl->debugger, repl->stop.numbers[0]);
        gd_buf_printf(out, "%s %d (%s), ",
                      watch && watch->temporary ? "Temporary catchpoint" : "Catchpoint",
                      repl->stop.numbers[0], event);
        return;
    }
    gd_buf_printf(out, "%s%s", count > 0 && caught == count ? "Catchpoint" : "Watchpoint",
                  count > 1 ? "s" : "");
    for (int i = 0; i < count; i++) {
        gd_buf_printf(out, "%s%d",
                      i == 0           ? " "
                      : i + 1 == count ? " and "
                                       : ", ",
                      repl->stop.numbers[i]);
    }
    gd_buf_puts(out, ", ");
}

/* "Breakpoint 1, Temporary breakpoint 2, " */
static void add_breakpoint_numbers(struct repl *repl, struct gd_buf *out)
{
    bool any = false;

    for (int i = 0; i < repl->stop.number_count; i++) {
        const struct gd_breakpoint *at =
            gd_debugger_breakpoint(repl->debugger, repl->stop.numbers[i]);
        any = any || at;
        if (at && !at->momentary) {
            gd_buf_printf(out, "%s %d, ", at->temporary ? "Temporary breakpoint" : "Breakpoint",
                          at->number);
        }
    }
    if (!any) {
        gd_buf_puts(out, "Breakpoint, ");
    }
}

/* "Catchpoint 3 (epoch-end, epoch 2), " */
static void add_event(struct repl *repl, const struct gd_session *session, struct gd_buf *out)
{
    const struct gd_happened *what = &session->stop.happened;
    int count = repl->stop.number_count;
    const struct gd_breakpoint *at =
        count == 1 ? gd_debugger_breakpoint(repl->debugger, repl->stop.numbers[0]) : NULL;

    gd_buf_puts(out, count > 1             ? "Catchpoints"
                     : at && at->temporary ? "Temporary catchpoint"
                                           : "Catchpoint");
    for (int i = 0; i < count; i++) {
        gd_buf_printf(out, "%s%d",
                      i == 0           ? " "
                      : i + 1 == count ? " and "
                                       : ", ",
                      repl->stop.numbers[i]);
    }
    gd_buf_printf(out, " (%s", gd_happening_name(what->kind));
    if (what->text[0] != '\0') {
        gd_buf_printf(out, " %s", what->text);
    }
    if (what->epoch > 0) {
        gd_buf_printf(out, ", epoch %lld", (long long)what->epoch);
    }
    if (what->batch > 0) {
        gd_buf_printf(out, ", batch %lld", (long long)what->batch);
    }
    gd_buf_puts(out, "), ");
}

#define OVERFLOW "overflow " /* the script's text for a stop at an overflow starts with this */

static void add_reason(struct repl *repl, const struct gd_session *session, struct gd_buf *out)
{
    switch (session->stop.reason) {
    case GD_STOP_BREAKPOINT: add_breakpoint_numbers(repl, out); break;
    case GD_STOP_HIT: add_watchpoint_numbers(repl, session, out); break;
    case GD_STOP_EVENT: add_event(repl, session, out); break;
    case GD_STOP_INTERRUPT: gd_buf_puts(out, "Interrupted, "); break;
    case GD_STOP_PROGRAM:
        gd_buf_puts(out, strncmp(session->stop.text, OVERFLOW, strlen(OVERFLOW)) == 0
                             ? "Overflow, "
                             : "The script requested a stop, ");
        break;
    case GD_STOP_END: gd_buf_puts(out, "End of the dump, "); break;
    case GD_STOP_EXCEPTION: gd_buf_puts(out, "Exception, "); break;
    default: break;
    }
}

static const char *report_template(const struct gd_stop *stop)
{
    if (stop->reason == GD_STOP_STEP && stop->at_step_end) {
        return "{prefix}Stopped at the end of step {step}.\n";
    }
    if (stop->reason == GD_STOP_PHASE && stop->phase[0] != '\0') {
        return "{prefix}Stopped at the end of the {phase} phase, [{when}][{!when}step {step}][, "
               "{node}[ {batch}][ ({node_type})]]\n";
    }
    if (stop->at_line && stop->at_step_end && stop->step > 0) {
        return "{prefix}{why}after step {step}[, in {function}]\n";
    }
    if (stop->at_line) {
        return "{prefix}{why}[{when}][{!when}step {step}][ ({phase})][, in {function}]\n";
    }
    if (gd_stop_is_before_first(stop)) {
        return "{prefix}{why}[{?why}stopped][{!why}Stopped] before the first step.\n";
    }
    if (stop->at_step_end && stop->node_name[0] == '\0') {
        return "{prefix}{why}[{!why}Stopped ]at the end of step {step}.\n";
    }
    return "{prefix}{why}[{when}][{!when}step {step}][, {pass}[ {batch}]][, {node}[ "
           "({node_type})]]\n";
}

static void say_stop(struct repl_out *out, const cJSON *record, const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    bool counts = stop->step > 0 || !gd_stop_is_before_first(stop);
    bool has_place = stop->node != GD_NO_NODE && !stop->at_step_end;
    struct command_call call = {
        .repl = out->repl, .debugger = out->repl->debugger, .arena = out->arena};
    char prefix[EVENT_PREFIX];
    struct gd_buf why = GD_BUF_INIT(4096);

    add_reason(out->repl, session, &why);
    out_say(out, record, report_template(stop),
            OUT_TEXT("prefix", event_prefix(out->repl, session, prefix)),
            OUT_TEXT("why", gd_buf_text(&why)),
            OUT_TEXT("when", counts ? "" : "before the first step"),
            OUT_TEXT("pass", has_place ? inspect_pass(session, stop->node) : ""),
            OUT_TEXT("batch", has_place ? inspect_micro_batch(&call, session, stop->node) : ""));
    if (stop->reason != GD_STOP_HIT) { /* the hits were reported */
        out_say(out, record, "[{text}\n]");
    }
    if (stop->at_step_end && !stop->at_line) {
        say_scalars(out, session);
    } else {
        say_source(out, session);
    }
    gd_buf_deinit(&why);
}

void repl_report_stop(struct repl *repl, struct gd_session *session)
{
    if (repl_is_told_with_job(repl, session)) {
        return;
    }
    struct out_report report;
    struct repl_out *out = out_report_begin(&report, repl);
    cJSON *record = out_record(out, "stopped");
    add_stop(record, session);
    cJSON *numbers = out_list(record, "numbers");
    for (int i = 0; i < repl->stop.number_count; i++) {
        out_push_int(numbers, repl->stop.numbers[i]);
    }
    say_stop(out, record, session);
    out_report_end(&report);
}
