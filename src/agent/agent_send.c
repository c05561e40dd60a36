// SPDX-License-Identifier: MIT
/* Sends one message to the debugger. On the I/O thread. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_io.h"
#include "agent/agent_source.h"

int agent_wire_send(struct agent_io *io, const agent_from *from)
{
    if (!io->call) {
        return GD_ELOST;
    }
    size_t len = gradb__v1__from_trainer__get_packed_size(from);
    unsigned char *data = malloc(len ? len : 1);
    if (!data) {
        return GD_ENOMEM;
    }
    gradb__v1__from_trainer__pack(from, data);
    int rc = gd_grpc_client_send(io->call, data, len);
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
    agent_from from = GRADB__V1__FROM_TRAINER__INIT;
    from.msg_case = GRADB__V1__FROM_TRAINER__MSG_ERROR;
    from.error = &m;
    return agent_wire_send(io, &from);
}

uint64_t agent_request_id(const agent_to *m)
{
    switch (m->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_FETCH: return m->fetch->request;
    case GRADB__V1__TO_TRAINER__MSG_STATS: return m->stats->request;
    default: return m->command->request;
    }
}
