// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the last operators and the loss. */
#include "repl/diagnose/rule.h"

/* The loss is a softmax or sigmoid of its own, and its input is already probabilities. */
static enum diagnose_verdict judge_probabilities(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_is(piece, "probabilities") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_loss[] = {
    {.name = "softmax-twice",
     .evidence = "loss-input",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_probabilities,
     .cause = "{made} is applied twice: {loss} applies it itself, and its input, the output of "
              "{node}, already consists of probabilities",
     .numbers = "values of the input from {min:g3} to {max:g3}; sums of its rows from {sum_min:g4} "
                "to {sum_max:g4}; observed in {steps|step}",
     .advice = "Pass the raw scores (logits) to {loss}: leave out {made}",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of CrossEntropyLoss; Schoop et al., UMLAUT (CHI 2021)"},
    {.name = NULL},
};
