// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private to the Debug Adapter: dap.c (messages in and out), dap_run.c (starting, moving, stops),
 * dap_break.c (breakpoints), dap_look.c (stacks and variables).
 */
#ifndef GD_DRIVE_DAP_IMPL_H
#define GD_DRIVE_DAP_IMPL_H

#include <ev.h>

#include "drive/dap.h"
#include "drive/drive.h"
#include "drive/frame.h"

#define DAP_SECONDS 30. /* that a request may take, except for starting a program */

struct dap_request {
    struct dap_request *next;
    cJSON *root;            /* owned */
    const char *command;    /* in root */
    const cJSON *arguments; /* in root; NULL: none */
    cJSON *seq;
};

/* A breakpoint that the client has set: gradb's number, and what it belongs to. */
struct dap_break {
    int number;
    char *owner; /* the path of a file; "function" or "exception" */
    bool verified;
    uint32_t line; /* 0: it has none */
};

/* What a variablesReference means; valid until the training moves. */
enum dap_kind { DAP_TENSORS = 1, DAP_LOCALS, DAP_METRICS, DAP_TENSOR, DAP_LOCAL };
struct dap_place {
    enum dap_kind kind;
    int frame;  /* of DAP_LOCALS and DAP_LOCAL */
    char *name; /* of DAP_TENSOR: "NODE:SLOT"; of DAP_LOCAL: the variable's */
};

struct dap {
    struct repl *repl;
    struct drive *drive;
    int in, out;
    ev_io io;
    struct frames frames;
    bool ended, broken, over; /* over: the client has disconnected */
    struct dap_request *queue, **queue_end;
    int queue_count;
    uint64_t seq;

    struct dap_request *start; /* launch or attach, until configurationDone */
    bool configured, started, launched;
    bool quiet;          /* the next stop is not announced */
    bool told_end;       /* `terminated` was sent */
    char exceptions[16]; /* the mode of `catch exception` to set when a process connects */
    struct dap_break *breaks;
    size_t break_count, break_room;
    struct dap_place *places;
    size_t place_count, place_room;
};

/* ---- dap.c ---- */
/* Takes over body, which may be NULL. */
void dap_answer(struct dap *dap, const struct dap_request *request, cJSON *body);
void dap_refuse(struct dap *dap, const struct dap_request *request, const char *message);
void dap_event(struct dap *dap, const char *event, cJSON *body);
void dap_free_request(struct dap_request *request);
int dap_thread_of(const struct dap_request *request); /* a session's number; 0: none */
/* Runs a line. False: it failed, and the request was refused. Free the answer if true. */
bool dap_run(struct dap *dap, const struct dap_request *request, const char *line,
             struct drive_answer *answer);

/* ---- the requests ---- */
typedef void (*dap_fn)(struct dap *dap, struct dap_request *request);
void dap_launch(struct dap *dap, struct dap_request *request); /* may keep the request */
void dap_configured(struct dap *dap, struct dap_request *request);
void dap_continue(struct dap *dap, struct dap_request *request);
void dap_next(struct dap *dap, struct dap_request *request);
void dap_step_in(struct dap *dap, struct dap_request *request);
void dap_step_out(struct dap *dap, struct dap_request *request);
void dap_pause(struct dap *dap, struct dap_request *request);
void dap_disconnect(struct dap *dap, struct dap_request *request);
void dap_on_event(void *ctx, const char *type, const cJSON *record);

void dap_break_lines(struct dap *dap, struct dap_request *request);
void dap_break_functions(struct dap *dap, struct dap_request *request);
void dap_break_exceptions(struct dap *dap, struct dap_request *request);
void dap_forget_breaks(struct dap *dap);
/* An observer of the debugger: reports to the client what has become of its breakpoints. */
void dap_on_breakpoints(void *ctx, const struct gd_event *event);
void dap_apply_exceptions(struct dap *dap);

void dap_threads(struct dap *dap, struct dap_request *request);
void dap_stack(struct dap *dap, struct dap_request *request);
void dap_scopes(struct dap *dap, struct dap_request *request);
void dap_variables(struct dap *dap, struct dap_request *request);
void dap_evaluate(struct dap *dap, struct dap_request *request);
void dap_forget_places(struct dap *dap);

#endif
