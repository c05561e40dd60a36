// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph pane: a tree that opens and folds. Follows the session, moves the cursor, draws
 * rows. */
#include "tui/panes/detail.h"
#include "tui/panes/pane_tree_impl.h"

#include <stdio.h>
#include <string.h>

#define FEW_ROWS 12 /* up to this many top-level scopes open by themselves */

static struct tree_pane *pane_of(struct tui *tui)
{
    return &tui->tree;
}

bool tui_cursor_row(struct tui *tui, struct tui_tree_row *ret)
{
    struct tree_pane *pane = pane_of(tui);
    return pane->any && tui_tree_get(pane->tree, &pane->cursor, ret);
}

gd_node_id tui_cursor_node(struct tui *tui)
{
    struct tui_tree_row row;
    return tui_cursor_row(tui, &row) && !row.is_scope ? row.node : GD_NO_NODE;
}

/* ---- following the session ---- */

static bool same_pos(const struct tui_tree_pos *a, const struct tui_tree_pos *b)
{
    return a->in == b->in && a->index == b->index;
}

/* Opens the outer scopes of a graph that is shown for the first time. */
static void open_outer(struct tree_pane *pane)
{
    struct tui_tree_pos pos;
    struct tui_tree_row row;
    gd_scope_id outer[FEW_ROWS];
    int count = 0;

    for (bool more = tui_tree_first(pane->tree, &pos); more && count < FEW_ROWS;
         more = tui_tree_next(pane->tree, &pos)) {
        if (tui_tree_get(pane->tree, &pos, &row) && row.is_scope) {
            outer[count++] = row.scope;
        }
    }
    for (int i = 0; i < count; i++) {
        if (tui_tree_reveal_scope(pane->tree, outer[i], &pos) == GD_OK) {
            tui_tree_open(pane->tree, &pos, true);
        }
    }
}

/* Whether the cursor is within a page from *pos; else leaves *pos at the row after that page. */
static bool find_cursor(const struct tree_pane *pane, struct tui_tree_pos *pos)
{
    for (int i = 0; i < pane->rows; i++) {
        if (same_pos(pos, &pane->cursor)) {
            return true;
        }
        if (!tui_tree_next(pane->tree, pos)) {
            break;
        }
    }
    return false;
}

static void center_cursor(struct tree_pane *pane)
{
    pane->top = pane->cursor;
    for (int i = 0; i < pane->rows / 2; i++) {
        tui_tree_previous(pane->tree, &pane->top);
    }
}

bool tree_go_to_row(struct tree_pane *pane, const struct tui_tree_row *row)
{
    struct tui_tree_pos pos;
    int rc = row->is_scope ? tui_tree_reveal_scope(pane->tree, row->scope, &pos)
                           : tui_tree_reveal(pane->tree, row->node, &pos);
    if (rc == GD_OK) {
        pane->cursor = pos;
        pos = pane->top;
        tui_tree_settle(pane->tree, &pos);
        if (!find_cursor(pane, &pos)) { /* near the window, follow_cursor scrolls */
            center_cursor(pane);
        }
    }
    return rc == GD_OK;
}

bool tree_go_to_node(struct tree_pane *pane, gd_node_id node)
{
    struct tui_tree_row row = {.node = node, .scope = GD_NO_SCOPE};
    return node != GD_NO_NODE && tree_go_to_row(pane, &row);
}

void tui_tree_show(struct tui *tui, gd_node_id node)
{
    struct tree_pane *pane = pane_of(tui);

    if (node == GD_NO_NODE || !pane->session) {
        return;
    }
    if (pane->filter.in && !tui_found_node(pane->filter.in, node)) {
        tree_find_clear_filter(tui);
    }
    tree_go_to_node(pane, node);
}

static void take_graph(struct tui *tui, struct gd_session *session)
{
    struct tree_pane *pane = pane_of(tui);
    struct tui_tree_row row;
    bool same = session == pane->session;
    bool had = same && tui_cursor_row(tui, &row);

    tui_tree_set_graph(pane->tree, session ? session->graph : NULL, same);
    tree_find_again(pane);
    pane->ticks = same ? pane->ticks : 0;
    pane->session = session;
    pane->generation = session ? session->graph_generation : 0;
    pane->any = tui_tree_first(pane->tree, &pane->cursor);
    pane->top = pane->cursor;
    if (had && pane->any) {
        tree_go_to_row(pane, &row);
    } else if (pane->any) {
        open_outer(pane);
        pane->stop_sequence = 0;
        pane->current = GD_NO_NODE;
    }
}

