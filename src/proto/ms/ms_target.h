// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * One MindSpore training process as a target. It knows what the process does and expects, but
 * nothing of the transport: the service passes it decoded messages, and it answers a held WaitCMD
 * with bytes.
 *
 * A process is stopped while its WaitCMD is held, and resumes with the reply. Everything that the
 * user requests is queued and sent one reply at a time, in this order: the request to end,
 * watchpoint changes, views, a recheck, the run.
 */
#ifndef GD_PROTO_MS_TARGET_H
#define GD_PROTO_MS_TARGET_H

#include "engine/debugger.h"
#include "proto/ms/ms_message.h"
#include "proto/ms/ms_version.h"

#define GD_MS_MAX_VALUE 2145386496u /* bytes of a tensor; a process asked for more exits */

struct gd_ms_target;

struct gd_ms_io {
    /* Answers a held WaitCMD; ownership of the call returns to the service. */
    void (*reply)(void *call, const void *data, size_t len);
    /* The target is about to be freed: `detached` says that the process must continue training, and
     * with how many watchpoints (ids 1 ... last_id) at most. */
    void (*gone)(void *owner, bool detached, int32_t last_id);
    /* Loads graphs whose loading was interrupted. May be NULL. */
    int (*take_graphs)(void *owner, struct gd_err *err);
};

/* `first` is the metadata with which the process introduced itself, or that of its first WaitCMD.
 * The session's state is GD_WAITING. */
int gd_ms_target_create(struct gd_debugger *debugger, const struct gd_ms_io *io, void *owner,
                        const char *peer, const struct gd_ms_metadata *first,
                        struct gd_ms_target **ret, struct gd_err *err);
struct gd_session *gd_ms_target_session(const struct gd_ms_target *target);
const struct gd_ms_version *gd_ms_target_version(const struct gd_ms_target *target);

/* SendMetadata arrived again (new graphs follow), or for the first time after a WaitCMD. */
void gd_ms_target_on_metadata(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
/* The version was refused: no graph will arrive. */
void gd_ms_target_on_mismatch(struct gd_ms_target *target);
/* One complete GraphProto. */
void gd_ms_target_on_graph(struct gd_ms_target *target, const uint8_t *data, size_t len);
/* The same in pieces: begin, the steps of mindspore/ms_graph.h, and the end, which frees the load.
 * err NULL: loaded. The session is notified last. */
struct gd_ms_graph_load;
int gd_ms_target_graph_begin(struct gd_ms_target *target, const uint8_t *data, size_t len,
                             struct gd_ms_graph_load **ret, struct gd_err *err);
void gd_ms_target_graph_end(struct gd_ms_target *target, struct gd_ms_graph_load *load, size_t len,
                            const struct gd_err *err);
/* Instead of the end: the user interrupted loading. */
void gd_ms_target_graph_stopped(struct gd_ms_target *target, struct gd_ms_graph_load *load);
/* `call` is held until it is answered through io->reply or reported as closed. */
void gd_ms_target_on_wait(struct gd_ms_target *target, void *call,
                          const struct gd_ms_metadata *metadata);
void gd_ms_target_on_wait_closed(struct gd_ms_target *target, const void *call);
/* One hit of a list; reported when the list is complete. */
void gd_ms_target_on_hit(struct gd_ms_target *target, const struct gd_ms_hit *hit);
void gd_ms_target_on_hits_end(struct gd_ms_target *target);
void gd_ms_target_on_heartbeat(struct gd_ms_target *target, int32_t period);
/* For keep-alive and detecting silence; call it every few seconds. */
void gd_ms_target_tick(struct gd_ms_target *target);

/* Whether a ViewCMD is pending, and the expected size of its value (0: unknown). */
bool gd_ms_target_expects(const struct gd_ms_target *target, size_t *bytes);
/* The answers to it; name is the label of the value. Unrequested answers are ignored. */
void gd_ms_target_on_tensor(struct gd_ms_target *target, const char *name, const char *slot,
                            const char *iter, struct gd_tensor *tensor, const struct gd_err *err);
void gd_ms_target_on_base(struct gd_ms_target *target, const struct gd_ms_base *base);
void gd_ms_target_on_summary(struct gd_ms_target *target, const struct gd_ms_summary *summary);

/* The process reported its end / its connection is gone. */
void gd_ms_target_on_done(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
void gd_ms_target_on_closed(struct gd_ms_target *target);

#endif
