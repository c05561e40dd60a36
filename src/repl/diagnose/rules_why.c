// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` says at an overflow, at an exception and about the loss: its own rules. */
#include <string.h>

#include "repl/diagnose/rule.h"
#include "repl/out/out.h"

/* What to change, where `why` says only what happened. */
static void add_advice(cJSON *piece)
{
    static const char *const advice[][2] = {
        {"exp-overflow", "Clamp the argument before exp(). A where() or a mask after it does not "
                         "help: the branch that is not taken gets a gradient of 0 times infinity, "
                         "which is NaN."},
        {"fp16-range", "Compute this in float32, or scale the values down before."},
        {"masked-row", "Leave at least one element of each row unmasked, or replace the result of "
                       "rows that are masked in full."},
        {"epsilon-is-0", "Keep the weights in float32 and compute under autocast, or set eps to "
                         "1e-4."},
        {"slope-at-zero", "Add a small number to the argument, inside the root or logarithm."},
        {"zero-over-zero", "Add a small number to the divisor, or leave out what is constant."},
        {"division-by-zero", "Add a small number to the divisor, or leave out what is constant."},
    };

    for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
        if (!diagnose_has(piece, "more") &&
            strcmp(diagnose_text(piece, "rule"), advice[i][0]) == 0) {
            out_set(piece, OUT_TEXT("more", advice[i][1]));
        }
    }
}

/* Infinities of a mask; a weight whose updates are large because it began at 0; a gradient that is
 * 0 by algebra. */
static bool is_meant(const cJSON *piece)
{
    const char *rule = diagnose_text(piece, "rule");

    return strcmp(rule, "mask") == 0 || strcmp(rule, "small-weight") == 0 ||
           strcmp(rule, "zero-by-algebra") == 0;
}

static enum diagnose_verdict judge_why(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (is_meant(piece)) {
        return DIAGNOSE_SILENT;
    }
    add_advice(piece);
    /* A scale that is too large for float16: the step is skipped, and the scale lowered. */
    if (strcmp(diagnose_text(piece, "rule"), "fp16-range") == 0 &&
        strstr(diagnose_text(piece, "more"), " multiplies this pass by ")) {
        return DIAGNOSE_NOTE;
    }
    return DIAGNOSE_FAULT;
}

/* A hand-written backward() returns no gradient where it should. */
static bool cuts_backward(const struct diagnose_evidence *all)
{
    const cJSON *piece;

    cJSON_ArrayForEach(piece, all->pieces)
    {
        if (strcmp(diagnose_text(piece, "kind"), "function-gradient") == 0 &&
            diagnose_has(piece, "missing")) {
            return true;
        }
    }
    return false;
}

/* Whether watchers have measured what `why loss` concludes: their rules say it better. */
static bool is_measured(const char *rule, const struct diagnose_evidence *all)
{
    static const char *const same[][2] = {
        {"not-set-back", "pile-up"}, {"detached", "no-gradient"}, {"cut-off", "no-gradient"},
        {"no-grad", "no-gradient"},  {"no-path", "no-gradient"},  {"unused", "no-gradient"},
    };
    const cJSON *order = diagnose_find(all, "order");

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const cJSON *found = diagnose_find(all, same[i][1]);
        if (strcmp(rule, same[i][0]) == 0 && found &&
            (i == 0 || diagnose_has(found, "by"))) { /* what cuts it off is known */
            return true;
        }
    }
    const cJSON *left = diagnose_find(all, "not-held"); /* the optimizer holds unused parameters */
    bool replaced = left && diagnose_number(left, "stale", 0) > 0;
    if ((replaced || cuts_backward(all)) &&
        (strcmp(rule, "unused") == 0 || strcmp(rule, "no-path") == 0 ||
         strcmp(rule, "cut-off") == 0)) {
        return true;
    }
    const cJSON *course = diagnose_find(all, "loss-course");
    if (strcmp(rule, "zero-gradients") == 0 && course && /* a hinge that all examples satisfy */
        diagnose_number(course, "smallest", 1) == 0 && diagnose_number(course, "early", 0) > 0) {
        return true;
    }
    if (strcmp(rule, "diverging") == 0 && course && diagnose_is(course, "told")) {
        return true;
    }
    return strcmp(rule, "cleared-before-step") == 0 && order &&
           diagnose_number(order, "lost", 0) > 0;
}

/* What made the first value that is not finite is known: weights and losses follow from it. */
static enum diagnose_verdict judge_loss(cJSON *piece, const struct diagnose_evidence *all)
{
    bool known = diagnose_find(all, "why-overflow") || diagnose_find(all, "bad-input");
    bool follows = is_meant(piece) || (diagnose_is(piece, "nonfinite") && known) ||
                   is_measured(diagnose_text(piece, "rule"), all);

