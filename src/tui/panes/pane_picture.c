// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The picture of what is around the current node (repl/values/picture.h). It is made again only
 * when the graph, the stop, its hits or the view have changed. The cursor is on a box.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/utf8.h"
#include "repl/values/picture.h"
#include "tui/panes/detail.h"

struct picture_pane {
    struct picture *picture; /* NULL: see why */
    char why[160];
    int cursor; /* a box */
    int top, left, rows, cols;
    bool placed; /* the window was moved to the cursor */
    /* what the picture shows */
    int session;
    uint64_t generation, stop, hits, hits_generation, changes;
    bool utf8;
    gd_node_id node; /* its centre */
    gd_scope_id scope;
};

static struct picture_pane *picture_state(struct tui *tui)
{
    return tui_state(tui, TUI_PICTURE);
}

/* ---- following the session ----------------------------------------------------------------- */

static bool is_current(struct tui *tui, const struct gd_session *session,
                       const struct picture_view *view)
{
    const struct picture_pane *pane = picture_state(tui);

    return pane->session == session->number && pane->generation == session->graph_generation &&
           pane->stop == session->stop.sequence && pane->utf8 == tui->utf8 &&
           pane->hits == session->hits_dropped + session->hit_count &&
           pane->hits_generation == session->hits_generation && pane->changes == view->changes;
}

/* The box of what the cursor was on; otherwise the centre. */
static int same_box(const struct picture *picture, const struct gd_nearby_box *old)
{
    for (int i = 0; i < picture->nearby.box_count; i++) {
        const struct gd_nearby_box *box = &picture->nearby.box[i];
        if (box->kind == old->kind && box->node == old->node && box->scope == old->scope) {
            return i;
        }
    }
    return 0;
}

static void make_again(struct tui *tui, struct gd_session *session, struct picture_view *view)
{
    struct picture_pane *pane = picture_state(tui);
    struct gd_err err = {.code = GD_OK};
    struct picture *made = NULL;
    bool moved = pane->session != session->number || pane->changes != view->changes;

    if (picture_make(session, view, tui->utf8, &made, &err) != GD_OK) {
        snprintf(pane->why, sizeof(pane->why), "%.150s", err.text);
    } else if (pane->picture) {
        bool same = pane->session == session->number && pane->node == view->node &&
                    pane->scope == view->scope;
        pane->cursor = same ? same_box(made, &pane->picture->nearby.box[pane->cursor]) : 0;
        pane->placed = pane->placed && !moved;
    }
    pane->cursor = made && pane->picture ? pane->cursor : 0;
    pane->placed = pane->placed && made && pane->picture;
    picture_free(pane->picture);
    pane->picture = made;
    pane->session = session->number;
    pane->generation = session->graph_generation;
    pane->stop = session->stop.sequence;
    pane->hits = session->hits_dropped + session->hit_count;
    pane->hits_generation = session->hits_generation;
    pane->changes = view->changes;
    pane->utf8 = tui->utf8;
    pane->node = view->node;
    pane->scope = view->scope;
}

/* Without a current node, what the tree's cursor is on. */
static void center_on_tree(struct tui *tui, struct gd_session *session, struct picture_view *view)
{
    struct tui_tree_row row;

    if (session->current != GD_NO_NODE || view->given || !tui_cursor_row(tui, &row)) {
        return;
    }
    gd_node_id node = row.is_scope ? GD_NO_NODE : row.node;
    gd_scope_id scope = row.is_scope ? row.scope : GD_NO_SCOPE;
    if (view->node != node || view->scope != scope) {
        picture_center(view, session, node, scope);
        view->given = false;
    }
}

static void update_picture(struct tui *tui)
{
    struct picture_pane *pane = picture_state(tui);
    struct gd_session *session = tui->debugger->current;

    if (!session || !session->graph) {
        picture_free(pane->picture);
        pane->picture = NULL;
        pane->session = 0;
        snprintf(pane->why, sizeof(pane->why), "no graph yet");
        return;
    }
    struct picture_view *view = picture_view(tui->repl, session);
    center_on_tree(tui, session, view);
    if (view->node == GD_NO_NODE && view->scope == GD_NO_SCOPE) {
        view->scope = 0;
    }
    if (!is_current(tui, session, view)) {
        make_again(tui, session, view);
    }
}

/* ---- drawing ------------------------------------------------------------------------------- */

