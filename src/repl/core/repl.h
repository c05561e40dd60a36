// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The command language: lines of text in, text or JSON out. The prompt, command files, --batch and
 * the panes all use the same object.
 */
#ifndef GD_REPL_REPL_H
#define GD_REPL_REPL_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "engine/debugger.h"
#include "repl/core/exit_status.h"

struct repl;
struct ev_loop;
struct series_key;
struct chart_options;

struct repl_options {
    bool batch;       /* no questions, stop at the first error, foreground runs */
    bool json;        /* one JSON object per line */
    bool interactive; /* for a person: confirmations, paging, stops reported as they happen */
    bool color;
    bool utf8;
    bool words;  /* with json, also the text, for a writer and a recorder that are set */
    bool sealed; /* for input of unknown origin: starts no program, opens no file */
    int width;   /* columns of the output; 0: 80 */
};

/* Receives the output in whole lines, without escape sequences unless `color`. is_error: for
 * stderr. */
typedef void (*repl_write_fn)(void *ctx, const char *text, size_t len, bool is_error);

/* `loop` must be libev's default loop, the only one that reports the end of child processes. */
int repl_create(struct ev_loop *loop, struct gd_debugger *debugger,
                const struct repl_options *options, struct repl **ret, struct gd_err *err);
void repl_destroy(struct repl *repl);
void repl_set_writer(struct repl *repl, repl_write_fn fn, void *ctx); /* default: stdout, stderr */
/* Receives each record of JSON mode instead of its line, and takes over the object. */
typedef void (*repl_record_fn)(void *ctx, const char *type, cJSON *record);
void repl_set_recorder(struct repl *repl, repl_record_fn fn, void *ctx);
/* From now on only what permit.h lists. */
void repl_set_read_only(struct repl *repl, bool read_only);
void repl_set_width(struct repl *repl, int width);
struct gd_debugger *repl_debugger(struct repl *repl);
/* According to --color, NO_COLOR and `set color`. */
bool repl_wants_color(const struct repl *repl);

/* Runs one line (comments; an empty line repeats, as in gdb) and runs the loop while the command
 * waits. Lines after one that opens a body (commands, define) are collected until `end`. Returns
 * GD_OK or the error, which was printed; GD_ESTATE, without a message, while a command waits. */
int repl_execute(struct repl *repl, const char *line);
/* The same for the line of a key: a command of gradb's even while a body is open, which stays. */
int repl_execute_beside(struct repl *repl, const char *line);
/* The command `source`: stops at the first error. */
int repl_source(struct repl *repl, const char *path);
bool repl_wants_quit(const struct repl *repl);
int repl_exit_status(const struct repl *repl); /* see exit_status.h */
/* After the last command of a batch: waits for the program that `run` started if its training is
 * over. A training stopped at an exception counts as failed. */
void repl_end_batch(struct repl *repl);
/* After each command of a batch: does what `on-error` says about rc. True: run no further
 * command. */
bool repl_batch_fails(struct repl *repl, int rc);
void repl_clear_status(struct repl *repl);  /* forgets earlier failures */
const char *repl_prompt(struct repl *repl); /* "(gradb) "; ">" while a body is open; ">>> " */
bool repl_is_waiting(
    const struct repl *repl); /* a foreground command waits, and Ctrl-C interrupts it */
/* C-d: ends `interact`. False: it is not in progress. */
bool repl_interact_ends(struct repl *repl);
/* Requests an orderly end, like the command quit without its question. */
void repl_quit(struct repl *repl, int status);
/* The same for a signal: does not wait for a terminal that takes no output. */
void repl_quit_at_once(struct repl *repl, int status);
/* Runs the loop until at most `most` bytes of output are queued for the terminal. False: the wait
 * was ended (Ctrl-C, a signal, a terminal that is left) and the rest dropped. */
bool repl_out_wait(struct repl *repl, size_t most);
/* Asks a yes-or-no question. Without a function every answer is yes. */
typedef bool (*repl_ask_fn)(void *ctx, const char *question);
void repl_set_ask(struct repl *repl, repl_ask_fn fn, void *ctx);
/* What the REPL asks of a prompt on a terminal, from the loop. */
struct repl_prompt_ops {
    /* The prompt is shown and nothing is typed. */
    bool (*is_idle)(const struct repl *repl);
    /* Asks there about the recommended watchpoints, if that question is open. */
    void (*offer)(struct repl *repl);
};
/* A front end that owns the terminal lends it: fn(ctx, true) before a program of `shell` or `pipe`
 * uses it, fn(ctx, false) afterwards. It may run the loop. */
typedef void (*repl_lend_fn)(void *ctx, bool lend);
void repl_set_lend(struct repl *repl, repl_lend_fn fn, void *ctx);

