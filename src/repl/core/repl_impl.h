// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the files of the command language share and nobody else sees.
 */
#ifndef GD_REPL_REPL_IMPL_H
#define GD_REPL_REPL_IMPL_H

#include <ev.h>

#include "engine/progress.h"
#include "repl/core/command.h"
#include "repl/core/exit_status.h"

struct repl_launch;

struct repl_lines { /* a list of owned lines */
    char **line;
    size_t count;
    size_t room;
};

enum repl_body_kind { BODY_NONE = 0, BODY_COMMANDS, BODY_DEFINE, BODY_DOCUMENT };

struct repl_body { /* lines being collected until `end` */
    enum repl_body_kind kind;
    char name[64];   /* of the user command */
    int first, last; /* breakpoint numbers */
    int nested;      /* bodies open inside it */
    struct repl_lines lines;
};

struct user_command {
    struct user_command *next;
    char *name;
    char *help; /* NULL until documented */
    struct repl_lines lines;
};

struct user_alias {
    struct user_alias *next;
    char *name;
    char *text; /* what the name stands for */
};

struct stop_commands { /* what hangs on breakpoint N: `commands`, `enable count` */
    struct stop_commands *next;
    int number;
    struct repl_lines lines;
    uint64_t count; /* stops until it is disabled (`enable once`); 0: none */
};

struct repl_unclear { /* hits of one watchpoint that could not be checked, for the same reasons */
    int watchpoint;
    unsigned error;
    size_t count;
    char *head, *first; /* the watchpoint's line, and that of the first of them; owned */
};
struct repl_told { /* hits that were printed as they came, of one step */
    int session;   /* its number; 0: none */
    int64_t step;
    int watchpoint; /* of the last hit */
    char *head;     /* its line, not printed yet; owned */
    size_t lines, left_out;
    struct repl_unclear unclear[8]; /* of this step, not printed yet */
};

struct repl_flood { /* hits that come faster than a person reads */
    double since;
    size_t lines; /* printed since then */
    size_t left_out;
};

struct remembered {
    struct gd_tensor *tensor;
    char *label;
};

struct repl {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct repl_options options;
    repl_write_fn write;
    void *write_ctx;
    repl_ask_fn ask;
    void *ask_ctx;
    repl_lend_fn lend;
    void *lend_ctx;
    const struct repl_screen_ops *screen; /* NULL: this program has no panes */
    void *screen_ctx;

    char listen_address[256]; /* where `listen` and `run` listen; "" the usual place */
    bool listen_chosen;       /* the user named it */

    enum exit_status exit_status; /* of what failed so far */
    int quit_status;              /* of the command that asked to quit; 0: none of its own */
    enum exit_status fail_status; /* what the failing command asks for; 0: STATUS_FAILED */
    bool quit;
    bool at_once;                               /* and no output is waited for */
    bool left;                                  /* the terminal is to be left */
    const struct repl_residence_ops *residence; /* NULL: it ends with its terminal */
    void *residence_ctx;
    bool let_go;         /* what `run` started is not killed at the end */
    bool prompt_wish;    /* `tui disable` was typed */
    bool winding_up;     /* after the last command of a batch the program may come to its end */
    bool whole_job;      /* a batch's `continue` lasts until the job is over */
    bool program_failed; /* meanwhile: counts when no command fails after it */
    bool ending;         /* after the last command */
    bool left_behind;    /* a process was detached that ends itself when gradb is gone */
    bool muted;          /* what ends now was ended by us: no word about it */
    int drives[2];       /* sessions that a command moves, whose stops it tells itself; 0: none */
    int depth;           /* commands within commands */
    bool pumping;        /* the loop runs inside a command */
    bool waiting;        /* a foreground command waits */
    bool progress_shown; /* progress.c: a line stands on the terminal */
    double progress_at;  /* since then */
    bool stopped_known;  /* Ctrl-C came while long work ran, which was there: */
    struct gd_progress_info stopped_at;

    char *repeat;            /* the line that an empty line runs; NULL none */
    const char *source_path; /* of the file being read; NULL none */
    int source_line;

    struct repl_body body;
    struct user_command *user_commands;
    struct user_alias *aliases;
    struct stop_commands *stop_commands;
    int user_depth;    /* user commands within user commands */
    size_t user_lines; /* lines that they ran, together */
    bool in_stop_body;
    bool resumed; /* a command resumed the trainer inside a stop body */

