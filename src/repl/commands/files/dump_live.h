// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The state of `dump`. dump.c sets it, dump_live.c writes, dump_runs.c makes runs end where a dump
 * is due, dump_capture.c has values copied that do not last until then.
 */
#ifndef GD_REPL_DUMP_LIVE_H
#define GD_REPL_DUMP_LIVE_H

#include "dump/mindspore/dump_config.h"
#include "dump/mindspore/ms_dump_writer.h"
#include "repl/core/command.h"
#include "repl/core/stops.h"

struct dump_plan {
    char *dir, *selector, *net; /* selector NULL: all nodes, or those of `config` */
    enum gd_dump_io io;
    enum gd_dump_data data;
};

struct rank_writer { /* of one training process */
    int session;     /* its number */
    uint64_t generation;
    struct gd_ms_writer *writer;
    uint64_t counted; /* bytes of this writer that are in the total */
};

struct live_dump {
    struct gd_dump_config *config; /* NULL none */
    bool armed;
    struct dump_plan plan;
    struct gd_steps steps;
    struct rank_writer *rank;
    size_t ranks;
    uint64_t bytes, tensors, rows; /* since gradb started */
    uint64_t steps_done;
    uint64_t steps_written; /* of this plan */
    bool *used; /* by entry of the config's kernels: it chose something; NULL: no entries */
    uint64_t done_sequence; /* the session's stop that was dumped last */
    int done_session;
    int64_t capture_step; /* step whose values are copied as they are produced; 0: none */
    /* the current run */
    int session; /* its number */
    int64_t cut; /* the step at whose end the dump ends it; 0: none */
    bool held;   /* ended by an interrupt there: the run itself is the user's */
    struct gd_run asked;
    char asked_name[512]; /* of its node */
    struct gd_stop from;  /* where it began */
    int64_t asked_end;    /* STEP: the step at whose end the user's run ends */
    int64_t behind;       /* the last step that had ended */
    bool interrupted;
};

struct live_dump *dump_live_find(struct repl *repl); /* NULL: there is none yet */
struct live_dump *dump_live_make(struct repl *repl, struct gd_err *err); /* NULL: out of memory */
/* Disarms; the totals are kept. */
void dump_live_clear(struct live_dump *d);
/* Checks what a plan needs before the training runs on: GD_EINVAL, GD_EIO. */
int dump_live_prepare(struct command_call *call, struct live_dump *d, struct gd_err *err);
/* Writes the values of the selected process and of all that are stopped at the same place, and
 * reports it. */
int dump_live_step(struct command_call *call, struct live_dump *d, struct gd_err *err);

/* The nodes to be dumped; the caller frees *ret. GD_ENOTFOUND: none. */
int dump_live_choose(struct gd_session *session, struct live_dump *d, gd_node_id **ret,
                     size_t *count, struct gd_err *err);

extern const struct command cmd_dump;
/* Prints the armed plan, for `dump` and `info dump`. */
void dump_live_show_plan(struct command_call *call, const struct live_dump *d);

/* Warns once, after the first step, about names that chose nothing. */
void dump_live_warn_of_unused(struct command_call *call, struct live_dump *d);

/* dump_runs.c. */
extern const struct repl_dump_ops dump_live_ops;
/* The last step that has ended. */
int64_t dump_live_ended(const struct gd_stop *at);

/* dump_capture.c. Before the run that enters the step, on all ranks that move together. */
void dump_live_capture(struct repl *repl, struct gd_session *session, struct live_dump *d,
                       int64_t step);
void dump_live_graph_grew(struct repl *repl, struct gd_session *session);
/* Ends the copying of values. */
void dump_live_release(struct repl *repl, struct live_dump *d);

/* `set dump-config`: reads the file, or forgets it. GD_EINVAL: it has errors, which are
 * reported. */
int repl_dump_set_config(struct command_call *call, const char *path, struct gd_err *err);

#endif
