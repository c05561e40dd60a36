// SPDX-License-Identifier: GPL-3.0-or-later
/* The tree's search ('/', n, N) and its filter ('='); both take effect while they are typed. */
#include "tui/panes/pane_tree_impl.h"

#include <stdio.h>
#include <string.h>

#include "tui/text.h"

#define CTRL(c)      ((c)&0x1f)
#define ESCAPE       0x1b
#define WORK_SECONDS 0.03 /* seconds of searching or filtering per picture */

static struct tree_line *typed_line(struct tree_pane *pane)
{
    return pane->search.typing ? &pane->search : pane->filter.typing ? &pane->filter : NULL;
}

static void line_clear(struct tree_line *line)
{
    line->text[0] = '\0';
    line->why[0] = '\0';
    line->typing = false;
    line->stale = true;
}

/* ---- looking up ---------------------------------------------------------------------------- */

static const struct gd_graph *graph_of(const struct tree_pane *pane)
{
    return pane->session ? pane->session->graph : NULL;
}

/* A filter moves the cursor to its first match after the row where typing began, not after the
 * match of an earlier, shorter text. */
static bool go_to_found(struct tree_pane *pane, const struct tui_tree_row *row)
{
    const struct tui_found *found = pane->filter.in;
    const struct tui_tree_row *from = pane->from.label ? &pane->from : row;

    if (!found || !pane->filter.typing) {
        return false;
    }
    if (!row->is_scope && tui_found_node(found, row->node)) {
        return tree_go_to_row(pane, row);
    }
    return tree_go_to_node(
        pane, tui_found_next(found, from->scope, from->is_scope ? GD_NO_NODE : from->node));
}

/* The rows have changed: keeps the cursor on its row, or moves it to the enclosing scope, or else
 * to the first match. */
static void go_back_to(struct tree_pane *pane, bool had, const struct tui_tree_row *row)
{
    struct tui_tree_pos pos;

    pane->any = tui_tree_first(pane->tree, &pos);
    if (!pane->any) {
        return;
    }
    pane->cursor = pane->top = pos;
    if (had && (go_to_found(pane, row) || tree_go_to_row(pane, row))) {
        return;
    }
    if (pane->filter.in) {
        tree_go_to_node(pane, tui_found_next(pane->filter.in, 0, GD_NO_NODE));
    }
}

static void show_filtered(struct tui *tui, struct tui_found *found)
{
    struct tree_pane *pane = &tui->tree;
    struct tree_line *line = &pane->filter;
    struct tui_tree_row row;
    bool had = tui_cursor_row(tui, &row);

    if (!had && pane->from.label) {
        row = pane->from;
        had = true;
    }
    tui_tree_filter(pane->tree, found);
    tui_found_free(line->in);
    line->in = found;
    pane->search.stale = true;
    go_back_to(pane, had, &row);
}

static void drop_next(struct tree_line *line)
{
    tui_found_free(line->next);
    line->next = NULL;
}

static bool is_blank(const struct tree_line *line)
{
    return line->text[strspn(line->text, " ")] == '\0';
}

/* Begins to look up the typed text; the previous result stays until the text is complete. */
static void look_up(struct tree_pane *pane, struct tree_line *line, const struct tui_found *within)
{
    struct gd_err err = {.code = GD_OK};

    drop_next(line);
    line->stale = false;
    line->why[0] = '\0';
    if (graph_of(pane) && !is_blank(line) &&
        tui_found_words(graph_of(pane), line->text, within, &line->next, &err) != GD_OK) {
        snprintf(line->why, sizeof(line->why), "%.95s", err.text);
        line->next = NULL;
    }
}

static void apply_filter(struct tui *tui)
{
    struct tree_pane *pane = &tui->tree;

    if (tree_types_shown(pane)) { /* nothing is looked for yet */
        drop_next(&pane->filter);
        pane->filter.stale = false;
        pane->filter.why[0] = '\0';
        return;
    }
    look_up(pane, &pane->filter, NULL);
    if (graph_of(pane) && is_blank(&pane->filter)) {
        show_filtered(tui, NULL);
    }
}

