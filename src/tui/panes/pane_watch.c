// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The watchpoints: condition, hits and cost of each; below them the excluded places, where
 * non-finite values are normal.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watchpoint.h"
#include "repl/core/await.h"
#include "tui/panes/detail.h"
#include "tui/text.h"

#define COSTS_SECONDS 1.0 /* between two requests */
#define LEAST_TEXT    22  /* least columns of the condition beside the counts */
#define FIGURE_COLS   6   /* of a count, including the blank before it */

struct watch_note { /* kept per watchpoint */
    int number;
    uint32_t revision;   /* of the watchpoint when `nodes` was counted */
    uint64_t generation; /* of the graph; 0: not counted yet */
    int session;
    size_t nodes;
    uint64_t cost_ns;
};

struct costs_request {
    struct await await;
    struct tui *tui; /* not to be read once the pane has left the answer */
};

struct watch_pane {
    struct tui_list list;
    struct watch_note *note; /* one per watchpoint, in their order */
    size_t count;
    struct costs_request *awaited;
    double asked_at;
    int asked_session; /* session and stop of the last request */
    uint64_t asked_stop;
    ev_timer again;    /* delays a request that came too early */
    uint64_t total_ns; /* cost of all watchpoints; 0: unknown or none */
};

static struct watch_pane *watch_state(struct tui *tui)
{
    return tui_state(tui, TUI_WATCH);
}

/* ---- following the list -------------------------------------------------------------------- */

static bool notes_fit(const struct watch_pane *pane, const struct gd_debugger *debugger)
{
    size_t i = 0;

    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next, i++) {
        if (i >= pane->count || pane->note[i].number != w->number) {
            return false;
        }
    }
    return i == pane->count;
}

static const struct watch_note *old_note(const struct watch_pane *pane, int number)
{
    for (size_t i = 0; i < pane->count; i++) {
        if (pane->note[i].number == number) {
            return &pane->note[i];
        }
    }
    return NULL;
}

static void notes_anew(struct watch_pane *pane, const struct gd_debugger *debugger)
{
    size_t count = 0, i = 0;

    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next) {
        count++;
    }
    struct watch_note *note = calloc(count + 1, sizeof(*note));
    if (!note) {
        pane->count = 0;
        return;
    }
    for (const struct gd_watchpoint *w = debugger->watchpoints; w; w = w->next, i++) {
        const struct watch_note *old = old_note(pane, w->number);
        note[i] = old ? *old : (struct watch_note){.number = w->number};
    }
    free(pane->note);
    pane->note = note;
    pane->count = count;
}

static void sync_rows(struct tui *tui)
{
    struct watch_pane *pane = watch_state(tui);
    size_t excluded = 0;

    if (!notes_fit(pane, tui->debugger)) {
        notes_anew(pane, tui->debugger);
    }
    while (gd_exclude_at(tui->debugger, excluded)) {
        excluded++;
    }
    pane->list.count = pane->count + excluded;
    tui_list_settle(&pane->list);
}

/* NULL for the row of an excluded place. */
static struct gd_watchpoint *watch_of_row(struct tui *tui, size_t index)
{
    const struct watch_pane *pane = watch_state(tui);
    return index < pane->count ? gd_watchpoint_at(tui->debugger, pane->note[index].number) : NULL;
}

static const char *excluded_of_row(struct tui *tui, size_t index)
{
    const struct watch_pane *pane = watch_state(tui);
    return index >= pane->count ? gd_exclude_at(tui->debugger, index - pane->count) : NULL;
}

/* ---- costs --------------------------------------------------------------------------------- */

static void on_costs(void *ctx, const struct gd_watch_total *total)
{
    struct costs_request *request = ctx;
    struct tui *tui = request->tui;

    if (!await_take(request)) {
        return;
    }
    free(request);
    struct watch_pane *pane = watch_state(tui);
    bool differs = pane->total_ns != total->compute_ns;
    pane->awaited = NULL;
    pane->total_ns = total->compute_ns;
    for (size_t i = 0; i < pane->count; i++) {
        const struct gd_watchpoint *watch = gd_watchpoint_at(tui->debugger, pane->note[i].number);
        if (watch && watch->cost_ns != pane->note[i].cost_ns) {
            pane->note[i].cost_ns = watch->cost_ns;
            differs = true;
        }
    }
    if (differs) {
        tui_changed(tui);
    }
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    tui_changed(timer->data); /* the next picture makes the request */
}

