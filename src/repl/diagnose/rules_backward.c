// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about hand-written backward passes. */
#include "repl/diagnose/rule.h"

#define MOST_KINKS 0.25 /* of the elements: differences across a kink say nothing */

/* Straight-through estimators, surrogate gradients of steps and functions that return their input
 * (gradient reversal, scaling, clipping) have another gradient on purpose. Adds how it is wrong. */
static enum diagnose_verdict judge_function(cJSON *piece, const struct diagnose_evidence *all)
{
    double checked = diagnose_number(piece, "checked", 0);

    (void)all;
    if (diagnose_is(piece, "surrogate") || diagnose_is(piece, "identity") ||
        diagnose_number(piece, "surrogate", 0) > 0 || checked == 0 ||
        diagnose_number(piece, "differ", 0) <= MOST_KINKS * checked) {
        return DIAGNOSE_SILENT;
    }
    const char *way = diagnose_is(piece, "ignores")   ? "ignores"
                      : diagnose_is(piece, "swapped") ? "swapped"
                      : diagnose_is(piece, "missing") ? "missing"
                      : diagnose_has(piece, "factor") ? "scaled"
                                                      : "other";
    for (const char *const *one = (const char *const[]){"ignores", "swapped", "missing", NULL};
         *one; one++) {
        cJSON_DeleteItemFromObjectCaseSensitive(piece, *one);
    }
    diagnose_set(piece, way, 1);
    return diagnose_has(piece, "missing") ? DIAGNOSE_SUSPECT : DIAGNOSE_FAULT;
}

const struct diagnose_rule diagnose_rules_backward[] = {
    {.name = "wrong-backward",
     .evidence = "function-gradient",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_function,
     .cause =
         "The hand-written backward of {function} computes a wrong gradient of {input}: it "
         "disagrees with finite differences[{?ignores}, because it ignores the gradient that it "
         "receives and returns the derivative alone][{?swapped}, because the gradients are "
         "returned in "
         "another order than the arguments][{?missing}, because it returns none, though the output "
         "depends on that argument][{?scaled}, because it is {factor:g3} times the right one]",
     .numbers =
         "{differ} of {checked|element} differ; backward says {analytic:g4}, finite differences "
         "in float64 {numeric:g4}",
     .advice =
         "[{?ignores}Multiply the derivative by the gradient that backward() receives][{?swapped}"
         "Return one gradient for each argument of forward(), in that order][{?missing}Return its "
         "gradient instead of None][{?scaled}Correct the factor][{?other}Derive it again from "
         "forward()]; torch.autograd.gradcheck tests it",
     .look = "why loss",
     .source = "PyTorch documentation: Extending torch.autograd, gradcheck; pytorch/pytorch#4355"},
    {.name = NULL},
};
