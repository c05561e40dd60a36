// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One row of the tree: the current position (>), a breakpoint (*), watchpoint coverage (w: all
 * nodes below, ~: some, -: cannot be watched) or a tick, the name, hits, whether a dump has no
 * value of it, and further columns if they fit.
 */
#include "tui/panes/pane_tree_impl.h"

#include <stdio.h>
#include <string.h>

#include "dump/catalog.h"
#include "dump/dump_target.h"
#include "engine/watch/watchpoint.h"
#include "tui/text.h"

#define MARK_COLS  3
#define TYPE_COLS  16 /* kind letter and type, each after a blank */
#define VALUE_COLS 26 /* dtype and shape, each after a blank */
#define DTYPE_COLS 10
#define TYPE_FROM  56 /* least width of the pane for each column */
#define VALUE_FROM 80

#define NO_VALUE  "(no value)"
#define MAX_SLOTS 64 /* outputs of a node that are checked */

/* Truncates with a mark. Returns the columns used. */
static int put_text(struct tui *tui, int y, int x, int cols, enum draw_style style,
                    const char *text)
{
    const char *more = tui->utf8 ? "\u2026" : "~";

    if (cols <= 0) {
        return 0;
    }
    if (tui_text_width(text, strlen(text), tui->utf8) <= cols) {
        return draw_text(tui->draw, y, x, cols, style, text);
    }
    int used = draw_text_len(tui->draw, y, x, cols - 1, style, text,
                             tui_text_fit(text, cols - 1, tui->utf8));
    return used + draw_text(tui->draw, y, x + used, 1, style, more);
}

/* "[TO,WL?]": a question mark follows a failed check. "": no hits. */
static void hit_text(const struct tree_hit *hit, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; hit && i < TREE_HIT_WORDS && hit->word[i] && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s%s", i > 0 ? "," : "[", hit->word[i],
                                 hit->unclear[i] ? "?" : "");
    }
    if (used > 0 && used + 1 < size) {
        snprintf(out + used, size - used, "]");
    }
}

static const char *kind_letter(enum gd_node_kind kind)
{
    static const char *const letters[GD_NODE_KIND_COUNT] = {
        [GD_NODE_WEIGHT] = "W",    [GD_NODE_GRADIENT] = "G", [GD_NODE_ACTIVATION] = "A",
        [GD_NODE_PARAMETER] = "P", [GD_NODE_CONSTANT] = "C",
    };
    return (unsigned)kind < GD_NODE_KIND_COUNT && letters[kind] ? letters[kind] : " ";
}

static void draw_watch(struct tui *tui, const struct tui_tree_row *row, int y, int x)
{
    struct gd_session *session = tui->tree.session;

    if (tree_is_ticked(&tui->tree, row)) {
        draw_text(tui->draw, y, x, 1, DRAW_MARK, tui->utf8 ? "\u2713" : "x");
        return;
    }

    if (!tui->debugger->watchpoints) {
        return;
    }
    switch (row->is_scope ? gd_watch_scope_state(session, row->scope)
                          : gd_watch_node_state(session, row->node)) {
    case GD_WATCHED_ALL: draw_text(tui->draw, y, x, 1, DRAW_WATCHED, "w"); break;
    case GD_WATCHED_PART: draw_text(tui->draw, y, x, 1, DRAW_WATCHED, "~"); break;
    case GD_WATCHED_CANNOT: draw_text(tui->draw, y, x, 1, DRAW_DIM, "-"); break;
    case GD_WATCHED_NONE: break;
    }
}

static bool is_here(struct tui *tui, const struct tui_tree_row *row)
{
    const struct gd_session *session = tui->tree.session;
    return !row->is_scope && session->state != GD_RUNNING && session->stop.node == row->node;
}

static void draw_marks(struct tui *tui, const struct tui_tree_row *row, int y, int x)
{
    if (is_here(tui, row)) {
        draw_text(tui->draw, y, x, 1, DRAW_MARK, ">");
    }
    if (!row->is_scope && gd_debugger_breakpoint_at(tui->debugger, tui->tree.session, row->node)) {
        draw_text(tui->draw, y, x + 1, 1, DRAW_ERROR, "*");
    }
    draw_watch(tui, row, y, x + 2);
}

/* The name and the hits after it; a long name leaves room for the hits. */
static int draw_name(struct tui *tui, int y, int x, int cols, enum draw_style style,
                     const char *name, const char *hits)
{
    int room = (int)strlen(hits) + 1;

    if (hits[0] == '\0' || room >= cols) {
        return put_text(tui, y, x, cols, style, name);
    }
    int used = put_text(tui, y, x, cols - room, style, name) + 1;
    return used + draw_text(tui->draw, y, x + used, cols - used, DRAW_HIT, hits);
}

static void draw_scope(struct tui *tui, const struct tui_tree_row *row, int y, int x, int cols,
                       enum draw_style style)
{
    const char *sign = row->open ? (tui->utf8 ? "\u25be " : "- ") : (tui->utf8 ? "\u25b8 " : "+ ");
    uint32_t below = row->open ? 0 : tree_hits_below(&tui->tree.hits, row->scope);
    char count[24];
    char hits[24] = "";

    if (below > 0) { /* they are hidden by folding */
        snprintf(hits, sizeof(hits), "[!%u]", below);
    }
    int used = draw_text(tui->draw, y, x, cols, style, sign);
    used += draw_name(tui, y, x + used, cols - used, style, row->label, hits);
    snprintf(count, sizeof(count), " (%u)", row->count);
    draw_text(tui->draw, y, x + used, cols - used, style == DRAW_REVERSE ? style : DRAW_DIM, count);
}