/* Where `listen` and `run` listen by default: --listen. */
void repl_set_listen(struct repl *repl, const char *address);
/* The command `run -- argv...`. Returns GD_OK or the error, which was printed. */
int repl_run_program(struct repl *repl, char *const argv[]);
/* The command `diagnose` with these words. */
int repl_diagnose(struct repl *repl, char *const argv[]);
/* The command `open argv...`. */
int repl_open_files(struct repl *repl, char *const argv[]);
/* Once, after the last command: ends the program that `run` started, detaches the others, closes
 * the port. */
void repl_end(struct repl *repl);

/* Completions of line[0..point): a NULL-terminated malloc'd array of malloc'd words, each of which
 * replaces line[*start..point). NULL: none. Never uses the network. */
char **repl_complete(struct repl *repl, const char *line, size_t point, size_t *start);

/* Before a prompt: asks about recommended watchpoints if it could not be asked at the first
 * stop. */
void repl_offer_at_prompt(struct repl *repl);
/* For panes, which ask by themselves: the number of recommended watchpoints while that question is
 * open, else 0. `recommend yes` and `recommend no` answer it. Cheap. */
size_t repl_offers(struct repl *repl);
/* The question was left unanswered; do not ask again. */
void repl_offer_later(struct repl *repl);

/* A key of the panes. */
struct repl_key {
    const char *name;
    const char *group;   /* the heading in help: "Moving" */
    const char *help;    /* what it does; never empty */
    const char *panes;   /* "all", "lists", "all but the console", or names: "watch hits" */
    const char *command; /* the command that it runs; "": none */
    bool same;           /* does the same as the previous key */
    bool bound;          /* by the user, with `bind` */
};

/* What commands may ask of the panes (layout, focus, bind, refresh, winheight, help keys). Without
 * panes or the function: GD_ESTATE "the panes are not open". */
struct repl_screen_ops {
    /* NULL: prints the current one */
    int (*layout)(void *ctx, const char *name, struct gd_err *err);
    const char *(*layout_name)(void *ctx);
    bool (*shows)(void *ctx, const char *pane);                    /* the pane is on the screen */
    int (*focus)(void *ctx, const char *pane, struct gd_err *err); /* "next", "prev", a name */
    void (*height)(void *ctx, int rows); /* of the console; 0: the default */
    void (*refresh)(void *ctx);
    int (*bind)(void *ctx, const char *pane, const char *key, const char *command,
                struct gd_err *err);
    int (*height_now)(void *ctx);
    /* Opens the tensor grid on "NODE:SLOT[SLICE]"; NULL: on the current node. mode: "", "prev" or
     * "diff". Only while the panes are open. */
    int (*tensor)(void *ctx, const char *text, const char *mode, struct gd_err *err);
    /* Does what a key does in that grid: "to", "find", "back", "heat", "axes", "plane". */
    int (*tensor_act)(void *ctx, const char *action, const char *argument, struct gd_err *err);
    /* Shows these series in the history pane. */
    int (*plot)(void *ctx, const struct series_key *keys, size_t count,
                const struct chart_options *options, struct gd_err *err);
    /* Calls fn for each key, first those of the table, then those bound by the user. */
    void (*keys)(void *ctx, void (*fn)(void *fn_ctx, const struct repl_key *key), void *fn_ctx);
};
/* What to type so that a training process connects, for `help connect`, `listen` and the panes,
 * folded to `width` columns. */
struct gd_buf;
void repl_connect_text(const struct gd_debugger *debugger, int width, struct gd_buf *out);
/* The lines for a program on this host. */
void repl_connect_short(const struct gd_debugger *debugger, int width, struct gd_buf *out);

/* All but refresh and keys also work while the panes are closed: they take effect when the panes
 * open. main sets the table at the start (ctx NULL); the panes replace it while they are open. */
void repl_set_screen(struct repl *repl, const struct repl_screen_ops *ops, void *ctx);

/* True once after `tui disable`: switch from the panes to the prompt. */
bool repl_take_prompt_wish(struct repl *repl);

/* Leaves the terminal; the session stays. Waiting commands end their wait and front ends return.
 * Clear it before the next front end. */
void repl_leave(struct repl *repl);
bool repl_has_left(const struct repl *repl);
void repl_clear_left(struct repl *repl);
/* What keeps the session when its terminal is gone. Without it, a lost terminal ends the
 * session. */
struct repl_residence {
    const char *name, *socket, *terminal; /* "": none */
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
void repl_forget_repeat(struct repl *repl); /* until the next command, an empty line does nothing */
void repl_tell_typed(struct repl *repl, const char *line); /* called before a typed line runs */
/* Does what `on-hangup` says with every training process. Runs the loop briefly. */
void repl_hang_up(struct repl *repl);
/* Afterwards: whether there is still something to serve or keep without a terminal. */
bool repl_has_reason_to_stay(const struct repl *repl);
/* The program that `run` started outlives repl_end. */
void repl_let_go_at_end(struct repl *repl);
/* For another terminal: --color, TERM and the locale may differ. */
void repl_set_looks(struct repl *repl, bool color, bool utf8);

/* The readline prompt on stdin/stdout, until quit or end of file. */
int repl_run_prompt(struct repl *repl);

#endif
