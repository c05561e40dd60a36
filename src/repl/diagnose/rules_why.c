// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` says at an overflow, at an exception and about the loss: its own rules. */
#include "repl/diagnose/rule.h"

static enum diagnose_verdict judge_always(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)piece;
    (void)all;
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_loss(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)piece;
    (void)all;
    return DIAGNOSE_SUSPECT;
}

const struct diagnose_rule diagnose_rules_why[] = {
    {.name = "overflow",
     .evidence = "why-overflow",
     .cost = DIAGNOSE_EXACT,
     .judge = judge_always,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "{more}",
     .look = "catch overflow, rerun",
     .source = "rules of `why`: docs/howto-nan.md"},
    {.name = "exception",
     .evidence = "why-exception",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "{more}",
     .source = "rules of `why`: docs/howto-loss.md"},
    {.name = "loss",
     .evidence = "why-loss",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_loss,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "{more}",
     .look = "why loss",
     .source = "rules of `why loss`: docs/howto-loss.md"},
    {.name = NULL},
};