/* Whether the costs may have changed since the last request and can be requested now. */
static bool wants_costs(struct tui *tui)
{
    const struct watch_pane *pane = watch_state(tui);
    const struct gd_session *session = tui->debugger->current;

    return !tui->executing && !pane->awaited && pane->count > 0 && session &&
           session->state == GD_STOPPED &&
           (pane->asked_session != session->number || pane->asked_stop != session->stop.sequence);
}

static void ask_costs(struct tui *tui)
{
    struct watch_pane *pane = watch_state(tui);
    double now = tui->debugger->now(tui->debugger->now_ctx);
    double since = now - pane->asked_at;

    if (!wants_costs(tui)) {
        return;
    }
    if (since >= 0 && since < COSTS_SECONDS) {
        if (!ev_is_active(&pane->again)) {
            ev_timer_set(&pane->again, COSTS_SECONDS - since, 0.);
            ev_timer_start(tui->loop, &pane->again);
        }
        return;
    }
    struct costs_request *request = calloc(1, sizeof(*request));
    if (!request) {
        return;
    }
    request->tui = tui;
    pane->awaited = request;
    pane->asked_at = now;
    pane->asked_session = tui->debugger->current->number;
    pane->asked_stop = tui->debugger->current->stop.sequence;
    if (gd_watch_costs(tui->debugger, on_costs, request, NULL) != GD_OK) {
        pane->awaited = NULL;
        free(request);
    }
}

static void update_watch(struct tui *tui)
{
    sync_rows(tui);
    ask_costs(tui);
}

/* ---- words --------------------------------------------------------------------------------- */

/* Counted once per selector revision and graph generation. */
static size_t nodes_of(struct tui *tui, const struct gd_watchpoint *watch, struct watch_note *note)
{
    struct gd_session *session = tui->debugger->current;
    gd_node_id *nodes = NULL;

    if (!session || !watch->selector) {
        return 0;
    }
    if (note->session != session->number || note->generation != session->graph_generation + 1 ||
        note->revision != watch->revision) {
        note->session = session->number;
        note->generation = session->graph_generation + 1;
        note->revision = watch->revision;
        note->nodes = 0;
        if (gd_watchpoint_nodes(watch, session, &nodes, &note->nodes, NULL) != GD_OK) {
            note->nodes = 0;
            nodes = NULL;
        }
        free(nodes);
    }
    return note->nodes;
}

static const char *action_word(const struct gd_watchpoint *watch)
{
    return watch->action == GD_WATCH_TRACE ? "trace" : watch->temporary ? "once" : "stop";
}

/* 12345, 123k, 12M */
static void count_text(uint64_t count, char *out, size_t size)
{
    if (count < 100000) {
        snprintf(out, size, "%llu", (unsigned long long)count);
    } else if (count < 10000000) {
        snprintf(out, size, "%lluk", (unsigned long long)(count / 1000));
    } else {
        snprintf(out, size, "%lluM", (unsigned long long)(count / 1000000));
    }
}

