// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/drive.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"

#define MOST_EVENTS  500 /* kept for an answer */
#define CANCEL_AFTER 5.  /* seconds that a training may take to stop */

struct drive {
    struct repl *repl;
    const struct drive_ops *ops;
    void *ctx;
    struct drive_answer *answer; /* of the command that runs; NULL: none runs */
    cJSON *events;               /* since the last answer */
    int dropped;                 /* events that were not kept */
    struct gd_buf text;          /* what was said since the last answer */
    ev_timer limit, tick, cancel;
    double seconds; /* how long the command runs */
};

/* ---- what the REPL says ---- */

static void keep_event(struct drive *drive, cJSON *record)
{
    if (cJSON_GetArraySize(drive->events) >= MOST_EVENTS) {
        cJSON_DeleteItemFromArray(drive->events, 0);
        drive->dropped++;
    }
    if (!cJSON_AddItemToArray(drive->events, record)) {
        cJSON_Delete(record);
    }
}

static cJSON *typed_record(const char *type, cJSON *object)
{
    cJSON *record = cJSON_CreateObject();

    out_set(record, OUT_TEXT("type", type));
    out_move(record, object);
    cJSON_Delete(object);
    return record;
}

static void on_record(void *ctx, const char *type, cJSON *object)
{
    struct drive *drive = ctx;

    if (strcmp(type, "log") == 0) {
        if (drive->ops->log) {
            drive->ops->log(drive->ctx, out_text_of(object, "text"));
        }
        cJSON_Delete(object);
        return;
    }
    cJSON *record = typed_record(type, object);
    if (strcmp(type, "error") == 0) {
        const char *usage = out_text_of(record, "usage");
        gd_buf_printf(&drive->text, "error: %s", out_text_of(record, "message"));
        gd_buf_printf(&drive->text, usage[0] != '\0' ? " (usage: %s)\n" : "\n", usage);
    }
    if (cJSON_HasObjectItem(record, "command") && drive->answer) {
        if (drive->answer->record) {
            keep_event(drive, drive->answer->record);
        }
        drive->answer->record = record;
        return;
    }
    if (drive->ops->event) {
        drive->ops->event(drive->ctx, type, record);
    }
    keep_event(drive, record);
}

static void on_text(void *ctx, const char *text, size_t len, bool is_error)
{
    struct drive *drive = ctx;

    (void)is_error;
    gd_buf_add(&drive->text, text, len);
}

/* ---- time ---- */

static void on_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct drive *drive = timer->data;

    (void)loop;
    (void)events;
    drive->answer->timed_out = true;
    drive_give_up(drive);
}

static void on_cancel(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    drive_give_up(timer->data);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct drive *drive = timer->data;

    (void)loop;
    (void)events;
    drive->seconds += timer->repeat;
    if (drive->ops->tick) {
        drive->ops->tick(drive->ctx, drive->seconds);
    }
}

static void start_timer(struct drive *drive, ev_timer *timer, double after, double repeat)
{
    ev_now_update(drive->repl->loop);
    ev_timer_stop(drive->repl->loop, timer);
    ev_timer_set(timer, after, repeat);
    ev_timer_start(drive->repl->loop, timer);
}

bool drive_is_busy(const struct drive *drive)
{
    return drive->answer != NULL;
}

void drive_cancel(struct drive *drive)
{
    if (drive->answer) {
        drive->answer->cancelled = true;
        repl_interrupt(drive->repl);
        start_timer(drive, &drive->cancel, CANCEL_AFTER, 0.);
    }
}

void drive_give_up(struct drive *drive)
{
    if (drive->answer) {
        gd_progress_stop_all(drive->repl->debugger);
        repl_leave(drive->repl);
    }
}

/* ---- answers ---- */

void drive_return_events(struct drive *drive, struct drive_answer *answer)
{
    cJSON_Delete(drive->events); /* empty: nothing has run since */
    drive->events = answer->events;
    answer->events = NULL;
}

void drive_answer_free(struct drive_answer *answer)
{
    cJSON_Delete(answer->record);
    cJSON_Delete(answer->events);
    gd_buf_deinit(&answer->text);
}

void drive_fail(struct drive_answer *answer, const char *command, const struct gd_err *err)
{
    cJSON_Delete(answer->record);
    answer->record = cJSON_CreateObject();
    out_set(answer->record, OUT_TEXT("type", "error"), OUT_TEXT("code", gd_status_name(err->code)),
            OUT_TEXT("message", err->text), OUT_TEXT("command", command));
    gd_buf_printf(&answer->text, "error: %s\n", err->text);
    answer->rc = err->code;
}

static void begin_answer(struct drive *drive, double seconds, struct drive_answer *ret)
{
    *ret = (struct drive_answer){.rc = GD_OK};
    gd_buf_init(&ret->text, OUT_MAX_TEXT);
    drive->answer = ret;
    drive->seconds = 0;
    start_timer(drive, &drive->limit, seconds, 0.);
    start_timer(drive, &drive->tick, 1., 1.);
}

