// SPDX-License-Identifier: MIT
/*
 * What only the program can tell: agent_source.c calls the functions of struct gradb_source,
 * agent_serve.c has the thread that stands call them for the I/O thread.
 *
 * Each call into the source is made by the thread that has the turn (agent_turn.c), and with the
 * lock given up: the program may need a lock of its own (Python's) that another of its threads
 * holds while it waits for ours in gradb_scalar, and it may call gradb_scalar itself. So everything
 * but what belongs to the turn can change during a call: node pointers must be found again after
 * it, and nothing that the I/O thread may free can be walked along. Watch plans are walked along:
 * what would change them waits while `passing` is set (agent_control.c).
 */
#ifndef GRADB_AGENT_SOURCE_H
#define GRADB_AGENT_SOURCE_H

#include "agent/agent_watch.h"

/* ---- agent_source.c: with the lock and the turn ---------------------------------------------- */

/* Whether the source is asked for that value: nobody told where it lies, and there is no copy of
 * this step. */
bool agent_asks(const struct agent *a, uint32_t node, uint32_t slot,
                Gradb__V1__Iteration iteration);
/* As agent_locate, asking the source where agent_asks says so. What is found stays readable until
 * agent_source_release. */
int agent_find(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
               struct agent_value *ret, char text[160]);
/* As agent_find, of the slice that is asked for where the source can cut it; *cut: it has. */
int agent_find_part(struct agent *a, const Gradb__V1__Fetch *fetch, struct agent_value *ret,
                    bool *cut, char text[160]);
/* Statistics from the source: fills ret's code, text, stats, and type and shape of its value,
 * which has no data. False: it computes none, locate the value instead. */
bool agent_source_stats(struct agent *a, uint32_t node, uint32_t slot,
                        Gradb__V1__Iteration iteration, const Gradb__V1__StatsOptions *options,
                        struct agent_look *ret);
void agent_source_release(struct agent *a); /* when something was located */
void agent_source_keep(struct agent *a);    /* when the set of nodes has changed */
/* Returns a code or -1; *reply is malloc'd. */
int agent_source_command(struct agent *a, const Gradb__V1__Command *command, char **reply,
                         char text[160]);

/* ---- agent_serve.c --------------------------------------------------------------------------- */

enum agent_ask_state {
    ASK_NONE,
    ASK_WAITING, /* for the thread that stands */
    ASK_RUNNING, /* in its hands */
    ASK_DONE,    /* answered; what was located is being read by the I/O thread */
};
struct agent_ask { /* a request that only the source can answer; guarded by the lock */
    enum agent_ask_state state;
    bool dropped;      /* while it ran: nobody wants the answer any more */
    agent_to *message; /* Fetch, StatsRequest or Command; owned */
    int code;          /* -1: answered; else why not */
    char text[160];
    struct agent_value value; /* of a Fetch */
    bool cut;                 /* it is the slice already */
    struct agent_look look;   /* of a StatsRequest */
    char *reply;              /* of a Command */
};

/* With the lock, by the thread that stands: does what is asked of it. False: there is nothing. */
bool agent_serve(struct agent *a);
/* The I/O thread, without the lock. */
enum agent_ask_state agent_ask_state(struct agent *a);
void agent_ask_post(struct agent *a, agent_to *message); /* takes it over; state must be NONE */
void agent_ask_end(struct agent *a); /* the answer is sent, nothing of it is read any more */
/* Nobody wants the answer any more. False: there was no request; else *request is its number. */
bool agent_ask_drop(struct agent *a, uint64_t *request);
void agent_ask_cancel(struct agent *a, uint64_t request); /* if it is that one */
void agent_ask_free(struct agent *a);                     /* with the lock */
uint64_t agent_request_id(const agent_to *message);

#endif
