// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about hand-written backward passes, and hooks. */
#include <string.h>

#include "repl/diagnose/rule.h"

#define LEAST_FLAT 0.2  /* of the elements: a few are outside the range of a clamp */
#define MOST_KINKS 0.25 /* of the elements: differences across a kink say nothing */

/* A gradient where the function is flat is a surrogate, on purpose, unless the function is flat at
 * some elements only: then the mask of its slope is missing or inverted. */
static enum diagnose_verdict judge_mask(cJSON *piece)
{
    double checked = diagnose_number(piece, "checked", 0), flat = diagnose_number(piece, "flat", 0);
    double sloped = checked - flat, invented = diagnose_number(piece, "invented", 0);

    if (sloped < 4 || flat < LEAST_FLAT * checked || invented < LEAST_FLAT * flat) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "mask", 1);
    return diagnose_number(piece, "sloped_differ", 0) > MOST_KINKS * sloped ? DIAGNOSE_FAULT
                                                                            : DIAGNOSE_SUSPECT;
}

/* Straight-through estimators, surrogate gradients of steps and functions that return their input
 * (gradient reversal, scaling, clipping) have another gradient on purpose. Adds how it is wrong. */
static enum diagnose_verdict judge_function(cJSON *piece, const struct diagnose_evidence *all)
{
    double checked = diagnose_number(piece, "checked", 0);

    (void)all;
    if (diagnose_is(piece, "identity") || checked == 0 ||
        diagnose_number(piece, "differ", 0) <= MOST_KINKS * checked) {
        return DIAGNOSE_SILENT;
    }
    if (diagnose_is(piece, "surrogate") || diagnose_number(piece, "surrogate", 0) > 0) {
        return judge_mask(piece);
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

/* A scale of a hundredth or a hundred does not balance two losses. Reversed gradients are
 * a method (domain-adversarial training) where a hook of an activation reverses them; parameters
 * that are frozen by a hook are frozen on purpose at times. */
static enum diagnose_verdict judge_hook(cJSON *piece, const struct diagnose_evidence *all)
{
    double calls = diagnose_number(piece, "calls", 0), share = diagnose_number(piece, "share", 1);
    double factor = diagnose_number(piece, "factor", 1);
    bool parameter = strcmp(diagnose_text(piece, "hook"), "parameter") == 0;
    bool zero = 10 * diagnose_number(piece, "zeroed", 0) >= 9 * calls;

    (void)all;
    if (calls < 3) {
        return DIAGNOSE_SILENT;
    }
    if (diagnose_number(piece, "count", 1) > 1) {
        diagnose_set(piece, "others", diagnose_number(piece, "count", 1) - 1);
    }
    if (zero) {
        diagnose_set(piece, "zero", 1);
        return parameter ? DIAGNOSE_SUSPECT : DIAGNOSE_FAULT;
    }
    if (factor < 0) {
        diagnose_set(piece, "turned", 1);
        return parameter ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
    }
    bool scaled = diagnose_has(piece, "factor") && (factor <= 0.0101 || factor >= 50);
    bool shrunk = !diagnose_has(piece, "factor") && (share <= 1e-3 || share >= 1e3);
    diagnose_set(piece, scaled ? "scaled" : "shrunk", 1);
    return scaled || shrunk ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_backward[] = {
    {.name = "gradient-hook",
     .evidence = "gradient-hook",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_hook,
     .cause = "A hook of [{name}][{!name}a tensor][ and {others} more] "
              "[{?zero}sets the gradients to 0, so nothing before it learns]"
              "[{?turned}reverses the sign of the gradients, so descent goes up]"
              "[{?scaled}multiplies the gradients by {factor:g3}]"
              "[{?shrunk}changes the norm of the gradients {share:g3} times]",
     .numbers =
         "{changed} of {calls} observed calls changed the gradients, {zeroed} set them to 0; "
         "norm after the hook over that before: {share:g3}",
     .advice = "Correct what the hook returns, or remove it (register_hook, "
               "register_full_backward_hook): a hook that returns None leaves the gradients as "
               "they are",
     .look = "why loss",
     .source = "PyTorch documentation of Tensor.register_hook and "
               "Module.register_full_backward_hook"},
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
         "depends on that argument][{?scaled}, because it is {factor:g3} times the right "
         "one][{?mask}, because it has a "
         "gradient where the function is flat: the mask is missing or inverted]",
     .numbers =
         "{differ} of {checked|element} differ; backward says {analytic:g4}, finite differences "
         "in float64 {numeric:g4}",
     .advice =
         "[{?ignores}Multiply the derivative by the gradient that backward() receives][{?swapped}"
         "Return one gradient for each argument of forward(), in that order][{?missing}Return its "
         "gradient instead of None][{?scaled}Correct the factor][{?mask}Multiply by the mask of "
         "the elements at which the function has a slope][{?other}Derive it again from "
         "forward()]; torch.autograd.gradcheck tests it",
     .look = "why loss",
     .source = "PyTorch documentation: Extending torch.autograd, gradcheck; pytorch/pytorch#4355"},
    {.name = NULL},
};
