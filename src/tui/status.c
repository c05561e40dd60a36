// SPDX-License-Identifier: GPL-3.0-or-later
/* The status line: what does not fit is left out, the least important first. */
#include "tui/tui_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dump/dump_target.h"
#include "tui/text.h"

#define MAX_PARTS    16
#define RATE_SECONDS 1.0 /* between two looks at the step; a rate is of so long at least */

struct part {
    char text[200];
    int priority; /* those with the smallest go first */
    bool right;   /* stands at the right end */
};
struct status {
    struct part part[MAX_PARTS];
    int count;
};

static void add(struct status *status, int priority, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(struct status *status, int priority, const char *format, ...)
{
    va_list args;

    if (status->count < MAX_PARTS) {
        struct part *part = &status->part[status->count++];
        part->priority = priority;
        part->right = false;
        va_start(args, format);
        vsnprintf(part->text, sizeof(part->text), format, args);
        va_end(args);
    }
}

/* ---- how fast it trains ---- */

void tui_status_update(struct tui *tui)
{
    const struct gd_session *session = tui->debugger->current;
    struct tui_rate *rate = &tui->rate;
    double now = ev_time();

    if (session == NULL || session->state != GD_RUNNING) {
        *rate = (struct tui_rate){.session = 0};
        return;
    }
    int64_t step = gd_session_step(session);
    if (rate->session != session->number || step < rate->step || now < rate->at) {
        *rate = (struct tui_rate){.session = session->number, .step = step, .at = now};
    } else if (now - rate->at >= RATE_SECONDS) {
        rate->steps_per_second = (double)(step - rate->step) / (now - rate->at);
        rate->step = step;
        rate->at = now;
    }
}

/* ---- the parts ---- */

static void add_address(struct tui *tui, const struct gd_session *session, struct status *status)
{
    const struct gd_server_ops *server = tui->debugger->server;
    const char *address = server != NULL ? server->address(tui->debugger->server_ctx) : NULL;

    if (session != NULL && session->peer.address[0] != '\0') {
        add(status, 5, "gradb %s", session->peer.address);
    } else if (session == NULL && address != NULL) {
        add(status, 8, "gradb listening on %s", address);
    } else {
        add(status, 2, "gradb");
    }
}

static void add_peer(const struct gd_session *session, struct status *status)
{
    const struct gd_peer *peer = &session->peer;

    if (peer->framework[0] != '\0') { /* files of tensors do not tell it */
        add(status, 4, "%s%s%s", peer->framework, peer->version[0] != '\0' ? " " : "",
            peer->version);
    }
    if (peer->device[0] != '\0') {
        add(status, 3, "%s", peer->device);
    }
    if (peer->world_size > 1) {
        add(status, 7, "rank %d of %d", peer->rank, peer->world_size);
    } else {
        add(status, 2, "rank %d", peer->rank);
    }
}

static void add_speed(double speed, int priority, struct status *status)
{
    add(status, priority, "%.*f steps/s", speed < 10 ? 2 : speed < 100 ? 1 : 0, speed);
}

static void add_rate(struct tui *tui, const struct gd_session *session, struct status *status)
{
    const struct gd_timing *timing = &session->timing;

    if (gd_catalog_of(session) != NULL) {
        return; /* nothing trains */
    }
    if (session->state == GD_RUNNING && tui->rate.steps_per_second > 0) {
        add_speed(tui->rate.steps_per_second, 6, status);
    } else if (session->state == GD_STOPPED && timing->last_run > 0 && timing->last_run_steps > 1) {
        add_speed((double)timing->last_run_steps / timing->last_run, 1, status);
    }
}

static void add_where(struct tui *tui, const struct gd_session *session, struct status *status)
{
    bool over = session->state == GD_LOST || session->state == GD_FINISHED;
    const char *slash = strrchr(session->stop.node_name, '/');

    add(status, 9, "step %lld", (long long)gd_session_step(session));
    if (session->state != GD_RUNNING && session->stop.node_name[0] != '\0') {
        add(status, 8, "%.60s", slash != NULL ? slash + 1 : session->stop.node_name);
    }
    add(status, 10, "%s", gd_state_name(session->state));
    add_rate(tui, session, status);
    for (int i = 0; i < session->scalar_count; i++) {
        double value = session->scalar[i].value;
        if (strcmp(session->scalar[i].name, "loss") == 0) {
            add(status, 6, "loss %.4g", isnan(value) ? (double)NAN : value); /* never "-nan" */
        }
    }
    if (over && session->end_text[0] != '\0') {
        add(status, 5, "(%.120s)", session->end_text);
    }
}

/* What keys mean just now, else how to learn of them. */
static void add_keys(struct tui *tui, struct status *status)
{
    if (tui->prefix != 0) {
        add(status, 10, "[C-x -]");
    } else if (tui->single_key) {
        add(status, 10, "[single keys, q ends]");
    } else {
        add(status, 0, "%s keys  C-x o pane", tui->focus == TUI_CONSOLE ? "F1" : "?");
    }
    status->part[status->count - 1].right = true;
}

/* ---- the line ---- */

static int width_of(struct tui *tui, const char *text)
{
    return tui_text_width(text, strlen(text), tui->utf8);
}

static int total_of(struct tui *tui, const struct status *status)
{
    int total = 0;
    for (int i = 0; i < status->count; i++) {
        total += width_of(tui, status->part[i].text) + (i == 0 ? 1 : 2);
    }
    return total;
}

static void drop_least(struct status *status)
{
    int least = status->count - 1;

    for (int i = status->count; i-- > 0;) {
        least = status->part[i].priority < status->part[least].priority ? i : least;
    }
    status->count--;
    memmove(&status->part[least], &status->part[least + 1],
            (size_t)(status->count - least) * sizeof(status->part[0]));
}

void tui_status_draw(struct tui *tui, int row, int cols)
{
    const struct gd_session *session = tui->debugger->current;
    struct status status = {.count = 0};
    int col = 1;

    add_address(tui, session, &status);
    if (session != NULL) {
        add_peer(session, &status);
        add_where(tui, session, &status);
    } else {
        add(&status, 9, "no trainer yet");
    }
    add_keys(tui, &status);
    while (status.count > 1 && total_of(tui, &status) + 1 > cols) {
        drop_least(&status);
    }
    draw_fill(tui->draw, row, 0, cols, DRAW_REVERSE);
    for (int i = 0; i < status.count && col < cols; i++) {
        const struct part *part = &status.part[i];
        int width = width_of(tui, part->text);
        if (part->right && cols - width - 1 > col) {
            col = cols - width - 1;
        }
        draw_text(tui->draw, row, col, cols - col, DRAW_REVERSE, part->text);
        col += width + 2;
    }
}