/* Was the training of the current session resumed, or started, and not stopped yet? */
static bool is_running(const struct drive *drive)
{
    const struct gd_session *session = drive->repl->debugger->current;

    return session && gd_session_is_live(session) &&
           (session->state == GD_RUNNING || gd_ranks_is_running(session));
}

static void end_answer(struct drive *drive, const char *command)
{
    struct drive_answer *answer = drive->answer;
    struct gd_buf text = drive->text;

    ev_timer_stop(drive->repl->loop, &drive->limit);
    ev_timer_stop(drive->repl->loop, &drive->tick);
    ev_timer_stop(drive->repl->loop, &drive->cancel);
    repl_clear_left(drive->repl);
    drive->text = answer->text;
    answer->text = text;
    answer->events = drive->events;
    drive->events = cJSON_CreateArray();
    if (drive->dropped > 0) {
        gd_buf_printf(&answer->text, "(%d earlier events are left out)\n", drive->dropped);
    }
    drive->dropped = 0;
    answer->running = is_running(drive);
    if (!answer->record) {
        answer->record = cJSON_CreateObject();
        out_set(answer->record, OUT_TEXT("type", "ok"), OUT_TEXT("command", command));
    }
    drive->answer = NULL;
}

/* ---- running ---- */

static void run_lines(struct drive *drive, const char *lines)
{
    struct repl *repl = drive->repl;
    char *copy = strdup(lines), *rest = copy;

    if (!copy) {
        drive->answer->rc = GD_ENOMEM;
        return;
    }
    for (char *line = strsep(&rest, "\n"); line && drive->answer->rc == GD_OK && !repl->end.quit;
         line = strsep(&rest, "\n")) {
        drive->answer->rc = repl_execute(repl, line);
    }
    free(copy);
    if (repl->script.body.kind != BODY_NONE) {
        struct gd_err err;
        gd_fail(&err, GD_EINVAL, "\"%s\" has no \"end\": give its lines, and \"end\", with it",
                repl_body_name(repl));
        repl_body_drop(repl);
        drive->answer->rc = repl_report_failure(repl, NULL, NULL, GD_EINVAL, &err);
    }
}

void drive_run(struct drive *drive, const char *lines, double seconds, struct drive_answer *ret)
{
    begin_answer(drive, seconds, ret);
    run_lines(drive, lines);
    end_answer(drive, lines);
}

static bool has_stopped(void *ctx)
{
    const struct drive *drive = ctx;
    const struct gd_debugger *debugger = drive->repl->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        if (session->state == GD_STOPPED && !gd_ranks_is_running(session)) {
            return true;
        }
    }
    return debugger->current && !gd_session_is_live(debugger->current);
}

static void add_state(struct drive *drive, struct drive_answer *answer)
{
    const struct gd_session *session = drive->repl->debugger->current;
    cJSON *record = cJSON_CreateObject();

    out_set(record, OUT_TEXT("type", "run"));
    if (session) {
        out_set(record, OUT_INT("session", session->number),
                OUT_TEXT("state", gd_state_name(session->state)),
                OUT_IF(session->state == GD_STOPPED,
                       OUT_TEXT("reason", gd_stop_reason_name(session->stop.reason))),
                OUT_INT("step", gd_session_step(session)));
    }
    out_set(record, OUT_TEXT("command", "wait"));
    if (answer->record) { /* of the commands of what it stopped at */
        keep_event(drive, answer->record);
    }
    answer->record = record;
}

void drive_wait(struct drive *drive, double seconds, struct drive_answer *ret)
{
    begin_answer(drive, seconds, ret);
    int rc = repl_wait(drive->repl, has_stopped, drive, -1);
    if (rc == GD_EINTR && ret->cancelled && is_running(drive)) {
        repl_execute(drive->repl, "interrupt");
        cJSON_Delete(ret->record);
        ret->record = NULL;
    }
    repl_follow_up(drive->repl);
    add_state(drive, ret);
    end_answer(drive, "wait");
}

/* ---- the whole ---- */

int drive_create(struct repl *repl, const struct drive_ops *ops, void *ctx, struct drive **ret,
                 struct gd_err *err)
{
    struct drive *drive = calloc(1, sizeof(*drive));

    if (!drive) {
        return gd_fail_nomem(err);
    }
    *drive = (struct drive){.repl = repl, .ops = ops, .ctx = ctx, .events = cJSON_CreateArray()};
    gd_buf_init(&drive->text, OUT_MAX_TEXT);
    ev_timer_init(&drive->limit, on_limit, 0., 0.);
    ev_timer_init(&drive->tick, on_tick, 0., 1.);
    ev_timer_init(&drive->cancel, on_cancel, 0., 0.);
    drive->limit.data = drive->tick.data = drive->cancel.data = drive;
    repl_set_writer(repl, on_text, drive);
    repl_set_recorder(repl, on_record, drive);
    *ret = drive;
    return GD_OK;
}

void drive_destroy(struct drive *drive)
{
    if (drive) {
        repl_set_writer(drive->repl, NULL, NULL);
        repl_set_recorder(drive->repl, NULL, NULL);
        cJSON_Delete(drive->events);
        gd_buf_deinit(&drive->text);
        free(drive);
    }
}
