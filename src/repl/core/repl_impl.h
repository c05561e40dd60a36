// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The REPL's state. A file that needs one part of it includes that part's header.
 */
#ifndef GD_REPL_REPL_IMPL_H
#define GD_REPL_REPL_IMPL_H

#include <ev.h>

#include "repl/core/command.h"
#include "repl/core/exit_status.h"
#include "repl/core/hits_told.h"
#include "repl/core/script.h"
#include "repl/core/stops.h"
#include "repl/core/wait.h"
#include "repl/out/out_impl.h"
#include "repl/values/picture.h"

struct repl_launch;
struct gd_ranks;

struct remembered {
    struct gd_tensor *tensor;
    char *label;
};

enum repl_quit {
    QUIT_NO = 0,
    QUIT_ORDERLY,
    QUIT_AT_ONCE, /* a signal: does not wait for the terminal to take the output */
};

/* What a batch waits for. */
enum repl_batch_wait {
    BATCH_ONE_STOP = 0,
    BATCH_WHOLE_JOB,  /* `continue`: until the job is over */
    BATCH_WINDING_UP, /* after the last command: until the program that `run` started ends */
};

struct repl {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct repl_options options;
    bool read_only;

    struct { /* what the front end provides */
        repl_write_fn write;
        void *write_ctx;
        bool captured; /* `pipe` catches the output */
        repl_ask_fn ask;
        void *ask_ctx;
        bool ask_unprompted; /* `ask` is about something that was not typed: input typed ahead must
                                not answer it */
        bool ask_consent;    /* the end of input means no */
        const struct repl_prompt_ops *prompt; /* NULL: no prompt is shown */
        bool ask_in_line;                     /* `ask` asks at the prompt, not in panes */
        repl_lend_fn lend;
        void *lend_ctx;
        repl_record_fn record; /* NULL: records are written as lines */
        void *record_ctx;
        const struct repl_screen_ops *screen; /* NULL: this program has no panes */
        void *screen_ctx;
        const struct repl_residence_ops *residence; /* NULL: the session ends with its terminal */
        void *residence_ctx;
        void (*pause_input)(void *ctx, bool pause); /* called around the loop inside a command */
        void *pause_ctx;
        bool wants_prompt; /* `tui disable` was typed */
        bool left;         /* the terminal is being left */
    } front;

    struct {
        char address[256]; /* where `listen` and `run` listen; "": the default */
        bool chosen;       /* by the user */
    } listen;

    struct { /* how it ends */
        enum repl_quit quit;
        bool closing;     /* after the last command: nothing is announced */
        bool let_go;      /* what `run` started is not killed */
        bool left_behind; /* a process was detached that ends when gradb does */
        enum exit_status status;
        enum exit_status fail_status; /* requested by the failing command; 0: STATUS_FAILED */
        int quit_status;              /* requested by `quit` or a signal; 0: use `status` */
    } end;

    struct { /* the processes that commands move */
        enum repl_batch_wait batch;
        bool program_failed; /* during BATCH_WHOLE_JOB: counts unless a command fails after it */
        bool muted;          /* a command ends a process: its end is not announced */
        bool passes_output;  /* what the program prints is printed here, too */
        /* sessions that a command moves and whose stops it reports itself; 0: none */
        int drives[2];
        /* a command uses hits as evidence: they are neither announced nor counted, and what it does
         * not follow runs on */
        bool diagnoses;
        int others; /* meanwhile: trainings that connected and ran */
    } job;

    struct repl_busy busy;
    struct {       /* see request.h */
        cJSON *id; /* NULL: none, or it is answered */
    } request;
    struct repl_script script;
    struct repl_stop stop;
    const struct repl_dump_ops *dump; /* NULL: `dump` was never used */
    struct repl_told told;
    struct repl_flood flood;

    struct {          /* the recommended watchpoints */
        bool made;    /* asked once already */
        size_t count; /* counted for this session and graph */
        int session;
        uint64_t generation;
    } offer;

