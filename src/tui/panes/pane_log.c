// SPDX-License-Identifier: GPL-3.0-or-later
/* The output of the training processes, as in `info log`. Follows the end unless scrolled back. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "repl/launch/launch.h"
#include "tui/text.h"

#define SHIFT 8 /* columns per Left or Right */

struct log_pane {
    struct tui_list list;
    bool back;        /* scrolled back: does not follow the end */
    int shift;        /* columns scrolled to the right */
    uint64_t dropped; /* lines dropped at the last update */
};

static struct log_pane *log_state(struct tui *tui)
{
    return tui_state(tui, TUI_LOG);
}

/* When old lines are dropped, the cursor stays on its line. */
static void update_log(struct tui *tui)
{
    struct log_pane *pane = log_state(tui);
    uint64_t dropped = launch_log_dropped(tui->repl);
    uint64_t gone = dropped - pane->dropped;

    pane->dropped = dropped;
    pane->list.count = launch_log_count(tui->repl);
    pane->list.cursor = pane->list.cursor > gone ? pane->list.cursor - (size_t)gone : 0;
    pane->list.top = pane->list.top > gone ? pane->list.top - (size_t)gone : 0;
    if (!pane->back && pane->list.count > 0) {
        pane->list.cursor = pane->list.count - 1;
    }
}

static void row_text(struct tui *tui, size_t index, struct gd_buf *out)
{
    gd_buf_puts(out, launch_log_line(tui->repl, index));
}

static void draw_row(struct tui *tui, size_t index, int row, int col, int cols, bool selected)
{
    const struct log_pane *pane = log_state(tui);
    const char *text = launch_log_line(tui->repl, index);
    const char *pattern = pane->list.pattern;
    bool match = pattern[0] != '\0' && strcasestr(text, pattern);
    enum draw_style style = selected ? DRAW_REVERSE : match ? DRAW_MATCH : DRAW_PLAIN;

    text += tui_text_fit(text, pane->shift, tui->utf8);
    draw_text(tui->draw, row, col, cols, style, text);
}

static const struct tui_list_ops rows = {draw_row, row_text};

static void draw_log(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct log_pane *pane = log_state(tui);

    update_log(tui);
    if (pane->list.count == 0) {
        draw_text(tui->draw, rect->row, rect->col, rect->cols, DRAW_DIM,
                  gd_catalog_of(tui->debugger->current)
                      ? "A dump has no output; `info events` lists what its logs report."
                      : "The training process has written nothing.");
    }
    /* The cursor marks where the user is reading; while the pane follows the end there is none. */
    tui_list_draw(tui, &pane->list, &rows, rect, focused && pane->back);
}

static void make_title(struct tui *tui, char *out, size_t size)
{
    const struct log_pane *pane = log_state(tui);

    if (pane->back && pane->list.count > 0) {
        snprintf(out, size, "log %zu/%zu", pane->list.cursor + 1, pane->list.count);
    } else {
        snprintf(out, size, "log");
    }
}

/* On the last line it follows the end again. */
static void follow_end(struct log_pane *pane)
{
    pane->back = pane->list.count > 0 && pane->list.cursor + 1 < pane->list.count;
}

static void handle_request(struct tui *tui, enum tui_request request)
{
    struct log_pane *pane = log_state(tui);

    update_log(tui);
    if (request == TUI_LEFT) {
        pane->shift = pane->shift > SHIFT ? pane->shift - SHIFT : 0;
    } else if (request == TUI_RIGHT) {
        pane->shift += pane->shift < 8000 ? SHIFT : 0;
    } else if (request == TUI_BACK) {
        pane->list.pattern[0] = '\0';
        pane->back = false;
    } else if (tui_list_request(tui, &pane->list, &rows, request) && request != TUI_SEARCH) {
        follow_end(pane);
    }
}

static bool handle_key(struct tui *tui, int key)
{
    struct log_pane *pane = log_state(tui);

    update_log(tui);
    if (!tui_list_key(tui, &pane->list, &rows, key)) {
        return false;
    }
    follow_end(pane);
    return true;
}

/* A click moves the cursor; on the last line the pane follows the end again. */
static bool handle_click(struct tui *tui, int row, int col)
{
    struct log_pane *pane = log_state(tui);

    (void)col;
    tui_list_click(&pane->list, row);
    follow_end(pane);
    return false;
}

const struct tui_pane_ops tui_log_pane = {
    .state_size = sizeof(struct log_pane),
    .update = update_log,
    .draw = draw_log,
    .title = make_title,
    .rows = &rows,
    .request = handle_request,
    .key = handle_key,
    .click = handle_click,
};
