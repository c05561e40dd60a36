// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An entry of the command table, and what a command's function may use. Each command is in the file
 * of its name, repl/commands/<group>/<name>.c; repl/commands/commands.c lists them. Dispatch, help,
 * apropos, completion at the prompt and in shells, and the manual page all come from these entries.
 */
#ifndef GD_REPL_COMMAND_H
#define GD_REPL_COMMAND_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "engine/debugger.h"
#include "repl/core/repl.h"
#include "repl/out/out.h"

/* What completion offers for an argument. The last kind repeats. */
enum command_arg {
    ARG_NONE = 0,
    ARG_NODE,
    ARG_SCOPE,
    ARG_SELECTOR,
    ARG_TENSOR, /* NODE[:SLOT][SLICE] */
    ARG_SIDE,   /* a tensor or a file */
    ARG_FILE,
    ARG_SETTING,
    ARG_COMMAND,
    ARG_SUBCOMMAND, /* one of .sub */
    ARG_BREAKPOINT,
    ARG_RANK,
    ARG_CONDITION,
    ARG_WATCH,      /* after a condition: its parameters, `on`, a selector */
    ARG_WATCH_EDIT, /* after a watchpoint's number: what `edit` takes */
    ARG_DPRINTF,    /* the whole line of dprintf */
    ARG_WATCHPOINT, /* a watchpoint's number */
    ARG_HIT,
    ARG_TYPE,
    ARG_PANE,
    ARG_AGENT,  /* a command of the training process */
    ARG_WORD,   /* free text: nothing is offered */
    ARG_CHOICE, /* one of the literal words in the usage */
    ARG_KEY,    /* what `bind` takes */
};
#define COMMAND_MAX_ARGS 4

enum command_flags {
    CMD_NEEDS_SESSION = 1 << 0, /* a session, live or ended, must be selected */
    CMD_NEEDS_STOP = 1 << 1,    /* it must be stopped, or ended: then values come from the cache */
    CMD_NEEDS_LIVE = 1 << 2,
    CMD_REPEATS = 1 << 3,      /* an empty line runs it again */
    CMD_REPEATS_BARE = 1 << 4, /* ... without its arguments (list, x) */
    CMD_CHANGES = 1 << 5,      /* changes the training: never repeated */
    CMD_IN_TUI = 1 << 6,       /* opens or closes panes */
    CMD_RAW = 1 << 7,          /* takes the rest of the line unsplit; no `> FILE` */
    CMD_SHOWS = 1 << 8,        /* only shows, although its group (data, ...) does not say so */
    CMD_METRICS = 1 << 10,     /* its line may name metrics to ask the process for: norms.h */
    CMD_DEFERRED = 1 << 9,     /* with arguments, waits for a process to connect: deferred.h */
};

struct command_call {
    struct repl *repl;
    struct gd_debugger *debugger;
    struct gd_session *session; /* the current one; NULL unless CMD_NEEDS_SESSION */
    struct repl_out *out;
    struct gd_arena *arena; /* freed after the command */
    const struct command *command;
    const char *format; /* letters after a slash: "f" of print/f; "" when none */
    const char *line;   /* everything after the command's name, trimmed */
    size_t line_at;     /* offset of `line` in what was typed */
    int argc;           /* line split at blanks; quotes and brackets group */
    char **argv;
    bool repeated;   /* by an empty line */
    bool background; /* the line ended in '&' */
};

struct command {
    const char *name;    /* "info" or, in a sub table, "graph" */
    const char *aliases; /* blank-separated exact short forms that win over prefixes: "c cont fg" */
    const char *group;   /* "running", "breakpoints", "data", "graph", "status", "files", "screen",
                            "support" */
    const char *usage;   /* "step [N]" */
    const char *summary; /* one line without a period */
    const char *help;    /* paragraphs; NULL: none */
    const char *examples; /* lines to type; NULL: none */
    enum command_arg args[COMMAND_MAX_ARGS];
    unsigned flags;
    struct {
        int least, most;     /* how many arguments; most 0: no limit */
        const char *missing; /* the usage error otherwise: "specify one file"; NULL: not checked */
    } words;
    int variant; /* for `run`, when several commands share it: which one this is */
    int (*run)(struct command_call *call, struct gd_err *err); /* GD_EUSAGE adds the usage line */
    const struct command *sub; /* ends with a NULL name; `run` handles the bare word */
};

/* All top-level commands in the order of help; ends with NULL. Defined in repl/commands/commands.c:
 * the only thing that core takes from there by name. */
extern const struct command *const command_table[];

/* The entry after `previous`; NULL gives the first. */
const struct command *command_next(const struct command *previous);
/* Adds the help with its examples below it: paragraphs, and lines that are indented. */
void command_add_help(const struct command *command, struct gd_buf *text);
/* Finds by exact name, alias or unique prefix. GD_ENOTFOUND, GD_EAMBIGUOUS (lists the
 * candidates). */
int command_find(const struct command *table_or_null, const char *word, size_t len,
                 const struct command **ret, struct gd_err *err);

/* Whether the word is the command's name or an alias in full. */
bool command_is_named(const struct command *command, const char *word);

/* ---- output (see out.h) --------------------------------------------------------------------- */

