// SPDX-License-Identifier: GPL-3.0-or-later
/* The node pane: statistics of the current node's outputs, and a list of what is known about it. */
#include "tui/panes/pane_node_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT     ((size_t)1 << 20)
#define MAX_ELEMENTS 65536 /* sampled for a histogram */
/* bytes; smaller values are fetched whole, because a target may send everything for a slice */
#define WHOLE_ALWAYS ((size_t)1 << 20)

static struct node_view *view_of(struct tui *tui)
{
    return tui_state(tui, TUI_NODE);
}

/* ---- statistics ---- */

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct stats_request *request = ctx;
    struct tui *tui = request->tui;

    if (!await_take(request)) {
        return;
    }
    struct slot_stats *slot = &view_of(tui)->stats.slot[request->slot];
    view_of(tui)->stats.awaited[request->slot] = NULL;
    if (request->serial == view_of(tui)->stats.serial) {
        slot->state = !err ? STATS_HERE : STATS_FAILED;
        if (!err) {
            slot->dtype = dtype;
            slot->shape = *shape;
            slot->stats = *stats;
            slot->step = step;
        } else {
            snprintf(slot->why, sizeof(slot->why), "%.119s", err->text);
        }
    }
    tui_changed(tui);
    free(request);
}

static void ask_stats(struct tui *tui, struct gd_session *session, uint32_t slot)
{
    struct node_stats *pane = &view_of(tui)->stats;
    struct gd_tensor_ref ref = {pane->node, slot, GD_CURRENT};
    struct gd_err err = {.code = GD_OK};
    struct stats_request *request = calloc(1, sizeof(*request));

    if (!request) {
        return;
    }
    *request = (struct stats_request){.tui = tui, .slot = slot, .serial = pane->serial};
    pane->slot[slot].state = STATS_ASKED;
    pane->awaited[slot] = request;
    if (gd_session_stats(session, &ref, on_stats, request, &err) != GD_OK) {
        pane->awaited[slot] = NULL;
        pane->slot[slot].state = STATS_FAILED;
        snprintf(pane->slot[slot].why, sizeof(pane->slot[slot].why), "%.119s", err.text);
        free(request);
    }
}

/* ---- histograms ---- */

static void take_bins(struct slot_stats *slot, const struct gd_tensor *tensor)
{
    bool fits = tensor && slot->stats.min < slot->stats.max &&
                gd_stats_histogram(tensor, slot->stats.min, slot->stats.max, TUI_BINS, slot->bin,
                                   NULL) == GD_OK;
    slot->histogram = fits ? STATS_HERE : STATS_FAILED;
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct stats_request *request = ctx;
    struct tui *tui = request->tui;

    (void)step;
    if (!await_take(request)) {
        return;
    }
    view_of(tui)->stats.awaited[request->slot] = NULL;
    if (request->serial == view_of(tui)->stats.serial) {
        take_bins(&view_of(tui)->stats.slot[request->slot], !err ? tensor : NULL);
    }
    tui_changed(tui);
    free(request);
}

/* Takes every Nth index of the outer axes until few enough elements are left. */
static bool make_sample(const struct gd_shape *shape, struct gd_slice *ret)
{
    int64_t left = gd_shape_count(shape);

    *ret = (struct gd_slice){0};
    for (int i = 0; i < shape->rank && left > MAX_ELEMENTS; i++) {
        int64_t every = (left + MAX_ELEMENTS - 1) / MAX_ELEMENTS;
        every = every < shape->dim[i] ? every : shape->dim[i];
        ret->item[i] = (struct gd_slice_item){
            .kind = GD_SLICE_RANGE, .has_step = every > 1, .step = every > 1 ? every : 1};
        ret->count = i + 1;
        left = left / shape->dim[i] * ((shape->dim[i] + every - 1) / every);
    }
    return ret->count > 0;
}

/* Only where fetching the values is cheap. */
static void ask_histogram(struct tui *tui, struct gd_session *session, uint32_t slot)
{
    struct node_stats *pane = &view_of(tui)->stats;
    struct slot_stats *of = &pane->slot[slot];
    struct gd_tensor_ref ref = {pane->node, slot, GD_CURRENT};
    struct gd_slice sample;
    size_t bytes = 0;
    bool cuts = session->target && strcmp(session->target->ops->kind, "gradb.v1") == 0;

    of->histogram = STATS_FAILED;
    if (of->stats.count < 2 || !(of->stats.min < of->stats.max) ||
        gd_shape_bytes(&of->shape, of->dtype, &bytes, NULL) != GD_OK ||
        (bytes > WHOLE_ALWAYS && !cuts)) {
        return;
    }
    struct stats_request *request = calloc(1, sizeof(*request));
    if (!request) {
        return;
    }
    *request = (struct stats_request){.tui = tui, .slot = slot, .serial = pane->serial};
    of->sampled = make_sample(&of->shape, &sample);
    of->histogram = STATS_ASKED;
    pane->awaited[slot] = request;
    if (gd_session_fetch(session, &ref, &sample, on_tensor, request, NULL) != GD_OK) {
        pane->awaited[slot] = NULL;
        of->histogram = STATS_FAILED;
        free(request);
    }
}

