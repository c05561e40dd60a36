// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the files of the panes share and nobody else sees.
 */
#ifndef GD_TUI_TUI_IMPL_H
#define GD_TUI_TUI_IMPL_H

#include <ev.h>

#include "base/buf.h"
#include "repl/core/await.h"
#include "tui/draw.h"
#include "tui/form.h"
#include "tui/keys.h"
#include "tui/layout.h"
#include "tui/list.h"
#include "tui/panes/tree.h"
#include "tui/panes/tree_hits.h"
#include "tui/tui.h"

#define TUI_MIN_ROWS      10
#define TUI_MIN_COLS      40
#define TUI_CONSOLE_LINES 10000 /* kept */
#define TUI_MAX_SLOTS     8     /* outputs of a node whose statistics are shown */
#define TUI_BINS          16    /* of their histograms */

struct tui;

/*
 * A pane. Its file keeps its state in a struct of its own: tui_state(tui, TUI_WATCH).
 * Slots may be NULL where there is nothing to do.
 */
struct tui_pane_ops {
    const char *name;                 /* "watch": for `focus`, `help keys` */
    void *(*create)(struct tui *tui); /* NULL: out of memory */
    void (*destroy)(struct tui *tui, void *state);
    void (*event)(struct tui *tui, const struct gd_event *event);
    /* Before a picture in which it is shown: follows the session, asks for what it lacks. Cheap: it
     * runs for every picture. */
    void (*update)(struct tui *tui);
    void (*draw)(struct tui *tui, const struct draw_rect *rect, bool focused);
    void (*title)(struct tui *tui, char *out, size_t size);
    void (*request)(struct tui *tui, enum tui_request request);
    enum tui_search (*search)(struct tui *tui);
    /* Every key before the table, while the pane has the focus; true: taken (a search is typed). */
    bool (*key)(struct tui *tui, int key);
    /* The word of a key's command: 'n', 't', 'b', 'w', 'h' (keys.h); false: there is none. */
    bool (*word)(struct tui *tui, char which, struct gd_buf *out);
    /* A click into it, counted from the pane's upper left corner below the title (set mouse on):
     * the cursor goes there. true: it was there before, and another click opens what is there. */
    bool (*click)(struct tui *tui, int row, int col);
};
extern const struct tui_pane_ops tui_tree_pane, tui_node_pane, tui_console_pane, tui_watch_pane,
    tui_hits_pane, tui_stack_pane, tui_source_pane, tui_tensor_pane, tui_history_pane, tui_log_pane;
void *tui_state(struct tui *tui, enum tui_pane_id pane);

/* ---- the graph tree ---- */

struct tree_line { /* a search or a filter, and how far it is */
    char text[128];
    bool typing;
    bool stale;             /* text, or the graph, is not what was looked up */
    struct tui_found *in;   /* NULL: none */
    struct tui_found *next; /* takes its place when it is complete; NULL: none */
    bool goes;              /* a search: the cursor goes to what is found then */
    char why[96];           /* it was not looked up; "" it was */
};

struct tree_pane {
    struct tui_tree *tree;
    struct tree_line filter, search;
    struct tui_tree_row from; /* where the search being typed began */
    struct tree_hits hits;
    struct gd_session *session; /* whose graph it is; only compared */
    uint64_t generation;
    bool any; /* there are rows: top and cursor are valid */
    struct tui_tree_pos top, cursor;
    uint64_t stop_sequence; /* the stop that the cursor was put on */
    gd_node_id current;     /* the session's current node that the cursor was put on */
    int rows;               /* of the pane, when it was drawn last */
};

/* ---- the node pane ---- */

struct stats_request {
    struct await await;
    struct tui *tui; /* not to be read once the panes have left the answer */
    uint32_t slot;
    uint64_t serial;
};

struct slot_stats {
    enum { STATS_NONE = 0, STATS_ASKED, STATS_HERE, STATS_FAILED } state;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step; /* whose value it is; -1 unknown */
    char why[120];
    int histogram; /* a state as above */
    uint64_t bin[TUI_BINS];
    bool sampled; /* of every so manieth element */
};

struct node_pane {
    struct gd_session *session; /* what the statistics are of */
    gd_node_id node;
    uint64_t stop_sequence;
    uint64_t serial; /* counts what they were of: late answers are dropped */
    struct slot_stats slot[TUI_MAX_SLOTS];
    struct stats_request *awaited[TUI_MAX_SLOTS];
};

/* ---- the console ---- */

struct console_line {
    char *text;
    enum draw_style style;
};
struct console_pane {
    struct console_line *line; /* a ring */
    size_t first, count;
    size_t back; /* lines scrolled back from the end */
    int rows;
};

/* ---- the whole ---- */

