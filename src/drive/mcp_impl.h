// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the MCP server: mcp.c (messages in and out), mcp_session.c (versions and what the
 * server says about itself), mcp_tools.c (the tools and their schemas), mcp_call.c (tools/call),
 * mcp_resources.c.
 */
#ifndef GD_DRIVE_MCP_IMPL_H
#define GD_DRIVE_MCP_IMPL_H

#include <ev.h>

#include "drive/drive.h"
#include "drive/mcp.h"
#include "drive/page.h"
#include "drive/rpc.h"
#include "drive/usage.h"

struct mcp_batch { /* the answers to an array of requests, which are sent together */
    int left;
    cJSON *answers;
};

struct mcp_request {
    struct mcp_request *next;
    struct rpc_message message;
    struct mcp_batch *batch; /* NULL: none */
    size_t bytes;
    bool cancelled;
    bool modern; /* carries its protocol version itself (2026-07-28) */
};

struct mcp {
    struct repl *repl;
    struct drive *drive;
    struct pages *pages;
    int in, out;
    ev_io io;
    struct gd_buf input;
    bool skipping; /* the rest of a line that was too long */
    bool ended;    /* of the input */
    bool broken;   /* of the output */
    struct mcp_request *queue, **queue_end;
    size_t queued; /* bytes */
    int queue_count;
    struct mcp_request *current; /* that runs; NULL: none */
    const char *version;         /* agreed by `initialize`; NULL: not yet */
    int log_level;               /* of logging/setLevel; LOG_NONE: nothing is sent */
    bool read_only;
    bool offered_all; /* tools that move the run were listed */
};

#define LOG_NONE 8 /* above all levels */

/* ---- mcp.c ---- */
/* Sends the message, or keeps it for the request's batch. */
void mcp_answer(struct mcp *mcp, struct mcp_request *request, cJSON *message);
void mcp_send(struct mcp *mcp, cJSON *message);

/* ---- mcp_session.c ---- */
/* The request may be served: false, and *answer is the error. Sets request->modern. */
bool mcp_admit(const struct mcp *mcp, struct mcp_request *request, cJSON **answer);
cJSON *mcp_initialize(struct mcp *mcp, const struct mcp_request *request);
cJSON *mcp_discover(struct mcp *mcp, const struct mcp_request *request);
cJSON *mcp_set_level(struct mcp *mcp, const struct mcp_request *request);
/* Adds what the request's revision wants in each result. cached: a list or a resource. */
cJSON *mcp_finish(const struct mcp_request *request, cJSON *result, bool cached);
int mcp_level_of(const struct mcp *mcp);
int mcp_level_named(const char *name); /* LOG_NONE: there is none */
bool mcp_takes_batches(const struct mcp *mcp);

/* ---- mcp_tools.c ---- */
struct mcp_tool {
    const char *name;
    const char *command; /* "step", "info"; NULL: of the server itself */
    const char *sub;     /* "hits" of "info hits"; NULL: none */
    const char *more;    /* what the description adds; "" */
};
const struct mcp_tool *mcp_find_tool(const char *name);
const struct command *mcp_tool_command(const struct mcp_tool *tool); /* NULL: of the server */
cJSON *mcp_list_tools(struct mcp *mcp, const struct mcp_request *request);
/* False: the session is read-only, and the tool's command changes something. */
bool mcp_tool_may_run(const struct mcp *mcp, const struct mcp_tool *tool);

/* ---- mcp_call.c ---- */
cJSON *mcp_call_tool(struct mcp *mcp, const struct mcp_request *request);
/* While a command runs. */
void mcp_on_tick(void *ctx, double seconds);
bool mcp_is_interrupt(const struct mcp_request *request);

/* ---- mcp_resources.c ---- */
cJSON *mcp_list_resources(struct mcp *mcp, const struct mcp_request *request);
cJSON *mcp_list_templates(struct mcp *mcp, const struct mcp_request *request);
cJSON *mcp_read_resource(struct mcp *mcp, const struct mcp_request *request);

#endif
