// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A Debug Adapter on two file descriptors: the Debug Adapter Protocol, by which editors debug. It
 * is thin: each request runs commands. One thread; the loop runs inside.
 */
#ifndef GD_DRIVE_DAP_H
#define GD_DRIVE_DAP_H

#include "repl/core/repl.h"

struct dap;

/* The descriptors stay the caller's. */
int dap_create(struct repl *repl, int in, int out, struct dap **ret, struct gd_err *err);
void dap_destroy(struct dap *dap);
/* Until the client disconnects, the end of the input, or until gradb quits. */
void dap_serve(struct dap *dap);

#endif
