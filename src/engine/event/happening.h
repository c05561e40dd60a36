// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The events of a training at which it can be stopped: catchpoints on them, and `on`, which runs a
 * command there. Both are breakpoints (struct gd_breakpoint) with an event instead of nodes. The
 * target waits at an event until gd_session_on_happening has judged it; its stop has reason
 * GD_STOP_EVENT. In a job, the events of rank 0 count; in a
 * dump, which only has steps, those of the rank that leads.
 */
#ifndef GD_ENGINE_HAPPENING_H
#define GD_ENGINE_HAPPENING_H

#include "engine/target.h"

struct gd_debugger;
struct gd_breakpoint;
struct gd_session;

enum gd_happening {
    GD_NO_HAPPENING,
    GD_HAPPENED_BEGIN,
    GD_HAPPENED_EPOCH_BEGIN,
    GD_HAPPENED_EPOCH_END,
    GD_HAPPENED_STEP_BEGIN,
    GD_HAPPENED_STEP_END,
    GD_HAPPENED_EVAL_BEGIN,
    GD_HAPPENED_EVAL_END,
    GD_HAPPENED_CHECKPOINT,
    GD_HAPPENED_END,
    GD_HAPPENINGS
};
/* "begin", "epoch-begin", ... */
const char *gd_happening_name(enum gd_happening kind);
/* Also "epoch_begin". GD_NO_HAPPENING: none has that name. */
enum gd_happening gd_happening_find(const char *name);
bool gd_happening_is_of_steps(enum gd_happening kind);

struct gd_happened {
    enum gd_happening kind;
    int64_t step;         /* between two steps the one that has ended; of step-begin the new one */
    int64_t epoch, batch; /* 0: unknown */
    char text[256];       /* of a checkpoint: its path */
};

struct gd_catch_spec {
    enum gd_happening kind;
    const char *guard;   /* an expression without statistics; NULL: none */
    const char *command; /* of `on`: it does not stop the training; NULL: a catchpoint */
    int64_t every;       /* at least 1; of steps, those with a number that it divides */
    bool temporary;
};
/* GD_EINVAL: the guard. GD_EUNSUPPORTED: the current session does not report such events. */
int gd_debugger_catch(struct gd_debugger *debugger, const struct gd_catch_spec *spec,
                      struct gd_breakpoint **ret, struct gd_err *err);
/* text NULL or "": no guard. GD_EINVAL. */
int gd_catch_set_guard(struct gd_debugger *debugger, struct gd_breakpoint *at, const char *text,
                       struct gd_err *err);

/* Whether any event may stop the session. */
bool gd_session_awaits_events(const struct gd_session *session);
enum gd_event_verdict {
    GD_VERDICT_GO,
    GD_VERDICT_STOP,
    GD_VERDICT_LATER, /* other ranks must get there first: the target's event_verdict is called */
};
/* From the target. `holding`: it waits for the verdict. */
enum gd_event_verdict gd_session_on_happening(struct gd_session *session,
                                              const struct gd_happened *what, bool holding);
/* Resumes what is left of the run that an event interrupted, without events of its own. GD_ESTATE:
 * nothing is left. */
int gd_session_go_on(struct gd_session *session, struct gd_err *err);

#endif
