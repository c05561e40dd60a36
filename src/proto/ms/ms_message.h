// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The small messages of debugger.EventListener as plain structs, and the replies as bytes. Decoders
 * accept fields in any order, skip unknown fields, truncate long texts, and return false for bytes
 * that are not a message.
 */
#ifndef GD_PROTO_MS_MESSAGE_H
#define GD_PROTO_MS_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/stats.h"
#include "engine/session.h"

#define GD_MS_MAX_VIEW_NAME 600                     /* of a requested tensor */
#define GD_MS_MAX_REPLY     (4u * 1024 * 1024 - 64) /* clients refuse replies of 4 MiB and more */

struct gd_ms_metadata {
    char device_name[128]; /* "<device id>:<graph id>" */
    int32_t cur_step;
    char backend[32]; /* "GPU", "Ascend" */
    char cur_node[512];
    bool training_done;
    int32_t graph_num;
    char ms_version[64];
};

struct gd_ms_heartbeat {
    char message[64];
    int32_t period; /* seconds */
};

struct gd_ms_base {
    enum gd_dtype dtype;
    int64_t wire_dtype;
    struct gd_shape shape;
    int64_t bytes;
};

struct gd_ms_summary {
    struct gd_ms_base base;
    float max, min, avg;
    uint64_t count, negative, positive, nan, neg_inf, pos_inf, zero;
};

struct gd_ms_hit {
    char node_name[512];
    char slot[24];
    int32_t id;
    int32_t error_code;
    int condition;
    struct gd_hit_param param[GD_MAX_HIT_PARAMS];
    int param_count;
};

bool gd_ms_read_metadata(const uint8_t *data, size_t len, struct gd_ms_metadata *ret);
bool gd_ms_read_heartbeat(const uint8_t *data, size_t len, struct gd_ms_heartbeat *ret);
bool gd_ms_read_base(const uint8_t *data, size_t len, struct gd_ms_base *ret);
bool gd_ms_read_summary(const uint8_t *data, size_t len, struct gd_ms_summary *ret);
bool gd_ms_read_hit(const uint8_t *data, size_t len, struct gd_ms_hit *ret);
/* *piece points into data. */
bool gd_ms_read_chunk(const uint8_t *data, size_t len, const uint8_t **piece, size_t *piece_len,
                      bool *finished);

/* ---- replies: each appends one EventReply; GD_ENOMEM, GD_ELIMIT ------------------------------ */

int gd_ms_write_version_matched(struct gd_buf *out, bool matched);
int gd_ms_write_exit(struct gd_buf *out);
/* level "step" or "recheck"; "node" goes with gd_ms_write_node. */
int gd_ms_write_step(struct gd_buf *out);
int gd_ms_write_recheck(struct gd_buf *out);
int gd_ms_write_node(struct gd_buf *out, const char *name); /* "": the next node */

enum gd_ms_level { GD_MS_VALUE = 0, GD_MS_STATISTICS = 1, GD_MS_BASE = 2 };
struct gd_ms_view_item { /* a requested tensor */
    const char *name;
    uint32_t slot;
    bool previous, truncate;
};
int gd_ms_write_views(struct gd_buf *out, const struct gd_ms_view_item *items, size_t count,
                      enum gd_ms_level level);

struct gd_ms_watch_node {
    const char *name;
    const char *type;
};
/* Sends all parameters of the condition as given, in wire order. */
int gd_ms_write_set(struct gd_buf *out, int32_t id, int condition,
                    const struct gd_remote_param *params, size_t param_count,
                    const struct gd_ms_watch_node *nodes, size_t node_count);
int gd_ms_write_delete(struct gd_buf *out, int32_t id);

#endif
