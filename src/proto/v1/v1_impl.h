// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the gradb.v1 service. v1_service.c handles connections (token, hello, version,
 * heartbeat), v1_target.c is the target for a training process, v1_graph.c receives its graph,
 * v1_value.c its tensors, statistics and answers to commands, v1_words.c its scalars and events,
 * v1_watch.c the reports of watch plans, v1_shm.c shared memory.
 *
 * A struct v1_conn lives as long as its call, a struct v1_target as long as the debugger wants;
 * each has a pointer to the other, which is NULL once the other is gone.
 */
#ifndef GD_PROTO_V1_IMPL_H
#define GD_PROTO_V1_IMPL_H

#include <ev.h>

#include "base/arena.h"
#include "engine/debugger.h"
#include "gradb_v1.pb-c.h"
#include "proto/grpc/grpc_code.h"
#include "proto/grpc/grpc_server.h"
#include "proto/proof.h"
#include "proto/v1/v1_service.h"

#define V1_VERSION      1U
#define V1_MAX_MESSAGE  ((size_t)16 << 20) /* of a FromTrainer; set max-message may lower it */
#define V1_MAX_FIRST    ((size_t)1 << 20)  /* of a message before Welcome */
#define V1_MAX_LINES    65536              /* in one Log */
#define V1_MAX_REQUESTS 65536              /* unanswered by one training process */
#define V1_ID_BYTES     16

typedef Gradb__V1__FromTrainer v1_from;

struct v1_conn;
struct v1_target;
struct v1_shm;

struct gd_v1_service {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_grpc_service grpc;
    ev_timer timer; /* runs while there are connections */
    unsigned char id[V1_ID_BYTES];
    struct v1_conn *conns;
};

/* The transport of a connection: gRPC, or a test's. */
struct v1_wire {
    int (*send)(void *ctx, const void *data, size_t len); /* GD_OK, GD_ELIMIT, GD_ELOST */
    void (*finish)(void *ctx, enum gd_grpc_code code, const char *text);
    void (*pause)(void *ctx, bool pause); /* may be NULL: all input is queued */
    void (*trust)(void *ctx);             /* the peer has proven the token; may be NULL */
};

enum v1_stage { V1_MEETS, V1_CHALLENGED, V1_PROVEN };

struct v1_held { /* a message that waits until the graph is loaded */
    struct v1_held *next;
    size_t len;
    uint8_t data[];
};

struct v1_conn {
    struct gd_v1_service *service;
    struct v1_conn *next, **link;
    const struct v1_wire *wire;
    void *wire_ctx;
    char peer[128];
    bool is_local; /* gd_grpc_conn_is_local */
    bool finished; /* nothing more is sent or accepted */
    bool holding;  /* incoming messages are queued: */
    struct v1_held *held, **held_end;
    bool half_closed; /* after them */
    bool draining;    /* they are being delivered ... */
    bool closed;      /* ... and the connection closed in the meantime */
    double since, last_heard, last_beat;
    double keepalive; /* as sent in Welcome */
    uint64_t beats;
    struct v1_target *target; /* NULL before the hello and after the end */
    enum v1_stage stage;      /* of proving the token */
    struct gd_proof nonces;
};

/* ---- v1_service.c -------------------------------------------------------------------- */

/* NULL: out of memory. */
struct v1_conn *v1_conn_open(struct gd_v1_service *service, const struct v1_wire *wire,
                             void *wire_ctx, const char *peer, bool is_local);
void v1_conn_message(struct v1_conn *conn, const uint8_t *data, size_t len);
void v1_conn_closed(struct v1_conn *conn); /* frees it */
/* Ends the call with a status. */
void v1_conn_finish(struct v1_conn *conn, enum gd_grpc_code code, const char *text);
/* hold: queues what the training process sends; false: delivers it. */
void v1_conn_hold(struct v1_conn *conn, bool hold);
/* Everything except the gRPC method; for gd_v1_service_create and tests. */
int v1_service_create(struct ev_loop *loop, struct gd_debugger *debugger,
                      struct gd_v1_service **ret, struct gd_err *err);

/* ---- v1_target.c --------------------------------------------------------------------- */

enum v1_request_kind { V1_FETCH, V1_STATS, V1_COMMAND };

struct v1_request {
    struct v1_request *next;
    uint64_t id;
    enum v1_request_kind kind;
    struct gd_tensor_ref ref;
    struct gd_slice *slice; /* sliced here, because the training process cannot; NULL */
    bool whole;             /* the answer contains the slot's complete shape */
    bool abridge;           /* it may leave out elements: gd_slice.abridge */
    gd_tensor_fn tensor_fn;
    gd_stats_fn stats_fn;
    gd_command_fn command_fn;
    void *ctx;
    struct gd_tensor *tensor; /* being filled */
    size_t received, bytes;
    struct gd_progress *progress; /* for a large value; NULL */
    int64_t step;
};

