// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: picture */
#include <string.h>

#include "engine/utf8.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/picture.h"

/* ---- output -------------------------------------------------------------------------------- */

static const char *sgr_of(struct command_call *call, uint8_t style)
{
    static const char *const sgrs[] = {
        [PICTURE_LINE] = "2",      [PICTURE_BACK] = "33",  [PICTURE_SCOPE] = "36",
        [PICTURE_CENTER] = "1;33", [PICTURE_HIT] = "1;35", [PICTURE_DIM] = "2",
    };
    return style == PICTURE_TEXT ? "" : out_sgr(call->out, sgrs[style]);
}

static bool is_blank(const struct picture_cell *cell)
{
    return cell->code == ' ';
}

static void print_row(struct command_call *call, const struct picture *picture, int row, int from,
                      int to)
{
    struct gd_buf line = GD_BUF_INIT(1 << 20);
    const struct picture_cell *cell = &picture->cell[(size_t)row * (size_t)picture->cols];
    uint8_t style = PICTURE_TEXT;
    char text[8];

    while (to > from && is_blank(&cell[to - 1])) {
        to--;
    }
    for (int col = from; col < to; col++) {
        if (cell[col].style != style && !is_blank(&cell[col])) {
            gd_buf_puts(&line, style != PICTURE_TEXT ? out_sgr(call->out, OUT_RESET) : "");
            gd_buf_puts(&line, sgr_of(call, cell[col].style));
            style = cell[col].style;
        }
        if (cell[col].code != 0) {
            gd_buf_add(&line, text, gd_utf8_encode(cell[col].code, text));
        }
    }
    gd_buf_puts(&line, style != PICTURE_TEXT ? out_sgr(call->out, OUT_RESET) : "");
    gd_buf_putc(&line, '\n');
    out_write(call->out, gd_buf_text(&line), line.len);
    gd_buf_deinit(&line);
}

/* On a terminal that is too narrow, the columns around the centre. */
static void print_picture(struct command_call *call, const struct picture *picture)
{
    int width = out_width(call->out), from = 0, to = picture->cols;

    if (width > 0 && picture->cols > width) {
        from = picture->box[0].col + picture->box[0].width / 2 - width / 2;
        from = from + width > picture->cols ? picture->cols - width : from;
        from = from > 0 ? from : 0;
        to = from + width;
    }
    for (int row = 0; row < picture->rows; row++) {
        print_row(call, picture, row, from, to);
    }
    if (to - from < picture->cols) {
        out_printf(call->out,
                   "Columns %d to %d of %d: a smaller -d or a wider terminal shows all.\n",
                   from + 1, to, picture->cols);
    }
    if (picture->nearby.cut) {
        out_printf(call->out, "This is not all: a smaller -d shows all of fewer nodes.\n");
    }
}

static void add_name(struct command_call *call, cJSON *item, const struct gd_nearby_box *box)
{
    const struct gd_graph *graph = call->session->graph;
    struct gd_scope_info scope;

    if (box->kind == GD_NEARBY_NODE) {
        inspect_add_node(call, item, box->node);
    } else if (box->kind == GD_NEARBY_SCOPE && gd_graph_scope(graph, box->scope, &scope)) {
        out_set(item, OUT_TEXT("scope", scope.name), OUT_INT("nodes", scope.total_count));
    } else {
        out_set(item, OUT_INT("more", box->more));
    }
}

static void record_picture(struct command_call *call, const struct picture *picture)
{
    const struct gd_nearby *nearby = &picture->nearby;
    cJSON *record = out_record(call->out, "picture");
    cJSON *boxes = out_list(record, "boxes"), *edges = out_list(record, "edges");

    for (int i = 0; i < nearby->box_count; i++) {
        cJSON *item = out_push(boxes);
        add_name(call, item, &nearby->box[i]);
        out_set(item, OUT_INT("distance", nearby->box[i].distance));
    }
    for (int i = 0; i < nearby->edge_count; i++) {
        const struct gd_nearby_edge *edge = &nearby->edge[i];
        out_set(out_push(edges), OUT_INT("from", edge->from), OUT_INT("slot", edge->slot),
                OUT_INT("to", edge->to), OUT_BOOL("control", edge->control));
    }
    out_set(record, OUT_BOOL("truncated", nearby->cut));
}

/* ---- the command --------------------------------------------------------------------------- */