/* Searches one part of the graph, so that keys are answered in between. Returns the complete set,
 * or NULL. */
static struct tui_found *work_on(struct tui *tui, struct tree_line *line)
{
    struct tui_found *found = line->next;
    double end = ev_time() + WORK_SECONDS;

    while (found && tui_found_work(found)) {
        if (ev_time() >= end) {
            tui_changed(tui); /* the following pictures continue */
            return NULL;
        }
    }
    line->next = NULL;
    return found;
}

static void work_on_filter(struct tui *tui)
{
    struct tui_found *found = work_on(tui, &tui->tree.filter);

    if (found) {
        show_filtered(tui, found);
    }
}

/* Searches within the matches of a search, or else of a filter. */
static void search_from(struct tree_pane *pane, const struct tui_tree_row *row, bool itself,
                        bool back)
{
    const struct tui_found *in = pane->search.in ? pane->search.in : pane->filter.in;
    gd_node_id node = row->is_scope ? GD_NO_NODE : row->node;

    if (!in || (itself && node != GD_NO_NODE && tui_found_node(in, node))) {
        tree_go_to_row(pane, row);
        return;
    }
    node = back ? tui_found_previous(in, row->scope, node) : tui_found_next(in, row->scope, node);
    tree_go_to_node(pane, node);
}

static void apply_search(struct tree_pane *pane)
{
    struct tree_line *line = &pane->search;

    tui_found_free(line->in);
    line->in = NULL;
    line->goes = line->typing;
    look_up(pane, line, pane->filter.in);
}

static void work_on_search(struct tui *tui)
{
    struct tree_pane *pane = &tui->tree;
    struct tui_found *found = work_on(tui, &pane->search);

    if (!found) {
        return;
    }
    pane->search.in = found;
    if (pane->search.goes && pane->any) {
        search_from(pane, &pane->from, true, false);
    }
    pane->search.goes = false;
}

void tree_find_apply(struct tui *tui)
{
    if (tui->tree.filter.stale) {
        apply_filter(tui);
    }
    work_on_filter(tui);
    if (tui->tree.search.stale) {
        apply_search(&tui->tree);
    }
    work_on_search(tui);
}

void tree_find_again(struct tree_pane *pane)
{
    struct tree_line *lines[] = {&pane->filter, &pane->search};

    for (int i = 0; i < 2; i++) {
        drop_next(lines[i]);
        tui_found_free(lines[i]->in);
        lines[i]->in = NULL;
        lines[i]->stale = lines[i]->text[0] != '\0';
    }
    pane->from = (struct tui_tree_row){.is_scope = true};
}

void tree_find_free(struct tree_pane *pane)
{
    tui_tree_filter(pane->tree, NULL);
    tree_find_again(pane);
}

