// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The command language: a line of text in, records out as text or JSON. The same object serves the
 * prompt, command files, --batch and the panes.
 */
#ifndef GD_REPL_REPL_H
#define GD_REPL_REPL_H

#include <stdio.h>

#include "engine/debugger.h"
#include "repl/core/exit_status.h"

struct repl;
struct ev_loop;

struct repl_options {
    bool batch;       /* no questions, stop at the first error, foreground runs */
    bool json;        /* one JSON object a line */
    bool interactive; /* a person types: confirmations, paging, asynchronous stop reports */
    bool color;
    bool utf8;
    bool sealed; /* starts no program, reads and writes no file: for input of unknown origin */
    int width;   /* columns of the output; 0 = 80 */
};

/* Where text goes: whole lines, no escape sequences unless color. is_error for `error:` lines. */
typedef void (*repl_write_fn)(void *ctx, const char *text, size_t len, bool is_error);

/* `loop` is libev's default loop: programs are started, and only that one hears of their end. */
int repl_create(struct ev_loop *loop, struct gd_debugger *debugger,
                const struct repl_options *options, struct repl **ret, struct gd_err *err);
void repl_destroy(struct repl *repl);
void repl_set_writer(struct repl *repl, repl_write_fn fn, void *ctx); /* default: stdout, stderr */
void repl_set_width(struct repl *repl, int width);
struct gd_debugger *repl_debugger(struct repl *repl);
/* As --color, NO_COLOR and `set color` say. */
bool repl_wants_color(const struct repl *repl);

/* Runs one line (comments, empty line = repeat as gdb). Waits in the pump while the command waits.
 * Lines that open a body (commands, define) collect until `end`. Returns GD_OK or the error that
 * was printed. GD_ESTATE when called while a command waits (nothing is printed then). */
int repl_execute(struct repl *repl, const char *line);
/* As source: stops at the first error. */
int repl_source(struct repl *repl, const char *path);
bool repl_wants_quit(const struct repl *repl);
int repl_exit_status(const struct repl *repl); /* see exit_status.h */
/* After the last command of a batch: a program that `run` started and whose training is over comes
 * to its end, and a training that stands at an exception counts as failed. */
void repl_end_batch(struct repl *repl);
/* A command of a batch may have failed: does what `on-error` says. True: no other follows. */
bool repl_batch_fails(struct repl *repl, int rc);
void repl_clear_status(struct repl *repl);  /* what failed so far does not count */
const char *repl_prompt(struct repl *repl); /* "(gradb) " or ">" while a body is open */
bool repl_is_waiting(
    const struct repl *repl); /* a foreground command is waiting: Ctrl-C interrupts */
/* Asks for an orderly end, as the command quit without a question. */
void repl_quit(struct repl *repl, int status);
/* The same for a signal: what a terminal that stands still has not taken yet is not waited for. */
void repl_quit_at_once(struct repl *repl, int status);
/* Runs the loop until the terminal has taken all but so many bytes of what was printed. Where it is
 * given up (Ctrl-C, a signal that ends gradb, a terminal that is left) the rest is dropped. */
bool repl_out_wait(struct repl *repl, size_t most);
/* How to ask a yes-or-no question; without one every answer is yes. */
typedef bool (*repl_ask_fn)(void *ctx, const char *question);
void repl_set_ask(struct repl *repl, repl_ask_fn fn, void *ctx);
/* A front end that owns the terminal lends it: fn(ctx, true) before a program of `shell` or `pipe`
 * writes to it, fn(ctx, false) after its end. It may run the loop. */
typedef void (*repl_lend_fn)(void *ctx, bool lend);
void repl_set_lend(struct repl *repl, repl_lend_fn fn, void *ctx);

/* Where `listen` and `run` listen when they are not told: --listen. */
void repl_set_listen(struct repl *repl, const char *address);
/* As the command `run -- argv...`. Returns GD_OK or the error that was printed. */
int repl_run_program(struct repl *repl, char *const argv[]);
/* As the command `open argv...`. */
int repl_open_files(struct repl *repl, char *const argv[]);
/* The orderly end, once, after the last command: ends a program that `run` started, lets go of the
 * others, closes the port. */
void repl_end(struct repl *repl);

/* Completions of line[0..point) as a NULL-terminated malloc'd array of malloc'd words, each
 * replacing line[*start..point). NULL when there is none. Never touches the network. */
char **repl_complete(struct repl *repl, const char *line, size_t point, size_t *start);

/* At the start of a prompt: what a trainer that stands at its first stop could not be asked
 * before. */
