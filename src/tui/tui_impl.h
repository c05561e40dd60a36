// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by the files of the panes, and by nobody else.
 */
#ifndef GD_TUI_TUI_IMPL_H
#define GD_TUI_TUI_IMPL_H

#include <ev.h>

#include "base/buf.h"
#include "tui/draw.h"
#include "tui/form.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/list.h"
#include "tui/pane.h"
#include "tui/panes/pane_tree.h"
#include "tui/tui.h"

#define TUI_MIN_ROWS 10
#define TUI_MIN_COLS 40

struct tui;

void *tui_state(struct tui *tui, enum tui_pane_id pane);

struct tui_rate { /* speed of the running training */
    int session;  /* its number; 0: none */
    int64_t step; /* at that time */
    double at;
    double steps_per_second; /* 0: unknown yet */
};

struct tui_line_due { /* a command line waiting to run */
    char *text;
    bool typed;           /* typed at the prompt; false: from a key */
    bool keyboard;        /* the command may move the keyboard to another pane */
    const char *question; /* to confirm before it runs; NULL: none */
};

#define TUI_MAX_QUEUE     100   /* lines typed ahead */
#define TUI_CONSOLE_LINES 10000 /* kept lines */

struct console_line {
    char *text;
    enum draw_style style;
};
struct console_pane {          /* what commands and events print; exists without a terminal, too */
    struct console_line *line; /* a ring */
    size_t first, count;
    size_t back; /* lines scrolled back from the end */
    int rows;
};

struct tui_click { /* the last click; another one there soon after makes it a double click */
    int row, col;
    double at;
    bool opened; /* the click opened something */
};

struct tui {
    struct ev_loop *loop;
    struct repl *repl;
    struct gd_debugger *debugger;
    struct draw *draw;
    bool utf8;

    /* panes */
    void *state[TUI_PANE_COUNT];
    struct tree_pane tree; /* these two exist whatever is shown */
    struct console_pane console;

    /* focus and layout */
    enum tui_pane_id focus; /* pane with the keyboard; TUI_CONSOLE: the prompt */
    /* pane that stays visible while the keyboard is at the prompt; TUI_CONSOLE: none */
    enum tui_pane_id shown;
    /* target of C-x o from the prompt; TUI_CONSOLE: the layout's first pane */
    enum tui_pane_id next;
    enum tui_pane_id focus_of; /* pane that gets the focus back when the screen has grown */
    enum tui_layout layout;
    int console_rows; /* set by winheight; 0: the layout's default */
    bool one_pane;    /* C-x 1 */
    bool small;       /* the screen is too small for panes */

    /* what covers the panes, or asks */
    struct tui_form *form; /* NULL: none is open */
    bool help;             /* the list of keys is open */
    int help_first;
    size_t offers;                 /* recommended watchpoints on offer; 0: no question */
    const char *question;          /* open question; NULL: none */
    int answer;                    /* 0: none yet; otherwise 'y' or 'n' */
    enum tui_pane_id asked_before; /* pane that gets the keyboard back after the answer */

    /* keys */
    int prefix;      /* C-x was typed */
    bool single_key; /* C-x s */
    bool meta;       /* Escape was typed and modifies the next key */
    bool mouse;
    struct tui_click clicked;
    unsigned char typed[64]; /* for readline */
    size_t typed_len, typed_at;
    bool pasting; /* the current input is pasted */
    struct gd_buf pasted;
    /* Printable keys that panes took since the last other key. The first key that no pane takes
     * carries them to the prompt, so that a command typed in the wrong place arrives complete or
     * not at all. */
    char taken[256];
    size_t taken_len;

    /* commands */
    struct tui_line_due queue[TUI_MAX_QUEUE]; /* oldest first */
    size_t queue_count;
    bool executing;
    bool keyboard; /* the running command may move the keyboard: it came from a key */
    bool ended;    /* input has ended */
    bool plain;    /* switch to the plain prompt */

    /* pictures */
    bool dirty;     /* something changed */
    bool dirty_now; /* by a key: draw immediately */
    bool progress;  /* long work was running at the last check */
    double drawn_at;
    double slow_until;  /* the terminal is slow: draw fewer pictures until then */
    int64_t shown_step; /* the step in the status line */
    struct tui_rate rate;

    ev_io input;
    ev_signal winch, interrupt, suspend, resume;
    ev_timer draw_timer;
    ev_prepare prepare;
};

/* queue.c: command lines that wait to run, and their words. */
void tui_changed(struct tui *tui); /* a picture is due */
void tui_redraw(struct tui *tui);  /* ... immediately */
/* The node that panes show: the current session's current node. The tree's cursor sets it through
 * the command `node`, so that a script can do the same. GD_NO_NODE: none. */
gd_node_id tui_node(struct tui *tui, struct gd_session **session);
/* Appends a name as a command's argument, quoted if the parser would split it. */
void tui_add_name(struct gd_buf *out, const char *name);
/* tui_pane_ops.word about one node: its name or its breakpoint. */
bool tui_node_word(struct tui *tui, struct gd_session *session, gd_node_id node, char which,
                   struct gd_buf *out);
