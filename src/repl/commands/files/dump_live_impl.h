// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What `dump` remembers from one command to the next. Shared by dump_live.c, which writes,
 * dump_runs.c, which has runs end where that is due, and dump.c, which is told what.
 */
#ifndef GD_REPL_DUMP_LIVE_IMPL_H
#define GD_REPL_DUMP_LIVE_IMPL_H

#include "dump/mindspore/dump_config.h"
#include "dump/mindspore/ms_dump_writer.h"
#include "repl/commands/files/dump_live.h"

struct dump_plan {
    char *dir, *selector, *net; /* selector NULL: all, or what `config` chooses */
    enum gd_dump_io io;
    enum gd_dump_data data;
};

struct rank_writer { /* of one training process */
    int session;     /* its number */
    uint64_t generation;
    struct gd_ms_writer *writer;
    uint64_t counted; /* bytes that it wrote and that are in the total */
};

struct live_dump {
    struct gd_dump_config *config; /* NULL none */
    bool armed;
    struct dump_plan plan;
    struct gd_steps steps;
    struct rank_writer *rank;
    size_t ranks;
    uint64_t bytes, tensors, rows; /* since gradb began */
    uint64_t steps_done;
    uint64_t steps_written; /* of this plan */
    bool *used;             /* by entry of the config's kernels: it has chosen something; or NULL */
    uint64_t done_sequence; /* the stop that was dumped last, of the session */
    int done_session;
    int64_t capture_step; /* whose values are copied as they are made; 0: none was asked for */
    /* the run that goes on */
    int session; /* its number */
    int64_t cut; /* the step at whose end it was made to end; 0: none */
    bool held;   /* by an interrupt there: the run itself is the user's */
    struct gd_run asked;
    char asked_name[512]; /* of its node */
    struct gd_stop from;  /* where it began */
    int64_t asked_end;    /* STEP: the step at whose end the user's run ends */
    int64_t behind;       /* the last step that had ended when it was looked at */
    bool interrupted;
};

struct live_dump *dump_live_find(struct repl *repl); /* NULL: none was made yet */
struct live_dump *dump_live_make(struct repl *repl, struct gd_err *err); /* NULL: no memory */
/* Nothing is armed any more; what was written counts on. */
void dump_live_clear(struct live_dump *d);
/* What a plan needs, before the training goes on to where it is due: GD_EINVAL, GD_EIO. */
int dump_live_prepare(struct command_call *call, struct live_dump *d, struct gd_err *err);
/* Writes what the selected process holds now, with all that stand where it does, and tells it. */
int dump_live_step(struct command_call *call, struct live_dump *d, struct gd_err *err);

/* The nodes that are dumped; *ret is freed by the caller. GD_ENOTFOUND: none. */
int dump_live_choose(struct gd_session *session, struct live_dump *d, gd_node_id **ret,
                     size_t *count, struct gd_err *err);

extern const struct command cmd_dump;
/* What is armed, as `dump` and `info dump` show it. */
void dump_live_show_plan(struct command_call *call, const struct live_dump *d);

/* dump_runs.c. The last step that has ended. */
int64_t dump_live_ended(const struct gd_stop *at);

/* dump_capture.c. With all ranks that go along, before the run that goes into that step. */
void dump_live_capture(struct repl *repl, struct gd_session *session, struct live_dump *d,
                       int64_t step);
/* No step is copied any more. */
void dump_live_release(struct repl *repl, struct live_dump *d);

#endif