struct v1_plan;         /* v1_watch.c */
struct v1_cost_request; /* v1_watch.c */

struct v1_edge { /* in wire numbers, until the commit */
    uint32_t node, producer;
    uint16_t slot;
    bool control;
    bool replace; /* not an edge: earlier inputs are removed */
};

struct v1_target {
    struct gd_target base;    /* first */
    struct gd_target_ops ops; /* what this training process supports */
    struct gd_v1_service *service;
    struct v1_conn *conn;  /* NULL: gone */
    uint64_t capabilities; /* bit i: Capability i */
    char agent[64];
    uint32_t local_rank;
    uint64_t scalars; /* how many came */
    /* the graph */
    gd_node_id *gd_of_wire; /* by wire number - 1 */
    uint32_t *wire_of_gd;   /* by gd_node_id; 0 none */
    uint32_t wire_count;
    size_t wire_capacity, gd_capacity;
    struct v1_edge *edges;
    size_t edge_count, edge_capacity;
    uint64_t graph_bytes;
    struct gd_progress *graph_progress; /* from the first chunk until it is loaded */
    uint64_t graph_sequence; /* of the last commit: the training process waits for its answer */
    ev_timer ingest_turn;    /* v1_ingest.c; active while edges are being loaded */
    size_t edges_done;       /* of edges */
    bool unwanted;           /* Ctrl-C: edges wait for `refresh graph` */
    bool has_subgraph;
    char subgraph[256];
    bool renamed_warned;
    /* requests, oldest first */
    struct v1_request *requests, **requests_end;
    size_t request_count;
    uint64_t next_request;
    uint8_t *expected; /* the last Expect sent, packed */
    size_t expected_size;
    /* watch plans */
    struct v1_plan *plans;
    struct v1_cost_request *cost_requests; /* oldest first */
    size_t cost_request_count;
    uint64_t event_id;  /* the event whose verdict the training process waits for */
    uint64_t report_id; /* the report whose parts are arriving */
    bool report_stop, report_meant;
    char report_why[160];
    struct v1_shm *shm; /* NULL: not on this machine */
};

/* Creates a session from an accepted hello. On success conn->target is set. */
int v1_target_create(struct v1_conn *conn, const Gradb__V1__Hello *hello, struct gd_err *err);
/* Handles a message after the hello. An error means that the peer violated the protocol: its text
 * is sent to the peer and shown to the user. */
int v1_target_message(struct v1_target *target, const v1_from *message, size_t len,
                      struct gd_err *err);
/* The connection is gone; `why` is shown unless the training process said goodbye. */
void v1_target_lost(struct v1_target *target, const char *why);

/* ---- v1_send.c ----------------------------------------------------------------------- */

/* message: what a ToTrainer contains. GD_ELOST, GD_ELIMIT, GD_ENOMEM. */
int v1_conn_send(struct v1_conn *conn, const ProtobufCMessage *message);
/* Reports to the training process which shared memory is free again. */
void v1_target_flush(struct v1_target *target);
/* The wire number of a node; 0: none. */
uint32_t v1_target_wire(const struct v1_target *target, gd_node_id node);
bool v1_target_can(const struct v1_target *target, Gradb__V1__Capability capability);
int v1_target_send(struct v1_target *target, const ProtobufCMessage *message, struct gd_err *err);
/* The node with a wire number, or GD_NO_NODE. */
gd_node_id v1_graph_node(const struct v1_target *target, uint32_t wire);

/* ---- v1_decode.c --------------------------------------------------------------------- */

/* Converts wire dimensions to a shape; unknown (-1) ones only if `partial`. GD_EPROTO. */
int v1_shape(size_t rank, const int64_t *dims, bool partial, struct gd_shape *ret,
             struct gd_err *err);
enum gd_dtype v1_dtype(Gradb__V1__DataType type);  /* GD_DT_NONE: unknown */
const char *v1_phase_name(Gradb__V1__Phase phase); /* "": none */
/* Statistics not requested are 0 on the wire. */
void v1_value_decode(const Gradb__V1__Stats *m, struct gd_stats *ret);

/* ---- v1_graph.c ---------------------------------------------------------------------- */

int v1_graph_chunk(struct v1_target *target, const Gradb__V1__GraphChunk *chunk, size_t len,
                   struct gd_err *err);
void v1_graph_free(struct v1_target *target);

/* ---- v1_ingest.c --------------------------------------------------------------------- */

void v1_ingest_init(struct v1_target *target);
/* A commit arrived: loads the edges, commits the graph and notifies the session; for a large graph
 * while the loop runs, with later messages queued. */
