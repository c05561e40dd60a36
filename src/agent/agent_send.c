// SPDX-License-Identifier: MIT
/* Sends one message to the debugger. On the I/O thread. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_io.h"
#include "agent/agent_source.h"
#include "proto/envelope.h"

int agent_wire_send(struct agent_io *io, const ProtobufCMessage *message)
{
    if (!io->call) {
        return GD_ELOST;
    }
    Gradb__V1__FromTrainer from = GRADB__V1__FROM_TRAINER__INIT;
    size_t len = 0;
    unsigned char *data = gd_envelope_pack(&from.base, message, &len);
    int rc = data ? gd_grpc_client_send(io->call, data, len) : GD_ENOMEM;
    free(data);
    return rc;
}

int agent_values_refuse(struct agent_io *io, uint64_t request, int error, const char *text)
{
    char copy[200];
    snprintf(copy, sizeof(copy), "%s", text);
    Gradb__V1__RequestError m = GRADB__V1__REQUEST_ERROR__INIT;
    m.request = request;
    m.code = (Gradb__V1__RequestError__Code)error;
    m.text = copy;
    return agent_wire_send(io, &m.base);
}

uint64_t agent_request_id(const agent_to *m)
{
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_FETCH: return m->fetch->request;
    case GRADB__V1__TO_TRAINER__MSG_STATS: return m->stats->request;
    default: return m->command->request;
    }
}