/* Type and shape of the first output, and the number of further outputs. */
static void draw_value(struct tui *tui, gd_node_id node, uint32_t outputs, int y, int x,
                       enum draw_style style)
{
    struct gd_output output;
    char shape[128], text[160];

    if (!gd_graph_output(tui->tree.session->graph, node, 0, &output)) {
        return;
    }
    put_text(tui, y, x, DTYPE_COLS - 1, style, gd_dtype_name(output.dtype));
    gd_shape_text(&output.shape, shape, sizeof(shape));
    if (outputs > 1) {
        snprintf(text, sizeof(text), "%s +%u", shape, outputs - 1);
    } else {
        snprintf(text, sizeof(text), "%s", shape);
    }
    put_text(tui, y, x + DTYPE_COLS, VALUE_COLS - DTYPE_COLS - 1, style, text);
}

static int is_any(void *ctx, const struct gd_catalog_value *value)
{
    (void)ctx;
    (void)value;
    return 1;
}

/* A graph opened without values needs no mark at every node. */
static bool has_values(const struct gd_catalog *catalog)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(catalog, &count);

    for (size_t i = 0; i < count; i++) {
        if (steps[i].values > 0) {
            return true;
        }
    }
    return gd_catalog_each(catalog, GD_EVERY_STEP, is_any, NULL) != 0;
}

/* The session is a dump with values, but without one of this node at the current step. */
static bool is_missing(const struct gd_session *session, gd_node_id node,
                       const struct gd_node_info *info)
{
    const struct gd_catalog *catalog = gd_catalog_of(session);
    int64_t step = session->stop.step;

    if (!catalog || !has_values(catalog)) {
        return false;
    }
    for (uint32_t slot = 0; slot < info->output_count && slot < MAX_SLOTS; slot++) {
        if (gd_catalog_find(catalog, node, slot, step) ||
            gd_catalog_find_given(catalog, session->graph, node, slot, step)) {
            return false;
        }
    }
    return info->output_count <= MAX_SLOTS;
}

/* Drawn after the name if all of it fits. Returns the columns used. */
static int draw_missing(struct tui *tui, int y, int x, int cols, enum draw_style style)
{
    int need = (int)strlen(NO_VALUE);

    return need < cols ? 1 + draw_text(tui->draw, y, x + 1, cols - 1, style, NO_VALUE) : 0;
}

static void draw_node(struct tui *tui, const struct tui_tree_row *row, int y, int x, int cols,
                      int wide, enum draw_style style)
{
    struct gd_node_info info;
    const struct tree_pane *pane = &tui->tree;
    enum draw_style dim = style == DRAW_REVERSE ? style : DRAW_DIM;
    int columns = wide >= VALUE_FROM ? TYPE_COLS + VALUE_COLS : wide >= TYPE_FROM ? TYPE_COLS : 0;
    char hits[64];

    if (style == DRAW_PLAIN) {
        bool found = pane->search.in && tui_found_node(pane->search.in, row->node);
        style = is_here(tui, row) ? DRAW_MARK : found ? DRAW_MATCH : style;
    }
    hit_text(tree_hits_of_node(&pane->hits, row->node), hits, sizeof(hits));
    bool known = gd_graph_node(pane->session->graph, row->node, &info);
    bool missing = known && is_missing(pane->session, row->node, &info);
    style = missing && style == DRAW_PLAIN ? DRAW_DIM : style;
    int used = draw_name(tui, y, x, cols - columns, style, row->label, hits);
    if (!known) {
        return;
    }
    if (missing) {
        used += draw_missing(tui, y, x + used, cols - columns - used, dim);
    }
    if (columns == 0) { /* a name such as MatMul-op7 already contains the type */
        if (strncmp(row->label, info.type, strlen(info.type)) != 0) {
            draw_text(tui->draw, y, x + used + 1, cols - used - 1, dim, info.type);
        }
        return;
    }
    x += cols - columns + 1;
    draw_text(tui->draw, y, x, 1, dim, kind_letter(info.kind));
    put_text(tui, y, x + 2, TYPE_COLS - 3, dim, info.type);
    if (wide >= VALUE_FROM) {
        draw_value(tui, row->node, info.output_count, y, x + TYPE_COLS, dim);
    }
}

void tree_row_draw(struct tui *tui, const struct tui_tree_row *row, int y,
                   const struct draw_rect *rect, bool cursor)
{
    enum draw_style style = cursor ? DRAW_REVERSE : row->is_scope ? DRAW_SCOPE : DRAW_PLAIN;
    int indent = 2 * row->depth + (row->is_scope ? 0 : 2);
    int most = rect->cols / 2; /* indentation leaves room for names at any depth */
    int x = rect->col + MARK_COLS;
    int cols = rect->cols - MARK_COLS;

    if (rect->cols >= TYPE_FROM && most > rect->cols / 4) {
        most = rect->cols / 4; /* the columns need room as well */
    }
    indent = indent < most ? indent : most;
    if (cursor) {
        draw_fill(tui->draw, y, x, cols, DRAW_REVERSE);
    }
    draw_marks(tui, row, y, rect->col);
    if (row->is_scope) {
        draw_scope(tui, row, y, x + indent, cols - indent, style);
    } else {
        draw_node(tui, row, y, x + indent, cols - indent, rect->cols, style);
    }
}
