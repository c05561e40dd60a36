// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The stack of the current node; in its other modes all source lines of the graph, or the nodes
 * created in one line.
 */
#include "tui/panes/pane_stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/stacks.h"
#include "tui/panes/detail.h"
#include "tui/text.h"
#include "tui/tui_impl.h"

#define WIDE_COLS 60 /* from here on, rows show the code after the place */

enum mode { MODE_STACK, MODE_LINES, MODE_NODES };

struct stack_pane {
    enum mode mode, from; /* from: the mode in which the nodes of a line were requested */
    struct tui_list list[3];
    struct tui_lines lines;
    struct node_list nodes; /* created in `line` */
    char *file;
    uint32_t line;
    const struct gd_session *session; /* the source of all this; only compared */
    uint64_t generation;
    gd_node_id node; /* whose stack the cursor is in */
    uint32_t frame;
};

static struct stack_pane *stack_state(struct tui *tui)
{
    return tui_state(tui, TUI_STACK);
}

static struct tui_list *list_of(struct stack_pane *pane)
{
    return &pane->list[pane->mode];
}

/* ---- the stack ----------------------------------------------------------------------------- */

static const struct gd_frame *frames_of(struct tui *tui, uint32_t *count)
{
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);

    *count = 0;
    if (session && node == GD_NO_NODE) {
        stack_ask_later(session);
        return gd_session_line_stack(session, count);
    }
    return node != GD_NO_NODE ? gd_graph_stack(session->graph, node, count) : NULL;
}

static bool is_place(const struct gd_frame *frame)
{
    return !frame->is_title && frame->file[0] != '\0';
}

/* The entry's number for the command `frame`. */
static uint32_t number_of(const struct gd_frame *frame, size_t index)
{
    uint32_t number = 0;

    for (size_t i = 0; i < index; i++) {
        number += is_place(&frame[i]) ? 1 : 0;
    }
    return number;
}

static uint32_t selected_frame(struct tui *tui)
{
    struct command_call call = {.repl = tui->repl, .session = tui->debugger->current};
    return call.session ? inspect_frame(&call, call.session->current) : 0;
}

/* The index of the selected frame; `count`: none. */
static uint32_t selected_entry(struct tui *tui, const struct gd_frame *frame, uint32_t count)
{
    uint32_t number = selected_frame(tui);
    uint32_t i = 0;

    while (i < count && !(is_place(&frame[i]) && number-- == 0)) {
        i++;
    }
    return i;
}

bool tui_stack_place(struct tui *tui, struct tui_place *ret)
{
    struct stack_pane *pane = stack_state(tui);
    uint32_t count;

    if (pane->mode == MODE_NODES && pane->file) {
        *ret = (struct tui_place){pane->file, "", pane->line};
        const struct tui_line *line = tui_lines_find(&pane->lines, pane->file, pane->line);
        ret->code = line ? line->code : "";
        return true;
    }
    if (pane->mode == MODE_LINES && pane->list[MODE_LINES].cursor < pane->lines.count) {
        const struct tui_line *line = &pane->lines.line[pane->list[MODE_LINES].cursor];
        *ret = (struct tui_place){line->file, line->code, line->line};
        return true;
    }
    const struct gd_frame *frame = frames_of(tui, &count);
    uint32_t entry = selected_entry(tui, frame, count);
    if (entry >= count) {
        return false;
    }
    *ret = (struct tui_place){frame[entry].file, frame[entry].code, frame[entry].line};
    return true;
}

const struct tui_lines *tui_stack_lines(struct tui *tui)
{
    struct stack_pane *pane = stack_state(tui);

    if (!tui->executing && tui_lines_follow(&pane->lines, tui->debugger->current)) {
        tui_changed(tui); /* the following pictures continue counting */
    }
    return &pane->lines;
}

void tui_stack_show_nodes(struct tui *tui, const char *file, uint32_t line)
{
    struct stack_pane *pane = stack_state(tui);
    struct gd_session *session = tui->debugger->current;
    char *copy = strdup(file); /* may point to the pane's own */

    if (!copy || !session || !session->graph) {
        free(copy);
        return;
    }
    free(pane->file);
    pane->file = copy;
    pane->line = line;
    node_list_deinit(&pane->nodes);
    pane->nodes = (struct node_list){.node = NULL};
    gd_graph_search_source(session->graph, copy, line, node_list_add, &pane->nodes);
    pane->from = pane->mode == MODE_NODES ? pane->from : pane->mode;
    pane->mode = MODE_NODES;
    pane->list[MODE_NODES] = (struct tui_list){.count = pane->nodes.count};
    tui_focus(tui, TUI_STACK);
}

/* ---- following the session ----------------------------------------------------------------- */

