// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the service debugger.EventListener: ms_call.c has its connections, processes and
 * calls, ms_service.c the methods that make a process wait, ms_service_graph.c those about graphs,
 * ms_service_tensor.c those about values.
 */
#ifndef GD_PROTO_MS_SERVICE_IMPL_H
#define GD_PROTO_MS_SERVICE_IMPL_H

#include <ev.h>

#include "proto/ms/ms_ingest.h"
#include "proto/ms/ms_service.h"
#include "proto/ms/ms_target.h"
#include "proto/ms/ms_tensor.h"

struct ms_conn;

struct ms_process { /* one training process on a connection */
    struct ms_process *next;
    struct ms_conn *conn;
    char device[64];             /* device_name up to the colon; "": unknown yet */
    struct gd_ms_target *target; /* NULL: ended or detached */
    struct ms_ingest *ingest;    /* of its graphs; NULL before the first */
    struct ms_call *late;        /* calls waiting until its graphs are loaded; oldest first */
    bool detached;               /* continues training; its WaitCMDs are answered immediately */
    int32_t delete_next, delete_last; /* watchpoints of a detached process, still to be deleted */
};

struct ms_conn {
    struct ms_conn *next;
    struct gd_ms_service *service;
    struct gd_grpc_conn *conn;
    struct ms_process *processes; /* the one with the latest message first */
    int32_t heartbeat_period;     /* received before the process introduced itself */
    bool refused;                 /* the user knows */
};

struct ms_call {
    struct gd_grpc_call *call;
    struct ms_call *next_late;
    struct ms_process *late_at;           /* whose `late` list contains it; NULL: none */
    struct gd_ms_metadata *late_metadata; /* of a WaitCMD that had to wait */
    struct gd_ms_service *service;
    struct ms_conn *conn;
    struct gd_ms_target *waiting;         /* for WaitCMD: the target that holds it */
    struct gd_buf graph;                  /* SendGraph, SendMultiGraphs: the graph so far */
    size_t last_piece;                    /* length of an unfinished last piece; 0: none */
    struct gd_ms_tensor_decoder *decoder; /* SendTensors */
    struct gd_progress *progress;         /* of the graph, or of a large tensor */
    uint64_t received;                    /* bytes of that tensor */
};

struct gd_ms_service {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_grpc_service grpc;
    struct ms_conn *conns;
    ev_timer timer;
    struct gd_block_pool *pool; /* memory of tensors */
};

/* ---- ms_call.c ---- */

/* Moves the process with that device to the front, or adds it. NULL: out of memory, or too many. */
struct ms_process *ms_service_process(struct ms_conn *conn, const char *device_name);
void ms_call_refuse(struct gd_grpc_call *call, enum gd_grpc_code code, const char *text);
void ms_call_reply_ok(struct gd_grpc_call *call);
void ms_service_graphs_are_in(void *ctx);
/* The process that was asked for a tensor, if several share the connection. */
struct gd_ms_target *ms_call_asked_target(const struct ms_call *call, size_t *bytes);
/* A call of a process whose graphs are still being loaded: answered when they are. */
void ms_call_come_late(struct ms_call *mine, struct ms_process *process);
void ms_call_end_progress(struct ms_call *mine);
/* The process that messages without a name belong to. */
struct gd_ms_target *ms_call_target(const struct ms_call *call);
bool ms_service_make_target(struct ms_process *process, const struct gd_ms_metadata *metadata,
                            struct gd_err *err);
void ms_service_warn_once(struct gd_ms_service *service, const char *peer, const char *text);
void ms_call_leave_late(struct ms_call *mine);
void ms_process_drop_ingest(struct ms_process *process);
void ms_call_take_wait(struct ms_call *mine, struct ms_process *process,
                       const struct gd_ms_metadata *metadata);
void ms_call_open(struct gd_grpc_call *call, void *ctx);
void ms_call_closed(struct gd_grpc_call *call);
void ms_conn_closed(struct gd_grpc_conn *conn, void *ctx);
/* What a process sent before it died is worth keeping. */
void ms_conn_free_processes(struct ms_conn *conn);
extern const char ms_no_process[];

/* ---- the methods in other files ---- */

void ms_graph_message(struct gd_grpc_call *call, const uint8_t *data, size_t len);
void ms_graph_end(struct gd_grpc_call *call);
void ms_multi_message(struct gd_grpc_call *call, const uint8_t *data, size_t len);
uint8_t *ms_tensor_place(struct gd_grpc_call *call, size_t *room);
void ms_tensor_chunk(struct gd_grpc_call *call, const uint8_t *data, size_t len, size_t offset,
                     size_t total);
void ms_tensor_end(struct gd_grpc_call *call);
void ms_base_message(struct gd_grpc_call *call, const uint8_t *data, size_t len);
void ms_summary_message(struct gd_grpc_call *call, const uint8_t *data, size_t len);
void ms_hit_message(struct gd_grpc_call *call, const uint8_t *data, size_t len);
void ms_hits_end(struct gd_grpc_call *call);

#endif