static bool share_text(const struct watch_pane *pane, const struct watch_note *note, char *out,
                       size_t size)
{
    if (pane->total_ns == 0) {
        snprintf(out, size, "-");
        return false;
    }
    snprintf(out, size, "%.0f%%", 100.0 * (double)note->cost_ns / (double)pane->total_ns);
    return true;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* The statistics that fit beside the condition; the least important is left out first. */
struct columns {
    bool nodes, unclear, share;
    int digits; /* of the largest number */
    int text;   /* columns of the condition */
};

static struct columns columns_for(const struct watch_pane *pane, int cols)
{
    struct columns c = {.digits = 1};
    int last = pane->count > 0 ? pane->note[pane->count - 1].number : 0;

    c.digits = snprintf(NULL, 0, "%d", last);
    c.text = cols - c.digits - 10 - FIGURE_COLS; /* mark, "trace", blanks; hits */
    c.nodes = c.text >= LEAST_TEXT + FIGURE_COLS;
    c.text -= c.nodes ? FIGURE_COLS : 0;
    c.unclear = c.text >= LEAST_TEXT + FIGURE_COLS;
    c.text -= c.unclear ? FIGURE_COLS : 0;
    c.share = c.text >= LEAST_TEXT + FIGURE_COLS;
    c.text -= c.share ? FIGURE_COLS : 0;
    c.text = c.text > 0 ? c.text : 0;
    return c;
}

static void put_figure(struct tui *tui, bool shown, int row, int *col, enum draw_style style,
                       const char *text)
{
    char right[16];

    if (shown) {
        snprintf(right, sizeof(right), "%*.*s", FIGURE_COLS, FIGURE_COLS, text);
        draw_text(tui->draw, row, *col, FIGURE_COLS, style, right);
        *col += FIGURE_COLS;
    }
}

static void draw_figures(struct tui *tui, const struct gd_watchpoint *watch,
                         struct watch_note *note, const struct columns *c, int row, int col,
                         enum draw_style style)
{
    char text[24];

    count_text(watch->hits, text, sizeof(text));
    put_figure(tui, true, row, &col, style == DRAW_PLAIN && watch->hits > 0 ? DRAW_HIT : style,
               text);
    if (c->nodes) {
        count_text(nodes_of(tui, watch, note), text, sizeof(text));
    }
    put_figure(tui, c->nodes, row, &col, style, watch->selector ? text : "-");
    count_text(watch->unclear, text, sizeof(text));
    put_figure(tui, c->unclear, row, &col, style, text);
    share_text(watch_state(tui), note, text, sizeof(text));
    put_figure(tui, c->share, row, &col, style, text);
}

static const char *mark_of(struct tui *tui, const struct gd_watchpoint *watch)
{
    if (!watch->enabled) {
        return tui->utf8 ? "\u25cb" : "-";
    }
    if (gd_watchpoint_place(watch, tui->debugger, tui->debugger->current, NULL, 0) ==
        GD_WATCH_PLACE_NONE) {
        return "!";
    }
    return tui->utf8 ? "\u25cf" : "+";
}

static void draw_watch(struct tui *tui, const struct gd_watchpoint *watch, struct watch_note *note,
                       int row, int col, int cols, bool selected)
{
    struct columns c = columns_for(watch_state(tui), cols);
    struct gd_buf text = GD_BUF_INIT(8192);
    enum draw_style style = selected ? DRAW_REVERSE : watch->enabled ? DRAW_PLAIN : DRAW_DIM;
    char head[48], room[4096];

    snprintf(head, sizeof(head), " %*d %s %-5s ", c.digits, watch->number, mark_of(tui, watch),
             action_word(watch));
    int used = draw_text(tui->draw, row, col, cols, style, head);
    gd_watchpoint_text(watch, &text);
    const char *what = gd_buf_text(&text);
    size_t len = tui_text_fit(what, c.text, tui->utf8);
    if (what[len] != '\0' && c.text > 4) { /* marks the truncation */
        len = tui_text_fit(what, c.text - (tui->utf8 ? 1 : 3), tui->utf8);
        snprintf(room, sizeof(room), "%.*s%s", (int)len, what, tui->utf8 ? "\u2026" : "...");
        what = room;
    }
    draw_text(tui->draw, row, col + used, c.text, style, what);
    gd_buf_deinit(&text);
    if (cols > used + c.text) {
        draw_figures(tui, watch, note, &c, row, col + used + c.text, style);
    }
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    const struct gd_watchpoint *watch = watch_of_row(tui, index);
    const char *where = excluded_of_row(tui, index);
    char text[512];

    if (watch) {
        draw_watch(tui, watch, &watch_state(tui)->note[index], row, col, cols, selected);
    } else if (where) {
        snprintf(text, sizeof(text), " excluded: %s", where);
        draw_text(tui->draw, row, col, cols, selected ? DRAW_REVERSE : DRAW_DIM, text);
    }
}

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    const struct gd_watchpoint *watch = watch_of_row(tui, index);
    const char *where = excluded_of_row(tui, index);

    if (watch) {
        gd_buf_printf(out, "%d %s ", watch->number, action_word(watch));
        gd_watchpoint_text(watch, out);
        if (watch->condition) {
            gd_buf_printf(out, " %s", watch->condition->id);
        }
    } else if (where) {
        gd_buf_printf(out, "excluded %s", where);
    }
}