int v1_ingest_begin(struct v1_target *target, struct gd_err *err);
void v1_ingest_finish(struct v1_target *target); /* loads everything now, however long it takes */
int v1_ingest_again(struct v1_target *target, struct gd_err *err); /* gd_target_take_graphs */

/* ---- v1_value.c ---------------------------------------------------------------------- */

int v1_value_fetch(struct gd_target *target, const struct gd_tensor_ref *ref,
                   const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
int v1_value_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                   void *ctx, struct gd_err *err);
int v1_value_command(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                     gd_command_fn fn, void *ctx, struct gd_err *err);
void v1_value_begin(struct v1_target *target, const Gradb__V1__TensorBegin *m);
void v1_value_data(struct v1_target *target, const Gradb__V1__TensorData *m);
int v1_value_statistics(struct v1_target *target, const Gradb__V1__StatsReply *m,
                        struct gd_err *err);
void v1_value_reply(struct v1_target *target, const Gradb__V1__CommandReply *m);
void v1_value_error(struct v1_target *target, const Gradb__V1__RequestError *m);
void v1_value_drop_all(struct v1_target *target, int code, const char *why);

/* ---- v1_budget.c --------------------------------------------------------------------- */

/* The cost of unpacking a message. An empty element takes two bytes on the wire and a hundred in
 * memory, so both are counted before anything is allocated. */
struct v1_budget {
    size_t elements; /* limit: messages, strings and blocks of packed numbers */
    size_t bytes;
};
bool v1_budget_suffices(struct v1_budget budget, const ProtobufCMessageDescriptor *type,
                        const uint8_t *data, size_t len);

/* ---- v1_words.c ---------------------------------------------------------------------- */

/* Scalars, Log, Event, Timing or CheckpointDone; ignores anything else. */
void v1_words(struct v1_target *target, const v1_from *message);

/* ---- v1_event.c ---------------------------------------------------------------------- */

void v1_event_verdict(struct gd_target *base, bool stop);
int v1_event_wishes(struct gd_target *base, const struct gd_event_wish *wishes, size_t count,
                    struct gd_err *err);
void v1_event_happened(struct v1_target *target, const Gradb__V1__Happening *m);

/* ---- v1_line.c ----------------------------------------------------------------------- */

int v1_line_breaks(struct gd_target *base, const struct gd_line_wish *wishes, size_t count,
                   struct gd_err *err);
void v1_line_places(struct v1_target *target, const Gradb__V1__LinePlaces *m);
void v1_line_stopped(struct v1_target *target, const Gradb__V1__LineStop *m);

/* ---- v1_watch.c ---------------------------------------------------------------------- */

int v1_watch_plan(struct gd_target *target, const struct gd_watch_plan *plan, struct gd_err *err);
int v1_watch_costs(struct gd_target *target, gd_watch_costs_fn fn, void *ctx, struct gd_err *err);
/* At a stop: all reports of removed plans have come. */
void v1_watch_stopped(struct v1_target *target);
/* GD_EPROTO: a malformed shape. */
int v1_watch_report(struct v1_target *target, const Gradb__V1__WatchReport *m, struct gd_err *err);
void v1_watch_costs_told(struct v1_target *target, const Gradb__V1__WatchCosts *m);
/* Handles a RequestError, if it answers a request for costs. */
void v1_watch_error(struct v1_target *target, uint64_t request, const struct gd_err *why);
/* Removes all plans and answers all requests for costs. */
void v1_watch_drop_all(struct v1_target *target, int code, const char *why);

/* ---- v1_shm.c -------------------------------------------------------------------------------- */

/* Reads the probe. NULL: another machine, another user, or a false claim; err says which. */
struct v1_shm *v1_shm_create(const Gradb__V1__ShmProbe *probe, struct gd_err *err);
void v1_shm_destroy(struct v1_shm *shm); /* tensors that use it stay readable */
/* A tensor in a segment. *mapped: the segment was just mapped. GD_EPROTO, GD_EIO, GD_ENOMEM. */
int v1_shm_tensor(struct v1_shm *shm, const Gradb__V1__ShmPlace *place, enum gd_dtype dtype,
                  const struct gd_shape *shape, size_t bytes, struct gd_tensor **ret, bool *mapped,
                  struct gd_err *err);
void v1_shm_forget(struct v1_shm *shm, uint32_t segment);
/* Segments whose tensors were freed since the last call; at most max. */
size_t v1_shm_released(struct v1_shm *shm, uint32_t *ret, size_t max);
/* For `info target`. */
void v1_shm_usage(struct v1_shm *shm, size_t *segments, size_t *bytes);

#endif
