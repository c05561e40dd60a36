// SPDX-License-Identifier: MIT
/*
 * Digests of the tensors that all ranks of a job should share, for programs without a source: the
 * command "digest". 64 bits over the bytes of each tensor, defined in docs/protocol.md. The work is
 * cut into pieces, so that heartbeats continue and a Run message is noticed.
 */
#ifndef GRADB_AGENT_DIGEST_H
#define GRADB_AGENT_DIGEST_H

#include "agent/agent_tensor.h"

struct agent_io;

struct agent_digest {
    bool active;
    uint64_t request;
    unsigned kinds;      /* bits private to agent_digest.c */
    char pattern[256];   /* for names; "": all */
    gradb_node only;     /* only this node; 0: all */
    uint32_t node, slot; /* the current tensor */
    bool open;           /* `value` is being read */
    struct agent_value value;
    int64_t count, done; /* elements */
    uint64_t total, word;
    struct gd_buf text; /* the answer so far */
    unsigned char *room;
};

/* On the I/O thread, while the training is stopped: starts the request. Returns a code or -1; text
 * says why it was refused. */
int agent_digest_begin(struct agent_io *io, const Gradb__V1__Command *command, char text[160]);
/* Reads the next piece, and finally sends the answer. Returns the result of agent_wire_send. */
int agent_digest_go_on(struct agent_io *io);
void agent_digest_end(struct agent_io *io); /* drops the request at any point */

#endif
