// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The REPL's state. Files that need one part of it include that part's header.
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

struct repl_launch;

struct remembered {
    struct gd_tensor *tensor;
    char *label;
};

enum repl_quit {
    QUIT_NO = 0,
    QUIT_ORDERLY,
    QUIT_AT_ONCE, /* a signal: output that the terminal has not taken is not waited for */
};

/* What a batch waits for beyond the stop of one process. */
enum repl_batch_wait {
    BATCH_ONE_STOP = 0,
    BATCH_WHOLE_JOB,  /* `continue`: until the job is over */
    BATCH_WINDING_UP, /* after the last command: until the program that `run` started ends */
};

struct repl {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct repl_options options;

    struct { /* what the front end lends */
        repl_write_fn write;
        void *write_ctx;
        repl_ask_fn ask;
        void *ask_ctx;
        bool ask_unprompted; /* `ask` is about something that was not typed: input typed ahead must
                                not answer it */
        bool ask_in_line;    /* `ask` asks at the prompt, not in panes */
        repl_lend_fn lend;
        void *lend_ctx;
        const struct repl_screen_ops *screen; /* NULL: this program has no panes */
        void *screen_ctx;
        const struct repl_residence_ops *residence; /* NULL: it ends with its terminal */
        void *residence_ctx;
        void (*pause_input)(void *ctx, bool pause); /* while the loop runs inside a command */
        void *pause_ctx;
        bool wants_prompt; /* `tui disable` was typed */
        bool left;         /* the terminal is to be left */
    } front;

    struct {
        char address[256]; /* where `listen` and `run` listen; "": the usual place */
        bool chosen;       /* the user named it */
    } listen;

    struct { /* how it ends */
        enum repl_quit quit;
        bool closing;     /* after the last command: nothing is announced */
        bool let_go;      /* what `run` started is not killed */
        bool left_behind; /* a process was detached that ends itself when gradb is gone */
        enum exit_status status;
        enum exit_status fail_status; /* what the failing command asks for; 0: STATUS_FAILED */
        int quit_status;              /* what `quit` or a signal asked for; 0: `status` counts */
    } end;

    struct { /* the processes that are moved */
        enum repl_batch_wait batch;
        bool program_failed; /* during BATCH_WHOLE_JOB: counts unless a command fails after it */
        bool muted;          /* a command ends a process: its end is not announced */
        int drives[2];       /* sessions that a command moves and whose stops it reports; 0: none */
    } job;

    struct repl_busy busy;
    struct repl_script script;
    struct repl_stop stop;
    struct repl_told told;
    struct repl_flood flood;

    struct {          /* the recommended watchpoints */
        bool made;    /* once is enough */
        size_t count; /* of this session and graph: */
        int session;
        uint64_t generation;
    } offer;

    struct {
        ev_timer ranks;        /* gd_ranks_tick, while ranks of a job run */
        ev_timer follow;       /* the follow-up of stops that nobody waits for */
        ev_prepare work_check; /* looks whether a target has work left */
        ev_idle work;          /* does it */
    } watchers;

    struct remembered *values; /* ring of the last REPL_MAX_VALUES */
    int value_count;           /* numbers given so far */
    void *slot[REPL_SLOT_COUNT];
    void (*slot_free[REPL_SLOT_COUNT])(void *data);
    struct repl_launch *launch; /* the program that `run` started, and its log; NULL before */
    struct repl_lines history;  /* lines typed, oldest first */
};

#define REPL_MAX_DEPTH  64
#define REPL_MAX_VALUES 256
#define REPL_MAX_BODY   10000
#define REPL_MAX_USER   100000 /* lines that one user command runs, with all that it calls */

/* ---- running lines (repl.c) ---- */

enum line_origin { LINE_TYPED, LINE_SCRIPT };
int repl_run_line(struct repl *repl, const char *line, enum line_origin origin);
int repl_run_lines(struct repl *repl, const struct repl_lines *lines);
void repl_set_failed(struct repl *repl, int rc);
void repl_training_failed(struct repl *repl); /* unless it was us who ended it */

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