    struct picture_view picture;

    struct {
        ev_timer ranks;        /* gd_ranks_tick, while ranks of a job run */
        ev_timer follow;       /* runs repl_follow_up for stops that no command waits for */
        ev_prepare work_check; /* checks whether a target has work left */
        ev_idle work;          /* does it */
    } watchers;

    /* the job of which repl_tell_equal_ranks spoke last, and at which of its stops */
    const struct gd_ranks *told_equal;
    uint64_t told_settled;

    struct remembered *values; /* ring of the last REPL_MAX_VALUES */
    int value_count;           /* values numbered so far */
    void *slot[REPL_SLOT_COUNT];
    void (*slot_free[REPL_SLOT_COUNT])(void *data);
    struct repl_launch *launch; /* the program that `run` started, and its log; NULL before that */
    struct repl_lines history;  /* lines typed, oldest first */
    struct repl_lines deferred; /* see deferred.h */
};

#define REPL_MAX_DEPTH  64
#define REPL_MAX_VALUES 256
#define REPL_MAX_BODY   10000
/* lines that one user command runs, including those of commands that it calls */
#define REPL_MAX_USER   100000

/* ---- running lines (run.c) ---- */

enum line_origin { LINE_TYPED, LINE_SCRIPT };
int repl_run_line(struct repl *repl, const char *line, enum line_origin origin);
void repl_set_failed(struct repl *repl, int rc);
/* Prints the error, unless a line that the command ran has printed it. Returns rc. */
int repl_report_failure(struct repl *repl, const struct command *command, const char *name, int rc,
                        const struct gd_err *err);
/* Whether a session of the kind that the flags (CMD_NEEDS_*) ask for is selected; sets
 * call->session. `name` is the command's in messages. */
int repl_check_needs(struct command_call *call, const char *name, unsigned flags,
                     struct gd_err *err);
/* Whether call->session is a training process that carries out commands. `without` says what one
 * cannot do that has none: "does not report exceptions". GD_EUNSUPPORTED. */
int repl_need_commands(const struct command_call *call, const char *name, const char *without,
                       struct gd_err *err);
/* A call that no line made, for what happens at a stop. Its output and its arena are own.report. */
struct own_call {
    struct out_report report;
    struct command_call call;
};
struct command_call *repl_begin_call(struct own_call *own, struct repl *repl,
                                     const struct command *command, struct gd_session *session);
void repl_training_failed(struct repl *repl); /* ignored when gradb ended it */

/* ---- the recommended watchpoints (offer.c) ---- */
/* At a session's first stop: asks once about recommended watchpoints, or prints where to find
 * them. */
void repl_offer(struct repl *repl, struct gd_session *session, bool can_ask);

/* ---- settings that training processes carry out (launch/measuring.c) ---- */
/* Sends `set timing` and the others to stopped processes that do not know them yet. */
void repl_send_settings(struct repl *repl);
/* The setting that alone sends a command of training processes; NULL: none. */
const char *repl_setting_of_command(const char *name);
/* An address to listen on that only this host can reach (commands/running/listening.c). */
bool repl_is_local_address(const char *address);

/* ---- ranks that start equal (ranks_equal.c) ---- */
/* At the first stop of a job of several ranks: says whether their parameters are equal, as far as
 * the ranks answer soon; at the end of step 1, if they are not. */
void repl_tell_equal_ranks(struct repl *repl, struct gd_session *session);

/* ---- the terminal (residence.c) ---- */
/* "hold", "continue" or "detach": the value of `set on-hangup`. */
const char *repl_hangup_name(const struct repl *repl);

/* ---- values (history_values.c) ---- */
void repl_values_free(struct repl *repl);

/* ---- the launched program (launch.c) ---- */
void repl_launch_free(struct repl *repl);
void repl_launch_log(struct repl *repl, const char *text); /* adds one line */

#endif
