// SPDX-License-Identifier: GPL-3.0-or-later
/* Sending to a training process, and the numbers by which the two sides call a node. */
#include <stdlib.h>

#include "proto/envelope.h"
#include "proto/v1/v1_impl.h"

int v1_conn_send(struct v1_conn *conn, const ProtobufCMessage *message)
{
    if (conn->finished) {
        return GD_ELOST;
    }
    Gradb__V1__ToTrainer to = GRADB__V1__TO_TRAINER__INIT;
    size_t len = 0;
    unsigned char *data = gd_envelope_pack(&to.base, message, &len);
    int rc = data ? conn->wire->send(conn->wire_ctx, data, len) : GD_ENOMEM;
    free(data);
    return rc;
}

bool v1_target_can(const struct v1_target *target, Gradb__V1__Capability capability)
{
    return (target->capabilities >> (unsigned)capability & 1) != 0;
}

int v1_target_send(struct v1_target *target, const ProtobufCMessage *message, struct gd_err *err)
{
    if (!target->conn) {
        return gd_fail(err, GD_ELOST, "the training process is gone");
    }
    int rc = v1_conn_send(target->conn, message);
    if (rc == GD_ELIMIT) {
        return gd_fail(err, GD_ELIMIT, "the training process does not read what it is sent");
    }
    return rc != GD_OK ? gd_fail(err, rc, "the training process cannot be reached") : GD_OK;
}

uint32_t v1_target_wire(const struct v1_target *target, gd_node_id node)
{
    return node < target->gd_capacity ? target->wire_of_gd[node] : 0;
}

void v1_target_flush(struct v1_target *t)
{
    uint32_t segments[64];
    Gradb__V1__ShmRelease m = GRADB__V1__SHM_RELEASE__INIT;
    m.segments = segments;
    while (t->shm && t->conn && (m.n_segments = v1_shm_released(t->shm, segments, 64)) > 0) {
        if (v1_target_send(t, &m.base, NULL) != GD_OK) {
            return;
        }
    }
}

gd_node_id v1_graph_node(const struct v1_target *t, uint32_t wire)
{
    return wire != 0 && wire <= t->wire_count ? t->gd_of_wire[wire - 1] : GD_NO_NODE;
}

void v1_conn_finish(struct v1_conn *conn, enum gd_grpc_code code, const char *text)
{
    if (!conn->finished) {
        conn->finished = true;
        if (conn->holding && conn->wire->pause) {
            conn->wire->pause(conn->wire_ctx, false);
        }
        conn->holding = false;
        conn->wire->finish(conn->wire_ctx, code, text);
    }
}
