// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The screen: the only file that calls curses. Everything that is drawn is clipped and made safe
 * here (tui/text.h).
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
    DRAW_MARK, /* where the training stands, breakpoints */
    DRAW_SCOPE,
    DRAW_HIT,     /* a watchpoint fired there */
    DRAW_WATCHED, /* watch marks */
    DRAW_GOOD,
    DRAW_CHANGED, /* differs from the step before */
    DRAW_MATCH,   /* of a search; elements in the range that is looked for */
    DRAW_HEAT0,   /* DRAW_HEAT0 ... DRAW_HEAT0 + DRAW_HEATS - 1: from low to high */
    DRAW_STYLE_COUNT = DRAW_HEAT0 + 16
};
#define DRAW_HEATS 16

enum draw_theme {
    DRAW_THEME_DARK,
    DRAW_THEME_LIGHT,
    DRAW_THEME_SAFE, /* for colour blindness */
    DRAW_THEME_COUNT
};

struct draw_rect {
    int row, col, rows, cols;
};

/* Takes the terminal on stdin and stdout; without colours until draw_set_theme. GD_EUNSUPPORTED:
 * none, or of an unknown type; GD_ENOMEM. Without the second screen the pictures stand on the one
 * that scrolls, and the last one stays there. */
int draw_open(bool utf8, bool second_screen, struct draw **ret, struct gd_err *err);
/* Colours by the terminal's count of them, at most `most` (0: none; DRAW_ALL_COLORS: as many as it
 * has): 256 or true colours for heat maps, else the 8 or 16 named ones; without colour bold, dim,
 * reverse and underline alone. Cheap when nothing changed. */
#define DRAW_ALL_COLORS 256
void draw_set_theme(struct draw *draw, enum draw_theme theme, int most);
int draw_most_colors(const struct draw *draw); /* as it was set */
/* Gives the terminal back as it was; one that takes nothing any more has its modes back alone, and
 * nothing is written to it from then on. */
void draw_close(struct draw *draw);

void draw_leave(struct draw *draw);  /* back to the plain screen for a while */
void draw_enter(struct draw *draw);  /* and here again */
void draw_resize(struct draw *draw); /* after the terminal's size changed */
void draw_size(const struct draw *draw, int *rows, int *cols);
bool draw_utf8(const struct draw *draw);
/* What puts a terminal back when nobody can call draw_close any more; valid until draw_close. */
const char *draw_restore_text(const struct draw *draw);
/* The same for the terminal that TERM names, when another process drew on it. "" it is not known.
 */
void draw_restore_foreign(char *out, size_t size);

void draw_begin(struct draw *draw); /* an empty picture */
void draw_end(struct draw *draw);   /* shows it, as far as the terminal takes it now */
/* Gives the terminal more of it; true: the picture is out, and the next one may be drawn. */
bool draw_send(struct draw *draw);
void draw_forget(struct draw *draw); /* the next picture is sent whole */
/* Returns the columns used; what does not fit is cut off. */
int draw_text(struct draw *draw, int row, int col, int cols, enum draw_style style,
              const char *text);
int draw_text_len(struct draw *draw, int row, int col, int cols, enum draw_style style,
                  const char *text, size_t len);
void draw_fill(struct draw *draw, int row, int col, int cols, enum draw_style style);
void draw_hline(struct draw *draw, int row, int col, int cols);
void draw_vline(struct draw *draw, int row, int col, int rows);
void draw_cursor(struct draw *draw, int row, int col); /* none is shown in a picture without */

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
    DRAW_KEY_MOUSE,     /* draw_mouse says what */
    DRAW_KEY_PASTE,     /* what follows was pasted, not typed, */
    DRAW_KEY_PASTE_END, /* up to here */
};
/* The next key that was typed; -1 when there is none now. */
int draw_key(struct draw *draw);

/* Off at first: a terminal whose mouse we take cannot select text. false: it has none that we know
 * of. draw_restore_text is another one afterwards. */
bool draw_set_mouse(struct draw *draw, bool on);
enum draw_button { DRAW_MOUSE_CLICK, DRAW_MOUSE_UP, DRAW_MOUSE_DOWN /* the wheel */ };
struct draw_mouse {
    int row, col;
    enum draw_button button;
};
void draw_mouse(const struct draw *draw, struct draw_mouse *ret); /* after DRAW_KEY_MOUSE */

#endif
