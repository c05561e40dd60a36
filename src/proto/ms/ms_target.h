// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One MindSpore training process as a target. It knows what the process does and expects, and
 * nothing of the transport: the service hands it decoded messages, it answers a held WaitCMD with
 * bytes.
 *
 * A process stands still while its WaitCMD is held and goes on with the reply. Everything that a
 * user asks for is queued and handed out one reply at a time, in this order: the request to end,
 * watchpoint changes, views, a recheck, the run.
 */
#ifndef GD_PROTO_MS_TARGET_H
#define GD_PROTO_MS_TARGET_H

#include "engine/debugger.h"
#include "proto/ms/ms_message.h"
#include "proto/ms/ms_version.h"

#define GD_MS_MAX_VALUE 2145386496u /* bytes of a tensor; a process asked for more ends itself */

struct gd_ms_target;

struct gd_ms_io {
    /* Answers a held WaitCMD; the call is the service's again. */
    void (*reply)(void *call, const void *data, size_t len);
    /* The target is about to go: `detached` says that the process shall train on, and how many
     * watchpoints (ids 1 ... last_id) it may still have. */
    void (*gone)(void *owner, bool detached, int32_t last_id);
    /* Graphs that Ctrl-C kept out shall be taken in. May be NULL. */
    int (*take_graphs)(void *owner, struct gd_err *err);
};

/* first is the metadata that the process introduced itself with, or that of its first WaitCMD when
 * it did not. The session's state is GD_WAITING. */
int gd_ms_target_create(struct gd_debugger *debugger, const struct gd_ms_io *io, void *owner,
                        const char *peer, const struct gd_ms_metadata *first,
                        struct gd_ms_target **ret, struct gd_err *err);
struct gd_session *gd_ms_target_session(const struct gd_ms_target *target);
const struct gd_ms_version *gd_ms_target_version(const struct gd_ms_target *target);

/* SendMetadata came again (new graphs follow), or for the first time after a WaitCMD. */
void gd_ms_target_on_metadata(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
/* The version was refused: no graph will come. */
void gd_ms_target_on_mismatch(struct gd_ms_target *target);
/* One whole GraphProto, at once. */
void gd_ms_target_on_graph(struct gd_ms_target *target, const uint8_t *data, size_t len);
/* The same in pieces: begin, steps of mindspore/ms_graph.h, and the end, which frees the load. err
 * NULL: it is in. The session hears of it last. */
struct gd_ms_graph_load;
int gd_ms_target_graph_begin(struct gd_ms_target *target, const uint8_t *data, size_t len,
                             struct gd_ms_graph_load **ret, struct gd_err *err);
void gd_ms_target_graph_end(struct gd_ms_target *target, struct gd_ms_graph_load *load, size_t len,
                            const struct gd_err *err);
/* Instead of the end: the user did not want to wait for it. */
void gd_ms_target_graph_stopped(struct gd_ms_target *target, struct gd_ms_graph_load *load);
/* `call` is held until it is answered through io->reply, or said to be closed. */
void gd_ms_target_on_wait(struct gd_ms_target *target, void *call,
                          const struct gd_ms_metadata *metadata);
void gd_ms_target_on_wait_closed(struct gd_ms_target *target, const void *call);
/* One of a list; they are told when the list is complete. */
void gd_ms_target_on_hit(struct gd_ms_target *target, const struct gd_ms_hit *hit);
void gd_ms_target_on_hits_end(struct gd_ms_target *target);
void gd_ms_target_on_heartbeat(struct gd_ms_target *target, int32_t period);
/* For keep-alive and for silence; call it every few seconds. */
void gd_ms_target_tick(struct gd_ms_target *target);

/* Whether a ViewCMD is out, and how large its value will be (0: not known). */
bool gd_ms_target_expects(const struct gd_ms_target *target, size_t *bytes);
/* The answers to it; name is what a value was labelled with. Answers that were not asked for are
 * ignored. */
void gd_ms_target_on_tensor(struct gd_ms_target *target, const char *name, const char *slot,
                            const char *iter, struct gd_tensor *tensor, const struct gd_err *err);
void gd_ms_target_on_base(struct gd_ms_target *target, const struct gd_ms_base *base);
void gd_ms_target_on_summary(struct gd_ms_target *target, const struct gd_ms_summary *summary);

/* The process said that it is done / its connection is gone. */
void gd_ms_target_on_done(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
void gd_ms_target_on_closed(struct gd_ms_target *target);

#endif