/* Moves the window as little as needed to show a range; a large one from its start. */
static int scroll_to(int first, int size, int window, int at, int length)
{
    first = at + length > first + window ? at + length - window : first;
    first = at < first ? at : first;
    first = first + window > size ? size - window : first;
    return first > 0 ? first : 0;
}

static void follow_cursor(struct picture_pane *pane)
{
    const struct picture *picture = pane->picture;
    const struct picture_box *box = &picture->box[pane->cursor];

    if (!pane->placed) { /* the cursor in the middle */
        pane->top = box->row + box->rows / 2 - pane->rows / 2;
        pane->left = box->col + box->width / 2 - pane->cols / 2;
        pane->placed = true;
    }
    pane->top = scroll_to(pane->top, picture->rows, pane->rows, box->row, box->rows);
    pane->left = scroll_to(pane->left, picture->cols, pane->cols, box->col, box->width);
}

static enum draw_style style_of(uint8_t style)
{
    static const enum draw_style styles[] = {
        [PICTURE_TEXT] = DRAW_PLAIN,  [PICTURE_LINE] = DRAW_PLAIN,  [PICTURE_BACK] = DRAW_CHANGED,
        [PICTURE_SCOPE] = DRAW_SCOPE, [PICTURE_CENTER] = DRAW_MARK, [PICTURE_HIT] = DRAW_HIT,
        [PICTURE_DIM] = DRAW_DIM,
    };
    return styles[style];
}

static bool is_in(const struct picture_box *box, int row, int col)
{
    return row >= box->row && row < box->row + box->rows && col >= box->col &&
           col < box->col + box->width;
}

/* Runs of one style at a time. */
static void draw_line(struct tui *tui, const struct draw_rect *rect, int line, bool focused)
{
    const struct picture_pane *pane = picture_state(tui);
    const struct picture *picture = pane->picture;
    const struct picture_box *box = &picture->box[pane->cursor];
    int row = pane->top + line;
    char text[8];

    for (int i = 0; i < rect->cols && pane->left + i < picture->cols; i++) {
        int col = pane->left + i;
        const struct picture_cell *cell =
            &picture->cell[(size_t)row * (size_t)picture->cols + (size_t)col];
        bool here = focused && is_in(box, row, col);
        if (cell->code == 0 || (cell->code == ' ' && !here)) {
            continue;
        }
        text[gd_utf8_encode(cell->code, text)] = '\0';
        draw_text(tui->draw, rect->row + line, rect->col + i, rect->cols - i,
                  here ? DRAW_REVERSE : style_of(cell->style), text);
    }
}

static void draw_picture(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct picture_pane *pane = picture_state(tui);

    pane->rows = rect->rows;
    pane->cols = rect->cols;
    if (!pane->picture) {
        tui_draw_folded(tui, rect, 0, DRAW_DIM, pane->why);
        return;
    }
    follow_cursor(pane);
    for (int i = 0; i < rect->rows && pane->top + i < pane->picture->rows; i++) {
        draw_line(tui, rect, i, focused);
    }
}

static const char *name_of(struct tui *tui, const struct gd_nearby_box *box)
{
    const struct gd_session *session = tui->debugger->current;
    struct gd_scope_info scope;

    if (!session || box->kind == GD_NEARBY_MORE) {
        return "";
    }
    return box->kind == GD_NEARBY_NODE ? gd_graph_name(session->graph, box->node)
           : gd_graph_scope(session->graph, box->scope, &scope) ? scope.name
                                                                : "";
}

/* What the cursor is on, and the part of the picture that is seen. */
static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct picture_pane *pane = picture_state(tui);
    const struct picture *picture = pane->picture;

    if (!picture) {
        snprintf(out, size, "picture");
        return;
    }
    bool hidden = picture->rows > pane->rows || picture->cols > pane->cols;
    snprintf(out, size, "picture%s %.60s", hidden ? " (scrolls)" : "",
             name_of(tui, &picture->nearby.box[pane->cursor]));
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void run_on(struct tui *tui, const char *command, const char *name)
{
    struct gd_buf line = GD_BUF_INIT(1 << 16);

    if (!tui->executing && name[0] != '\0') {
        gd_buf_puts(&line, command);
        tui_add_name(&line, name);
        tui_run_line(tui, gd_buf_text(&line));
    }
    gd_buf_deinit(&line);
}

