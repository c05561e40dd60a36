// SPDX-License-Identifier: GPL-3.0-or-later
#include "resident/resident_view.h"
#include "resident/resident_wire.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "tui/draw.h"
#include "tui/tape.h"

struct resident_view {
    struct draw *draw;     /* NULL: showing lines */
    struct gd_buf picture; /* shown now, or being received */
    bool no_panes;         /* this terminal cannot show panes */
};

struct resident_view *resident_view_new(void)
{
    struct resident_view *view = calloc(1, sizeof(*view));

    if (view) {
        gd_buf_init(&view->picture, TAPE_MAX);
        view->no_panes = !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    }
    return view;
}

void resident_view_leave(struct resident_view *view)
{
    draw_close(view->draw);
    view->draw = NULL;
}

void resident_view_free(struct resident_view *view)
{
    if (view) {
        resident_view_leave(view);
        gd_buf_deinit(&view->picture);
        free(view);
    }
}

static void show_picture(struct resident_view *view)
{
    const char *no_color = getenv("NO_COLOR");
    bool plain = no_color && no_color[0] != '\0';
    struct gd_err err;

    if (view->picture.len == 0) {
        resident_view_leave(view);
        return;
    }
    if (!view->draw && !view->no_panes) {
        bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        view->no_panes = draw_open(utf8, true, &view->draw, &err) != GD_OK;
        if (view->draw) { /* the image includes its theme */
            draw_set_theme(view->draw, DRAW_THEME_DARK, plain ? 0 : 256);
        }
    }
    if (view->draw) {
        draw_begin(view->draw);
        tape_play(view->draw, gd_buf_text(&view->picture), view->picture.len);
        draw_end(view->draw);
    }
}

void resident_view_take(struct resident_view *view, char kind, const char *bytes, size_t len)
{
    switch (kind) {
    case RESIDENT_BEGIN: gd_buf_clear(&view->picture); break;
    case RESIDENT_PICTURE: gd_buf_add(&view->picture, bytes, len); break;
    case RESIDENT_SHOW:
        gd_buf_add(&view->picture, bytes, len);
        show_picture(view);
        break;
    case RESIDENT_LINES:
        if (!view->draw) {
            fwrite(bytes, 1, len, stdout);
            fflush(stdout);
        }
        break;
    default: break;
    }
}

void resident_view_resize(struct resident_view *view)
{
    if (view->draw) {
        draw_resize(view->draw);
        draw_forget(view->draw);
        show_picture(view);
    }
}

bool resident_view_keys(struct resident_view *view)
{
    bool enough = false;

    if (!view->draw) {
        char bytes[256];
        ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
        return got > 0 && bytes[0] == 'q';
    }
    for (int key = draw_key(view->draw); key >= 0; key = draw_key(view->draw)) {
        enough = enough || key == 'q';
    }
    return enough;
}
