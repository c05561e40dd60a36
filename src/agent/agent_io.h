// SPDX-License-Identifier: MIT
/*
 * The state of the I/O thread: the connection and its work. No other thread touches it.
 */
#ifndef GRADB_AGENT_IO_H
#define GRADB_AGENT_IO_H

#include "agent/agent_digest.h"
#include "agent/agent_graph.h"
#include "base/owner.h"
#include "proto/grpc/grpc_client.h"
#include "proto/proof.h"

#define AGENT_QUEUE ((size_t)1 << 20) /* bytes handed to the client but not on the wire yet */

struct agent_request { /* a queued Fetch or StatsRequest */
    struct agent_request *next;
    agent_to *message; /* owned */
};

struct agent_transfer { /* a value being sent through the socket */
    bool active;
    uint64_t request;
    struct agent_value value;
    int64_t count, done; /* elements */
};

struct agent_io {
    struct agent *agent;
    /* the connection */
    bool connecting;          /* agent->socket waits to become writable */
    unsigned address_index;   /* next address of the name to try */
    double next_try, backoff; /* seconds */
    struct gd_grpc_client *client;
    struct gd_grpc_client_call *call; /* NULL: closed */
    bool closed;                      /* the call has ended; close_text says why */
    char close_text[200];
    double since; /* when the connection was opened */
    bool met;     /* the owner of the other end was checked, and the first message sent */
    struct gd_peer_owner owner;                                      /* of the debugger's process */
    enum agent_proof { PROOF_NONE, PROOF_ASKED, PROOF_GIVEN } proof; /* of the token */
    struct gd_proof nonces;
    char refusal[200]; /* why this debugger is not obeyed; "": it is */
    double last_heard, last_beat, last_small;
    uint64_t beats;
    int64_t beat_step; /* step in the last heartbeat */
    double goodbye_at; /* when Goodbye was sent; 0: not yet */
    bool leaving;      /* Goodbye is queued: nothing more is sent */
    /* from the debugger's Welcome */
    double keepalive;
    uint64_t max_tensor;
    long listener; /* uid of the listening process; -1: unknown */
    unsigned char debugger_id[32], detached_from[32];
    size_t debugger_id_len, detached_from_len;
    /* work in progress */
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

/* message: what a FromTrainer contains. GD_ENOMEM, GD_ELOST. */
int agent_wire_send(struct agent_io *io, const ProtobufCMessage *message);
/* Sends the first message: Hello, or Authenticate, which Hello follows automatically. */
int agent_wire_greet(struct agent_io *io);
/* Hands queued messages to the client, up to AGENT_QUEUE bytes. *more: some are left. */
int agent_wire_pump(struct agent_io *io, bool *more);
void agent_wire_drop_requests(struct agent_io *io); /* without an answer */

/* ---- agent_values.c: answers to requests ----------------------------------------------------- */

/* Answers the first request, or sends the next piece of a value. False: nothing to do. */
bool agent_values_pump(struct agent_io *io, int *code);
int agent_values_refuse(struct agent_io *io, uint64_t request, int error, const char *text);

/* ---- agent_io.c ---- */

bool agent_io_main(
    struct agent *a); /* until the program closes; true: the caller must free the agent */
int agent_io_create(struct agent *a); /* GD_ENOMEM */
void agent_io_destroy(struct agent *a);

#endif