    return follows ? DIAGNOSE_SILENT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_dump(cJSON *piece, const struct diagnose_evidence *all)
{
    const char *origin = diagnose_text(piece, "origin");

    (void)all;
    out_set(piece, OUT_BOOL("made", strcmp(origin, "throw-point") == 0),
            OUT_BOOL("read", strcmp(origin, "source") == 0));
    return strcmp(origin, "throw-point") == 0 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Where a tensor of an earlier step is read comes first. */
static void add_kept(cJSON *piece, const cJSON *kept)
{
    cJSON *also = cJSON_CreateArray(), *place = cJSON_CreateObject();

    out_set(place, OUT_TEXT("file", diagnose_text(piece, "file")),
            OUT_INT("line", diagnose_number(piece, "line", 0)));
    cJSON_AddItemToArray(also, place);
    cJSON_DeleteItemFromObjectCaseSensitive(piece, "file");
    cJSON_DeleteItemFromObjectCaseSensitive(piece, "line");
    out_set(piece, OUT_TEXT("file", diagnose_text(kept, "file")),
            OUT_INT("line", diagnose_number(kept, "line", 0)), OUT_JSON("also", also));
}

/* Its message is a symptom, unless another rule says why. */
static enum diagnose_verdict judge_exception(cJSON *piece, const struct diagnose_evidence *all)
{
    const char *text = diagnose_text(piece, "text");
    bool off = diagnose_find(all, "grad-mode") && strstr(text, "does not require grad");
    static const char *const known[][2] = {
        {"backward through the graph a second time", "again"},
        {"overwritten in place", "overwritten"},
        {"modified by an inplace operation", "overwritten"},
        {"does not require grad", "no_graph"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strstr(text, known[i][0])) {
            diagnose_set(piece, known[i][1], 1);
            if (i < 3 && diagnose_find(all, "graph-kept")) {
                add_kept(piece, diagnose_find(all, "graph-kept"));
            }
            break;
        }
    }
    bool left = diagnose_has(piece, "ended_step"); /* has a rule of its own */
    if (diagnose_find(all, "why-exception") || off || left) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "caught") ? DIAGNOSE_SUSPECT : DIAGNOSE_FAULT;
}

const struct diagnose_rule diagnose_rules_why[] = {
    {.name = "dump-nonfinite",
     .evidence = "dump-nonfinite",
     .cost = DIAGNOSE_EXACT,
     .judge = judge_dump,
     .cause = "[{?made}{node}[ ({op})] makes NaN or infinity of finite inputs[: {hint}]]"
              "[{!made}The first values that are not finite are in {tensor}[; {node} reads "
              "{bad_input}, which is not finite either, and nothing earlier in the dump made it]]",
     .numbers = "{nan:n} NaN, {pos_inf:n} +Inf, {neg_inf:n} -Inf[; in step {step}][; on rank "
                "{rank}][; its inputs are from {inputs_min:g4} to {inputs_max:g4}]",
     .advice = "[{?made}Look at the inputs of {node} in this step.][{!made}Look at where {tensor} "
               "comes from: the data, a parameter, or a node that was not dumped.]",
     .look = "first-nonfinite, inputs {node}",
     .source = "docs/howto-dumps.md"},
    {.name = "overflow",
     .evidence = "why-overflow",
     .cost = DIAGNOSE_EXACT,
     .judge = judge_why,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "[{more}]",
     .look = "catch overflow, rerun",
     .source = "rules of `why`: docs/howto-nan.md"},
    {.name = "hit",
     .evidence = "why-hit",
     .cost = DIAGNOSE_EXACT,
     .judge = judge_loss,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "[{more}]",
     .look = "recommend, why",
     .source = "rules of `why`: docs/howto-loss.md"},
    {.name = "exception",
     .evidence = "why-exception",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_why,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "[{more}]",
     .source = "rules of `why`: docs/howto-loss.md"},
    {.name = "raised",
     .evidence = "exception",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_exception,
     .cause =
         "[{!caught}An exception ended the training: {text}][{?caught}An exception interrupted "
         "the last step; the program caught it, and ended: {text}]",
     .numbers = "in step {step}",
     .advice =
         "[{?again}The loss depends on a graph that an earlier backward() has used and freed: "
         "detach what is kept from step to step, such as a hidden state (state = state.detach()), "
         "or "
         "call backward() once on the sum of the losses][{?overwritten}A value that the gradient "
         "needs was changed in place (x += y, a slice that is set, an optimizer's step between two "
         "passes through one graph): compute a new tensor, or detach what is kept from step to "
         "step][{?no_graph}Nothing between the loss and the parameters has a gradient: look for "
         "detach(), item(), numpy(), argmax or no_grad() on the way to the loss, or frozen "
         "parameters]",
     .look = "catch exception, backtrace",
     .source = "docs/pytorch.md"},
    {.name = "loss",
     .evidence = "why-loss",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_loss,
     .cause = "{text}",
     .numbers = "in step {step}[, bad since step {since}]",
     .advice = "[{more}]",
     .look = "why loss",
     .source = "rules of `why loss`: docs/howto-loss.md"},
    {.name = NULL},
};