void tui_tree_update(struct tui *tui)
{
    struct tree_pane *pane = pane_of(tui);
    struct gd_session *session = tui->debugger->current;

    if (session != pane->session || (session && session->graph_generation != pane->generation)) {
        take_graph(tui, session);
    }
    tree_find_apply(tui);
    tree_hits_update(&pane->hits, session);
    if (!session || session->state == GD_RUNNING) {
        return;
    }
    if (session->stop.sequence != pane->stop_sequence) {
        tree_go_to_node(pane, session->current); /* keeps a filter that hides it */
    } else if (session->current != pane->current) {
        tui_tree_show(tui, session->current); /* the user selected it */
    }
    pane->stop_sequence = session->stop.sequence;
    pane->current = session->current;
}

/* ---- moving ---- */

static void move_by(struct tree_pane *pane, int rows)
{
    for (; rows > 0 && tui_tree_next(pane->tree, &pane->cursor); rows--) {
    }
    for (; rows < 0 && tui_tree_previous(pane->tree, &pane->cursor); rows++) {
    }
}

static void fold_scope(struct tree_pane *pane)
{
    struct tui_tree_row row;

    if (tui_tree_get(pane->tree, &pane->cursor, &row) && row.is_scope && row.open) {
        tui_tree_open(pane->tree, &pane->cursor, false);
    } else {
        tui_tree_up(pane->tree, &pane->cursor);
    }
}

/* Opens or folds a scope; makes a node the current one, as the command `node` does. */
static void toggle_row(struct tui *tui, const struct tui_tree_row *row)
{
    struct tree_pane *pane = pane_of(tui);
    struct gd_buf line = GD_BUF_INIT(1 << 16);

    if (row->is_scope) {
        tui_tree_open(pane->tree, &pane->cursor, !row->open);
        return;
    }
    gd_buf_puts(&line, "node ");
    tui_add_name(&line, gd_graph_name(pane->session->graph, row->node));
    if (!tui->executing) {
        tui_run_line(tui, gd_buf_text(&line));
    }
    gd_buf_deinit(&line);
}

static void tree_request(struct tui *tui, enum tui_request request)
{
    struct tree_pane *pane = pane_of(tui);
    struct tui_tree_row row;
    int page = pane->rows > 1 ? pane->rows - 1 : 1;

    tree_find_apply(tui); /* for the text typed before this key */
    if (request == TUI_FILTER || request == TUI_BACK || request == TUI_SEARCH ||
        request == TUI_NEXT_MATCH || request == TUI_PREVIOUS_MATCH) {
        tree_find_request(tui, request);
        return;
    }
    if (request == TUI_NEW) {
        tui_watch_form(tui, 0);
        return;
    }
    if (request == TUI_TYPES) {
        tree_find_types(tui);
        return;
    }
    if (!tui_cursor_row(tui, &row)) {
        return;
    }
    switch (request) {
    case TUI_UP: move_by(pane, -1); break;
    case TUI_DOWN: move_by(pane, 1); break;
    case TUI_PAGE_UP: move_by(pane, -page); break;
    case TUI_PAGE_DOWN: move_by(pane, page); break;
    case TUI_HALF_UP: move_by(pane, -(page + 1) / 2); break;
    case TUI_HALF_DOWN: move_by(pane, (page + 1) / 2); break;
    case TUI_TOP: tui_tree_first(pane->tree, &pane->cursor); break;
    case TUI_BOTTOM: tui_tree_last(pane->tree, &pane->cursor); break;
    case TUI_FOLD: fold_scope(pane); break;
    case TUI_UNFOLD: tui_tree_open(pane->tree, &pane->cursor, true); break;
    case TUI_MARK: tree_tick(tui, &row); break;
    case TUI_OPEN: toggle_row(tui, &row); break;
    default: break;
    }
}

/* ---- drawing ---- */

/* Scrolls so that the cursor is visible. Searches at most one page for it: if it is not there it
 * moved far, and the window moves with it. */
static void follow_cursor(struct tree_pane *pane)
{
    struct tui_tree_pos above = pane->top, below = pane->top;
    struct tui_tree_row row;

    if (tui_tree_get(pane->tree, &below, &row) && find_cursor(pane, &below)) {
        return;
    }
    /* One line beyond an edge scrolls by one line. */
    if (tui_tree_previous(pane->tree, &above) && same_pos(&above, &pane->cursor)) {
        pane->top = above;
    } else if (same_pos(&below, &pane->cursor)) {
        tui_tree_next(pane->tree, &pane->top);
    } else {
        center_cursor(pane);
    }
}