    /* the stop that was reported but not yet followed up (displays, bodies) */
    int stop_session;     /* its number; 0: none */
    int stop_numbers[16]; /* breakpoints and watchpoints of that stop */
    int stop_number_count;
    struct repl_told told;
    struct repl_flood flood;
    bool offered;  /* the recommended watchpoints were offered: once is enough */
    size_t offers; /* counted for that session and graph */
    int offers_session;
    uint64_t offers_generation;
    bool asks_unasked;     /* `ask` asks what no command was given for: it may meet the next one */
    bool asks_in_line;     /* `ask` asks at a prompt of lines, not in panes */
    ev_timer ranks_timer;  /* gd_ranks_tick, while ranks of a job run */
    ev_prepare work_check; /* looks whether a target has work left */
    ev_idle work_idle;     /* does it */
    ev_timer follow_timer; /* runs the follow-up of stops that nobody waits for */

    /* the front end's input is not read while the loop runs inside a command */
    void (*pause_input)(void *ctx, bool pause);
    void *pause_ctx;

    struct remembered *values; /* ring of the last REPL_MAX_VALUES */
    int value_count;           /* numbers given so far */

    void *slot[REPL_SLOT_COUNT];
    void (*slot_free[REPL_SLOT_COUNT])(void *data);
    repl_stop_fn stop_fn;
    void *stop_ctx;

    struct repl_launch *launch; /* the program that `run` started, and its log; NULL before */
    struct repl_lines history;  /* lines typed, oldest first */
};

#define REPL_MAX_DEPTH  64
#define REPL_MAX_VALUES 256
#define REPL_MAX_BODY   10000
#define REPL_MAX_USER   100000 /* lines that one user command runs, with all that it calls */

/* ---- output (out.c) ---- */

struct repl_out {
    struct repl *repl;
    struct gd_arena *arena;
    const char *command; /* its name in JSON; NULL: none is given */
    struct gd_buf text;
    cJSON *record;
    char type[48];
    FILE *sink; /* redirected output; NULL: the writer */
    bool sink_failed;
    bool is_error;         /* text goes to stderr */
    bool cut;              /* Ctrl-C came while the terminal took its time: nobody wants the rest */
    const char *sink_path; /* where it goes when the command is done */
    const char *sink_part; /* where it is meanwhile; NULL: there at once */
    int64_t sink_size;     /* what the file held before; -1: no file that could be cut again */
};
void out_begin(struct repl_out *out, struct repl *repl, struct gd_arena *arena,
               const char *command);
int out_redirect(struct repl_out *out, const char *path, bool append, struct gd_err *err);
int out_close_sink(struct repl_out *out, bool failed, struct gd_err *err);
/* out_say into a buffer, in both modes. */
void out_render(struct repl_out *out, const cJSON *object, const char *template,
                const struct out_field *fields, struct gd_buf *text);
/* Writes what is left, closes the sink. failed: no record is written, and the file of a redirection
 * is as it was before. */
int out_end(struct repl_out *out, bool failed, struct gd_err *err);
void out_flush(struct repl_out *out); /* whole lines so far, before a wait */

