// SPDX-License-Identifier: GPL-3.0-or-later
/* What happens by itself, as text or as JSON events. */
#include "engine/ranks.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/announce.h"
#include "repl/core/command.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/values/srcfile.h"

#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static void add_session(cJSON *object, const struct gd_session *session)
{
    if (!session) {
        return;
    }
    cJSON_AddNumberToObject(object, "session", session->number);
    cJSON_AddNumberToObject(object, "rank", session->peer.rank);
}

static void add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, name, value);
    } else {
        cJSON_AddStringToObject(object, name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
}

static void add_scalars(cJSON *object, const struct gd_session *session)
{
    cJSON *scalars = cJSON_AddObjectToObject(object, "scalars");

    for (int i = 0; i < session->scalar_count; i++) {
        if (session->scalar[i].step == session->stop.step) {
            add_number(scalars, session->scalar[i].name, session->scalar[i].value);
        }
    }
}

cJSON *repl_stop_json(struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    struct gd_node_info info;
    cJSON *object = cJSON_CreateObject();

    add_session(object, session);
    cJSON_AddStringToObject(object, "reason", gd_stop_reason_name(stop->reason));
    cJSON_AddNumberToObject(object, "step", (double)stop->step);
    cJSON_AddBoolToObject(object, "at_step_end", stop->at_step_end);
    if (gd_ranks_of(session)) {
        cJSON_AddBoolToObject(object, "together", stop->together);
    }
    if (stop->node_name[0] != '\0') {
        cJSON_AddStringToObject(object, "node", stop->node_name);
    }
    if (stop->node != GD_NO_NODE && gd_graph_node(session->graph, stop->node, &info)) {
        cJSON_AddStringToObject(object, "node_type", info.type);
    }
    if (stop->phase[0] != '\0') {
        cJSON_AddStringToObject(object, "phase", stop->phase);
    }
    if (stop->text[0] != '\0') {
        cJSON_AddStringToObject(object, "text", stop->text);
    }
    if (stop->at_step_end) {
        add_scalars(object, session);
    }
    return object;
}

static cJSON *connected_json(const struct gd_session *session)
{
    const struct gd_peer *peer = &session->peer;
    cJSON *object = cJSON_CreateObject();

    add_session(object, session);
    cJSON_AddStringToObject(object, "kind", session->target ? session->target->ops->kind : "");
    cJSON_AddStringToObject(object, "framework", peer->framework);
    cJSON_AddStringToObject(object, "version", peer->version);
    cJSON_AddStringToObject(object, "device", peer->device);
    cJSON_AddStringToObject(object, "program", peer->program);
    cJSON_AddStringToObject(object, "host", peer->host);
    cJSON_AddStringToObject(object, "address", peer->address);
    cJSON_AddNumberToObject(object, "pid", (double)peer->pid);
    cJSON_AddNumberToObject(object, "world_size", peer->world_size);
    return object;
}

/* Who stands and who does not. */
static cJSON *ranks_json(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    cJSON *object = cJSON_CreateObject();
    cJSON *standing, *running;
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    cJSON_AddStringToObject(object, "job", session->peer.job);
    cJSON_AddNumberToObject(object, "world_size", gd_ranks_world_size(ranks));
    standing = cJSON_AddArrayToObject(object, "standing");
    running = cJSON_AddArrayToObject(object, "running");
    for (int rank = 0; rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && gd_session_is_live(member)) {
            cJSON_AddItemToArray(member->state == GD_STOPPED ? standing : running,
                                 cJSON_CreateNumber(rank));
        }
    }
    gd_ranks_text(ranks, &text);
    cJSON_AddStringToObject(object, "text", gd_buf_text(&text));
    gd_buf_deinit(&text);
    return object;
}

/* What was asked for by a command of its own is told; the rest is in the log and in `catch`. */
static bool is_shown(const struct gd_note *note)
{
    return strcmp(note->kind, "overflow") == 0 || strcmp(note->kind, "busy") == 0 ||
           strcmp(note->kind, "unseen") == 0 || strcmp(note->kind, "checkpoint") == 0;
}