void repl_offer_at_prompt(struct repl *repl);
/* The panes ask by themselves: how many watchpoints are recommended while the question stands, 0
 * when it does not; `recommend yes` and `recommend no` answer it. Cheap. */
size_t repl_offers(struct repl *repl);
/* It was not answered, and shall not be asked again. */
void repl_offer_later(struct repl *repl);

/* A key of the panes. */
struct repl_key {
    const char *name;
    const char *group;   /* what keys of a kind have above them: "Moving" */
    const char *help;    /* what it does; never empty */
    const char *panes;   /* "all", "lists", "all but the console", or names: "watch hits" */
    const char *command; /* that it runs; "" none */
    bool same;           /* does what the key before it does */
    bool bound;          /* by hand */
};

/* What commands may ask of the panes (layout, focus, bind, refresh, winheight, help keys); NULL
 * slots and no panes: GD_ESTATE "the panes are not open". */
struct repl_screen_ops {
    int (*layout)(void *ctx, const char *name, struct gd_err *err); /* NULL: which one it is */
    const char *(*layout_name)(void *ctx);
    int (*focus)(void *ctx, const char *pane, struct gd_err *err); /* "next", "prev", a name */
    int (*height)(void *ctx, int rows, struct gd_err *err);        /* of the console; 0: usual */
    void (*refresh)(void *ctx);
    int (*bind)(void *ctx, const char *pane, const char *key, const char *command,
                struct gd_err *err);
    int (*height_now)(void *ctx);
    /* Opens the grid on "NODE:SLOT[SLICE]"; NULL: on the current node. mode: "", "prev", "diff".
     * Only while the panes are open. */
    int (*tensor)(void *ctx, const char *text, const char *mode, struct gd_err *err);
    /* Does in that grid what a key does: "to", "find", "back", "heat", "axes", "plane". */
    int (*tensor_act)(void *ctx, const char *action, const char *argument, struct gd_err *err);
    /* One call for each key, first those of the table, then the bound ones. */
    void (*keys)(void *ctx, void (*fn)(void *fn_ctx, const struct repl_key *key), void *fn_ctx);
};
/* What to type so that a training process connects, in lines of at most `width` columns. For `help
 * connect`, `listen` and the panes. */
struct gd_buf;
void repl_connect_text(const struct gd_debugger *debugger, int width, struct gd_buf *out);
/* The lines for a program on this host alone. */
void repl_connect_short(const struct gd_debugger *debugger, int width, struct gd_buf *out);

/* All but refresh and keys work without panes, too: what is wished then holds when they open. main
 * sets the table at the start (ctx NULL), the panes set it
 * again with theirs while they are open. */
void repl_set_screen(struct repl *repl, const struct repl_screen_ops *ops, void *ctx);

/* True once after `tui disable`: panes give way to the prompt. */
bool repl_take_prompt_wish(struct repl *repl);

/* The terminal is to be left while the session stays: commands that wait give up their wait, front
 * ends return. Cleared before the next front end. */
void repl_leave(struct repl *repl);
bool repl_has_left(const struct repl *repl);
void repl_clear_left(struct repl *repl);
/* Who keeps the session when its terminal goes. With it the end of a terminal is a SIGHUP; without
 * it, the end of the session. */
struct repl_residence {
    const char *name, *socket, *terminal; /* "" none */
    long pid;
    double since;
    int viewers;
};
struct repl_residence_ops {
    int (*disconnect)(void *ctx, struct gd_err *err);
    void (*lines)(void *ctx, const char *text, size_t len); /* what the console shows */
    void (*facts)(void *ctx, struct repl_residence *ret);
};
void repl_set_residence(struct repl *repl, const struct repl_residence_ops *ops, void *ctx);
bool repl_is_resident(const struct repl *repl);
void repl_forget_repeat(struct repl *repl); /* an empty line does nothing until a command ran */
void repl_tell_typed(struct repl *repl, const char *line); /* it was typed, and is about to run */
/* As `on-hangup` says, with every training process. Runs the loop for a moment. */
void repl_hang_up(struct repl *repl);
/* After that: there is something that a session without a terminal serves or keeps. */
bool repl_has_reason_to_stay(const struct repl *repl);
/* A program that `run` started outlives repl_end. */
void repl_let_go_at_end(struct repl *repl);
/* Another terminal: --color, TERM and the locale may say something else. */
void repl_set_looks(struct repl *repl, bool color, bool utf8);

/* The readline prompt on stdin/stdout, until quit or end of file. */
int repl_run_prompt(struct repl *repl);

#endif
