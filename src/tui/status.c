// SPDX-License-Identifier: GPL-3.0-or-later
/* The status line. If it is too long, its least important parts are left out. */
#include "tui/tui_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dump/dump_target.h"
#include "tui/text.h"

#define MAX_PARTS    16
#define RATE_SECONDS 1.0 /* between two samples of the step; a rate covers at least this long */

/* least priority of the parts that stay beside the keys while a pane has the keyboard */
#define TYPING_LEAST 6
#define PANE_LEAST   9

struct part {
    char text[200];
    int priority; /* the lowest is left out first */
};
struct status {
    struct part part[MAX_PARTS];
    int count;
};

__attribute__((format(printf, 3, 4))) static void add_part(struct status *status, int priority,
                                                           const char *format, ...)
{
    va_list args;

    if (status->count < MAX_PARTS) {
        struct part *part = &status->part[status->count++];
        part->priority = priority;
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

    tui->shown_step = session ? gd_session_step(session) : 0;
    if (!session || session->state != GD_RUNNING) {
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

bool tui_status_moves(const struct tui *tui)
{
    const struct gd_session *session = tui->debugger->current;

    return session && gd_session_step(session) != tui->shown_step;
}

/* ---- the parts ---- */

static void add_address(struct tui *tui, const struct gd_session *session, struct status *status)
{
    const struct gd_server_ops *server = tui->debugger->server;
    const char *address = server ? server->address(tui->debugger->server_ctx) : NULL;

    if (!session && address) {
        add_part(status, 8, "gradb listening on %s", address);
        return;
    }
    add_part(status, 7, "gradb");
    if (session && session->peer.address[0] != '\0') {
        add_part(status, 5, "%s", session->peer.address);
    }
}

static void add_peer(const struct gd_session *session, struct status *status)
{
    const struct gd_peer *peer = &session->peer;

    if (peer->framework[0] != '\0') { /* unknown for tensor files */
        add_part(status, 4, "%s%s%s", peer->framework, peer->version[0] != '\0' ? " " : "",
                 peer->version);
    }
    if (peer->device[0] != '\0') {
        add_part(status, 3, "%s", peer->device);
    }
    if (peer->world_size > 1) {
        add_part(status, 9, "rank %d of %d", peer->rank, peer->world_size);
    } else {
        add_part(status, 2, "rank %d", peer->rank);
    }
}

static void add_speed(double speed, int priority, struct status *status)
{
    add_part(status, priority, "%.*f steps/s", speed < 10 ? 2 : speed < 100 ? 1 : 0, speed);
}

static void add_rate(struct tui *tui, const struct gd_session *session, struct status *status)
{
    const struct gd_timing *timing = &session->timing;

    if (gd_catalog_of(session)) {
        return; /* not a training run */
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

    add_part(status, 9, "step %lld", (long long)gd_session_step(session));
    if (session->state != GD_RUNNING && session->stop.node_name[0] != '\0') {
        char batch[32];
        gd_session_micro_batch_text(session, session->stop.node, batch, sizeof(batch));
        add_part(status, 8, "%.60s%s%s", slash ? slash + 1 : session->stop.node_name,
                 batch[0] != '\0' ? " " : "", batch);
    }
    add_part(status, 10, "%s", gd_state_name(session->state));
    if (session->by_hand.count > 0) {
        add_part(status, 9, "changed by hand");
    }
    add_rate(tui, session, status);
    for (int i = 0; i < session->scalar_count; i++) {
        double value = session->scalar[i].value;
        if (strcmp(session->scalar[i].name, "loss") == 0) {
            add_part(status, 6, "loss %.4g", isnan(value) ? (double)NAN : value); /* never "-nan" */
        }
    }
    if (over && session->end_text[0] != '\0') {
        add_part(status, 5, "(%.120s)", session->end_text);
    }
}

/* ---- the keys ---- */

struct hints { /* "Enter open", the most useful first */
    char text[48][40];
    int count, last; /* last: how many at the end stay when others do not fit */
};

static void add_hint(struct hints *hints, const char *key, const char *what)
{
    if (hints->count < (int)(sizeof(hints->text) / sizeof(hints->text[0]))) {
        snprintf(hints->text[hints->count++], sizeof(hints->text[0]), "%s %s", key, what);
    }
}

static bool is_valid(struct tui *tui, const struct tui_key *key)
{
    const struct gd_session *session = tui->debugger->current;

    if (key->request == TUI_NEXT_MATCH) {
        return tui_pane_search(tui, tui->focus) == TUI_SEARCHED;
    }
    if (key->request == TUI_COMMAND && !session) {
        return false;
    }
    return tui_key_works(tui, key);
}

/* The table's keys that work here and now. Outside single-key mode a key hides a later meaning of
 * it. */
static void hint_table(struct tui *tui, bool single, struct hints *hints)
{
    for (const struct tui_key *key = tui_keys; key->name; key++) {
        if (key->prefix == tui->prefix && key->single == single && key->brief[0] != '\0' &&
            tui_key_find(key->prefix, key->key, tui->focus, tui->single_key) == key &&
            is_valid(tui, key)) {
            add_hint(hints, key->name + (tui->prefix != 0 ? strlen("C-x ") : 0), key->brief);
        }
    }
}

static void make_hints(struct tui *tui, struct hints *hints)
{
    bool typing = tui_pane_search(tui, tui->focus) == TUI_TYPING;

    if (tui->prefix != 0) {
        hint_table(tui, false, hints);
    } else if (tui->question) {
        add_hint(hints, "y", "yes");
        add_hint(hints, "n", "no");
    } else if (tui->help) {
        add_hint(hints, "Space", "page");
        add_hint(hints, "q", "back");
    } else if (tui->form) {
        add_hint(hints, "Enter", "runs it");
        add_hint(hints, "Esc", "leaves");
    } else if (typing) {
        add_hint(hints, "Enter", "keeps it");
        add_hint(hints, "Esc", "ends it");
    } else {
        if (tui->single_key) {
            hint_table(tui, true, hints);
        }
        bool at_prompt = tui->focus == TUI_CONSOLE;
        if (tui->executing) {
            add_hint(hints, "C-c", "stops");
        }
        hint_table(tui, false, hints);
        add_hint(hints, at_prompt ? "C-x o" : "?", at_prompt ? "panes" : "keys");
        add_hint(hints, at_prompt ? "F1" : ":", at_prompt ? "keys" : "prompt");
        hints->last = tui->single_key ? 0 : 2;
    }
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

static int find_least(const struct status *status)
{
    int least = status->count - 1;

    for (int i = status->count; i-- > 0;) {
        least = status->part[i].priority < status->part[least].priority ? i : least;
    }
    return least;
}

static void drop_least(struct status *status)
{
    int least = find_least(status);

    status->count--;
    memmove(&status->part[least], &status->part[least + 1],
            (size_t)(status->count - least) * sizeof(status->part[0]));
}

static int hints_width(struct tui *tui, const struct hints *hints)
{
    int width = 0;

    for (int i = 0; i < hints->count; i++) {
        width += width_of(tui, hints->text[i]) + 2;
    }
    return width;
}

/* As many as fit, right-aligned. */
static void draw_hints(struct tui *tui, struct hints *hints, int row, int col, int cols)
{
    while (hints->count > hints->last && hints_width(tui, hints) - 1 > cols - col) {
        int drop = hints->count - hints->last - 1;
        hints->count--;
        memmove(hints->text[drop], hints->text[drop + 1],
                (size_t)(hints->count - drop) * sizeof(hints->text[0]));
    }
    int start = cols - hints_width(tui, hints) + 1;
    for (col = start > col ? start : col; hints->count > 0 && col < cols; hints->count--) {
        const char *text = hints->text[0];
        draw_text(tui->draw, row, col, cols - col, DRAW_REVERSE, text);
        col += width_of(tui, text) + 2;
        memmove(hints->text[0], hints->text[1], sizeof(hints->text) - sizeof(hints->text[0]));
    }
}

/* While characters run commands, the line says so. Returns the next free column. */
int tui_status_mode(struct tui *tui, int row, int cols)
{
    static const char text[] = " SINGLE-KEY MODE ";

    return tui->single_key ? draw_text(tui->draw, row, 0, cols, DRAW_MARK, text) : 0;
}

void tui_status_draw(struct tui *tui, int row, int cols)
{
    const struct gd_session *session = tui->debugger->current;
    struct status status = {.count = 0};
    struct hints hints = {.count = 0};
    int least = tui->focus == TUI_CONSOLE && !tui->single_key ? TYPING_LEAST : PANE_LEAST;

    add_address(tui, session, &status);
    if (session) {
        add_peer(session, &status);
        add_where(tui, session, &status);
    } else {
        add_part(&status, 9, "not connected");
    }
    make_hints(tui, &hints);
    draw_fill(tui->draw, row, 0, cols, DRAW_REVERSE);
    int col = tui_status_mode(tui, row, cols) + 1;
    while (status.count > 1 && (col + total_of(tui, &status) > cols ||
                                (status.part[find_least(&status)].priority < least &&
                                 col + total_of(tui, &status) + hints_width(tui, &hints) > cols))) {
        drop_least(&status);
    }
    for (int i = 0; i < status.count && col < cols; i++) {
        draw_text(tui->draw, row, col, cols - col, DRAW_REVERSE, status.part[i].text);
        col += width_of(tui, status.part[i].text) + 2;
    }
    draw_hints(tui, &hints, row, col, cols);
}
