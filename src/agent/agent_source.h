// SPDX-License-Identifier: MIT
/*
 * Facts known to the program alone: agent_source.c calls the functions of struct gradb_source;
 * agent_serve.c lets the stopped thread call them for the I/O thread.
 *
 * Every call into the source is made by the thread that has the turn (agent_turn.c), without the
 * lock: the program may need a lock of its own (Python's) that another of its threads holds while
 * it waits for ours in gradb_scalar, and it may call gradb_scalar itself. So everything except what
 * belongs to the turn can change during a call: look up node pointers again after it, and do not
 * walk anything that the I/O thread may free. Watch plans are walked nevertheless: messages that
 * would change them wait while `passing` is set (agent_control.c).
 */
#ifndef GRADB_AGENT_SOURCE_H
#define GRADB_AGENT_SOURCE_H

#include "agent/agent_watch.h"

/* ---- agent_source.c: with the lock and the turn ---------------------------------------------- */

/* Whether the source knows values, as an eager framework's does, and not only commands. */
bool agent_has_values(const struct agent *a);
/* Whether the source must be asked for the value: no address was given, and there is no copy of
 * this step. */
bool agent_asks(const struct agent *a, uint32_t node, uint32_t slot,
                Gradb__V1__Iteration iteration);
/* As agent_locate, but asks the source if agent_asks says so. The value stays readable until
 * agent_source_release. */
int agent_find(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
               struct agent_value *ret, char text[160]);
/* As agent_find, for the requested slice if the source can slice; *cut: it has. */
int agent_find_part(struct agent *a, const Gradb__V1__Fetch *fetch, struct agent_value *ret,
                    bool *cut, char text[160]);
/* Statistics from the source: fills ret's code, text and stats, and type and shape of its value,
 * which has no data. False: the source computes none; locate the value instead. */
bool agent_source_stats(struct agent *a, uint32_t node, uint32_t slot,
                        Gradb__V1__Iteration iteration, const Gradb__V1__StatsOptions *options,
                        struct agent_look *ret);
void agent_source_release(struct agent *a); /* after a value was located */
/* Announces to the program what it will be asked for, see gradb_on_look: all that is added, in
 * parts. agent_begin_looking returns NULL where the program does not want to know, or memory is
 * exhausted. */
struct agent_looking *agent_begin_looking(struct agent *a);
void agent_add_look(struct agent *a, struct agent_looking *looking, uint32_t node, uint32_t slot,
                    const Gradb__V1__StatsOptions *options);
void agent_end_looking(struct agent *a, struct agent_looking *looking); /* frees it */
void agent_source_keep(struct agent *a);  /* after the set of nodes has changed */
void agent_source_lines(struct agent *a); /* after the set of lines has changed */
/* Returns a code or -1; *reply is malloc'd. */
int agent_source_command(struct agent *a, const Gradb__V1__Command *command, char **reply,
                         char text[160]);

/* Validates a tensor of the program. Returns a code, or -1 with the tensor in *ret. */
int agent_take_tensor(const gradb_tensor *tensor, struct gd_tensor *ret, bool with_data,
                      char text[160]);

/* ---- agent_serve.c --------------------------------------------------------------------------- */

enum agent_ask_state {
    ASK_NONE,
    ASK_WAITING, /* for the stopped thread */
    ASK_RUNNING, /* on the stopped thread */
    ASK_DONE,    /* answered; the I/O thread is reading the located value */
};
struct agent_ask { /* a request for the source; guarded by the lock */
    enum agent_ask_state state;
    bool dropped;      /* cancelled while it ran: nobody wants the answer */
    agent_to *message; /* Fetch, StatsRequest or Command; owned */
    int code;          /* -1: answered; otherwise the reason for the refusal */
    char text[160];
    struct agent_value value; /* of a Fetch */
    bool cut;                 /* the source has already sliced it */
    struct agent_look look;   /* of a StatsRequest */
    char *reply;              /* of a Command */
};

/* With the lock, on the stopped thread: carries out the posted request. False: there is none. */
bool agent_serve(struct agent *a);
/* On the I/O thread, without the lock. */
enum agent_ask_state agent_ask_state(struct agent *a);
/* takes ownership; the state must be ASK_NONE */
void agent_ask_post(struct agent *a, agent_to *message);
void agent_ask_end(struct agent *a); /* the answer was sent and is no longer read */
/* Cancels the request. False: there was none; otherwise *request is its number. */
bool agent_ask_drop(struct agent *a, uint64_t *request);
void agent_ask_cancel(struct agent *a, uint64_t request); /* cancels that request only */
/* With the lock: the debugger interrupts the request that runs. */
void agent_ask_interrupt(struct agent *a);
void agent_ask_free(struct agent *a); /* with the lock */
uint64_t agent_request_id(const agent_to *message);

#endif