/* NODE, NODE:SLOT, SCOPE or ".". */
static int take_centre(struct command_call *call, struct picture_view *view, struct gd_err *err)
{
    const char *text = inspect_join(call, 0, call->argc);
    const char *colon = strrchr(text, ':');
    struct gd_err of_scope = {.code = GD_OK};
    gd_node_id node;
    gd_scope_id scope;
    uint32_t slot;

    if (strchr(text, '/') && text[strlen(text) - 1] == '/') {
        int rc = nodes_find_scope(call, text, &scope, err);
        if (rc == GD_OK) {
            picture_center(view, call->session, GD_NO_NODE, scope);
        }
        return rc;
    }
    bool whole = gd_graph_lookup(call->session->graph, text, strlen(text)) != GD_NO_NODE;
    const char *name = inspect_printf(call, "%.*s", colon ? (int)(colon - text) : 0, text);
    if (colon && !whole && inspect_node(call, name, &node, &of_scope) == GD_OK) {
        if (!gd_graph_slot_find(call->session->graph, node, colon + 1, &slot)) {
            return gd_fail(err, GD_ENOTFOUND, "%.200s has no slot %.20s",
                           gd_graph_name(call->session->graph, node), colon + 1);
        }
        view->tensors = true;
        picture_center(view, call->session, node, GD_NO_SCOPE);
        return GD_OK;
    }
    int rc = inspect_node(call, text, &node, err);
    if (rc == GD_OK) {
        view->tensors = false;
        picture_center(view, call->session, node, GD_NO_SCOPE);
        return rc;
    }
    int as_scope = nodes_find_scope(call, text, &scope, &of_scope);
    if (as_scope == GD_OK) {
        picture_center(view, call->session, GD_NO_NODE, scope);
        return GD_OK;
    }
    return rc == GD_ENOTFOUND && as_scope == GD_EAMBIGUOUS
               ? gd_fail(err, as_scope, "%s", of_scope.text)
               : rc;
}

/* Options first: what they change stays. */
static int take_view(struct command_call *call, struct picture_view *view, struct gd_err *err)
{
    bool tensors = inspect_take_flag(call, "-tensors"), nodes = inspect_take_flag(call, "-nodes");
    bool open = inspect_take_flag(call, "-open"), fold = inspect_take_flag(call, "-fold");
    int64_t depth = view->depth;
    gd_scope_id scope;
    int rc = inspect_take_count(call, "-d", 1, PICTURE_MAX_DEPTH, &depth, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if ((open || fold) && call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "specify the scope to %s", open ? "open" : "fold");
    }
    if (open || fold) {
        rc = nodes_find_scope(call, call->argv[0], &scope, err);
        if (rc == GD_OK) {
            picture_choose(view, scope, open);
        }
        return rc;
    }
    rc = call->argc > 0 ? take_centre(call, view, err) : GD_OK;
    if (rc == GD_OK && (tensors || nodes || depth != view->depth)) {
        view->tensors = tensors || (view->tensors && !nodes);
        view->depth = (int)depth;
        view->changes++;
    }
    return rc;
}

static int run_picture(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->front.screen;
    struct picture_view *view = picture_view(call->repl, call->session);
    struct picture *picture = NULL;
    bool keeps = call->argc > 0 && call->argv[0][0] == '-'; /* the centre; what it shows changes */
    int rc = take_view(call, view, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (screen && call->repl->front.screen_ctx && !out_is_json(call->out)) {
        bool shown = keeps && screen->shows(call->repl->front.screen_ctx, "picture");
        return shown ? GD_OK : screen->focus(call->repl->front.screen_ctx, "picture", err);
    }
    if (view->node == GD_NO_NODE && !view->given) {
        picture_center(view, call->session, GD_NO_NODE, 0);
        view->given = false;
    }
    rc = picture_make(call->session, view, out_utf8(call->out), &picture, err);
    if (rc == GD_OK) {
        record_picture(call, picture);
        print_picture(call, picture);
        picture_free(picture);
    }
    return rc;
}

const struct command cmd_picture = {
    .name = "picture",
    .aliases = "pic",
    .group = "graph",
    .usage =
        "picture [NODE[:SLOT]|SCOPE/] [-d DEPTH] [-tensors|-nodes] | picture -open|-fold SCOPE",
    .summary = "Draw what is around a node, or what is in a scope",
    .help =
        "Data flows from left to right. Each row on the left of a box is an operand, from top to\n"
        "bottom; each row on the right a slot. Lines that cross without a joint belong to\n"
        "different nodes; a line that ends in an arrow to the left closes a cycle. A framed box\n"
        "is a scope, with the number of its nodes; the scopes around the node are open. In\n"
        "brackets are the conditions that fired at this stop.\n"
        "\n"
        "In the panes, the pane \"picture\" shows it: arrow keys move along the lines, Enter\n"
        "opens a scope or goes to a node, - folds. Options stay in force:\n"
        "  -d DEPTH   edges away from the node, up to 10; at first 1\n"
        "  -tensors   the relations of its tensors: each slot with its hits. So does NODE:SLOT\n"
        "  -nodes     back to nodes and scopes\n"
        "  -open, -fold SCOPE   draw the contents of a scope, or one box",
    .examples = "picture model/loss/log\n"
                "picture model/loss/log:0\n"
                "picture model/block0\n"
                "picture . -d 3",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_picture,
};
