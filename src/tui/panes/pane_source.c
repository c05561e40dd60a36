// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The source file around the place selected in the stack pane, with the number of nodes that each
 * line created. If the file cannot be read, the line as sent by the training process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/command.h"
#include "repl/values/srcfile.h"
#include "repl/values/srctext.h"
#include "tui/panes/detail.h"
#include "tui/panes/pane_stack.h"
#include "tui/text.h"
#include "tui/tui_impl.h"

#define SHIFT     8 /* columns per Left or Right */
#define MAX_BYTES ((size_t)256 << 20)
#define COUNTED   50 /* from this width on, shows node counts */

struct source_pane {
    struct tui_list list;
    struct gd_arena arena; /* holds `part` */
    char *file;            /* read, or failed to read */
    uint32_t line;         /* the marked line */
    struct srcfile_part part;
    bool answered; /* a new text has arrived since */
    char why[200]; /* why reading failed; "": it did not */
    char *code;    /* the line as sent by the training process */
    int shift;     /* columns scrolled to the right */
    bool here;     /* there is a place to show */
};

static struct source_pane *source_state(struct tui *tui)
{
    return tui_state(tui, TUI_SOURCE);
}

/* ---- the file ------------------------------------------------------------------------------ */

static void read_file(struct tui *tui, struct source_pane *pane)
{
    struct command_call call = {
        .repl = tui->repl, .debugger = tui->debugger, .arena = &pane->arena};
    struct gd_err err = {.code = GD_OK};
    uint32_t half = SRCFILE_MAX_LINES / 2;
    uint32_t first = pane->line > half ? pane->line - half : 1;

    gd_arena_deinit(&pane->arena);
    gd_arena_init(&pane->arena, MAX_BYTES);
    pane->part = (struct srcfile_part){.first = 1};
    pane->why[0] = '\0';
    pane->answered = false;
    if (srcfile_read(&call, pane->file, first, SRCFILE_MAX_LINES, &pane->part, &err) != GD_OK) {
        snprintf(pane->why, sizeof(pane->why), "%.199s", err.text);
        pane->part = (struct srcfile_part){.first = 1};
    }
    pane->list.count = pane->part.count;
}

static bool part_holds(const struct srcfile_part *part, uint32_t line)
{
    return line >= part->first && line - part->first < part->count;
}

/* Moves the cursor to the marked line, centred. */
static void go_to_line(struct source_pane *pane)
{
    size_t half = pane->list.rows > 0 ? (size_t)pane->list.rows / 2 : 0;
    size_t at = part_holds(&pane->part, pane->line) ? pane->line - pane->part.first : 0;

    pane->list.cursor = at;
    pane->list.top = at > half ? at - half : 0;
}

static void update_source(struct tui *tui)
{
    struct source_pane *pane = source_state(tui);
    struct tui_place place;

    pane->here = tui_stack_place(tui, &place);
    if (!pane->here) {
        pane->list.count = 0;
        return;
    }
    pane->list.count = pane->part.count;
    bool other = !pane->file || strcmp(pane->file, place.file) != 0;
    if (!other && pane->line == place.line) {
        if (pane->why[0] != '\0' && pane->answered) {
            read_file(tui, pane);
            go_to_line(pane);
        }
        return;
    }
    char *file = strdup(place.file);
    char *code = strdup(place.code);
    if (!file || !code) {
        free(file);
        free(code);
        pane->here = false;
        pane->list.count = 0;
        return;
    }
    free(pane->file);
    free(pane->code);
    pane->file = file;
    pane->code = code;
    pane->line = place.line;
    if (other || (pane->why[0] == '\0' && !part_holds(&pane->part, pane->line))) {
        read_file(tui, pane);
    }
    go_to_line(pane);
}

