// SPDX-License-Identifier: MIT
/*
 * Digests of the tensors that all ranks of a job should have the same values of, for trainers
 * without a source: the command "digest". 64 bits over the bytes of each, docs/protocol.md says
 * which. The work is cut into pieces, so that heartbeats go on meanwhile and a Run is heard.
 */
#ifndef GRADB_AGENT_DIGEST_H
#define GRADB_AGENT_DIGEST_H

#include "agent/agent_impl.h"

struct agent_io;

struct agent_digest {
    bool active;
    uint64_t request;
    unsigned kinds;      /* of agent_digest.c */
    char pattern[256];   /* of names; "" all */
    gradb_node only;     /* this node alone; 0 all */
    uint32_t node, slot; /* that is worked on */
    bool open;           /* `value` is being read */
    struct agent_value value;
    int64_t count, done; /* elements */
    uint64_t total, word;
    struct gd_buf text; /* the answer so far */
    unsigned char *room;
};

/* The I/O thread, while the training stands. Takes the request up. Returns a code or -1; text
 * says why not. */
int agent_digest_begin(struct agent_io *io, const Gradb__V1__Command *command, char text[160]);
/* The next piece; at the end the answer is sent. What agent_wire_send returns. */
int agent_digest_go_on(struct agent_io *io);
void agent_digest_end(struct agent_io *io); /* drops it, wherever it is */

#endif
