// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * JSON-RPC 2.0 messages: reading what a peer sent, and writing. Received bytes are not trusted.
 */
#ifndef GD_DRIVE_RPC_H
#define GD_DRIVE_RPC_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/error.h"

#define RPC_MOST_BYTES ((size_t)16 << 20) /* of a message */

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022, /* MCP: the request's protocol version is not supported */
    RPC_NO_RESOURCE = -32002,
};

struct rpc_message {
    cJSON *root;        /* owned; the others point into it */
    cJSON *id;          /* number or text; NULL: a notification */
    const char *method; /* NULL: the peer's answer to a request: ignore it */
    cJSON *params;      /* an object; NULL: none */
};

/* Parses a line. *root is an object or an array. False: *answer is the error for it. */
bool rpc_parse(const char *text, size_t len, cJSON **root, cJSON **answer);
/* Takes over `root`, an element of a batch or a whole message. False: it is freed, and *answer is
 * the error for it. */
bool rpc_read(cJSON *root, struct rpc_message *ret, cJSON **answer);
void rpc_free(struct rpc_message *message);

/* Takes over result or, for an error, uses the text. id NULL: null. */
cJSON *rpc_result(const cJSON *id, cJSON *result);
cJSON *rpc_error(const cJSON *id, enum rpc_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
cJSON *rpc_notification(const char *method, cJSON *params);
/* Adds the message as one line; frees it. */
void rpc_write(struct gd_buf *out, cJSON *message);
/* A copy; a number keeps its digits. */
cJSON *rpc_copy_id(const cJSON *id);

#endif