/* For another session or graph the lines and nodes are invalid. */
static void follow_session(struct stack_pane *pane, const struct gd_session *session)
{
    uint64_t generation = session ? session->graph_generation : 0;

    if (session == pane->session && generation == pane->generation) {
        return;
    }
    pane->session = session;
    pane->generation = generation;
    node_list_deinit(&pane->nodes);
    pane->nodes = (struct node_list){.node = NULL};
    if (pane->mode == MODE_NODES) {
        pane->mode = pane->from;
    }
    pane->node = GD_NO_NODE;
}

static void update_stack(struct tui *tui)
{
    struct stack_pane *pane = stack_state(tui);
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);
    uint32_t count;

    follow_session(pane, session);
    const struct gd_frame *frame = frames_of(tui, &count);
    uint32_t selected = selected_frame(tui);
    pane->list[MODE_STACK].count = count;
    if (node != pane->node || selected != pane->frame) {
        uint32_t entry = selected_entry(tui, frame, count);
        pane->list[MODE_STACK].cursor = entry < count ? entry : 0;
        pane->node = node;
        pane->frame = selected;
    }
    if (pane->mode == MODE_LINES) {
        tui_stack_lines(tui);
    }
    pane->list[MODE_LINES].count = pane->lines.count;
    pane->list[MODE_NODES].count = pane->nodes.count;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash && slash[1] != '\0' ? slash + 1 : file;
}

static const char *without_blanks(const char *code)
{
    return code + strspn(code, " \t");
}

static void stack_text(struct tui *tui, size_t index, bool whole, struct gd_buf *out)
{
    uint32_t count;
    const struct gd_frame *frame = frames_of(tui, &count);

    if (index >= count) {
        return;
    }
    const struct gd_frame *at = &frame[index];
    if (!is_place(at)) {
        gd_buf_puts(out, without_blanks(at->code));
        return;
    }
    gd_buf_printf(out, "#%-2u %s:%u", number_of(frame, index),
                  whole ? at->file : base_name(at->file), at->line);
    if (at->function[0] != '\0') {
        gd_buf_printf(out, " in %s", at->function);
    }
    if (at->code[0] != '\0') {
        gd_buf_printf(out, "  %s", without_blanks(at->code));
    }
}

static void line_text(const struct stack_pane *pane, size_t index, bool whole, struct gd_buf *out)
{
    if (index < pane->lines.count) {
        const struct tui_line *line = &pane->lines.line[index];
        gd_buf_printf(out, "%5u  %s:%u  %s", line->nodes,
                      whole ? line->file : base_name(line->file), line->line,
                      without_blanks(line->code));
    }
}

static gd_node_id node_at(struct tui *tui, size_t index, struct gd_node_info *info)
{
    const struct stack_pane *pane = stack_state(tui);
    struct gd_session *session = tui->debugger->current;
    bool there = session && session->graph && index < pane->nodes.count &&
                 gd_graph_node(session->graph, pane->nodes.node[index], info);

    return there ? pane->nodes.node[index] : GD_NO_NODE;
}

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    struct stack_pane *pane = stack_state(tui);
    struct gd_node_info info;

    if (pane->mode == MODE_STACK) {
        stack_text(tui, index, true, out);
    } else if (pane->mode == MODE_LINES) {
        line_text(pane, index, true, out);
    } else if (node_at(tui, index, &info) != GD_NO_NODE) {
        gd_buf_printf(out, "%s %s", info.name, info.type);
    }
}

static void draw_node(struct tui *tui, size_t index, int row, int col, int cols,
                      enum draw_style style)
{
    struct gd_node_info info;
    char name[512];
    char head[16] = "";
    int type_cols = cols >= WIDE_COLS ? 20 : 0;

    if (node_at(tui, index, &info) == GD_NO_NODE) {
        return;
    }
    if (type_cols > 0 && info.order != GD_NO_ORDER) {
        snprintf(head, sizeof(head), "%6u  ", info.order);
    } else if (type_cols > 0) {
        snprintf(head, sizeof(head), "%8s", "");
    }
    int used = draw_text(tui->draw, row, col, cols - type_cols, style, head);
    int room = cols - type_cols - used;
    draw_text(tui->draw, row, col + used, room, style,
              tui_text_fit_name(info.name, room, tui->utf8, name, sizeof(name)));
    if (type_cols > 0) {
        draw_text(tui->draw, row, col + cols - type_cols + 1, type_cols - 1, style, info.type);
    }
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    struct stack_pane *pane = stack_state(tui);
    enum draw_style style = selected ? DRAW_REVERSE : DRAW_PLAIN;
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    uint32_t count;