/* The default: about the current node. */
bool tui_common_word(struct tui *tui, char which, struct gd_buf *out);
/* Queues a command line: of a key, or typed at the prompt. */
void tui_run_line(struct tui *tui, const char *line);
void tui_run_typed(struct tui *tui, const char *line);
void tui_run_due(struct tui *tui, const struct tui_line_due *due); /* copies its text */

/* console.c */
void tui_console_add(struct tui *tui, enum draw_style style, const char *text, size_t len);
void tui_console_write(void *ctx, const char *text, size_t len, bool is_error);
void tui_console_free(struct tui *tui);

/* focus.c: which pane has the keyboard, and the layout. */
/* For keys and clicks: shows the pane and moves the keyboard there. */
void tui_focus(struct tui *tui, enum tui_pane_id pane);
void tui_focus_next(struct tui *tui, int by); /* 1 or -1 */
/* For commands: shows the pane and makes it the target of C-x o; a typed command does not move the
 * keyboard. */
void tui_show(struct tui *tui, enum tui_pane_id pane);
enum tui_pane_id tui_shown(const struct tui *tui); /* the pane that every layout shows */
enum tui_pane_id tui_next_pane(struct tui *tui, int by);
void tui_set_layout(struct tui *tui, enum tui_layout layout);
struct layout_wish tui_wish(struct tui *tui);
/* Moves the keyboard to the prompt and leaves single-key mode. */
void tui_to_prompt(struct tui *tui);

/* input.c */
void tui_key(struct tui *tui, int key);

/* control.c: the commands about the panes, and what they set before the panes open. */
void tui_control_start(struct tui *tui);
void tui_control_stop(struct tui *tui);

/* screen.c */
void tui_draw_all(struct tui *tui);
/* The line above a pane, with its title. */
void tui_title_draw(struct tui *tui, int row, int col, int cols, const char *title, bool focused);
/* The places of the visible panes; returns their number. */
int tui_places(struct tui *tui, struct layout_place ret[LAYOUT_MAX_PLACES]);

/* frame.c: when to draw; resizing; Ctrl-Z and coming back. */
void tui_frames_init(struct tui *tui);
void tui_frames_take_signals(struct tui *tui); /* before curses installs its own handlers */
void tui_frames_start(struct tui *tui);
void tui_frames_stop(struct tui *tui);
void tui_take_size(struct tui *tui); /* the terminal may have been resized */

/* paste.c: pasted text is never interpreted as keys. true: the key was part of it. */
bool tui_paste_key(struct tui *tui, int key);
void tui_paste_stop(struct tui *tui); /* gives up an incomplete paste */

/* mouse.c */
void tui_mouse(struct tui *tui); /* after DRAW_KEY_MOUSE */

/* progress.c */
bool tui_progress_moves(struct tui *tui); /* there is something to draw or to remove */
/* false: no long work is running. */
bool tui_progress_draw(struct tui *tui, int row, int cols);

/* status.c */
void tui_status_update(struct tui *tui);
/* The step differs from the one in the status line. */
bool tui_status_moves(const struct tui *tui);
void tui_status_draw(struct tui *tui, int row, int cols);
int tui_status_mode(struct tui *tui, int row, int cols);

/* waiting.c: the screen while no training process is connected. */
/* Whether the help on connecting replaces the panes. It replaces those about a graph; other panes
 * that the user selected stay visible (the log may say why a program did not connect). */
bool tui_waiting_covers(const struct tui *tui);
void tui_waiting_draw(struct tui *tui, int rows, int cols);
/* the pane that a click there focuses */
enum tui_pane_id tui_waiting_pane(struct tui *tui, int row);

/* offer.c: the question whether to set the recommended watchpoints. */
void tui_offer_update(struct tui *tui);
void tui_offer_draw(struct tui *tui, int row, int col, int cols);
/* A line typed while the offer is open; true: it was the answer. */
bool tui_offer_line(struct tui *tui, const char *line);

/* help.c: the list of keys over the panes. */
void tui_help_draw(struct tui *tui, int rows, int cols);
void tui_help_scroll(struct tui *tui, enum tui_request request);

/* pane_source.c */
/* shows at most the one line sent by the training process */
bool tui_source_is_missing(struct tui *tui);

/* pane_hits.c */
void tui_hits_show(struct tui *tui, int watchpoint); /* only its hits; 0: all */

/* pane_history.c: shows these series instead of the current node's. GD_ENOMEM. */
int tui_history_plot(struct tui *tui, const struct series_key *keys, size_t count,
                     const struct chart_options *options, struct gd_err *err);

/* prompt.c: readline without a terminal */
void tui_prompt_start(struct tui *tui);
void tui_prompt_stop(struct tui *tui);
void tui_prompt_key(struct tui *tui, int key);
void tui_prompt_clear(struct tui *tui);
void tui_prompt_paste(struct tui *tui, const char *text);
/* Draws prompt and line, with the cursor if focused. */
void tui_prompt_draw(struct tui *tui, int row, int col, int cols, bool focused);
/* Runs readline on the real terminal until C-x a or quit. */
void tui_prompt_plain(struct tui *tui);

/* The session's values can be requested now. */
static inline bool tui_can_ask(const struct gd_session *session)
{
    return session->state == GD_STOPPED || session->state == GD_LOST ||
           session->state == GD_FINISHED;
}

#endif
