// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about numbers: NaN, infinity, divergence. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

#define MOST_NOISE 0.5 /* of the differences of one line; below, some groups are constant */

/* Copies what the sentence says about the optimizer. */
static void add_rate(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *rate = diagnose_find(all, "rate");
    static const char *const keys[] = {"top", "momentum"};

    for (size_t i = 0; rate && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (diagnose_has(rate, keys[i])) {
            diagnose_set(piece, keys[i], diagnose_number(rate, keys[i], 0));
        }
    }
    if (rate && !diagnose_has(piece, "also")) {
        cJSON *places = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(rate, "also"), true);
        cJSON_AddItemToObject(piece, "also", places);
    }
}

/* A gradient that is too large by a factor makes the right rate too high. */
static bool has_wrong_backward(const struct diagnose_evidence *all)
{
    const cJSON *piece;

    cJSON_ArrayForEach(piece, all->pieces)
    {
        if (strcmp(diagnose_text(piece, "kind"), "function-gradient") == 0 &&
            !diagnose_is(piece, "identity") && !diagnose_is(piece, "surrogate") &&
            2 * diagnose_number(piece, "differ", 0) > diagnose_number(piece, "checked", 0)) {
            return true;
        }
    }
    return false;
}

/* A loss that is multiplied at each step: a spike from which it recovers is none, nor is a run
 * whose gradients pile up or whose scale stays in, which has a rule of its own. */
static enum diagnose_verdict judge_divergence(cJSON *piece, const struct diagnose_evidence *all)
{
    double times = diagnose_number(piece, "growth_times", 0);
    double late = diagnose_number(piece, "late", 0),
           from = diagnose_number(piece, "growth_from", 0);
    double span =
        diagnose_number(piece, "growth_until", 0) - diagnose_number(piece, "growth_since", 0);
    bool overflows = diagnose_has(piece, "not_finite_since");
    const cJSON *factor = diagnose_find(all, "loss-factor");

    if (times < 100 || diagnose_number(piece, "growth_rises", 0) < 0.7 ||
        (late < 10 * from && !(overflows && times >= 1e6)) || (span < 2 && times < 1e6) ||
        diagnose_find(all, "pile-up") ||
        (!diagnose_find(all, "rate") && diagnose_find(all, "order"))) {
        return DIAGNOSE_SILENT;
    }
    if (!diagnose_find(all, "rate")) {
        diagnose_set(piece, "by_hand", 1);
    }
    if ((factor && diagnose_number(factor, "factor", 1) >= 64) ||
        diagnose_find(all, "past-scaler")) {
        return DIAGNOSE_SILENT;
    }
    cJSON_AddTrueToObject(piece, "told"); /* `why loss` need not say it again */
    if (has_wrong_backward(all)) {
        return DIAGNOSE_SILENT;
    }
    add_rate(piece, all);
    return times >= 1e6 || (overflows && times >= 1e3) ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Constant data has no variance, so what is left must be noise, and in most places. */
static enum diagnose_verdict judge_cancelled(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_number(piece, "share", 0), looks = diagnose_number(piece, "looks", 0);

    (void)all;
    if (looks < 2 || share < MOST_NOISE || diagnose_number(piece, "noise", 0) < looks / 2) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * share);
    diagnose_set(piece, "below", 100 * diagnose_number(piece, "negative", 0));
    return share >= 0.9 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

const struct diagnose_rule diagnose_rules_numbers[] = {
    {.name = "diverges",
     .evidence = "loss-course",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_divergence,
     .cause =
         "Training diverges[: the learning rate of {top:g3}[ with momentum {momentum:g2}] is too "
         "high for gradients of this size][{?by_hand}: no optimizer is used, and the updates that "
         "the script makes itself have the wrong sign or are too large], and the loss grows by a "
         "factor of {growth:g3} per step from step {growth_since} on",
     .numbers = "loss {growth_from:g4} at step {growth_since}, {growth_to:g4} at step "
                "{growth_until}[; not finite since step {not_finite_since}]",
     .advice =
         "Lower the learning rate (10 or 100 times), normalize the inputs, or clip the gradients",
     .look = "watch GM on gradients, set lr",
     .source = "DeepLocalize (ICSE 2021); AutoTrainer (ICSE 2021): exploding gradient"},
    {.name = "cancelled-variance",
     .evidence = "cancelled",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_cancelled,
     .cause = "The variance is rounding noise: it is computed as the mean of the squares minus the "
              "square of the mean, and for values of about {size:g3} these agree in all digits of "
              "{dtype}, so the difference cancels",
     .numbers = "{percent:g3} % of the differences are below the precision of {dtype}; {below:g3} "
                "% are negative; in {looks|call} examined",
     .advice = "Subtract the mean first: ((x - mean) ** 2).mean(), or torch.var(); or shift the "
               "data towards 0 before",
     .look = "print {node}",
     .source = "Chan, Golub and LeVeque (1983): algorithms for computing the sample variance"},
    {.name = NULL},
};
