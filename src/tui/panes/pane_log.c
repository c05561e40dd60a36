// SPDX-License-Identifier: GPL-3.0-or-later
/* What the trainers wrote: the lines of `info log`. Stays at the end until it is scrolled back. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "repl/launch/launch.h"
#include "tui/text.h"

#define SHIFT 8 /* columns that Left and Right move */

struct log_pane {
    struct tui_list list;
    bool back;        /* scrolled back: it does not follow the end */
    int shift;        /* columns to the right */
    uint64_t dropped; /* lines gone when it was looked at last */
};

static struct log_pane *state(struct tui *tui)
{
    return tui_state(tui, TUI_LOG);
}

/* Lines that are gone move the others up; the cursor stays on its line. */
static void update(struct tui *tui)
{
    struct log_pane *pane = state(tui);
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

static void row_text(void *ctx, size_t index, struct gd_buf *out)
{
    struct tui *tui = ctx;
    gd_buf_puts(out, launch_log_line(tui->repl, index));
}

static void row(void *ctx, size_t index, int row, int col, int cols, bool selected)
{
    struct tui *tui = ctx;
    const struct log_pane *pane = state(tui);
    const char *text = launch_log_line(tui->repl, index);
    const char *pattern = pane->list.pattern;
    bool match = pattern[0] != '\0' && strcasestr(text, pattern);
    enum draw_style style = selected ? DRAW_REVERSE : match ? DRAW_MATCH : DRAW_PLAIN;

    if (selected) {
        draw_fill(tui->draw, row, col, cols, style);
    }
    text += tui_text_fit(text, pane->shift, tui->utf8);
    draw_text(tui->draw, row, col, cols, style, text);
}

static const struct tui_list_ops rows = {row, row_text};

static void draw(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct log_pane *pane = state(tui);

    update(tui);
    if (pane->list.count == 0) {
        draw_text(tui->draw, rect->row, rect->col, rect->cols, DRAW_DIM,
                  gd_catalog_of(tui->debugger->current)
                      ? "A dump writes nothing: info events lists what it tells."
                      : "The trainer has written nothing.");
    }
    /* The cursor is a person's place: without one being scrolled back there is none to show. */
    tui_list_draw(tui, &pane->list, &rows, tui, rect, focused && pane->back);
}

static void title(struct tui *tui, char *out, size_t size)
{
    const struct log_pane *pane = state(tui);

    if (pane->back && pane->list.count > 0) {
        snprintf(out, size, "log %zu/%zu", pane->list.cursor + 1, pane->list.count);
    } else {
        snprintf(out, size, "log");
    }
}

/* At the last line it follows the end again. */
static void follow(struct log_pane *pane)
{
    pane->back = pane->list.count > 0 && pane->list.cursor + 1 < pane->list.count;
}

static void request(struct tui *tui, enum tui_request request)
{
    struct log_pane *pane = state(tui);

    update(tui);
    if (request == TUI_LEFT) {
        pane->shift = pane->shift > SHIFT ? pane->shift - SHIFT : 0;
    } else if (request == TUI_RIGHT) {
        pane->shift += pane->shift < 8000 ? SHIFT : 0;
    } else if (request == TUI_BACK) {
        pane->list.pattern[0] = '\0';
        pane->back = false;
    } else if (tui_list_request(&pane->list, &rows, tui, request) && request != TUI_SEARCH) {
        follow(pane);
    }
}

static enum tui_search search(struct tui *tui)
{
    return tui_list_search(&state(tui)->list);
}

static bool key(struct tui *tui, int key)
{
    struct log_pane *pane = state(tui);

    update(tui);
    if (!tui_list_key(&pane->list, &rows, tui, key)) {
        return false;
    }
    follow(pane);
    return true;
}

static void *create(struct tui *tui)
{
    (void)tui;
    return calloc(1, sizeof(struct log_pane));
}

static void destroy(struct tui *tui, void *of)
{
    (void)tui;
    free(of);
}

/* A click shows where one is: the pane follows the end again from the last line on. */
static bool click(struct tui *tui, int row, int col)
{
    struct log_pane *pane = state(tui);

    (void)col;
    tui_list_click(&pane->list, row);
    follow(pane);
    return false;
}

const struct tui_pane_ops tui_log_pane = {
    .name = "log",
    .create = create,
    .destroy = destroy,
    .update = update,
    .draw = draw,
    .title = title,
    .request = request,
    .search = search,
    .key = key,
    .click = click,
};
