// SPDX-License-Identifier: GPL-3.0-or-later
/* What is known of the node under the cursor, with a line of statistics for each of its outputs. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format.h"
#include "tui/text.h"

#define MAX_EDGES_SHOWN 40 /* inputs; outputs */
#define MAX_ATTR_COLS   200
#define MAX_TEXT        ((size_t)1 << 20)

/* ---- statistics ---- */

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct stats_request *request = ctx;
    struct tui *tui = request->tui;

    if (tui != NULL) {
        struct slot_stats *slot = &tui->node.slot[request->slot];
        tui->node.awaited[request->slot] = NULL;
        if (request->serial == tui->node.serial) {
            slot->state = err == NULL ? STATS_HERE : STATS_FAILED;
            if (err == NULL) {
                slot->dtype = dtype;
                slot->shape = *shape;
                slot->stats = *stats;
                slot->step = step;
            } else {
                snprintf(slot->why, sizeof(slot->why), "%.119s", err->text);
            }
        }
        tui_changed(tui);
    }
    free(request);
}

static void ask(struct tui *tui, struct gd_session *session, uint32_t slot)
{
    struct node_pane *pane = &tui->node;
    struct gd_tensor_ref ref = {pane->node, slot, GD_CURRENT};
    struct gd_err err = {.code = GD_OK};
    struct stats_request *request = calloc(1, sizeof(*request));

    if (request == NULL) {
        return;
    }
    *request = (struct stats_request){tui, slot, pane->serial};
    pane->slot[slot].state = STATS_ASKED;
    pane->awaited[slot] = request;
    if (gd_session_stats(session, &ref, on_stats, request, &err) != GD_OK) {
        pane->awaited[slot] = NULL;
        pane->slot[slot].state = STATS_FAILED;
        snprintf(pane->slot[slot].why, sizeof(pane->slot[slot].why), "%.119s", err.text);
        free(request);
    }
}

static bool awaits(const struct node_pane *pane)
{
    for (int i = 0; i < TUI_MAX_SLOTS; i++) {
        if (pane->awaited[i] != NULL) {
            return true;
        }
    }
    return false;
}

static bool can_ask(const struct gd_session *session)
{
    return session->state == GD_STOPPED || session->state == GD_LOST ||
           session->state == GD_FINISHED;
}