/* One object as a line of JSON; frees it. Adds "v" and "type" in front. */
void repl_write_json(struct repl *repl, FILE *sink, const char *type, cJSON *object);
void repl_write_text(struct repl *repl, const char *text, size_t len, bool is_error);
void repl_printf(struct repl *repl, bool is_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void repl_print_error(struct repl *repl, const struct command *command, const struct gd_err *err);
/* As out_safe, into any arena. */
const char *repl_safe(struct repl *repl, struct gd_arena *arena, const char *text);
bool repl_is_utf8(const struct repl *repl);
/* Columns that the text takes; text is valid UTF-8 or its bytes are counted. */
int repl_display_width(const char *text);
/* For a person at a terminal: a name that does not fit behind `used` columns loses leading scopes,
 * ".../attn/qkv.weight"; what is left finds the node when it is typed. Elsewhere, and when nothing
 * fits, the text itself. `room` holds the shortened text. */
const char *repl_fit_name(const struct repl_out *out, const char *text, int used, char *room,
                          size_t size);

/* ---- running lines (repl.c) ---- */

enum line_origin { LINE_TYPED, LINE_SCRIPT };
int repl_run_line(struct repl *repl, const char *line, enum line_origin origin);
int repl_run_lines(struct repl *repl, const struct repl_lines *lines);
void repl_set_failed(struct repl *repl, int rc);
void repl_training_failed(struct repl *repl); /* unless it was us who ended it */

int repl_lines_add(struct repl_lines *lines, const char *text);
void repl_lines_clear(struct repl_lines *lines);

/* ---- bodies and user commands (script.c) ---- */

int repl_body_open(struct repl *repl, enum repl_body_kind kind, const char *name, int first,
                   int last, struct gd_err *err);
int repl_body_feed(struct repl *repl, const char *line, struct gd_err *err);
void repl_body_drop(struct repl *repl);
struct user_command *repl_user_command(struct repl *repl, const char *name, bool prefix);
struct user_alias *repl_alias(struct repl *repl, const char *name);
int repl_run_user(struct repl *repl, const struct user_command *user, const char *rest,
                  struct gd_err *err);
const struct repl_lines *repl_commands_of(struct repl *repl, int number);
int repl_set_stop_count(struct repl *repl, int number, uint64_t count);
uint64_t repl_stop_count(struct repl *repl, int number); /* 0: none */
bool repl_count_stop(struct repl *repl, int number); /* true: that was the last one of its count */
void repl_forget_number(struct repl *repl, int number);
void repl_script_free(struct repl *repl);

/* ---- waiting (wait.c) and stops (stops.c) ---- */

void repl_pump(struct repl *repl, double max_seconds);
/* progress.c */
/* How long the loop may sleep so that the line keeps moving; negative: for ever. */
double repl_progress_patience(struct repl *repl, double seconds);
void repl_progress_show(struct repl *repl);
void repl_progress_clear(struct repl *repl);
double repl_now(struct repl *repl);
/* After a resume: waits for a stop later than number `before` or the end of call->session, then
 * does what hangs on it. In the background or inside a stop's body it returns at once. GD_EINTR in
 * batch, GD_ELOST (reported already: no text). */
int repl_wait_stop(struct command_call *call, uint64_t before, struct gd_err *err);
/* The same after gd_ranks_resume, for all ranks of the job: until a run is settled that was not yet
 * when there were `settled`. */
int repl_wait_ranks(struct command_call *call, uint64_t settled, struct gd_err *err);
/* In a batch: lets processes that connect run, until one stops or all have ended, with the program
 * that `run` started. *ret: the one that stopped; NULL: the job is over. GD_EINTR. */
int repl_wait_job(struct repl *repl, struct gd_session **ret);
/* A command failed in a batch that is to go on all the same. */
bool repl_goes_on_after(const struct repl *repl, int rc);
/* The process of a session that was lost still runs: exec made it another program. */
bool repl_lost_runs(const struct repl *repl, const struct gd_session *session);
/* Lets go of every process: they run on by themselves. */
void repl_let_all_go(struct repl *repl);
void repl_note_stop(struct repl *repl, struct gd_session *session); /* at the event */
/* Displays and bodies of a stop that nobody waited for. */
void repl_follow_up(struct repl *repl);

/* ---- events (events.c, stop_report.c) ---- */
void repl_report_stop(struct repl *repl, struct gd_session *session); /* text or JSON */
/* Until the weights that it began with are checked, at most some seconds. GD_EINTR. */
int repl_wait_initial(struct repl *repl, struct gd_session *session, struct gd_err *err);
/* Runs the session, or all ranks of its job, and waits for the stop. */
int repl_resume(struct command_call *call, const struct gd_run *run, struct gd_err *err);
void repl_state_record(struct command_call *call); /* how a run command left call->session */
/* A MindSpore process: it ends itself when gradb is gone, detached or not. */
bool repl_ends_without_us(const struct gd_session *session);

/* ---- hits as they come (hits.c) ---- */
void repl_hit_event(struct repl *repl, const struct gd_session *session, const struct gd_hit *hit,
                    const char *prefix);  /* text; `prefix` tells processes apart */
void repl_hits_forget(struct repl *repl); /* frees what was not printed */
void repl_hits_over(struct repl *repl);   /* says how many were left out; a new step begins */

/* ---- the recommended watchpoints (commands/breakpoints/recommend.c) ---- */
/* At the first stop of a session: asks once, or says in a line where they are. */
void repl_offer(struct repl *repl, struct gd_session *session, bool can_ask);

/* ---- the terminal (residence.c) ---- */
/* "hold", "continue" or "detach": what `set on-hangup` chose. */
const char *repl_hangup_name(const struct repl *repl);

/* ---- values (history_values.c) ---- */
void repl_values_free(struct repl *repl);

/* ---- the launched program (launch.c) ---- */
void repl_launch_free(struct repl *repl);
void repl_launch_log(struct repl *repl, const char *text); /* one line for the log */

#endif
