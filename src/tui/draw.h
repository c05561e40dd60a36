// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The screen. This is the only file that calls curses. It clips everything that is drawn and makes
 * it safe to show (tui/text.h).
 */
#ifndef GD_TUI_DRAW_H
#define GD_TUI_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct draw;

enum draw_style {
    DRAW_PLAIN,
    DRAW_BOLD,
    DRAW_DIM,
    DRAW_REVERSE,
    DRAW_ERROR,
    DRAW_MARK, /* where the training is stopped; breakpoints */
    DRAW_SCOPE,
    DRAW_HIT,     /* a watchpoint hit */
    DRAW_WATCHED, /* marks of watched nodes */
    DRAW_GOOD,
    DRAW_CHANGED,                 /* differs from the previous step */
    DRAW_MATCH,                   /* a search match; elements inside the searched range */
    DRAW_CURVE0,                  /* ... DRAW_CURVE0 + DRAW_CURVES - 1: of a chart */
    DRAW_HEAT0 = DRAW_CURVE0 + 6, /* DRAW_HEAT0 ... DRAW_HEAT0 + DRAW_HEATS - 1: from low to high */
    DRAW_STYLE_COUNT = DRAW_HEAT0 + 16
};
#define DRAW_HEATS  16
#define DRAW_CURVES 6

enum draw_theme {
    DRAW_THEME_DARK,
    DRAW_THEME_LIGHT,
    DRAW_THEME_SAFE, /* for colour blindness */
    DRAW_THEME_COUNT
};

struct draw_rect {
    int row, col, rows, cols;
};

/* Takes over the terminal on stdin and stdout, without colours until draw_set_theme. Without
 * second_screen, pictures go to the normal screen and the last one stays there. GD_EUNSUPPORTED: no
 * terminal, or one of unknown type; GD_ENOMEM. */
int draw_open(bool utf8, bool second_screen, struct draw **ret, struct gd_err *err);
/* Uses at most `most` colours (0: none; DRAW_ALL_COLORS: as many as the terminal has). Heat maps
 * use 256 or true colours; everything else the 8 or 16 named ones. Without colours, styles differ
 * by bold, dim, reverse and underline. Cheap when nothing changed. */
#define DRAW_ALL_COLORS 256
void draw_set_theme(struct draw *draw, enum draw_theme theme, int most);
int draw_most_colors(const struct draw *draw); /* the last `most` */
/* Restores the terminal. If the terminal accepts no bytes any more, only its modes are restored,
 * and nothing is written to it from then on. */
void draw_close(struct draw *draw);

void draw_leave(struct draw *draw);  /* back to the plain screen for a while */
void draw_enter(struct draw *draw);  /* the way back */
void draw_resize(struct draw *draw); /* after the terminal's size changed */
void draw_size(const struct draw *draw, int *rows, int *cols);
/* The bytes that restore the terminal when draw_close can no longer be called; valid until
 * draw_close. */
const char *draw_restore_text(const struct draw *draw);
/* The same for the terminal named by TERM, when another process drew on it. "": unknown
 * terminal. */
void draw_restore_foreign(char *out, size_t size);

void draw_begin(struct draw *draw); /* an empty picture */
void draw_end(struct draw *draw);   /* shows the picture, as far as the terminal accepts it now */
/* Sends more of the picture. Returns true when all of it is sent and the next one may be drawn. */
bool draw_send(struct draw *draw);
void draw_forget(struct draw *draw); /* the next picture is sent completely */
/* Returns the columns used; clips what does not fit. */
int draw_text(struct draw *draw, int row, int col, int cols, enum draw_style style,
              const char *text);
int draw_text_len(struct draw *draw, int row, int col, int cols, enum draw_style style,
                  const char *text, size_t len);
void draw_fill(struct draw *draw, int row, int col, int cols, enum draw_style style);
void draw_hline(struct draw *draw, int row, int col, int cols);
void draw_vline(struct draw *draw, int row, int col, int rows);
/* a picture without a call shows no cursor */
void draw_cursor(struct draw *draw, int row, int col);

/* Keys: Unicode characters, and the keys below. */
enum draw_key_code {
    DRAW_KEY_UP = 0x110000, /* beyond Unicode */
    DRAW_KEY_DOWN,
    DRAW_KEY_LEFT,
    DRAW_KEY_RIGHT,
    DRAW_KEY_HOME,
    DRAW_KEY_END,
    DRAW_KEY_PAGE_UP,
    DRAW_KEY_PAGE_DOWN,
    DRAW_KEY_DELETE,
    DRAW_KEY_BACKSPACE,
    DRAW_KEY_BACKTAB,
    DRAW_KEY_F1, /* ... F12 */
    DRAW_KEY_F12 = DRAW_KEY_F1 + 11,
    DRAW_KEY_OTHER,
    DRAW_KEY_MOUSE,     /* see draw_mouse */
    DRAW_KEY_PASTE,     /* the keys from here on were pasted, not typed, */
    DRAW_KEY_PASTE_END, /* up to here */
};
/* The next key; -1: none is waiting. */
int draw_key(struct draw *draw);

/* Off by default: while we take the mouse, the terminal cannot select text. Changes what
 * draw_restore_text returns. Returns false when this terminal type has no known mouse. */
bool draw_set_mouse(struct draw *draw, bool on);
enum draw_button { DRAW_MOUSE_CLICK, DRAW_MOUSE_UP, DRAW_MOUSE_DOWN /* the wheel */ };
struct draw_mouse {
    int row, col;
    enum draw_button button;
};
void draw_mouse(const struct draw *draw, struct draw_mouse *ret); /* after DRAW_KEY_MOUSE */

#endif
