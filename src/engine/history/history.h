// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The flight recorder: statistics of the watched tensors over the last steps, and histograms where
 * they are wanted, in a ring of fixed size in a memory-mapped file. Every record is complete before
 * it becomes visible, so the file can be read while it is written, and after a crash of the
 * training process, of gradb or of both. The file describes itself: its process and, for each
 * tensor, the node's name, type, kind, execution order, dtype, shape and source line.
 * docs/history.md describes the format.
 */
#ifndef GD_ENGINE_HISTORY_H
#define GD_ENGINE_HISTORY_H

#include "engine/session.h"

struct gd_watch_value; /* engine/watch/watch_report.h */

struct gd_history;

struct gd_history_record { /* one tensor at one step */
    int64_t step;
    bool has_stats;
    unsigned error;        /* bits of enum gd_hit_error when it has none */
    struct gd_stats stats; /* ranges and dead units are not kept */
};
struct gd_history_bins { /* a histogram of one tensor at one step */
    int64_t step;
    double lo, hi; /* of the finite elements; lo > hi: there is none */
    uint64_t bin[GD_WATCH_BINS];
};
struct gd_history_tensor {
    const char *name; /* of the node, or of the scalar */
    const char *type;
    enum gd_node_kind kind;
    uint32_t slot, order;
    bool is_scalar;
    bool is_bins; /* its records are histograms: gd_history_read_bins */
    enum gd_dtype dtype;
    struct gd_shape shape;
    const char *file; /* "" unknown */
    uint32_t line;
    uint64_t seen; /* records written in total */
};
struct gd_history_head {
    struct gd_peer peer;
    double started;                /* seconds since the epoch */
    int64_t first_step, last_step; /* still in the ring */
    uint32_t tensors, capacity;    /* known, and how many fit; with those of histograms */
    uint32_t histograms;           /* of them */
    uint32_t steps;                /* steps that fit if every tensor comes once per step */
    uint64_t bytes, left_out;      /* of the file; tensors that did not fit */
    uint32_t generation; /* how often the steps started again; earlier records are dropped */
    uint32_t records;    /* of all tensors together: what the ring holds */
    uint64_t damaged;    /* records of a file that could not be read */
};

/* path NULL: a new file in the user's state directory, readable only by the user, of which the
 * newest few are kept; "": in memory; otherwise an existing history there is replaced unless it is
 * being written (GD_ESTATE). bytes: the file size, 64 KiB to 4 GiB. GD_EIO, GD_ENOMEM, GD_EINVAL:
 * the size is wrong, or the file is something else. */
int gd_history_create(const char *path, uint64_t bytes, const struct gd_peer *peer,
                      struct gd_history **ret, struct gd_err *err);
/* Reads a file without trusting it. GD_EIO, GD_EPROTO (not a history file, or damaged: says where).
 * Later writes do not show. */
int gd_history_open(const char *path, struct gd_history **ret, struct gd_err *err);
void gd_history_close(struct gd_history *history); /* the file stays */
const char *gd_history_path(const struct gd_history *history);

/* One value of a step; a second one of the same step replaces the first. The judge of watchpoints
 * calls it for every value. Creates the session's history on first use if the settings want one; a
 * failure is warned about once. */
void gd_session_history_add(struct gd_session *session, const struct gd_watch_value *value,
                            int64_t step);
/* The same without a session. */
int gd_history_add(struct gd_history *history, const struct gd_history_tensor *tensor,
                   const struct gd_history_record *record, struct gd_err *err);

/* For a record that knows the past of any tensor (gd_target_ops.recall): adds what it has of this
 * one, unless it is already there; nothing happens for any other session. go_on may be NULL; false
 * ends it: GD_EINTR. GD_ENODATA: nothing is known about it. */
int gd_session_recall(struct gd_session *session, const struct gd_tensor_ref *ref,
                      bool (*go_on)(void *ctx, uint64_t steps), void *ctx, struct gd_err *err);
bool gd_session_can_recall(const struct gd_session *session);

void gd_history_head(const struct gd_history *history, struct gd_history_head *ret);
bool gd_history_tensor(const struct gd_history *history, uint32_t index,
                       struct gd_history_tensor *ret);
bool gd_history_find(const struct gd_history *history, const char *name, uint32_t slot,
                     uint32_t *ret);
/* Of its histograms. False: none was recorded. */
bool gd_history_find_bins(const struct gd_history *history, const char *name, uint32_t slot,
                          uint32_t *ret);
/* Up to max records of a tensor, oldest first, the newest ones when there are more. */
size_t gd_history_read(const struct gd_history *history, uint32_t index,
                       struct gd_history_record *ret, size_t max);
/* The same for histograms. */
size_t gd_history_read_bins(const struct gd_history *history, uint32_t index,
                            struct gd_history_bins *ret, size_t max);
/* A histogram of one step; `tensor` is described as for gd_history_add. */
int gd_history_add_bins(struct gd_history *history, const struct gd_history_tensor *tensor,
                        const struct gd_history_bins *bins, struct gd_err *err);

#endif