/* Leaves no blank rows at the bottom while rows above are hidden. */
static void fill_up(struct tree_pane *pane)
{
    struct tui_tree_pos pos = pane->top;
    int rows = 1;

    while (rows < pane->rows && tui_tree_next(pane->tree, &pos)) {
        rows++;
    }
    while (rows < pane->rows && tui_tree_previous(pane->tree, &pane->top)) {
        rows++;
    }
}

static void keep_in_view(struct tree_pane *pane)
{
    tui_tree_settle(pane->tree, &pane->cursor);
    tui_tree_settle(pane->tree, &pane->top);
    follow_cursor(pane);
    fill_up(pane);
}

static void draw_empty(struct tui *tui, const struct draw_rect *rect)
{
    const char *text = !tui->debugger->current ? "no training process is connected"
                       : tui->tree.filter.in   ? "no node matches: Esc shows all"
                                               : "no graph yet";
    tui_draw_folded(tui, rect, 0, DRAW_DIM, text);
}

static void draw_rows(struct tui *tui, const struct draw_rect *rect)
{
    struct tree_pane *pane = pane_of(tui);
    struct tui_tree_row row;

    keep_in_view(pane);
    struct tui_tree_pos pos = pane->top;
    for (int i = 0; i < rect->rows && tui_tree_get(pane->tree, &pos, &row); i++) {
        tree_row_draw(tui, &row, rect->row + i, rect, same_pos(&pos, &pane->cursor));
        if (!tui_tree_next(pane->tree, &pos)) {
            break;
        }
    }
}

static void tree_draw(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct tree_pane *pane = pane_of(tui);
    struct draw_rect rows = *rect;
    int bar = rect->rows > 1 ? tree_find_rows(pane) : 0;

    rows.rows -= bar;
    pane->rows = rows.rows;
    if (tree_types_shown(pane)) {
        tree_types_draw(tui, &rows);
    } else if (pane->any) {
        draw_rows(tui, &rows);
    } else {
        draw_empty(tui, &rows);
    }
    if (bar > 0) {
        tree_find_draw(tui, rect->row + rows.rows, rect->col, rect->cols, focused);
    }
}

static void tree_title(struct tui *tui, char *out, size_t size)
{
    struct gd_graph_counts counts;
    struct gd_session *session = pane_of(tui)->session;

    if (!session) {
        snprintf(out, size, "graph");
        return;
    }
    gd_graph_counts(session->graph, &counts);
    int used = snprintf(out, size, "graph: %u nodes", counts.nodes);
    if (tree_tick_count(tui) > 0) {
        snprintf(out + used, size - (size_t)used, ", %zu ticked: C-x s a", tree_tick_count(tui));
    }
}

/* Refers to the node under the cursor, even if another node is current. */
static bool tree_word(struct tui *tui, char which, struct gd_buf *out)
{
    return tui_node_word(tui, pane_of(tui)->session, tui_cursor_node(tui), which, out);
}

static bool tree_click(struct tui *tui, int row, int col)
{
    struct tree_pane *pane = pane_of(tui);
    struct tui_tree_pos pos = pane->top;

    (void)col;
    if (!pane->any || row >= pane->rows) {
        return false;
    }
    tui_tree_settle(pane->tree, &pos);
    for (; row > 0; row--) {
        if (!tui_tree_next(pane->tree, &pos)) {
            return false; /* below the last row */
        }
    }
    bool was_there = same_pos(&pos, &pane->cursor);
    pane->cursor = pos;
    return was_there;
}

static enum tui_search tree_search(struct tui *tui)
{
    const struct tree_pane *pane = pane_of(tui);

    return pane->search.typing || pane->filter.typing                     ? TUI_TYPING
           : pane->search.text[0] != '\0' || pane->filter.text[0] != '\0' ? TUI_SEARCHED
                                                                          : TUI_NO_SEARCH;
}

/* The state is part of struct tui, because the tree's cursor exists in every layout. */
static void release_state(struct tui *tui, void *state)
{
    struct tree_pane *pane = pane_of(tui);

    (void)state;
    tree_find_free(pane);
    tree_hits_free(&pane->hits);
}

const struct tui_pane_ops tui_tree_pane = {
    .release = release_state,
    .draw = tree_draw,
    .title = tree_title,
    .request = tree_request,
    .search = tree_search,
    .key = tree_find_key,
    .word = tree_word,
    .click = tree_click,
};