static void event_json(struct repl *repl, const struct gd_event *event)
{
    cJSON *object = cJSON_CreateObject();

    add_session(object, event->session);
    switch (event->type) {
    case GD_EV_CONNECTED:
        cJSON_Delete(object);
        repl_write_json(repl, NULL, "connected", connected_json(event->session));
        return;
    case GD_EV_RUNNING: repl_write_json(repl, NULL, "running", object); return;
    case GD_EV_RANKS:
        cJSON_Delete(object);
        repl_write_json(repl, NULL, "ranks_stopped", ranks_json(event->session));
        return;
    case GD_EV_HIT:
        cJSON_Delete(object);
        repl_write_json(repl, NULL, "hit", repl_hit_json(event->session, event->hit, true));
        return;
    case GD_EV_LOG:
        cJSON_AddStringToObject(object, "text", event->text ? event->text : "");
        repl_write_json(repl, NULL, "log", object);
        return;
    case GD_EV_WARNING:
        cJSON_AddStringToObject(object, "text", event->text ? event->text : "");
        repl_write_json(repl, NULL, "warning", object);
        return;
    case GD_EV_EVENT:
        if (is_shown(event->note)) {
            cJSON_AddStringToObject(object, "kind", event->note->kind);
            cJSON_AddNumberToObject(object, "step", (double)event->note->step);
            cJSON_AddStringToObject(object, "text", event->note->text);
            repl_write_json(repl, NULL, "event", object);
            return;
        }
        cJSON_Delete(object);
        return;
    case GD_EV_FINISHED:
    case GD_EV_LOST:
        cJSON_AddNumberToObject(object, "step", (double)gd_session_step(event->session));
        cJSON_AddStringToObject(object, "text", event->session->end_text);
        cJSON_AddBoolToObject(object, "failed", event->session->failed);
        repl_write_json(repl, NULL, event->type == GD_EV_LOST ? "lost" : "finished", object);
        return;
    default: cJSON_Delete(object); return;
    }
}

/* ---- text ---- */

/* "[rank 2] " of a job, "[2] " when there are several processes to tell apart. */
static void add_prefix(struct repl *repl, const struct gd_session *session, struct gd_buf *out)
{
    int live = 0;

    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        live += gd_session_is_live(repl->debugger->sessions[i]) ? 1 : 0;
    }
    if (session && gd_ranks_of(session)) {
        gd_buf_printf(out, "[rank %d] ", session->peer.rank);
    } else if (session && live > 1) {
        gd_buf_printf(out, "[%d] ", session->number);
    }
}

static void add_step(const struct gd_stop *stop, struct gd_buf *out)
{
    if (stop->step > 0 || !gd_stop_is_before_first(stop)) {
        gd_buf_printf(out, "step %lld", (long long)stop->step);
    } else {
        gd_buf_puts(out, "before the first step");
    }
}

/* ", Default/network/MatMul-op7 (MatMul)" */
static void add_node(struct repl *repl, struct gd_session *session, struct gd_arena *arena,
                     struct gd_buf *out)
{
    struct gd_node_info info;
    const struct gd_stop *stop = &session->stop;

    if (stop->node_name[0] == '\0') {
        return;
    }
    gd_buf_printf(out, ", %s", repl_safe(repl, arena, stop->node_name));
    if (stop->node != GD_NO_NODE && gd_graph_node(session->graph, stop->node, &info) &&
        info.type[0] != '\0') {
        gd_buf_printf(out, " (%s)", repl_safe(repl, arena, info.type));
    }
}

/* The line itself: as the process sent it, or from the file when it is here. */
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

/* "model.c:42 <tab> y = x * w;", as gdb shows where it stands. */
static void add_source(struct repl *repl, struct gd_session *session, struct gd_arena *arena,
                       struct gd_buf *out)
{
    if (session->stop.node == GD_NO_NODE) {
        return;
    }
    const struct gd_frame *frame = gd_graph_place(session->graph, session->stop.node);
    if (frame) {
        const char *code = source_text(repl, arena, frame);
        gd_buf_printf(out, "%s:%u%s%s\n", repl_safe(repl, arena, frame->file), frame->line,
                      code[0] != '\0' ? "\t" : "", code);
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

/* Six digits: what a loss gains from one step to the next shows. */
static void add_scalar_line(struct repl *repl, const struct gd_session *session,
                            struct gd_arena *arena, struct gd_buf *out)
{
    const char *before = "";
    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        if (scalar->step == session->stop.step) {
            gd_buf_printf(out, "%s%s = %s", before, repl_safe(repl, arena, scalar->name),
                          repl_scalar_text(arena, scalar->value, 6));
            before = ", ";
        }
    }
    if (before[0] != '\0') {
        gd_buf_putc(out, '\n');
    }
}

/* The event of a catchpoint that fired at this stop, or "". */
static const char *caught_event(const struct gd_session *session, int number)
{
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence != session->stop.sequence) {
            break;
        }
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
    int count = repl->stop_number_count, caught = 0;
    const char *event = "";