static const struct tui_list_ops list_ops = {draw_row, row_text};

/* ---- drawing ------------------------------------------------------------------------------- */

static void draw_header(struct tui *tui, const struct draw_rect *rect)
{
    struct columns c = columns_for(watch_state(tui), rect->cols);
    char head[64];

    snprintf(head, sizeof(head), " %*s   %-5s ", c.digits, "#", "");
    int used = draw_text(tui->draw, rect->row, rect->col, rect->cols, DRAW_DIM, head);
    draw_text(tui->draw, rect->row, rect->col + used, c.text, DRAW_DIM, "watched");
    int col = rect->col + used + c.text;
    put_figure(tui, rect->cols > used + c.text, rect->row, &col, DRAW_DIM, "hits");
    put_figure(tui, c.nodes, rect->row, &col, DRAW_DIM, "nodes");
    put_figure(tui, c.unclear, rect->row, &col, DRAW_DIM, "?");
    put_figure(tui, c.share, rect->row, &col, DRAW_DIM, "cost");
}

/* Everything about the watchpoint under the cursor that its row may lack. */
static void add_detail(struct tui *tui, const struct gd_watchpoint *watch, struct watch_note *note,
                       struct gd_buf *out)
{
    const struct watch_pane *pane = watch_state(tui);
    char share[24], why[256] = "";

    gd_watchpoint_text(watch, out);
    gd_buf_printf(out, "\n%s%s", watch->enabled ? "" : "off, ", action_word(watch));
    if (watch->selector) {
        size_t nodes = nodes_of(tui, watch, note);
        gd_buf_printf(out, ", %zu node%s", nodes, nodes == 1 ? "" : "s");
    }
    gd_buf_printf(out, ", %llu hit%s", (unsigned long long)watch->hits,
                  watch->hits == 1 ? "" : "s");
    if (watch->unclear > 0) {
        gd_buf_printf(out, ", %llu not checked", (unsigned long long)watch->unclear);
    }
    if (watch->ignore > 0) {
        gd_buf_printf(out, ", ignores the next %llu hits", (unsigned long long)watch->ignore);
    }
    if (share_text(pane, note, share, sizeof(share))) {
        gd_buf_printf(out, ", %s of the cost (%.3g ms)", share, (double)note->cost_ns / 1e6);
    }
    if (watch->enabled && gd_watchpoint_place(watch, tui->debugger, tui->debugger->current, why,
                                              sizeof(why)) == GD_WATCH_PLACE_NONE) {
        gd_buf_printf(out, "\nnot active here: %s", why);
    }
    gd_buf_putc(out, '\n');
}

static void draw_none(struct tui *tui, const struct draw_rect *rect)
{
    static const char *const lines[] = {"No watchpoints.", "C-x s, then a: add one in a form;",
                                        "`recommend` sets the", "usual ones."};

    if (tui->offers > 0) {
        char text[160];
        snprintf(text, sizeof(text),
                 "Set the %zu recommended watchpoint%s? Type y or n at the prompt, then Enter; "
                 "`recommend` lists them.",
                 tui->offers, tui->offers == 1 ? "" : "s");
        tui_draw_folded(tui, rect, 0, DRAW_MARK, text);
        return;
    }
    for (int i = 0; i < 4 && i < rect->rows; i++) {
        draw_text(tui->draw, rect->row + i, rect->col, rect->cols, DRAW_DIM, lines[i]);
    }
}