struct tui_rate { /* of the training, while it runs */
    int session;  /* its number; 0: none */
    int64_t step; /* at that time */
    double at;
    double steps_per_second; /* 0: not known yet */
};

struct tui_line_due { /* waits to run */
    char *text;
    bool typed;           /* at the prompt; else a key's */
    bool keyboard;        /* it may move it */
    const char *question; /* asked before; NULL none */
};

struct tui_click { /* the last one: another one there soon behind it is its second half */
    int row, col;
    double at;
    bool opened; /* something */
};

struct tui {
    struct ev_loop *loop;
    struct repl *repl;
    struct gd_debugger *debugger;
    struct draw *draw;
    bool utf8;

    enum tui_pane_id focus; /* where the keyboard is; TUI_CONSOLE: at the prompt */
    enum tui_pane_id shown; /* also while the keyboard is at the prompt; TUI_CONSOLE: none */
    enum tui_pane_id next;  /* where C-x o goes from the prompt; TUI_CONSOLE: the layout says it */
    enum tui_layout layout;
    bool one_pane;    /* C-x 1 */
    bool single_key;  /* C-x s */
    bool keyboard;    /* the command that runs may move it: a key ran it, not a typed line */
    int console_rows; /* winheight; 0 the layout's choice */
    void *state[TUI_PANE_COUNT];
    struct tui_form *form; /* NULL: none is open */
    struct tui_rate rate;
    bool small;                /* the screen is too small for panes */
    enum tui_pane_id focus_of; /* that gets the focus when it is no more */
    bool mouse;
    struct tui_click clicked;
    size_t offers; /* recommended watchpoints, while the question stands; 0: it does not */
    bool help;     /* the list of keys covers the panes */
    int help_first;
    int prefix; /* C-x was typed */
    bool ended; /* end of input */
    bool plain; /* to the plain prompt */
    bool executing;

    struct tree_pane tree;
    struct node_pane node;
    struct console_pane console;

    /* input for readline, and lines that it finished */
    unsigned char typed[64];
    size_t typed_len, typed_at;
    bool pasting; /* what comes was not typed */
    struct gd_buf pasted;
    bool meta; /* Escape was typed: it belongs to the next key */
    /* Printable keys that panes took since the last other key. The first that none takes carries
     * them to the prompt: of a command that is typed in the wrong place never only the end runs. */
    char taken[256];
    size_t taken_len;
    struct tui_line_due *queue; /* oldest first */
    size_t queue_count;
    const char *question;          /* being asked; NULL none */
    enum tui_pane_id asked_before; /* where the keyboard goes after the answer */
    int answer;                    /* 0 none yet, 'y', 'n' */

    bool progress;  /* long work ran when it was looked at last */
    bool dirty;     /* something changed */
    bool dirty_now; /* by a key: shown at once */
    double drawn_at;
    int64_t shown_step; /* by the status line */
    double slow_until;  /* the terminal takes pictures slowly: fewer of them until then */
    ev_io input;
    ev_signal winch, interrupt, suspend, resume;
    ev_timer draw_timer;
    ev_prepare prepare;
};

#define TUI_PANE(tui, id) (tui_panes[id])
extern const struct tui_pane_ops *const tui_panes[TUI_PANE_COUNT];

/* tui.c */
void tui_changed(struct tui *tui);
/* The node that panes show: the current session's current node; the tree's cursor sets it with the
 * command `node`, so what a hand selects a script can. GD_NO_NODE. */
gd_node_id tui_node(struct tui *tui, struct gd_session **session);
/* A name as an argument of a command: quoted when the parser would split it. */
void tui_add_name(struct gd_buf *out, const char *name);
/* The words that panes without their own have: those of the current node. */
bool tui_common_word(struct tui *tui, char which, struct gd_buf *out);
/* A key or a click: the keyboard goes to a pane, which is shown. */
void tui_focus(struct tui *tui, enum tui_pane_id pane);
void tui_focus_next(struct tui *tui, int by); /* 1 or -1 */
/* A command: the pane is shown, and C-x o goes there. A typed one leaves the keyboard alone. */
void tui_show(struct tui *tui, enum tui_pane_id pane);
enum tui_pane_id tui_shown(const struct tui *tui); /* the pane that no layout hides */
enum tui_pane_id tui_next_pane(struct tui *tui, int by);
void tui_set_layout(struct tui *tui, enum tui_layout layout);
/* Puts a line behind those that wait to run: a key's, or one that was typed at the prompt. */
void tui_run_line(struct tui *tui, const char *line);
void tui_run_typed(struct tui *tui, const char *line);
void tui_run_due(struct tui *tui, const struct tui_line_due *due); /* its text is copied */
/* What is typed goes to the prompt from here on; single-key mode ends. */
void tui_to_prompt(struct tui *tui);

