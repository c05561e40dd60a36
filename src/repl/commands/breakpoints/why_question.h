// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` is asked about. */
#ifndef GD_REPL_WHY_QUESTION_H
#define GD_REPL_WHY_QUESTION_H

#include "engine/why/why.h"
#include "repl/core/command.h"

struct why_question {
    gd_node_id node;
    uint32_t slot;
    bool has_slot; /* it was named */
    bool has_bad;
    bool apart; /* about ranks that diverge */
    enum gd_bad bad;
    const struct gd_scalar *scalar; /* the metric that was named; else NULL */
    struct gd_why_facts facts;
};

/* From call->argv; without arguments about the selected hit, or the strongest one of this stop. */
int why_question_parse(struct command_call *call, struct why_question *ret, struct gd_err *err);
/* When no slot was named: the first one that is not finite. GD_EINTR. */
int why_choose_slot(struct command_call *call, struct why_question *q, struct gd_err *err);
/* What to look for: by the hit, else by the value, else by what the training process knows. */
int why_choose_bad(struct command_call *call, struct why_question *q, struct gd_err *err);
/* A weight that does not change: moves the question to its gradient when that is zero. GD_EINTR. */
int why_take_gradient(struct command_call *call, struct why_question *q, struct gd_err *err);

#endif