/* ---- following the cursor ---- */

static bool is_waiting(const struct node_stats *pane)
{
    for (int i = 0; i < TUI_MAX_SLOTS; i++) {
        if (pane->awaited[i]) {
            return true;
        }
    }
    return false;
}

static void update_stats(struct tui *tui)
{
    struct node_stats *pane = &view_of(tui)->stats;
    struct gd_session *session = tui->tree.session;
    struct gd_node_info info;
    gd_node_id node = tui_cursor_node(tui);

    if (!session) {
        return;
    }
    if (session != pane->session || node != pane->node ||
        session->stop.sequence != pane->stop_sequence) {
        pane->session = session;
        pane->node = node;
        pane->stop_sequence = session->stop.sequence;
        pane->serial++;
        memset(pane->slot, 0, sizeof(pane->slot));
    }
    /* One node's requests at a time, so that a moving cursor leaves none behind. While a command
     * runs, only the command talks to the training process. */
    if (node == GD_NO_NODE || tui->executing || is_waiting(pane) || !tui_can_ask(session) ||
        !gd_graph_node(session->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.output_count && i < TUI_MAX_SLOTS; i++) {
        struct slot_stats *slot = &pane->slot[i];
        if (slot->state == STATS_NONE) {
            ask_stats(tui, session, i);
        } else if (slot->state == STATS_HERE && slot->histogram == STATS_NONE &&
                   session->state == GD_STOPPED) {
            ask_histogram(tui, session, i);
        }
    }
}

/* ---- the list ---- */

static void init_state(struct tui *tui, void *state)
{
    struct node_view *view = state;

    (void)tui;
    gd_buf_init(&view->text, MAX_TEXT);
    view->node = GD_NO_NODE;
}

static void release_state(struct tui *tui, void *state)
{
    struct node_view *view = state;

    (void)tui;
    for (int i = 0; i < TUI_MAX_SLOTS; i++) {
        if (view->stats.awaited[i]) {
            await_leave(view->stats.awaited[i]);
        }
    }
    gd_buf_deinit(&view->text);
    free(view->line);
    free(view->item);
}

static const struct node_item *selected_item(const struct node_view *view)
{
    return view->list.cursor < view->lines ? &view->item[view->line[view->list.cursor].item] : NULL;
}

/* An item with several rows is selected as a whole. */
static void draw_line(struct tui *tui, size_t index, int row, int col, int cols, bool is_cursor)
{
    const struct node_view *view = view_of(tui);
    const struct node_line *line = &view->line[index];
    int indent = line->continues && view->cols > 20 ? 6 : 0;
    bool marked = is_cursor || (tui->focus == TUI_NODE && view->list.cursor < view->lines &&
                                view->line[view->list.cursor].item == line->item);

    if (marked) {
        draw_fill(tui->draw, row, col, cols, DRAW_REVERSE);
    }
    draw_text_len(tui->draw, row, col + indent, cols - indent, marked ? DRAW_REVERSE : line->style,
                  gd_buf_text(&view->text) + line->at, line->len);
}

static void line_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    const struct node_view *view = view_of(tui);
    const struct node_line *line = &view->line[index];
    gd_buf_add(out, gd_buf_text(&view->text) + line->at, line->len);
}

static const struct tui_list_ops list_ops = {.row = draw_line, .text = line_text};

static void node_draw(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct node_view *view = view_of(tui);

    node_text_build(tui, view, rect->cols);
    tui_list_draw(tui, &view->list, &list_ops, rect, focused);
}

/* Moves to the next item and scrolls its last row into view if all of it fits. */
static void move_down(struct node_view *view)
{
    size_t at = view->list.cursor, rows = view->list.rows > 0 ? (size_t)view->list.rows : 1;

    while (at + 1 < view->lines && view->line[at + 1].continues) {
        at++;
    }
    if (at + 1 >= view->lines) {
        return;
    }
    size_t first = ++at;
    while (at + 1 < view->lines && view->line[at + 1].continues) {
        at++;
    }
    view->list.cursor = first;
    if (at - first < rows && at >= view->list.top + rows) {
        view->list.top = at - rows + 1;
    }
}

static void move_up(struct node_view *view)
{
    size_t at = view->list.cursor;

    at -= at > 0 && !view->line[at].continues ? 1 : 0;
    while (at > 0 && view->line[at].continues) {
        at--;
    }
    view->list.cursor = at;
}

/* ---- the way back ---- */

/* Node ids are only valid within one graph. */
static void places_settle(struct node_view *view, const struct gd_session *session)
{
    if (view->places.session != session || view->places.generation != session->graph_generation) {
        view->places.session = session;
        view->places.generation = session->graph_generation;
        view->places.count = 0;
    }
}