    if (pane->mode == MODE_NODES) {
        draw_node(tui, index, row, col, cols, style);
        return;
    }
    if (pane->mode == MODE_LINES) {
        line_text(pane, index, false, &text);
    } else {
        const struct gd_frame *frame = frames_of(tui, &count);
        bool is_one = index < count && is_place(&frame[index]);
        bool current = index < count && index == selected_entry(tui, frame, count);
        style = selected ? style : !is_one ? DRAW_SCOPE : current ? DRAW_BOLD : DRAW_PLAIN;
        gd_buf_puts(&text, current ? ">" : is_one ? " " : "");
        stack_text(tui, index, false, &text);
    }
    draw_text(tui->draw, row, col, cols, style, gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static const struct tui_list_ops rows = {draw_row, row_text};

/* ---- the pane ------------------------------------------------------------------------------ */

static const char *why_nothing(struct tui *tui)
{
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);

    if (!session) {
        return "No training process is connected.";
    }
    switch (stack_state(tui)->mode) {
    case MODE_LINES:
        return !stack_state(tui)->lines.done ? "Counting nodes ..."
               : gd_catalog_of(session)      ? "The dump has no stacks."
                                             : "The training process sent no stacks.";
    case MODE_NODES: return "No node was created there.";
    default: break;
    }
    return node == GD_NO_NODE       ? "No node is selected. m lists all source lines."
           : gd_catalog_of(session) ? "The dump has no stack for this node."
                                    : "The training process sent no stack for this node.";
}

static void draw_stack(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct stack_pane *pane = stack_state(tui);

    update_stack(tui);
    if (list_of(pane)->count == 0) {
        tui_draw_folded(tui, rect, 0, DRAW_DIM, why_nothing(tui));
    }
    tui_list_draw(tui, list_of(pane), &rows, rect, focused);
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct stack_pane *pane = stack_state(tui);
    const struct tui_list *list = &pane->list[pane->mode];
    size_t at = list->count > 0 ? list->cursor + 1 : 0;

    switch (pane->mode) {
    case MODE_LINES:
        snprintf(out, size, "source lines %zu/%zu%s", at, list->count,
                 pane->lines.done ? "" : " (counting)");
        break;
    case MODE_NODES:
        snprintf(out, size, "nodes of %.60s:%u %zu/%zu", pane->file ? base_name(pane->file) : "",
                 pane->line, at, list->count);
        break;
    default: snprintf(out, size, "stack"); break;
    }
}

static void open_row(struct tui *tui)
{
    struct stack_pane *pane = stack_state(tui);
    size_t index = list_of(pane)->cursor;
    struct gd_buf line = GD_BUF_INIT(1 << 16);
    struct gd_node_info info;
    uint32_t count;

    if (pane->mode == MODE_LINES && index < pane->lines.count) {
        const struct tui_line *at = &pane->lines.line[index];
        tui_stack_show_nodes(tui, at->file, at->line);
    } else if (pane->mode == MODE_NODES && node_at(tui, index, &info) != GD_NO_NODE) {
        gd_buf_puts(&line, "node ");
        tui_add_name(&line, info.name);
        tui_run_line(tui, gd_buf_text(&line));
    } else if (pane->mode == MODE_STACK) {
        const struct gd_frame *frame = frames_of(tui, &count);
        if (index < count && is_place(&frame[index])) {
            gd_buf_printf(&line, "frame %u", number_of(frame, index));
            tui_run_line(tui, gd_buf_text(&line));
            tui_stack_show_nodes(tui, frame[index].file, frame[index].line);
        }
    }
    gd_buf_deinit(&line);
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct stack_pane *pane = stack_state(tui);

    update_stack(tui);
    if (request == TUI_MODE) {
        pane->mode = pane->mode == MODE_STACK ? MODE_LINES : MODE_STACK;
    } else if (request == TUI_BACK) {
        pane->mode = pane->mode == MODE_NODES ? pane->from : MODE_STACK;
    } else if (request == TUI_OPEN) {
        open_row(tui);
    } else {
        tui_list_request(tui, list_of(pane), &rows, request);
    }
}

static bool stack_word(struct tui *tui, char which, struct gd_buf *out)
{
    struct stack_pane *pane = stack_state(tui);
    struct gd_node_info info;

    if (pane->mode != MODE_NODES) {
        return tui_common_word(tui, which, out);
    }
    return tui_node_word(tui, tui->debugger->current, node_at(tui, list_of(pane)->cursor, &info),
                         which, out);
}

static void init_state(struct tui *tui, void *state)
{
    struct stack_pane *pane = state;

    (void)tui;
    pane->node = GD_NO_NODE;
    tui_lines_init(&pane->lines);
}

static void release_state(struct tui *tui, void *of)
{
    struct stack_pane *pane = of;

    (void)tui;
    tui_lines_free(&pane->lines);
    node_list_deinit(&pane->nodes);
    free(pane->file);
}

static struct tui_list *current_list(struct tui *tui)
{
    return list_of(stack_state(tui));
}

const struct tui_pane_ops tui_stack_pane = {
    .state_size = sizeof(struct stack_pane),
    .init = init_state,
    .release = release_state,
    .update = update_stack,
    .draw = draw_stack,
    .title = make_title,
    .list = current_list,
    .rows = &rows,
    .request = handle_request,
    .word = stack_word,
};