    for (int i = 0; i < count; i++) {
        event = caught_event(session, repl->stop_numbers[i]);
        caught += event[0] != '\0' ? 1 : 0;
    }
    if (count == 1 && caught == 1) {
        gd_buf_printf(out, "Catchpoint %d (%s), ", repl->stop_numbers[0], event);
        return;
    }
    gd_buf_printf(out, "%s%s", count > 0 && caught == count ? "Catchpoint" : "Watchpoint",
                  count > 1 ? "s" : "");
    for (int i = 0; i < count; i++) {
        gd_buf_printf(out, "%s%d",
                      i == 0           ? " "
                      : i + 1 == count ? " and "
                                       : ", ",
                      repl->stop_numbers[i]);
    }
    gd_buf_puts(out, ", ");
}

static void add_breakpoint_number(struct repl *repl, struct gd_buf *out)
{
    int number = repl->stop_number_count > 0 ? repl->stop_numbers[0] : 0;
    const struct gd_breakpoint *at = gd_debugger_breakpoint(repl->debugger, number);

    gd_buf_puts(out, at && at->temporary ? "Temporary breakpoint" : "Breakpoint");
    if (number > 0) {
        gd_buf_printf(out, " %d", number);
    }
    gd_buf_puts(out, ", ");
}

#define OVERFLOW                                                                                   \
    "overflow " /* what the program says of one that it was told to stop at begins so */

static void add_reason(struct repl *repl, const struct gd_session *session, struct gd_buf *out)
{
    switch (session->stop.reason) {
    case GD_STOP_BREAKPOINT: add_breakpoint_number(repl, out); break;
    case GD_STOP_HIT: add_watchpoint_numbers(repl, session, out); break;
    case GD_STOP_INTERRUPT: gd_buf_puts(out, "Interrupted, "); break;
    case GD_STOP_PROGRAM:
        gd_buf_puts(out, strncmp(session->stop.text, OVERFLOW, strlen(OVERFLOW)) == 0
                             ? "An overflow, "
                             : "The program asked to stop, ");
        break;
    case GD_STOP_END: gd_buf_puts(out, "The dump ends here, "); break;
    case GD_STOP_EXCEPTION: gd_buf_puts(out, "An exception, "); break;
    default: break;
    }
}

static void add_report(struct repl *repl, struct gd_session *session, struct gd_arena *arena,
                       struct gd_buf *out)
{
    const struct gd_stop *stop = &session->stop;

    add_prefix(repl, session, out);
    if (stop->reason == GD_STOP_STEP && stop->at_step_end) {
        gd_buf_printf(out, "Stopped at the end of step %lld.\n", (long long)stop->step);
    } else if (stop->reason == GD_STOP_PHASE && stop->phase[0] != '\0') {
        gd_buf_printf(out, "Stopped at the end of the %s phase, ", stop->phase);
        add_step(stop, out);
        add_node(repl, session, arena, out);
        gd_buf_putc(out, '\n');
    } else if (gd_stop_is_before_first(stop)) {
        size_t before = out->len;
        add_reason(repl, session, out);
        gd_buf_printf(out, "%s before the first step.\n",
                      out->len > before ? "stopped" : "Stopped");
    } else if (stop->at_step_end && stop->node_name[0] == '\0') {
        size_t before = out->len;
        add_reason(repl, session, out);
        gd_buf_printf(out, "%sat the end of step %lld.\n", out->len > before ? "" : "Stopped ",
                      (long long)stop->step);
    } else {
        add_reason(repl, session, out);
        add_step(stop, out);
        add_node(repl, session, arena, out);
        gd_buf_putc(out, '\n');
    }
    if (stop->text[0] != '\0' && stop->reason != GD_STOP_HIT) { /* the hits say it */
        gd_buf_printf(out, "%s\n", repl_safe(repl, arena, stop->text));
    }
    if (stop->at_step_end) {
        add_scalar_line(repl, session, arena, out);
    } else {
        add_source(repl, session, arena, out);
    }
}

void repl_report_stop(struct repl *repl, struct gd_session *session)
{
    struct gd_arena arena;
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    if (repl->options.json) {
        cJSON *object = repl_stop_json(session);
        cJSON *numbers = cJSON_AddArrayToObject(object, "numbers");
        for (int i = 0; i < repl->stop_number_count; i++) {
            cJSON_AddItemToArray(numbers, cJSON_CreateNumber(repl->stop_numbers[i]));
        }
        repl_write_json(repl, NULL, "stopped", object);
        return;
    }
    if (repl_is_told_with_job(repl, session)) {
        return;
    }
    gd_arena_init(&arena, 1 << 20);
    add_report(repl, session, &arena, &text);
    repl_write_text(repl, gd_buf_text(&text), text.len, false);
    gd_buf_deinit(&text);
    gd_arena_deinit(&arena);
}