static void draw_pane(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct watch_pane *pane = watch_state(tui);

    if (pane->list.count == 0) {
        draw_none(tui, rect);
        return;
    }
    struct draw_rect foot =
        tui_list_and_detail(tui, &pane->list, &list_ops, rect, draw_header, focused);
    const struct gd_watchpoint *watch = watch_of_row(tui, pane->list.cursor);
    if (foot.rows > 0) {
        struct gd_buf text = GD_BUF_INIT(16384);
        if (watch) {
            add_detail(tui, watch, &pane->note[pane->list.cursor], &text);
        } else {
            gd_buf_puts(
                &text,
                "NaN and infinite values are normal here. To watch it again: C-x s, then d.\n");
        }
        tui_detail_draw(tui, &foot, gd_buf_text(&text));
        gd_buf_deinit(&text);
    }
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct watch_pane *pane = watch_state(tui);
    size_t off = 0;

    for (const struct gd_watchpoint *w = tui->debugger->watchpoints; w; w = w->next) {
        off += w->enabled ? 0 : 1;
    }
    if (off > 0) {
        snprintf(out, size, "watch %zu, %zu off", pane->count, off);
    } else if (pane->count > 0) {
        snprintf(out, size, "watch %zu", pane->count);
    } else {
        snprintf(out, size, "watch");
    }
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void switch_it(struct tui *tui, const struct gd_watchpoint *watch)
{
    char line[48];

    if (!tui->executing) {
        snprintf(line, sizeof(line), "%s %d", watch->enabled ? "disable" : "enable", watch->number);
        tui_run_line(tui, line);
    }
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct watch_pane *pane = watch_state(tui);
    sync_rows(tui);
    const struct gd_watchpoint *watch = watch_of_row(tui, pane->list.cursor);

    switch (request) {
    case TUI_NEW: tui_watch_form(tui, 0); break;
    case TUI_EDIT:
        if (watch) {
            tui_watch_form(tui, watch->number);
        }
        break;
    case TUI_MARK:
        if (watch) {
            switch_it(tui, watch);
        }
        break;
    case TUI_OPEN:
        if (watch) {
            tui_hits_show(tui, watch->number);
            tui_set_layout(tui, LAYOUT_WATCH);
            tui_focus(tui, TUI_HITS);
        }
        break;
    default: tui_list_request(tui, &pane->list, &list_ops, request); break;
    }
}

/* `d` also removes an excluded place. */
static bool handle_key(struct tui *tui, int key)
{
    struct watch_pane *pane = watch_state(tui);
    const char *where = excluded_of_row(tui, pane->list.cursor);

    if (tui_list_key(tui, &pane->list, &list_ops, key)) {
        return true;
    }
    if (key != 'd' || !tui->single_key || !where) {
        return false;
    }
    if (!tui->executing) {
        struct gd_buf line = GD_BUF_INIT(8192);
        gd_buf_printf(&line, "exclude -d %s", where);
        tui_run_line(tui, gd_buf_text(&line));
        gd_buf_deinit(&line);
    }
    return true;
}

static bool watch_word(struct tui *tui, char which, struct gd_buf *out)
{
    const struct gd_watchpoint *watch = watch_of_row(tui, watch_state(tui)->list.cursor);

    if (which != 'w') {
        return tui_common_word(tui, which, out);
    }
    if (watch) {
        gd_buf_printf(out, "%d", watch->number);
    }
    return watch != NULL;
}

/* ---- the pane ------------------------------------------------------------------------------ */

static void init_state(struct tui *tui, void *state)
{
    struct watch_pane *pane = state;

    ev_timer_init(&pane->again, on_again, COSTS_SECONDS, 0.);
    pane->again.data = tui;
}

static void release_state(struct tui *tui, void *of)
{
    struct watch_pane *pane = of;

    ev_timer_stop(tui->loop, &pane->again);
    if (pane->awaited) {
        await_leave(pane->awaited);
    }
    free(pane->note);
}

const struct tui_pane_ops tui_watch_pane = {
    .state_size = sizeof(struct watch_pane),
    .init = init_state,
    .release = release_state,
    .update = update_watch,
    .draw = draw_pane,
    .title = make_title,
    .rows = &list_ops,
    .request = handle_request,
    .key = handle_key,
    .word = watch_word,
};