static void open_box(struct tui *tui, const struct gd_nearby_box *box, bool node_too)
{
    if (box->kind == GD_NEARBY_SCOPE) {
        run_on(tui, "picture -open ", name_of(tui, box));
    } else if (node_too) {
        run_on(tui, "node ", name_of(tui, box));
    }
}

/* The scope around the box becomes one box. */
static void fold_box(struct tui *tui, const struct gd_nearby_box *box)
{
    const struct gd_session *session = tui->debugger->current;
    struct gd_node_info node;
    struct gd_scope_info scope;
    gd_scope_id around = 0;

    if (box->kind == GD_NEARBY_NODE && gd_graph_node(session->graph, box->node, &node)) {
        around = node.scope;
    } else if (box->kind == GD_NEARBY_SCOPE && gd_graph_scope(session->graph, box->scope, &scope)) {
        around = scope.parent != GD_NO_SCOPE ? scope.parent : 0;
    }
    if (around != 0 && gd_graph_scope(session->graph, around, &scope)) {
        run_on(tui, "picture -fold ", scope.name);
    }
}

static void switch_mode(struct tui *tui)
{
    const struct picture_view *view = picture_view(tui->repl, tui->debugger->current);

    if (!tui->executing) {
        tui_run_line(tui, view->tensors ? "picture -nodes" : "picture -tensors");
    }
}

/* The first or last box in the order of reading. */
static int end_box(const struct picture *picture, bool last)
{
    int best = 0;

    for (int i = 1; i < picture->nearby.box_count; i++) {
        const struct picture_box *a = &picture->box[i], *b = &picture->box[best];
        bool before = a->col != b->col ? a->col < b->col : a->row < b->row;
        best = before != last ? i : best;
    }
    return best;
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct picture_pane *pane = picture_state(tui);

    update_picture(tui);
    if (!pane->picture) {
        return;
    }
    const struct gd_nearby_box *box = &pane->picture->nearby.box[pane->cursor];
    int page = pane->rows > 1 ? pane->rows - 1 : 1, by_row = 0, by_col = 0, times = 1;
    switch (request) {
    case TUI_UP: by_row = -1; break;
    case TUI_DOWN: by_row = 1; break;
    case TUI_LEFT: by_col = -1; break;
    case TUI_RIGHT: by_col = 1; break;
    case TUI_PAGE_UP:
    case TUI_HALF_UP: by_row = -1, times = page; break;
    case TUI_PAGE_DOWN:
    case TUI_HALF_DOWN: by_row = 1, times = page; break;
    case TUI_TOP: pane->cursor = end_box(pane->picture, false); return;
    case TUI_BOTTOM: pane->cursor = end_box(pane->picture, true); return;
    case TUI_OPEN: open_box(tui, box, true); return;
    case TUI_UNFOLD: open_box(tui, box, false); return;
    case TUI_FOLD: fold_box(tui, box); return;
    case TUI_MODE: switch_mode(tui); return;
    default: return;
    }
    while (times-- > 0) {
        pane->cursor = picture_move(pane->picture, pane->cursor, by_row, by_col);
    }
}

static bool picture_word(struct tui *tui, char which, struct gd_buf *out)
{
    const struct picture_pane *pane = picture_state(tui);
    const struct picture *picture = pane->picture;

    if (!picture || picture->nearby.box[pane->cursor].kind != GD_NEARBY_NODE) {
        return false;
    }
    return tui_node_word(tui, tui->debugger->current, picture->nearby.box[pane->cursor].node, which,
                         out);
}

static bool handle_click(struct tui *tui, int row, int col)
{
    struct picture_pane *pane = picture_state(tui);

    for (int i = 0; pane->picture && i < pane->picture->nearby.box_count; i++) {
        if (is_in(&pane->picture->box[i], pane->top + row, pane->left + col)) {
            bool was_there = pane->cursor == i;
            pane->cursor = i;
            return was_there;
        }
    }
    return false;
}

static void release_state(struct tui *tui, void *state)
{
    struct picture_pane *pane = state;

    (void)tui;
    picture_free(pane->picture);
}

const struct tui_pane_ops tui_picture_pane = {
    .state_size = sizeof(struct picture_pane),
    .release = release_state,
    .update = update_picture,
    .draw = draw_picture,
    .title = make_title,
    .request = handle_request,
    .word = picture_word,
    .click = handle_click,
};