/* Escapes control characters and invalid UTF-8. In call->arena. */
const char *out_safe(struct command_call *call, const char *text);

/* A loss, a learning rate or a batch number: whole numbers in full, others with `digits` digits;
 * "nan" without a sign. In the arena. */
const char *repl_scalar_text(struct gd_arena *arena, double value, int digits);

/* ---- waiting ------------------------------------------------------------------------------- */

/* Runs the loop until done(ctx), the deadline (seconds from now; < 0: none) or Ctrl-C. GD_OK,
 * GD_ETIMEOUT, GD_EINTR. */
int repl_wait(struct repl *repl, bool (*done)(void *ctx), void *ctx, double seconds);
/* Sets call->session to the selected one, unless it is set. GD_ESTATE: there is none. */
int repl_need_session(struct command_call *call, struct gd_err *err);
/* Fetches and waits. The caller releases *ret. */
int repl_fetch(struct command_call *call, const struct gd_tensor_ref *ref,
               const struct gd_slice *slice, struct gd_tensor **ret, int64_t *step,
               struct gd_err *err);
int repl_stats(struct command_call *call, const struct gd_tensor_ref *ref, enum gd_dtype *dtype,
               struct gd_shape *shape, struct gd_stats *ret, int64_t *step, struct gd_err *err);
/* Runs a command in the training process and waits for its reply, which is in call->arena. node may
 * be GD_NO_NODE. Ctrl-C ends the wait; the training process still carries out the command. */
int repl_command(struct command_call *call, const char *name, const char *args, gd_node_id node,
                 const char **ret, struct gd_err *err);
/* GD_EUNSUPPORTED when the REPL is sealed. Call it before a file is opened or a program is
 * started. */
int repl_check_seal(const struct repl *repl, struct gd_err *err);
/* Asks before an existing file is replaced, unless `force`. *ret: whether the command may write.
 * GD_ESTATE: the file exists and nobody can be asked. */
int repl_may_replace(struct command_call *call, const char *path, bool force, bool *ret,
                     struct gd_err *err);
bool repl_confirm(struct command_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- arguments ----------------------------------------------------------------------------- */

/* NODE[:SLOT][SLICE], "." for the current node, or a value from the history: `$` is the last one,
 * `$$` the one before, then `$$N` and `$N`; each takes a slice. `$_` is the tensor printed last,
 * fetched again. Slot 0 and an empty slice are the defaults. Node names may contain ':' and '[':
 * the longest existing name wins. Selects nothing and fetches nothing. */
struct tensor_arg {
    struct gd_tensor_ref ref; /* unset when value is set */
    struct gd_slice slice;
    bool has_slot;
    struct gd_tensor *value; /* a value from the history, before the slice; borrowed; or NULL */
    const char *label;       /* what was typed, "Default/x:0[1, :]" or "$3"; in call->arena */
};
int arg_tensor(struct command_call *call, const char *text, struct tensor_arg *ret,
               struct gd_err *err);
int arg_node(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err);
int arg_count(const char *text, int64_t min, int64_t max, int64_t *ret, struct gd_err *err);
/* The rest of a raw line that begins with the word, without its blanks; NULL: it does not. */
const char *arg_after(const char *line, const char *word);

/* ---- what a group of commands keeps between commands ----------------------------------------- */
/* One pointer per group, set on first use; free_fn runs when the REPL is destroyed. */
enum repl_slot {
    REPL_SLOT_INSPECT, /* selected frame, `list` and `x` positions, nodes with kept previous values
                        */
    REPL_SLOT_DISPLAY, /* the display expressions */
    REPL_SLOT_HITS,    /* the selected hit */
    REPL_SLOT_AGENT,   /* the commands of the training process */
    REPL_SLOT_SOURCE,  /* source text that the training process sent */
    REPL_SLOT_DUMP,    /* what `dump` writes while the training runs */
    REPL_SLOT_LOSSES,  /* what LossMonitor printed */
    REPL_SLOT_LOGGING, /* the file of `set logging on` */
    REPL_SLOT_PRINT,   /* what dprintf is about to print */
    REPL_SLOT_COUNT
};
void *repl_slot(struct repl *repl, enum repl_slot slot); /* NULL before it is set */
/* The slot's value; `size` zeroed bytes are allocated on first use. NULL: out of memory. */
void *repl_make_slot(struct repl *repl, enum repl_slot slot, size_t size,
                     void (*free_fn)(void *data));
void repl_set_slot(struct repl *repl, enum repl_slot slot, void *data, void (*free_fn)(void *data));

/* fn runs at every stop of the current session, after its report, with a call like a command's
 * (argc 0, session set). Its text follows the report; in JSON mode its record is a line of its own.
 * It may fetch and wait. There is one fn; NULL removes it. */
typedef void (*repl_stop_fn)(struct command_call *call, void *ctx);
void repl_at_stop(struct repl *repl, repl_stop_fn fn, void *ctx);

/* ---- value history ($1, $$, $_) ------------------------------------------------------------ */
/* Keeps a reference; returns the number shown as $N. */
int repl_remember(struct repl *repl, struct gd_tensor *tensor, const char *label);
struct gd_tensor *repl_remembered(struct repl *repl, int number); /* 0: the last; NULL when none */
const char *repl_remembered_label(struct repl *repl, int number); /* "" when none */

#endif