static void places_add(struct node_view *view, const struct gd_session *session, gd_node_id node)
{
    places_settle(view, session);
    if (view->places.count == NODE_PLACES) {
        view->places.count--;
        memmove(view->places.node, view->places.node + 1,
                view->places.count * sizeof(view->places.node[0]));
    }
    view->places.node[view->places.count++] = node;
}

static void select_node(struct tui *tui, const struct gd_session *session, gd_node_id node)
{
    struct gd_buf line = GD_BUF_INIT(1 << 16);

    gd_buf_puts(&line, "node ");
    tui_add_name(&line, gd_graph_name(session->graph, node));
    tui_run_line(tui, gd_buf_text(&line));
    gd_buf_deinit(&line);
    /* the cursor may be elsewhere even if it is already the current node */
    tui_tree_show(tui, node);
}

static void go_back(struct tui *tui)
{
    struct node_view *view = view_of(tui);
    struct gd_session *session = tui->tree.session;

    if (!session || tui->executing) {
        return;
    }
    places_settle(view, session);
    while (view->places.count > 0) {
        gd_node_id node = view->places.node[--view->places.count];
        if (node != view->node) {
            select_node(tui, session, node);
            return;
        }
    }
}

/* Enter: selects the node at the other end of an edge, or the hit. */
static void follow_item(struct tui *tui)
{
    struct gd_session *session = tui->tree.session;
    struct node_view *view = view_of(tui);
    const struct node_item *item = selected_item(view);
    char line[48];

    if (!item || !session || tui->executing || item->node == GD_NO_NODE) {
        return;
    }
    if (item->kind == NODE_HIT) {
        snprintf(line, sizeof(line), "hit %llu", (unsigned long long)item->number);
        tui_run_line(tui, line);
        tui_tree_show(tui, item->node);
        return;
    }
    if (view->node != GD_NO_NODE && view->node != item->node) {
        places_add(view, session, view->node);
    }
    select_node(tui, session, item->node);
}

static void node_request(struct tui *tui, enum tui_request request)
{
    struct node_view *view = view_of(tui);

    if (view->lines == 0) {
        return;
    }
    switch (request) {
    case TUI_UP: move_up(view); break;
    case TUI_DOWN: move_down(view); break;
    case TUI_OPEN: follow_item(tui); break;
    case TUI_RETURN: go_back(tui); break;
    case TUI_BACK: view->list.pattern[0] = '\0'; break;
    default: tui_list_request(tui, &view->list, &list_ops, request); break;
    }
}

static bool node_key(struct tui *tui, int key)
{
    if (tui_list_key(tui, &view_of(tui)->list, &list_ops, key)) {
        return true;
    }
    bool back = key == DRAW_KEY_BACKSPACE || key == 0x7f; /* terminals differ */
    if (back) {
        go_back(tui);
    }
    return back;
}

static bool node_click(struct tui *tui, int row, int col)
{
    struct node_view *view = view_of(tui);
    const struct node_item *before = selected_item(view);

    (void)col;
    bool was_there = tui_list_click(&view->list, row);
    return was_there || (before && selected_item(view) == before);
}

/* The word of the current row; for an edge, the node at its other end. */
static bool node_word(struct tui *tui, char which, struct gd_buf *out)
{
    struct gd_session *session = tui->tree.session;
    const struct node_item *item = selected_item(view_of(tui));

    if (!session || !item || item->node == GD_NO_NODE) {
        return false;
    }
    switch (which) {
    case 'b':
    case 'n': return tui_node_word(tui, session, item->node, which, out);
    case 'w':
    case 'h':
        if (item->kind != (which == 'w' ? NODE_WATCH : NODE_HIT)) {
            return false;
        }
        gd_buf_printf(out, "%llu", (unsigned long long)item->number);
        return true;
    case 't':
        if (item->has_slot) {
            struct gd_buf name = GD_BUF_INIT(1 << 16);
            char slot[16];
            gd_graph_slot_name(session->graph, item->node, item->slot, slot);
            gd_buf_printf(&name, "%s:%s", gd_graph_name(session->graph, item->node), slot);
            tui_add_name(out, gd_buf_text(&name));
            gd_buf_deinit(&name);
        } else {
            tui_add_name(out, gd_graph_name(session->graph, item->node));
        }
        return true;
    default: return false;
    }
}

static void node_title(struct tui *tui, char *out, size_t size)
{
    struct tui_tree_row row;
    bool scope = tui_cursor_row(tui, &row) && row.is_scope;
    snprintf(out, size, "%s", scope ? "scope" : "node");
}

const struct tui_pane_ops tui_node_pane = {
    .state_size = sizeof(struct node_view),
    .init = init_state,
    .release = release_state,
    .update = update_stats,
    .draw = node_draw,
    .title = node_title,
    .rows = &list_ops,
    .request = node_request,
    .key = node_key,
    .word = node_word,
    .click = node_click,
};
