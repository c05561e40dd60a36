// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The Model Context Protocol on two file descriptors: JSON-RPC 2.0, one message per line, of the
 * revisions 2024-11-05 to 2026-07-28. Tools and their schemas come from the command table. One
 * thread; the loop runs inside.
 */
#ifndef GD_DRIVE_MCP_H
#define GD_DRIVE_MCP_H

#include "repl/core/repl.h"

struct mcp;

/* The descriptors stay the caller's. read_only: only tools are listed that a read-only session may
 * run. */
int mcp_create(struct repl *repl, int in, int out, bool read_only, struct mcp **ret,
               struct gd_err *err);
void mcp_destroy(struct mcp *mcp);
/* From now on input is read whenever the loop runs; what needs no command is answered. */
void mcp_begin(struct mcp *mcp);
/* Until the end of the input, or until gradb quits. */
void mcp_serve(struct mcp *mcp);

#endif
