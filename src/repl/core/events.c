// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports events, as text or as JSON lines. Stops: stop_report.c. */
#include "repl/core/events.h"

#include <string.h>
#include <strings.h>

#include "engine/ranks.h"
#include "repl/core/announce.h"
#include "repl/core/command.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"

void event_add_session(cJSON *object, const struct gd_session *session)
{
    if (session) {
        out_set(object, OUT_INT("session", session->number), OUT_INT("rank", session->peer.rank));
    }
}

const char *event_prefix(const struct repl *repl, const struct gd_session *session,
                         char ret[EVENT_PREFIX])
{
    int live = 0;

    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        live += gd_session_is_live(repl->debugger->sessions[i]) ? 1 : 0;
    }
    ret[0] = '\0';
    if (session && gd_ranks_of(session)) {
        snprintf(ret, EVENT_PREFIX, "[rank %d] ", session->peer.rank);
    } else if (session && live > 1) {
        snprintf(ret, EVENT_PREFIX, "[%d] ", session->number);
    }
    return ret;
}

/* ---- reporting ---- */

static void say_connected(struct repl_out *out, const struct gd_session *session)
{
    const struct gd_peer *peer = &session->peer;
    cJSON *record = out_record(out, "connected");

    event_add_session(record, session);
    out_set(record, OUT_TEXT("kind", session->target ? session->target->ops->kind : ""),
            OUT_TEXT("framework", peer->framework), OUT_TEXT("version", peer->version),
            OUT_TEXT("device", peer->device), OUT_TEXT("program", peer->program),
            OUT_TEXT("host", peer->host), OUT_TEXT("address", peer->address),
            OUT_INT("pid", peer->pid), OUT_INT("world_size", peer->world_size));
    out_say(out, record,
            "Connected: training process {session}[, {program}][, {framework}[ {version}]]"
            "[{?ranked}, rank {rank} of {world_size}][, pid {pid}].\n",
            OUT_BOOL("ranked", peer->world_size > 1));
}