/* input.c */
void tui_key(struct tui *tui, int key);
void tui_request(struct tui *tui, const struct tui_key *key);
/* What the key's command is about is there; always true of keys without a command. */
bool tui_key_works(struct tui *tui, const struct tui_key *key);

/* control.c: the commands about the panes; what was wished before they were open. */
void tui_control_start(struct tui *tui);
void tui_control_stop(struct tui *tui);

/* screen.c */
void tui_draw_all(struct tui *tui);
/* A text in as many rows as it takes, from row `at` of the pane on; returns the row after it. */
int tui_draw_folded(struct tui *tui, const struct draw_rect *rect, int at, enum draw_style style,
                    const char *text);
/* Where panes stand now; count of them. */
int tui_places(struct tui *tui, struct layout_place ret[LAYOUT_MAX_PLACES]);
struct layout_wish tui_wish(struct tui *tui);
bool tui_shows_one(struct tui *tui); /* pane at a time */

/* frame.c: when a picture is drawn; size, Ctrl-Z and back. */
void tui_frames_init(struct tui *tui);
void tui_frames_take_signals(struct tui *tui); /* before curses would */
void tui_frames_start(struct tui *tui);
void tui_frames_stop(struct tui *tui);
void tui_take_size(struct tui *tui); /* the terminal's size may be another one */

/* paste.c: text that was pasted is never taken for keys. True: the key was part of it. */
bool tui_paste_key(struct tui *tui, int key);
void tui_paste_stop(struct tui *tui); /* the rest of it does not come */

/* mouse.c */
void tui_mouse_follow(struct tui *tui); /* as `set mouse` says */
void tui_mouse(struct tui *tui);        /* behind DRAW_KEY_MOUSE */

/* progress.c */
bool tui_progress_moves(struct tui *tui); /* there is something to show, or to take away */
/* false: nothing runs that is worth it. */
bool tui_progress_draw(struct tui *tui, int row, int cols);

/* status.c */
void tui_status_update(struct tui *tui);
/* The step is another one than the status line shows. */
bool tui_status_moves(const struct tui *tui);
void tui_status_draw(struct tui *tui, int row, int cols);
int tui_status_mode(struct tui *tui, int row, int cols);

/* waiting.c: while no trainer is there; the question about recommended watchpoints. */
/* The panes that are about a graph give way to it; what else a hand chose is shown (the log says
 * why a program has not come). */
bool tui_waiting_covers(const struct tui *tui);
void tui_waiting_draw(struct tui *tui, int rows, int cols);
enum tui_pane_id tui_waiting_pane(struct tui *tui, int row); /* what gets the focus there */
void tui_offer_update(struct tui *tui);
void tui_offer_draw(struct tui *tui, int row, int col, int cols);
void tui_offer_answer(struct tui *tui, bool yes);
/* A line typed at the prompt while the question stands; true: it was the answer. */
bool tui_offer_line(struct tui *tui, const char *line);

/* help.c: the list of keys over the panes. */
void tui_help_draw(struct tui *tui, int rows, int cols);
void tui_help_scroll(struct tui *tui, enum tui_request request);

/* pane_tree.c */
/* Follows the current session, its graph and its stops. */
void tui_tree_update(struct tui *tui);
gd_node_id tui_cursor_node(struct tui *tui); /* GD_NO_NODE on a scope, or without a graph */
bool tui_cursor_row(struct tui *tui, struct tui_tree_row *ret);
void tui_tree_show(struct tui *tui,
                   gd_node_id node); /* the cursor on it; ends a filter that hides it */

/* pane_node.c */
void tui_node_update(struct tui *tui); /* asks for statistics that are missing */
void tui_node_forget(struct tui *tui); /* answers that are awaited will be dropped */

/* pane_source.c */
bool tui_source_is_missing(struct tui *tui); /* it has one line to show, or none */

/* pane_hits.c */
void tui_hits_show(struct tui *tui, int watchpoint); /* its hits alone; 0 all */

/* pane_console.c */
void tui_console_add(struct tui *tui, enum draw_style style, const char *text, size_t len);
void tui_console_write(void *ctx, const char *text, size_t len, bool is_error);
void tui_console_free(struct tui *tui);

/* prompt.c: readline without a terminal */
void tui_prompt_start(struct tui *tui);
void tui_prompt_stop(struct tui *tui);
void tui_prompt_key(struct tui *tui, int key);
void tui_prompt_clear(struct tui *tui);
void tui_prompt_paste(struct tui *tui, const char *text);
/* The line as it stands; *cursor is the column within the prompt and the line together. */
void tui_prompt_draw(struct tui *tui, int row, int col, int cols, bool focused);
/* readline on the real terminal until C-x a or quit. */
void tui_prompt_plain(struct tui *tui);

#endif