static void add_connected(struct repl *repl, const struct gd_session *session,
                          struct gd_arena *arena, struct gd_buf *out)
{
    const struct gd_peer *peer = &session->peer;

    gd_buf_printf(out, "Connected: training process %d", session->number);
    if (peer->program[0] != '\0') {
        gd_buf_printf(out, ", %s", repl_safe(repl, arena, peer->program));
    }
    if (peer->framework[0] != '\0') {
        gd_buf_printf(out, ", %s%s%s", repl_safe(repl, arena, peer->framework),
                      peer->version[0] != '\0' ? " " : "", repl_safe(repl, arena, peer->version));
    }
    if (peer->world_size > 1) {
        gd_buf_printf(out, ", rank %d of %d", peer->rank, peer->world_size);
    }
    if (peer->pid > 0) {
        gd_buf_printf(out, ", pid %lld", (long long)peer->pid);
    }
    gd_buf_puts(out, ".\n");
}

static void event_text(struct repl *repl, const struct gd_event *event)
{
    struct gd_arena arena;
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    gd_arena_init(&arena, 1 << 20);
    switch (event->type) {
    case GD_EV_CONNECTED: add_connected(repl, event->session, &arena, &text); break;
    case GD_EV_WARNING:
        gd_buf_puts(&text, "warning: ");
        add_prefix(repl, event->session, &text);
        gd_buf_printf(&text, "%s\n", repl_safe(repl, &arena, event->text));
        break;
    case GD_EV_HIT:
        add_prefix(repl, event->session, &text);
        repl_hit_event(repl, event->session, event->hit, gd_buf_text(&text));
        gd_buf_clear(&text);
        break;
    case GD_EV_RANKS: gd_ranks_text(gd_ranks_of(event->session), &text); break;
    case GD_EV_EVENT:
        if (is_shown(event->note)) {
            add_prefix(repl, event->session, &text);
            gd_buf_printf(&text, "%s\n", repl_safe(repl, &arena, event->note->text));
        }
        break;
    case GD_EV_FINISHED:
    case GD_EV_LOST: {
        const char *why = event->session->end_text;
        repl_hits_over(repl);
        add_prefix(repl, event->session, &text);
        gd_buf_puts(&text, event->type != GD_EV_LOST ? "The training ended"
                           : repl_lost_runs(repl, event->session)
                               ? "The training process runs on without the debugger"
                               : "The training process was lost");
        if (why[0] != '\0' && strcmp(why, "the training ended") != 0) {
            gd_buf_printf(&text, ": %s", repl_safe(repl, &arena, why));
        }
        gd_buf_puts(&text, ".\n");
        break;
    }
    default: break;
    }
    repl_write_text(repl, gd_buf_text(&text), text.len, event->type == GD_EV_WARNING);
    gd_buf_deinit(&text);
    gd_arena_deinit(&arena);
}

/* What an event changes, said or not. */
static void note_event(struct repl *repl, const struct gd_event *event)
{
    bool over = event->type == GD_EV_LOST || event->type == GD_EV_FINISHED;

    if (event->type == GD_EV_LOG && event->text) {
        repl_launch_log(repl, event->text);
    }
    if (event->type == GD_EV_HIT && !event->hit->error && !event->hit->traced) {
        repl_add_status(repl, STATUS_WATCHPOINT); /* also where it does not stop the run */
    }
    if (event->session && gd_ranks_of(event->session) && !ev_is_active(&repl->ranks_timer)) {
        ev_timer_again(repl->loop, &repl->ranks_timer);
    }
    if (event->type == GD_EV_GRAPH) {
        repl_dump_graph(repl, event->session);
    }
    if (over && event->session->failed && !repl_lost_runs(repl, event->session)) {
        repl_training_failed(repl);
    }
}

void repl_on_event(void *ctx, const struct gd_event *event)
{
    struct repl *repl = ctx;

    note_event(repl, event);
    if (!repl_announces_event(repl, event)) {
        return;
    }
    if (event->type == GD_EV_STOPPED) {
        repl_note_stop(repl, event->session);
        repl_hits_over(repl);
        if (repl_announces_stop(repl, event->session)) {
            repl_report_stop(repl, event->session);
        }
    } else if (repl->options.json) {
        event_json(repl, event);
    } else {
        event_text(repl, event);
    }
}