void tree_find_clear_filter(struct tui *tui)
{
    line_clear(&tui->tree.filter);
    tree_find_apply(tui);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void start_typing(struct tui *tui, struct tree_line *line)
{
    struct tui_tree_row row;

    line->typing = true;
    if (tui_cursor_row(tui, &row)) {
        tui->tree.from = row;
    }
    if (line == &tui->tree.search) {
        line->text[0] = '\0';
        line->stale = true;
    }
}

static void erase_word(char *text)
{
    do {
        tui_text_erase_last(text);
    } while (text[0] != '\0' && text[strlen(text) - 1] != ' ');
}

/* Appends a character as UTF-8. */
static void put_on(struct tree_line *line, int key)
{
    size_t len = strlen(line->text);
    char c[4];
    size_t n = key < 0x80 ? 1 : key < 0x800 ? 2 : key < 0x10000 ? 3 : 4;
    static const int lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    c[0] = (char)(lead[n] | (key >> (6 * (n - 1))));
    for (size_t i = 1; i < n; i++) {
        c[i] = (char)(0x80 | ((key >> (6 * (n - 1 - i))) & 0x3f));
    }
    if (len + n < sizeof(line->text)) {
        memcpy(line->text + len, c, n);
        line->text[len + n] = '\0';
    }
}

bool tree_find_key(struct tui *tui, int key)
{
    struct tree_pane *pane = &tui->tree;
    struct tree_line *line = typed_line(pane);

    if (!line) {
        return false;
    }
    if (tree_types_shown(pane) && tree_types_key(tui, key)) {
        return true;
    }
    pane->type = -1;
    switch (key) {
    case '\r':
    case '\n':
        tree_find_apply(tui); /* while it still counts as being typed */
        line->typing = false;
        return true;
    case ESCAPE:
        tree_find_apply(tui);
        if (line == &pane->search && pane->any) {
            tree_go_to_row(pane, &pane->from);
        }
        line_clear(line);
        return true;
    case '\t':
    case DRAW_KEY_BACKTAB: return true; /* the following keys still belong to the text */
    case DRAW_KEY_BACKSPACE:
    case 0x7f:
    case CTRL('h'): tui_text_erase_last(line->text); break;
    case CTRL('w'): erase_word(line->text); break;
    case CTRL('u'): line->text[0] = '\0'; break;
    default:
        if (key < ' ' || key >= 0x110000) {
            return false; /* keys that move within the matches, C-x, and the like */
        }
        put_on(line, key);
    }
    line->stale = true;
    return true;
}

void tree_find_types(struct tui *tui)
{
    struct tree_pane *pane = &tui->tree;

    start_typing(tui, &pane->filter);
    snprintf(pane->filter.text, sizeof(pane->filter.text), "type:");
    pane->filter.stale = true;
    pane->type = -1;
}

void tree_find_request(struct tui *tui, enum tui_request request)
{
    struct tree_pane *pane = &tui->tree;
    struct tui_tree_row row;

    switch (request) {
    case TUI_SEARCH: start_typing(tui, &pane->search); break;
    case TUI_FILTER: start_typing(tui, &pane->filter); break;
    case TUI_NEXT_MATCH:
    case TUI_PREVIOUS_MATCH:
        if (tui_cursor_row(tui, &row) && (pane->search.in || pane->filter.in)) {
            search_from(pane, &row, false, request == TUI_PREVIOUS_MATCH);
        }
        break;
    case TUI_BACK:
        if (pane->search.text[0] != '\0') {
            line_clear(&pane->search);
        } else if (pane->filter.text[0] == '\0') {
            tree_ticks_clear(tui);
        } else {
            line_clear(&pane->filter);
        }
        tree_find_apply(tui);
        break;
    default: break;
    }
}

/* ---- the bar ------------------------------------------------------------------------------- */

int tree_find_rows(const struct tree_pane *pane)
{
    return pane->search.typing || pane->filter.typing || pane->filter.text[0] != '\0' ? 1 : 0;
}

/* The typed text, and its result right-aligned. */
void tree_find_draw(struct tui *tui, int row, int col, int cols, bool focused)
{
    struct tree_pane *pane = &tui->tree;
    const struct tree_line *typed = typed_line(pane);
    const struct tree_line *line = typed ? typed : &pane->filter;
    enum draw_style style = line->why[0] != '\0' ? DRAW_ERROR : DRAW_DIM;
    char result[112] = "";

    if (line->why[0] != '\0') {
        snprintf(result, sizeof(result), "%s", line->why);
    } else if (line->next) {
        snprintf(result, sizeof(result), "searching ...");
    } else if (line->in) {
        uint32_t count = tui_found_count(line->in);
        snprintf(result, sizeof(result), "%u %s", count, count == 1 ? "node" : "nodes");
    } else if (line->text[0] == '\0') {
        snprintf(result, sizeof(result), "name /re/ type:T kind:K graph:G");
    }
    draw_fill(tui->draw, row, col, cols, DRAW_PLAIN);
    int used = draw_text(tui->draw, row, col, cols, DRAW_BOLD, line == &pane->filter ? "=" : "/");
    used += draw_text(tui->draw, row, col + used, cols - used, DRAW_BOLD, line->text);
    int room = cols - used - 2;
    int wide = (int)strlen(result) < room ? (int)strlen(result) : room;
    if (wide > 0) {
        draw_text(tui->draw, row, col + cols - wide, wide, style, result);
    }
    if (typed && focused) {
        draw_cursor(tui->draw, row, col + (used < cols ? used : cols - 1));
    }
}