/* Which ranks are stopped and which are not. */
static void say_ranks(struct repl_out *out, const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    cJSON *record = out_record(out, "ranks_stopped");
    struct gd_buf text = GD_BUF_INIT(1 << 20);

    out_set(record, OUT_TEXT("job", session->peer.job),
            OUT_INT("world_size", gd_ranks_world_size(ranks)));
    cJSON *standing = out_list(record, "standing"), *running = out_list(record, "running");
    for (int rank = 0; rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && gd_session_is_live(member)) {
            out_push_int(member->state == GD_STOPPED ? standing : running, rank);
        }
    }
    gd_ranks_text(ranks, &text);
    out_set(record, OUT_TEXT("text", gd_buf_text(&text)));
    out_printf(out, "%s", gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void say_hit(struct repl_out *out, const struct gd_event *event)
{
    char prefix[EVENT_PREFIX];

    if (out_is_json(out)) {
        cJSON *record = cJSON_CreateObject();
        event_add_session(record, event->session);
        repl_hit_record(record, event->session, event->hit);
        repl_write_json(out->repl, NULL, "hit", record);
    }
    if (out_is_text(out)) {
        repl_hit_event(out->repl, event->session, event->hit,
                       event_prefix(out->repl, event->session, prefix));
    }
}

/* Notes of these kinds answer a command. The others are in `info log` and for `catch`. */
static bool is_shown(const struct gd_note *note)
{
    return strcmp(note->kind, "overflow") == 0 || strcmp(note->kind, "busy") == 0 ||
           strcmp(note->kind, "unseen") == 0 || strcmp(note->kind, "checkpoint") == 0;
}

static void say_note(struct repl_out *out, const struct gd_event *event)
{
    char prefix[EVENT_PREFIX];

    if (!is_shown(event->note)) {
        return;
    }
    cJSON *record = out_record(out, "event");
    event_add_session(record, event->session);
    out_set(record, OUT_TEXT("kind", event->note->kind), OUT_INT("step", event->note->step),
            OUT_TEXT("text", event->note->text));
    out_say(out, record, "{prefix}[{?saved}checkpoint of step {step}: ]{text}\n",
            OUT_TEXT("prefix", event_prefix(out->repl, event->session, prefix)),
            OUT_BOOL("saved", strcmp(event->note->kind, "checkpoint") == 0));
}

enum { END_REASON = 256 };

/* What ended: a session's end without the words of `what`, and without a full stop. */
static void end_reason(const char *end, const char *what, char ret[END_REASON])
{
    size_t len = strlen(what);
    bool same = strncasecmp(end, what, len) == 0 && (end[len] == '\0' || end[len] == ':');
    const char *rest = same ? end + len + strspn(end + len, ": ") : end;
    snprintf(ret, END_REASON, "%s", rest);
    len = strlen(ret);
    if (len > 0 && ret[len - 1] == '.') {
        ret[len - 1] = '\0';
    }
}

static void say_end(struct repl_out *out, const struct gd_event *event)
{
    const struct gd_session *session = event->session;
    bool lost = event->type == GD_EV_LOST;
    const char *what = session->failed ? "The training failed" : "The training ended";
    char prefix[EVENT_PREFIX], why[END_REASON];

    if (out_is_text(out)) {
        repl_hits_over(out->repl);
    }
    cJSON *record = out_record(out, lost ? "lost" : "finished");
    event_add_session(record, session);
    out_set(
        record, OUT_INT("step", gd_session_step(session)), OUT_TEXT("text", session->end_text),
        OUT_BOOL("failed", session->failed),
        OUT_IF(session->by_hand.count > 0, OUT_INT("by_hand", session->by_hand.count)),
        OUT_IF(session->by_hand.count > 0, OUT_INT("by_hand_since", session->by_hand.first_step)));
    if (lost) {
        what = repl_lost_runs(out->repl, session)
                   ? "The training process continues without the debugger"
                   : "The training process was lost";
    }
    end_reason(session->end_text, what, why);
    out_say(out, record, "{prefix}{what}[: {why}].\n",
            OUT_TEXT("prefix", event_prefix(out->repl, session, prefix)), OUT_TEXT("what", what),
            OUT_TEXT("why", why));
    out_say(out, record,
            "[{?changed}The run was changed by hand: {by_hand|change}, the first in step "
            "{by_hand_since} (info events).\n]",
            OUT_BOOL("changed", session->by_hand.count > 0));
}

/* In text mode only a warning is printed: `info log` has the lines of the log. `gradb diagnose --
 * PROGRAM` also prints the lines of the program. */
static void say_text(struct repl_out *out, const struct gd_event *event, const char *type)
{
    cJSON *record = out_record(out, type);
    char prefix[EVENT_PREFIX];

    event_add_session(record, event->session);
    if (event->type != GD_EV_RUNNING) {
        out_set(record, OUT_TEXT("text", event->text ? event->text : ""));
    }
    if (event->type == GD_EV_WARNING) {
        out->is_error = !out_is_json(out);
        out_say(out, record, "warning: {prefix}{text}\n",
                OUT_TEXT("prefix", event_prefix(out->repl, event->session, prefix)));
    }
    if (event->type == GD_EV_LOG && out->repl->job.passes_output) {
        out_say(out, record, "{text}\n");
    }
}

static void say_event(struct repl *repl, const struct gd_event *event)
{
    struct out_report report;
    struct repl_out *out = out_report_begin(&report, repl);

    switch (event->type) {
    case GD_EV_CONNECTED: say_connected(out, event->session); break;
    case GD_EV_RANKS: say_ranks(out, event->session); break;
    case GD_EV_HIT: say_hit(out, event); break;
    case GD_EV_EVENT: say_note(out, event); break;
    case GD_EV_RUNNING: say_text(out, event, "running"); break;
    case GD_EV_LOG: say_text(out, event, "log"); break;
    case GD_EV_WARNING: say_text(out, event, "warning"); break;
    case GD_EV_FINISHED:
    case GD_EV_LOST: say_end(out, event); break;
    default: break;
    }
    out_report_end(&report);
}

/* ---- effects ---- */

/* What an event changes, whether it is reported or not. */
static void note_event(struct repl *repl, const struct gd_event *event)
{
    bool over = event->type == GD_EV_LOST || event->type == GD_EV_FINISHED;

    if (event->type == GD_EV_LOG && event->text) {
        repl_launch_log(repl, event->text);
    }
    if (event->type == GD_EV_HIT && !event->hit->error && !event->hit->traced &&
        !repl->job.diagnoses) {
        repl_add_status(repl, STATUS_WATCHPOINT); /* even if it does not stop the run */
    }
    if (event->session && gd_ranks_of(event->session) && !ev_is_active(&repl->watchers.ranks)) {
        ev_timer_again(repl->loop, &repl->watchers.ranks);
    }
    if (event->type == GD_EV_GRAPH && repl->dump) {
        repl->dump->graph_grew(repl, event->session);
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
    } else {
        say_event(repl, event);
    }
}
