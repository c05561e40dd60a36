// SPDX-License-Identifier: MIT
/*
 * The I/O thread's own: the connection, and what it has to do on it. Nobody else touches this.
 */
#ifndef GRADB_AGENT_IO_H
#define GRADB_AGENT_IO_H

#include "agent/agent_digest.h"
#include "base/owner.h"
#include "proto/grpc/grpc_client.h"
#include "proto/proof.h"

#define AGENT_QUEUE ((size_t)1 << 20) /* bytes given to the client and not yet on the wire */

struct agent_request { /* a Fetch or a StatsRequest that waits for its turn */
    struct agent_request *next;
    agent_to *message; /* owned */
};

struct agent_transfer { /* a value on its way through the socket */
    bool active;
    uint64_t request;
    struct agent_value value;
    int64_t count, done; /* elements */
};

struct agent_io {
    struct agent *agent;
    /* the connection */
    bool connecting;          /* agent->socket waits to become writable */
    unsigned address_index;   /* of the name's addresses: the next to try */
    double next_try, backoff; /* seconds */
    struct gd_grpc_client *client;
    struct gd_grpc_client_call *call; /* NULL once it is closed */
    bool closed;                      /* the call's end was seen: see close_text */
    char close_text[200];
    double since;               /* when the connection was opened */
    bool met;                   /* whose process it is was looked at, and the first word said */
    struct gd_peer_owner owner; /* of the debugger's process */
    enum agent_proof { PROOF_NONE, PROOF_ASKED, PROOF_GIVEN } proof; /* of the token */
    struct gd_proof nonces;
    char refusal[200]; /* why we do not obey this debugger; "" */
    double last_heard, last_beat, last_small;
    uint64_t beats;
    int64_t beat_step; /* what the last one told */
    double goodbye_at; /* when Goodbye was sent; 0 not yet */
    bool leaving;      /* Goodbye is said: nothing more is sent */
    /* what the debugger said */
    double keepalive;
    uint64_t max_tensor;
    long listener; /* uid of who listens there; -1 unknown */
    unsigned char debugger_id[32], detached_from[32];
    size_t debugger_id_len, detached_from_len;
    /* what is under way */
    struct agent_graph_cursor graph;
    struct agent_request *requests, **requests_end;
    size_t request_count;
    struct agent_transfer transfer;
    struct agent_digest digest;
    struct agent_shm *shm;
    bool shm_ok;
};

double agent_now(void); /* seconds, monotonic */

/* ---- agent_wire.c -------------------------------------------------------------------- */

extern const struct gd_grpc_client_ops agent_wire_ops; /* ctx is the struct agent_io */

/* GD_ENOMEM, GD_ELOST. */
int agent_wire_send(struct agent_io *io, const agent_from *from);
/* The first word: Hello, or Authenticate, after which it comes by itself. */
int agent_wire_greet(struct agent_io *io);
int agent_wire_goodbye(struct agent_io *io, Gradb__V1__Goodbye__Reason reason, const char *text);
/* Gives the client what there is to say, up to AGENT_QUEUE. *more: there was more to say. */
int agent_wire_pump(struct agent_io *io, bool *more);
void agent_wire_drop_requests(struct agent_io *io); /* without an answer */

/* ---- agent_values.c: answers to requests ----------------------------------------------------- */

/* Answers the first request, or sends the next piece of a value. False when there is none. */
bool agent_values_pump(struct agent_io *io, int *code);
int agent_values_refuse(struct agent_io *io, uint64_t request, int error, const char *text);

#endif