void tui_node_update(struct tui *tui)
{
    struct node_pane *pane = &tui->node;
    struct gd_session *session = tui->tree.session;
    struct gd_node_info info;
    gd_node_id node = tui_cursor_node(tui);

    if (session == NULL) {
        return;
    }
    if (session != pane->session || node != pane->node ||
        session->stop.sequence != pane->stop_sequence) {
        if (node != pane->node) {
            pane->first = 0;
        }
        pane->session = session;
        pane->node = node;
        pane->stop_sequence = session->stop.sequence;
        pane->serial++;
        memset(pane->slot, 0, sizeof(pane->slot));
    }
    /* One node's questions at a time: a cursor that hurries on leaves none behind. A command that
     * runs has the trainer to itself. */
    if (node == GD_NO_NODE || tui->executing || awaits(pane) || !can_ask(session) ||
        !gd_graph_node(session->graph, node, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.output_count && i < TUI_MAX_SLOTS; i++) {
        if (pane->slot[i].state == STATS_NONE) {
            ask(tui, session, i);
        }
    }
}

void tui_node_forget(struct tui *tui)
{
    for (int i = 0; i < TUI_MAX_SLOTS; i++) {
        if (tui->node.awaited[i] != NULL) {
            tui->node.awaited[i]->tui = NULL;
            tui->node.awaited[i] = NULL;
        }
    }
}

/* ---- the text ---- */

static void add_shape(struct gd_buf *out, const struct gd_output *output)
{
    char shape[128];
    gd_buf_printf(out, " %s %s", gd_dtype_name(output->dtype),
                  gd_shape_text(&output->shape, shape, sizeof(shape)));
}

static void add_inputs(struct gd_session *session, const struct gd_node_info *info,
                       struct gd_buf *out)
{
    if (info->input_count > 0) {
        gd_buf_puts(out, "inputs\n");
    }
    for (uint32_t i = 0; i < info->input_count && i < MAX_EDGES_SHOWN; i++) {
        const struct gd_edge *edge = &info->inputs[i];
        struct gd_output output;
        if (edge->node == GD_NO_NODE) {
            continue;
        }
        gd_buf_printf(out, "  %s", gd_graph_name(session->graph, edge->node));
        if (edge->control) {
            gd_buf_puts(out, " (order only)");
        } else {
            gd_buf_printf(out, ":%u", edge->slot);
            if (gd_graph_output(session->graph, edge->node, edge->slot, &output)) {
                add_shape(out, &output);
            }
        }
        gd_buf_putc(out, '\n');
    }
    if (info->input_count > MAX_EDGES_SHOWN) {
        gd_buf_printf(out, "  and %u more: see info node\n", info->input_count - MAX_EDGES_SHOWN);
    }
}

/* One line: the statistics, which begin with type and shape, or those alone. */
static void add_output(struct tui *tui, struct gd_session *session, uint32_t number,
                       struct gd_buf *out)
{
    const struct slot_stats *slot = number < TUI_MAX_SLOTS ? &tui->node.slot[number] : NULL;
    struct gd_output output;

    gd_buf_printf(out, "  :%u", number);
    if (slot != NULL && slot->state == STATS_HERE && session->state != GD_RUNNING) {
        gd_buf_putc(out, ' ');
        gd_format_summary(slot->dtype, &slot->shape, &slot->stats, NULL, 0, tui->utf8, out);
        if (slot->step >= 0 && slot->step != session->stop.step) { /* it has not run again yet */
            gd_buf_printf(out, " (of step %lld)", (long long)slot->step);
        }
        gd_buf_putc(out, '\n');
        return;
    }
    if (gd_graph_output(session->graph, tui->node.node, number, &output)) {
        add_shape(out, &output);
    }
    if (slot != NULL && slot->state == STATS_FAILED && session->state != GD_RUNNING) {
        gd_buf_printf(out, " (%s)", slot->why);
    }
    gd_buf_putc(out, '\n');
}

static void add_outputs(struct tui *tui, struct gd_session *session,
                        const struct gd_node_info *info, struct gd_buf *out)
{
    if (info->output_count > 0) {
        gd_buf_puts(out, "outputs\n");
    }
    for (uint32_t i = 0; i < info->output_count && i < MAX_EDGES_SHOWN; i++) {
        add_output(tui, session, i, out);
    }
    if (info->output_count > MAX_EDGES_SHOWN) {
        gd_buf_printf(out, "  and %u more: see info node\n", info->output_count - MAX_EDGES_SHOWN);
    }
    if (session->state == GD_RUNNING) {
        gd_buf_puts(out, "  (running: values at the next stop)\n");
    }
}

static void add_frames(struct gd_session *session, gd_node_id node, struct gd_buf *out)
{
    uint32_t count = 0;
    const struct gd_frame *frames = gd_graph_stack(session->graph, node, &count);

    if (count > 0) {
        gd_buf_puts(out, "source\n");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct gd_frame *frame = &frames[i];
        const char *slash = strrchr(frame->file, '/');
        if (frame->is_title || frame->file[0] == '\0') {
            gd_buf_printf(out, "  %s\n", frame->code);
        } else if (!gd_frame_is_library(frame) || frame == gd_graph_place(session->graph, node)) {
            gd_buf_printf(out, "  %s:%u %s\n", slash != NULL ? slash + 1 : frame->file, frame->line,
                          frame->function);
        }
    }
}

static void add_node(struct tui *tui, struct gd_session *session, gd_node_id node,
                     struct gd_buf *out)
{
    struct gd_node_info info;

    if (!gd_graph_node(session->graph, node, &info)) {
        return;
    }
    gd_buf_printf(out, "%s\ntype %s, %s", info.name, info.type, gd_node_kind_name(info.kind));
    if (info.order != GD_NO_ORDER) {
        gd_buf_printf(out, ", number %u in order", info.order);
    }
    gd_buf_putc(out, '\n');
    for (uint32_t i = 0; i < info.attr_count; i++) {
        const char *value = info.attrs[i].value;
        size_t len = tui_text_fit(value, MAX_ATTR_COLS, tui->utf8);
        gd_buf_printf(out, "%s%s=%.*s%s", i > 0 ? " " : "", info.attrs[i].name, (int)len, value,
                      value[len] != '\0' ? "..." : "");
    }
    if (info.attr_count > 0) {
        gd_buf_putc(out, '\n');
    }
    add_outputs(tui, session, &info, out);
    add_inputs(session, &info, out);
    add_frames(session, node, out);
}

static void add_scope(struct gd_session *session, gd_scope_id scope, struct gd_buf *out)
{
    struct gd_scope_info info;

    if (gd_graph_scope(session->graph, scope, &info)) {
        gd_buf_printf(out, "%s\nscope: %u nodes, %u of them directly in it\n", info.name,
                      info.total_count, info.node_count);
    }
}

/* ---- drawing ---- */

static void keep_in_text(struct node_pane *pane)
{
    int last = pane->lines > pane->rows ? pane->lines - pane->rows : 0;

    pane->first = pane->first > last ? last : pane->first;
    pane->first = pane->first < 0 ? 0 : pane->first;
}

static void node_request(struct tui *tui, enum tui_request request)
{
    struct node_pane *pane = &tui->node;
    int page = pane->rows > 1 ? pane->rows - 1 : 1;

    switch (request) {
    case TUI_UP: pane->first--; break;
    case TUI_DOWN: pane->first++; break;
    case TUI_PAGE_UP: pane->first -= page; break;
    case TUI_PAGE_DOWN: pane->first += page; break;
    case TUI_TOP: pane->first = 0; break;
    case TUI_BOTTOM: pane->first = pane->lines; break;
    default: break;
    }
    keep_in_text(pane);
}

/* Draws a line over as many rows as it needs, its continuations indented; returns the rows. Rows
 * outside the pane are only counted. */
static int draw_wrapped(struct tui *tui, const struct draw_rect *rect, int row, const char *text,
                        enum draw_style style)
{
    int indent = 0;
    int rows = 0;

    do {
        int cols = rect->cols - indent;
        size_t len = tui_text_fit(text, cols, tui->utf8);
        size_t cut = len;
        if (text[len] != '\0') { /* at a blank, when one is near */
            for (size_t i = len; i > len / 2 && cut == len; i--) {
                cut = text[i] == ' ' ? i : cut;
            }
        }
        if (row + rows >= 0 && row + rows < rect->rows) {
            draw_text_len(tui->draw, rect->row + row + rows, rect->col + indent, cols, style, text,
                          cut);
        }
        text += cut > 0 ? cut : strlen(text);
        text += text[0] == ' ' && cut > 0 ? 1 : 0;
        indent = rect->cols > 20 ? 6 : 0;
        rows++;
    } while (*text != '\0');
    return rows;
}

/* Draws the text from row `first` of the pane on and returns the rows that it takes. */
static int draw_lines(struct tui *tui, const struct draw_rect *rect, int first, char *text)
{
    int row = first;

    for (char *end = strchr(text, '\n'); end != NULL; end = strchr(text, '\n')) {
        enum draw_style style = row == first                        ? DRAW_BOLD
                                : text[0] != ' ' && end - text < 10 ? DRAW_SCOPE
                                                                    : DRAW_PLAIN;
        *end = '\0';
        row += draw_wrapped(tui, rect, row, text, style);
        *end = '\n';
        text = end + 1;
    }
    return row - first;
}

static void node_draw(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct gd_session *session = tui->tree.session;
    struct gd_buf text = GD_BUF_INIT(MAX_TEXT);
    struct tui_tree_row row;

    (void)focused;
    if (session != NULL && tui_cursor_row(tui, &row)) {
        if (row.is_scope) {
            add_scope(session, row.scope, &text);
        } else {
            add_node(tui, session, row.node, &text);
        }
    }
    tui->node.rows = rect->rows;
    tui->node.lines = 0;
    if (text.data != NULL) {
        /* The first time below the pane, for the number of rows: they may be fewer than before. */
        tui->node.lines = draw_lines(tui, rect, rect->rows, text.data);
        keep_in_text(&tui->node);
        draw_lines(tui, rect, -tui->node.first, text.data);
    }
    gd_buf_deinit(&text);
}

static void node_title(struct tui *tui, char *out, size_t size)
{
    struct tui_tree_row row;
    bool scope = tui_cursor_row(tui, &row) && row.is_scope;
    snprintf(out, size, "%s", scope ? "scope" : "node");
}

const struct tui_pane_ops tui_node_pane = {node_draw, node_request, node_title};
