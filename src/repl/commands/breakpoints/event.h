// SPDX-License-Identifier: GPL-3.0-or-later
/* Events of the training as `catch` and `on` take them, and how they are shown. */
#ifndef GD_REPL_EVENT_H
#define GD_REPL_EVENT_H

#include "repl/core/command.h"

/* The event that call->line begins with, which moves past it: "epoch-end", "epoch end" or
 * "epoch_end". GD_NO_HAPPENING: it begins with something else. */
enum gd_happening event_take(struct command_call *call);
/* `catch` of that event; the line has the rest. */
int event_catch(struct command_call *call, enum gd_happening kind, bool temporary,
                struct gd_err *err);
/* "epoch-end every 2 if loss < 3", for `on` with its command; in the arena. */
const char *event_text(struct command_call *call, const struct gd_breakpoint *at);
void event_record(struct command_call *call, cJSON *object, const struct gd_breakpoint *at);
/* "Catchpoint 3: epoch-end if loss < 3", and its record. */
void event_show(struct command_call *call, const struct gd_breakpoint *at);
/* "there is no event ...": names the nearest one and all. */
int event_unknown(struct command_call *call, const char *word, struct gd_err *err);

/* The entries of `catch` and `on` for help and completion; sample: what follows the event in an
 * example. */
#define EVENT_SUB(verb, event, args, sample, function, what)                                       \
    {                                                                                              \
        .name = event, .usage = verb " " event args, .summary = what,                              \
        .examples = verb " " event sample, .run = function                                         \
    }
#define EVENT_SUBS(verb, args, sample, function)                                                   \
    EVENT_SUB(verb, "begin", args, sample, function, "The first step is about to begin"),          \
        EVENT_SUB(verb, "epoch-begin", args, sample, function,                                     \
                  "The training begins an epoch of its data"),                                     \
        EVENT_SUB(verb, "epoch-end", args, sample, function, "An epoch is over"),                  \
        EVENT_SUB(verb, "step-begin", args, sample, function, "A step is about to begin"),         \
        EVENT_SUB(verb, "step-end", args, sample, function, "A step is over"),                     \
        EVENT_SUB(verb, "eval-begin", args, sample, function,                                      \
                  "An evaluation of the trained model begins"),                                    \
        EVENT_SUB(verb, "eval-end", args, sample, function, "An evaluation is over"),              \
        EVENT_SUB(verb, "checkpoint", args, sample, function, "The script has saved its state"),   \
        EVENT_SUB(verb, "end", args, sample, function,                                             \
                  "The training is over; its values can still be read")

#endif
