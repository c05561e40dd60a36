// SPDX-License-Identifier: GPL-3.0-or-later
/* Where the panes stand, the lines between them, the status line, the list of keys. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>

#include "tui/text.h"

/* ---- the status line ---- */

static void add_address(struct tui *tui, const struct gd_session *session, struct gd_buf *out)
{
    const struct gd_server_ops *server = tui->debugger->server;
    const char *address = server != NULL ? server->address(tui->debugger->server_ctx) : NULL;

    if (session != NULL && session->peer.address[0] != '\0') {
        gd_buf_printf(out, " %s", session->peer.address);
    } else if (address != NULL) {
        gd_buf_printf(out, " listening on %s", address);
    }
}

static void add_session(const struct gd_session *session, struct gd_buf *out)
{
    gd_buf_printf(out, "  %s", session->peer.framework);
    if (session->peer.version[0] != '\0') {
        gd_buf_printf(out, " %s", session->peer.version);
    }
    if (session->peer.world_size > 1) {
        gd_buf_printf(out, "  rank %d of %d", session->peer.rank, session->peer.world_size);
    } else {
        gd_buf_puts(out, "  rank 0");
    }
    int64_t step = session->stop.step;
    for (int i = 0; i < session->scalar_count; i++) { /* while it runs, scalars tell how far */
        step = session->scalar[i].step > step ? session->scalar[i].step : step;
    }
    gd_buf_printf(out, "  step %lld", (long long)step);
    for (int i = 0; i < session->scalar_count; i++) {
        if (strcmp(session->scalar[i].name, "loss") == 0) {
            gd_buf_printf(out, "  loss %.4g", session->scalar[i].value);
        }
    }
    gd_buf_printf(out, "  %s", gd_state_name(session->state));
    if (session->state != GD_RUNNING && session->stop.node_name[0] != '\0') {
        const char *slash = strrchr(session->stop.node_name, '/');
        gd_buf_printf(out, "  %s", slash != NULL ? slash + 1 : session->stop.node_name);
    }
}

static void draw_status(struct tui *tui, int row, int cols)
{
    static const char hint[] = " ? keys  C-x o pane ";
    const struct gd_session *session = tui->debugger->current;
    struct gd_buf text = GD_BUF_INIT(4096);
    int hint_cols = (int)sizeof(hint) - 1;

    gd_buf_puts(&text, " gradb");
    add_address(tui, session, &text);
    if (session != NULL) {
        add_session(session, &text);
    } else {
        gd_buf_puts(&text, "  no trainer");
    }
    draw_fill(tui->draw, row, 0, cols, DRAW_REVERSE);
    int used = draw_text(tui->draw, row, 0, cols, DRAW_REVERSE, gd_buf_text(&text));
    if (used + hint_cols < cols) {
        draw_text(tui->draw, row, cols - hint_cols, hint_cols, DRAW_REVERSE, hint);
    }
    gd_buf_deinit(&text);
}

/* ---- panes ---- */

static void draw_title(struct tui *tui, int row, int col, int cols, enum tui_pane_id pane)
{
    char title[96];
    char framed[104];

    tui_panes[pane]->title(tui, title, sizeof(title));
    snprintf(framed, sizeof(framed), " %s ", title);
    draw_hline(tui->draw, row, col, cols);
    draw_text(tui->draw, row, col + 1, cols - 2, tui->focus == pane ? DRAW_REVERSE : DRAW_BOLD,
              framed);
}

static void draw_pane(struct tui *tui, enum tui_pane_id pane, int row, int col, int rows, int cols)
{
    struct draw_rect rect = {row + 1, col, rows - 1, cols};

    draw_title(tui, row, col, cols, pane);
    if (rect.rows > 0 && rect.cols > 0) {
        tui_panes[pane]->draw(tui, &rect, tui->focus == pane);
    }
}

/* Every shown pane, and a line between two columns of them. */
static void draw_panes(struct tui *tui, int rows, int cols)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count =
        layout_places(tui->layout, tui->focus, tui->one_pane, tui->console_rows, rows, cols, place);

    for (int i = 0; i < count; i++) {
        const struct draw_rect *rect = &place[i].rect;
        if (tui_panes[place[i].pane] == NULL) {
            continue;
        }
        if (tui_panes[place[i].pane]->update != NULL) {
            tui_panes[place[i].pane]->update(tui);
        }
        draw_pane(tui, place[i].pane, rect->row, rect->col, rect->rows, rect->cols);
        if (rect->col > 0) {
            draw_vline(tui->draw, rect->row, rect->col - 1, rect->rows);
        }
    }
}

/* ---- the list of keys ---- */

static void draw_help(struct tui *tui, int rows, int cols)
{
    int row = -tui->help_first;
    char line[160];

    draw_text(tui->draw, 0, 1, cols - 1, DRAW_BOLD,
              "Keys (any other key goes back; names of keys below one another do the same)");
    for (const struct tui_key *key = tui_keys; key->name != NULL; key++, row++) {
        if (row < 0 || row + 1 >= rows) {
            continue;
        }
        bool console = (key->panes & 1u << TUI_CONSOLE) != 0;
        snprintf(line, sizeof(line), "  %-8s %-48s %s%s", key->name, key->help,
                 key->command != NULL ? key->command : "", console ? "" : "  (not in the console)");
        draw_text(tui->draw, row + 1, 0, cols, DRAW_PLAIN, line);
    }
}

void tui_help_scroll(struct tui *tui, enum tui_request request)
{
    int rows, cols, count = 0;

    draw_size(tui->draw, &rows, &cols);
    while (tui_keys[count].name != NULL) {
        count++;
    }
    int page = rows > 4 ? rows - 4 : 1;
    int by = request == TUI_UP          ? -1
             : request == TUI_DOWN      ? 1
             : request == TUI_PAGE_UP   ? -page
             : request == TUI_PAGE_DOWN ? page
                                        : 0;
    int last = count > rows - 2 ? count - rows + 2 : 0;
    tui->help_first += by;
    tui->help_first = tui->help_first > last ? last : tui->help_first;
    tui->help_first = tui->help_first < 0 ? 0 : tui->help_first;
}

void tui_draw_all(struct tui *tui)
{
    int rows, cols;

    tui_tree_update(tui);
    draw_size(tui->draw, &rows, &cols);
    draw_begin(tui->draw);
    if (rows < 2) {
        draw_end(tui->draw);
        return;
    }
    if (tui->help) {
        draw_help(tui, rows - 1, cols);
    } else {
        draw_panes(tui, rows - 1, cols);
    }
    if (tui->form != NULL) {
        tui_form_draw(tui);
    }
    draw_status(tui, rows - 1, cols);
    draw_end(tui->draw);
}