bool tui_source_is_missing(struct tui *tui)
{
    update_source(tui);
    return source_state(tui)->here && source_state(tui)->list.count == 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    gd_buf_puts(out, source_state(tui)->part.line[index]);
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    struct source_pane *pane = source_state(tui);
    uint32_t number = pane->part.first + (uint32_t)index;
    const struct tui_line *made = tui_lines_find(tui_stack_lines(tui), pane->file, number);
    bool current = number == pane->line;
    enum draw_style style = selected ? DRAW_REVERSE : current ? DRAW_MARK : DRAW_PLAIN;
    uint32_t last = pane->part.first + pane->part.count;
    int digits = last < 1000 ? 3 : last < 100000 ? 5 : 7;
    char head[48], count[16] = "";

    if (made && cols >= COUNTED) {
        snprintf(count, sizeof(count), "%u", made->nodes);
    } else if (made) {
        snprintf(count, sizeof(count), "*");
    }
    snprintf(head, sizeof(head), "%s%*s %*u  ", current ? "=>" : "  ", cols >= COUNTED ? 6 : 1,
             count, digits, number);
    int used = draw_text(tui->draw, row, col, cols, selected || current ? style : DRAW_DIM, head);
    const char *text = pane->part.line[index];
    text += tui_text_fit(text, pane->shift, tui->utf8);
    enum draw_style plain = made ? DRAW_BOLD : DRAW_PLAIN;
    draw_text(tui->draw, row, col + used, cols - used, selected || current ? style : plain, text);
}

static const struct tui_list_ops rows = {draw_row, row_text};

/* ---- the pane ------------------------------------------------------------------------------ */

/* Drawn when there is no file to show. */
static void draw_nothing(struct tui *tui, const struct draw_rect *rect)
{
    struct source_pane *pane = source_state(tui);
    struct gd_buf line = GD_BUF_INIT(1 << 16);
    int row = 0;

    if (!pane->here) {
        tui_draw_folded(tui, rect, 0, DRAW_DIM, "No source line is selected.");
        return;
    }
    if (pane->code[0] != '\0') {
        gd_buf_printf(&line, "=> %u  %s", pane->line, pane->code + strspn(pane->code, " \t"));
        row = tui_draw_folded(tui, rect, row, DRAW_MARK, gd_buf_text(&line)) + 1;
    }
    gd_buf_deinit(&line);
    row = tui_draw_folded(tui, rect, row, DRAW_DIM, "The file cannot be read here:");
    tui_draw_folded(tui, rect, row, DRAW_PLAIN, pane->why[0] != '\0' ? pane->why : "it is empty");
}

static void draw_source(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct source_pane *pane = source_state(tui);
    int before = pane->list.rows;

    update_source(tui);
    if (pane->list.count == 0) {
        draw_nothing(tui, rect);
        return;
    }
    if (before == 0) { /* the pane's height is known only from the first draw on */
        pane->list.rows = rect->rows;
        go_to_line(pane);
    }
    tui_list_draw(tui, &pane->list, &rows, rect, focused);
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct source_pane *pane = source_state(tui);

    if (!pane->here) {
        snprintf(out, size, "source");
        return;
    }
    const char *slash = strrchr(pane->file, '/');
    snprintf(out, size, "source %.80s:%u%s", slash ? slash + 1 : pane->file, pane->line,
             pane->part.newer ? ", newer than this run" : "");
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct source_pane *pane = source_state(tui);

    update_source(tui);
    if (request == TUI_LEFT) {
        pane->shift = pane->shift > SHIFT ? pane->shift - SHIFT : 0;
    } else if (request == TUI_RIGHT) {
        pane->shift += pane->shift < 1000 ? SHIFT : 0;
    } else if (request == TUI_BACK) {
        pane->list.pattern[0] = '\0';
        pane->shift = 0;
        go_to_line(pane);
    } else if (request == TUI_OPEN && pane->list.count > 0) {
        uint32_t number = pane->part.first + (uint32_t)pane->list.cursor;
        if (tui_lines_find(tui_stack_lines(tui), pane->file, number)) {
            tui_stack_show_nodes(tui, pane->file, number);
        }
    } else {
        tui_list_request(tui, &pane->list, &rows, request);
    }
}

static void on_answer(void *ctx)
{
    struct tui *tui = ctx;

    source_state(tui)->answered = true;
    tui_changed(tui);
}

static void init_state(struct tui *tui, void *state)
{
    struct source_pane *pane = state;

    srctext_tell(tui->repl, on_answer, tui);
    gd_arena_init(&pane->arena, MAX_BYTES);
}

static void release_state(struct tui *tui, void *of)
{
    struct source_pane *pane = of;

    srctext_tell(tui->repl, NULL, NULL);
    gd_arena_deinit(&pane->arena);
    free(pane->file);
    free(pane->code);
}

const struct tui_pane_ops tui_source_pane = {
    .state_size = sizeof(struct source_pane),
    .init = init_state,
    .release = release_state,
    .update = update_source,
    .draw = draw_source,
    .title = make_title,
    .rows = &rows,
    .request = handle_request,
};
