// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about what an update is made of. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"
#include "repl/out/out.h"

#define FEW_STARTS 2 /* writes that may have another reason */
#define FEW_STEPS  5 /* observed, below which a share says little */

/* ---- the rate -------------------------------------------------------------------------------- */

/* A warm-up may begin at 0, so a few steps say nothing. */
static enum diagnose_verdict judge_rate_zero(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "steps");

    (void)all;
    if (diagnose_count(piece, "zero") < steps || steps < FEW_STEPS) {
        return DIAGNOSE_SILENT;
    }
    return steps >= 20 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Schedules end low: a linear or a cosine one is below 1 % of its top for the last tenth of the
 * steps. Nobody plans more than half of them below it. */
static enum diagnose_verdict judge_rate_fallen(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "steps"), scheduled = diagnose_count(piece, "scheduled");
    double per = diagnose_count(piece, "first_epoch");

    (void)all;
    if (diagnose_count(piece, "low") < 0.5 * steps || steps < 10 ||
        diagnose_count(piece, "top") <= 0) {
        return DIAGNOSE_SILENT;
    }
    if (strcmp(diagnose_text(piece, "scheduler"), "ReduceLROnPlateau") == 0) {
        return DIAGNOSE_NOTE; /* `plateau-mode` knows what it was given */
    }
    bool per_step = steps > 0 && diagnose_has(piece, "scheduled") &&
                    fabs(scheduled - steps) <= 2 + 0.02 * steps;
    diagnose_set(piece, per_step ? "by_batch" : "by_other", 1);
    if (per_step && per > 1 && diagnose_count(piece, "epochs") > 1 &&
        diagnose_count(piece, "low_at") <= 2 * per) {
        return DIAGNOSE_FAULT;
    }
    /* no schedule is below a thousandth for a third of its steps, unless the loss is at its end */
    bool deep = diagnose_count(piece, "deep") >= 0.35 * steps && diagnose_loss_left(all) > 0.2;
    return deep || diagnose_count(piece, "low") >= 0.8 * steps ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

static enum diagnose_verdict judge_still_group(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_count(piece, "steps") >= FEW_STEPS ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_elsewhere(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_count(piece, "scheduled") >= 2 && diagnose_count(piece, "steps") >= FEW_STEPS
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A cosine that was given its length in epochs goes up again when it is stepped per batch, and one
 * that was given it in updates does when it is stepped for each batch of several per update. */
static enum diagnose_verdict judge_rate_cycles(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "steps"), period = diagnose_count(piece, "period");
    double scheduled = diagnose_count(piece, "scheduled"), per = steps > 0 ? scheduled / steps : 0;

    (void)all;
    if (period < 1 || steps < 10) {
        return DIAGNOSE_SILENT;
    }
    if (per >= 1.9 && fabs(per - round(per)) <= 0.05 * per && scheduled >= 1.5 * period &&
        diagnose_count(piece, "turns") >= 1) {
        diagnose_set(piece, "per", round(per));
        return DIAGNOSE_SUSPECT;
    }
    if (fabs(scheduled - steps) > 2 + 0.02 * steps || steps < 2.5 * period ||
        diagnose_count(piece, "turns") < 2) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_SUSPECT;
}

/* It was made, and never stepped: epochs have ended meanwhile, or there are no epochs. */
static enum diagnose_verdict judge_never_scheduled(cJSON *piece,
                                                   const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_has(piece, "scheduled") || diagnose_count(piece, "scheduled") > 0 ||
        diagnose_count(piece, "epochs") < 3) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_SUSPECT;
}

/* Scales against underflow are powers of 2; other factors may weigh the loss. */
static bool is_scale(double factor)
{
    int exponent;

    return factor >= 64 && frexp(factor, &exponent) == 0.5;
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* Copies numbers of the first optimizer's updates, for the sentence; false: there are none. */
static bool take_update(cJSON *piece, const struct diagnose_evidence *all)
{
    static const char *const keys[] = {"passed", "gradient", "shrink", "relative", "steps"};
    const cJSON *update = diagnose_find(all, "update");

    for (size_t i = 0; update && i < sizeof(keys) / sizeof(keys[0]); i++) {
        diagnose_set(piece, keys[i], diagnose_number(update, keys[i], NAN));
    }
    return update;
}

/* The norm at the step is the same each time, and far below what dividing by the scale leaves. */
static bool is_clipped_scaled(const struct diagnose_evidence *all)
{
    const cJSON *update = diagnose_find(all, "update"), *loss = diagnose_find(all, "loss-factor");
    double factor = loss ? diagnose_count(loss, "factor") : 0;

    return update && is_scale(factor) && diagnose_number(update, "shrink", 1) <= 0.5 / factor &&
           diagnose_number(update, "alike", NAN) <= 1.01 &&
           diagnose_count(update, "steps") >= FEW_STEPS;
}

/* An optimizer that divides by the size of the gradients does not care. With large updates all the
 * same, the clipping is needed. */
static enum diagnose_verdict judge_clipped(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *update = diagnose_find(all, "update");

    if (is_clipped_scaled(all) || !take_update(piece, all) ||
        !(diagnose_count(piece, "shrink") <= 0.02) || diagnose_is(update, "adapts") ||
        diagnose_count(piece, "steps") < FEW_STEPS || diagnose_count(piece, "relative") > 2e-4) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * diagnose_count(piece, "shrink"));
    diagnose_set(piece, "move", 100 * diagnose_count(piece, "relative"));
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_clip_scaled(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "clippings");

    if (steps >= 2 && is_clipped_scaled(all)) {
        diagnose_set(piece, "factor", diagnose_count(diagnose_find(all, "loss-factor"), "factor"));
        diagnose_set(piece, "scaled", steps);
        return DIAGNOSE_FAULT;
    }
    return steps >= 2 && diagnose_count(piece, "scaled") >= steps - 1 ? DIAGNOSE_FAULT
                                                                      : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_clip_late(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "clippings");

    (void)all;
    return steps >= 3 && diagnose_count(piece, "late") >= steps - 1 ? DIAGNOSE_FAULT
                                                                    : DIAGNOSE_SILENT;
}

/* ---- decay, scale, rounding ------------------------------------------------------------------ */

/* The part of a weight that decay takes away in one step, with momentum. Usual: 1e-6 to 1e-3. At
 * 0.02, what 100 steps have learnt is lost in the next 50. */
static double decay_of_step(const cJSON *piece)
{
    double momentum = diagnose_count(piece, "momentum");

    if (diagnose_is(piece, "adapts") && !diagnose_is(piece, "decoupled")) {
        return 0;
    }
    return diagnose_count(piece, "rate") * diagnose_count(piece, "weight_decay") /
           (diagnose_is(piece, "decoupled") || momentum >= 1 ? 1 : 1 - momentum);
}

/* It is many times what is usual, and the weights shrink or the loss stays where it was. */
static bool is_decay_steep(const cJSON *piece, const struct diagnose_evidence *all)
{
    return decay_of_step(piece) >= 0.02 && diagnose_count(piece, "rate") > 0 &&
           (diagnose_count(piece, "weight_last") < 0.6 * diagnose_count(piece, "weight_first") ||
            diagnose_loss_left(all) > 0.8);
}

/* Near the end of a training gradients are small, and any decay is larger: so in the first steps,
 * too. Usual decays are 1e-5 to 0.1, so smaller ones are not the cause. */
static enum diagnose_verdict judge_decay(cJSON *piece, const struct diagnose_evidence *all)
{
    bool decoupled = diagnose_is(piece, "decoupled");
    double share = diagnose_count(piece, "decay"), early = diagnose_count(piece, "decay_early");

    /* without any gradient there is another cause */
    if (!(diagnose_count(piece, "gradient") > 0) || diagnose_count(piece, "weight_decay") < 0.01 ||
        diagnose_count(piece, "steps") < FEW_STEPS) {
        return DIAGNOSE_SILENT;
    }
    if (decoupled) {
        share = early = diagnose_count(piece, "decay_step") > 0.7 ? 2 : 0;
    }
    if ((early < 1 || share < 1) && is_decay_steep(piece, all)) {
        diagnose_set(piece, "takes", 100 * fmin(1, decay_of_step(piece)));
        return DIAGNOSE_SUSPECT;
    }
    if (early < 1 || share < 1) {
        return DIAGNOSE_SILENT;
    }
    if (decoupled) {
        diagnose_set(piece, "part", 100 * fmin(1, diagnose_count(piece, "decay_step")));
    } else {
        diagnose_set(piece, "ratio", early);
    }
    return share >= 2 && early >= 2 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* The loss is multiplied by a scale, and the gradients of that optimizer still have it when it
 * steps. */
static bool is_unscaled(const cJSON *update, const struct diagnose_evidence *all)
{
    const cJSON *factor = diagnose_find(all, "loss-factor");

    return factor && is_scale(diagnose_count(factor, "factor")) &&
           diagnose_number(update, "shrink", 1) > 0.5;
}

static enum diagnose_verdict judge_scale(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *update = diagnose_find(all, "update");

    if (!update || !is_unscaled(update, all) || diagnose_count(update, "steps") < 2) {
        return DIAGNOSE_SILENT;
    }
    take_update(piece, all);
    if (diagnose_is(update, "adapts")) {
        return DIAGNOSE_NOTE;
    }
    /* Below, it may be the size of a batch. */
    return diagnose_count(piece, "factor") >= 256 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_past_scaler(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_count(piece, "times") >= FEW_STEPS &&
                   2 * diagnose_count(piece, "times") > diagnose_count(piece, "steps")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Of the elements with a gradient. */
static enum diagnose_verdict judge_rounding(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_count(piece, "half") < 0.5 || diagnose_count(piece, "stuck") < 0.5 ||
        diagnose_count(piece, "rate") <= 0 || diagnose_count(piece, "steps") < FEW_STEPS ||
        diagnose_count(piece, "rate") < 0.01 * diagnose_count(piece, "top")) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * diagnose_count(piece, "stuck"));
    return diagnose_count(piece, "stuck") >= 0.75 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* ---- the size of the rate -------------------------------------------------------------------- */

/* A warm-up that has not ended: the rate is the largest so far, and began far below. */
static void add_warm_up(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *rate = diagnose_find(all, "rate");

    if (rate && diagnose_has(rate, "scheduler") &&
        diagnose_count(rate, "first") < 0.3 * diagnose_count(rate, "last") &&
        diagnose_count(rate, "last") >= 0.999 * diagnose_count(rate, "top")) {
        out_set(piece, OUT_TEXT("scheduler", diagnose_text(rate, "scheduler")));
        diagnose_set(piece, "first", diagnose_count(rate, "first"));
        cJSON *also = cJSON_GetObjectItem(piece, "also"), *place = out_push(also);
        out_set(place, OUT_TEXT("file", diagnose_text(rate, "file")),
                OUT_INT("line", diagnose_count(rate, "line")));
    }
}

/* A fine-tuning with 1e-5 and Adam moves its weights by 1e-4 of their size; at 3e-5 and less per
 * step a weight needs 30,000 steps to change by its own size. The loss must show it, too. */
static enum diagnose_verdict judge_rate_low(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double left = diagnose_loss_left(all);

    if (!course || diagnose_count(course, "steps") < 30 || left < 0.95 || left > 1.05 ||
        diagnose_count(piece, "steps") < FEW_STEPS || diagnose_count(piece, "rate") <= 0 ||
        diagnose_count(piece, "half") > 0 || diagnose_count(piece, "gradient") <= 0 ||
        diagnose_count(piece, "relative") > 3e-5 ||
        diagnose_count(piece, "rate") < 0.1 * diagnose_count(piece, "top")) {
        return DIAGNOSE_SILENT;
    }
    if (diagnose_number(piece, "shrink", 1) < 0.1) { /* clipping is the cause */
        return DIAGNOSE_SILENT;
    }
    /* Without adaptation a small update may also be that of a small gradient. */
    if (!diagnose_is(piece, "adapts") && diagnose_count(piece, "rate") > 1e-3) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "move", 100 * diagnose_count(piece, "relative"));
    diagnose_set(piece, "fall", 100 * (1 - left));
    add_warm_up(piece, all);
    return DIAGNOSE_SUSPECT;
}

/* Weights that hardly move, and a loss that stays where it is, in enough steps to tell. */
static bool stands_still(const cJSON *update, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double left = diagnose_loss_left(all);

    return course && diagnose_count(course, "steps") >= 30 && left >= 0.95 && left <= 1.05 &&
           diagnose_count(update, "steps") >= FEW_STEPS &&
           diagnose_count(update, "relative") <= 1e-4 && diagnose_count(update, "gradient") > 0;
}

/* Adam divides by the root of the mean square of a gradient plus eps. */
static enum diagnose_verdict judge_epsilon(cJSON *piece, const struct diagnose_evidence *all)
{
    double eps = diagnose_count(piece, "eps"), element = diagnose_count(piece, "element");

    if (!diagnose_is(piece, "adapts") || eps < 1e-5 || eps < 10 * element || element <= 0 ||
        (diagnose_loss_left(all) < 0.8 && eps < 0.1)) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "times", eps / element);
    return stands_still(piece, all) || diagnose_loss_left(all) > 0.8 ? DIAGNOSE_SUSPECT
                                                                     : DIAGNOSE_NOTE;
}

/* The loss is multiplied by so little that nothing moves. */
static enum diagnose_verdict judge_shrunk_loss(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *update = diagnose_find(all, "update");

    if (!update || fabs(diagnose_count(piece, "factor")) > 0.02 || diagnose_is(update, "adapts") ||
        !stands_still(update, all)) {
        return DIAGNOSE_SILENT;
    }
    take_update(piece, all);
    diagnose_set(piece, "move", 100 * diagnose_count(piece, "relative"));
    return DIAGNOSE_SUSPECT;
}

/* Momentum m adds up about 1 / (1 - m) gradients: with 0.999 that is ten times as many as usual,
 * and the loss shows it. */
static enum diagnose_verdict judge_momentum(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double momentum = diagnose_count(piece, "momentum");
    bool wild =
        course && (diagnose_loss_left(all) > 0.9 || diagnose_count(course, "growth_times") >= 3);

    if (momentum < 0.99 || momentum >= 1 || !wild || diagnose_count(piece, "steps") < FEW_STEPS) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "adds", round(1 / (1 - momentum)));
    diagnose_set(piece, "late_loss", diagnose_count(course, "late"));
    diagnose_set(piece, "early_loss", diagnose_count(course, "early"));
    return DIAGNOSE_SUSPECT;
}

/* A momentum of 0.01 adds 1 % to an update, for nothing: a weight decay at the place of the
 * momentum, the third argument of SGD. */
static enum diagnose_verdict judge_momentum_tiny(cJSON *piece, const struct diagnose_evidence *all)
{
    double momentum = diagnose_count(piece, "momentum");

    (void)all;
    return momentum > 0 && momentum <= 0.02 && !(diagnose_count(piece, "weight_decay") > 0)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Adam's averages of gradients need fewer steps than that of their squares. */
static enum diagnose_verdict judge_betas(cJSON *piece, const struct diagnose_evidence *all)
{
    double mean = diagnose_count(piece, "beta1"), square = diagnose_count(piece, "beta2");

    (void)all;
    return mean > square && square > 0 && mean >= 0.95 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* Few-shot trials start with an optimizer of their own; meta-learning moves what it returns to. */
static enum diagnose_verdict judge_set_back(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "values", 9) <= 2 && diagnose_number(piece, "same", 0) > 3
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Clipped, normalized or averaged weights stay close to what they were, except in the first steps.
 */
static enum diagnose_verdict judge_reinitialized(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    out_set(piece, OUT_REAL("percent", 100 * diagnose_number(piece, "moved", 0)));
    return diagnose_number(piece, "far", 0) > FEW_STARTS && diagnose_number(piece, "same", 2) < 2
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Plain SGD keeps nothing that could be lost; one optimizer for each part of the training (a fold,
 * a network) makes many steps. */
static enum diagnose_verdict judge_series(cJSON *piece, const struct diagnose_evidence *all)
{
    double made = diagnose_count(piece, "optimizers");
    const cJSON *update = diagnose_find(all, "update");
    bool keeps =
        update && (diagnose_is(update, "adapts") || diagnose_count(update, "momentum") > 0);

    return made >= 10 && keeps && diagnose_count(piece, "steps") <= 2 * made ? DIAGNOSE_SUSPECT
                                                                             : DIAGNOSE_SILENT;
}

/* Each step changes the weights by a tenth of their size and more, and the loss does not fall. */
static enum diagnose_verdict judge_rate_high(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double left = diagnose_loss_left(all);
    /* the first updates threw the loss far above its start */
    bool jumped = course && diagnose_is(piece, "adapts") &&
                  diagnose_count(course, "growth_times") >= 5 &&
                  diagnose_count(course, "late") > 0.5 * diagnose_count(course, "first");

    if (!course || diagnose_count(course, "steps") < 20 || (left < 0.9 && !jumped) ||
        diagnose_count(course, "growth_times") > 100 ||
        diagnose_count(piece, "steps") < FEW_STEPS ||
        diagnose_count(piece, "relative_late") < 0.1 || diagnose_count(piece, "relative") < 0.1 ||
        is_unscaled(piece, all) || diagnose_count(piece, "decay_early") > 1 ||
        diagnose_find(all, "pile-up")) {
        return DIAGNOSE_SILENT;
    }
    const cJSON *order = diagnose_find(all, "order");
    if (order && diagnose_count(order, "optimizers") > 1) { /* their losses fight each other */
        return DIAGNOSE_SILENT;
    }
    if (jumped) {
        diagnose_set(piece, "jump", diagnose_count(course, "growth_times"));
    }
    diagnose_set(piece, "move", 100 * diagnose_count(piece, "relative"));
    diagnose_set(piece, "early_loss", diagnose_count(course, "early"));
    diagnose_set(piece, "late_loss", diagnose_count(course, "late"));
    return DIAGNOSE_SUSPECT;
}

const struct diagnose_rule diagnose_rules_updates[] = {
    {.name = "rate-is-0",
     .evidence = "rate",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_rate_zero,
     .cause =
         "The learning rate of {optimizer} is 0 in every step[: {scheduler} sets it to 0, and its "
         "warm-up or schedule never leaves it], so no weight changes",
     .numbers = "rate 0 in {zero} of {steps|step}[; {scheduler} was stepped {scheduled} times]",
     .advice = "[Check the factor that {scheduler} computes, as for a division of integers; ]print "
               "optimizer.param_groups\\[0\\]\\['lr'\\]",
     .look = "set lr",
     .source = "Humbatova et al. 2020: training, learning rate"},
    {.name = "rate-fallen",
     .evidence = "rate",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_rate_fallen,
     .cause = "The learning rate falls to nothing[{?by_batch}: {scheduler} is stepped for each "
              "batch ({scheduled} "
              "times[, {first_epoch} times in the first epoch]), as if each were an epoch]",
     .numbers = "rate {first:g4} in the first step and {last:g4} in the last; below 1 % of its "
                "largest value in {low} of {steps|step}",
     .advice = "[{?by_batch}Step the scheduler once per epoch, or give it its length in steps]"
               "[{?by_other}Let the rate fall more slowly: a tenth to a hundredth of its first "
               "value is usual at the end]",
     .look = "set lr",
     .source = "PyTorch documentation of torch.optim.lr_scheduler; forum threads on "
               "scheduler.step() in the batch loop"},
    {.name = "rate-of-group-is-0",
     .evidence = "still-group",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_still_group,
     .cause = "Parameter group {group} of {optimizer} has a learning rate of 0 in every step, so "
              "{node} and the rest of it are not trained, though gradients are computed for them",
     .numbers = "rate 0 in {steps|step}, {rate:g3} in another group; {count|parameter} with "
                "gradients in the group",
     .advice = "Give the group a learning rate, or set requires_grad to False if it is meant to "
               "stay",
     .look = "info optimizer",
     .source = "PyTorch documentation of torch.optim: per-parameter options"},
    {.name = "scheduler-of-another",
     .evidence = "scheduler-elsewhere",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_elsewhere,
     .cause = "[{!stopped}{scheduler} was given {optimizer}, an optimizer that never steps]"
              "[{?stopped}{scheduler} still belongs to {optimizer}, which does not step any more "
              "since {other} was created for the rest of the training], so the learning "
              "rate of the one that trains is not scheduled",
     .numbers = "{scheduler} was stepped {scheduled} times[{?stopped} since then]; {steps} steps "
                "of another optimizer",
     .advice = "Create {scheduler} with the optimizer that step() is called on",
     .look = "info optimizer",
     .source = "PyTorch documentation of torch.optim.lr_scheduler"},
    {.name = "weights-set-back",
     .evidence = "overwritten",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_set_back,
     .cause = "The weights are reset to the same earlier values again and again, so what "
              "{optimizer} has learnt since is lost each time",
     .numbers =
         "{node} was written {times} times between steps, {same} times with the same values; "
         "{steps|step}",
     .advice = "Load the kept state after the training, not during it",
     .source = "PyTorch forum threads on keeping the best model"},
    {.name = "weights-reinitialized",
     .evidence = "overwritten",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_reinitialized,
     .cause = "The weights are initialized again {far} times during the training, so what "
              "{optimizer} has learnt is lost each time",
     .numbers = "{node} was written between steps, and changed by {percent:g3} % of its size or "
                "more each time; {steps|step}",
     .advice = "Initialize the weights once, before the loop",
     .source = "PyTorch documentation of torch.nn.init; forum threads on Module.apply"},
    {.name = "optimizer-made-again",
     .evidence = "optimizer-series",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_series,
     .cause = "A new {kind_of} is created for each step, so its moments (averages of gradients) "
              "begin at 0 each time and are never used",
     .numbers = "{optimizers} optimizers from the same line, {steps} steps",
     .advice = "Create the optimizer once, before the loop",
     .source = "PyTorch documentation of torch.optim: constructing it"},
    {.name = "momentum-too-high",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_momentum,
     .cause = "The momentum of {momentum} adds up about {adds} gradients, so updates are {adds} "
              "times the learning rate and keep their direction long after it is wrong",
     .numbers = "loss {early_loss:g4} at first, {late_loss:g4} at last; rate {rate:g3}",
     .advice = "Use a momentum of 0.9, or lower the learning rate",
     .source = "Sutskever et al. 2013; Humbatova et al. 2020: hyperparameters"},
    {.name = "momentum-for-decay",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_momentum_tiny,
     .cause = "The momentum of {optimizer} is {momentum:g3}, which has no effect, and its weight "
              "decay is 0: the third argument of SGD is the momentum, so a weight decay was "
              "probably given in its place",
     .numbers = "momentum {momentum:g3}, weight decay 0, rate {rate:g3}",
     .advice = "Name the arguments: lr=..., momentum=..., weight_decay=...",
     .source = "PyTorch documentation of torch.optim.SGD"},
    {.name = "betas-swapped",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_betas,
     .cause = "The betas of {optimizer} are in the wrong order: the mean of the gradients is kept "
              "with {beta1:g4} and that of their squares with {beta2:g4}, so updates follow old "
              "gradients and are divided by new ones",
     .numbers = "betas ({beta1:g4}, {beta2:g4}); usual: (0.9, 0.999)",
     .advice = "Swap the betas",
     .source = "Kingma and Ba 2015 (Adam)"},
    {.name = "epsilon-too-large",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_epsilon,
     .cause = "eps = {eps:g3} of {optimizer} is far above its gradients, so each update is divided "
              "by eps and not by the gradients' size: the steps are {times:g2} times too small",
     .numbers = "root mean square of the gradients {element:g3}; rate {rate:g3}; a step changes "
                "the weights by {relative:g2} of their size",
     .advice = "Use the default, eps=1e-8",
     .source = "Kingma and Ba 2015 (Adam)"},
    {.name = "loss-scaled-down",
     .evidence = "loss-factor",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_shrunk_loss,
     .cause = "The loss is multiplied by {factor:g3} before backward(), so gradients and updates "
              "are that much smaller, and the weights hardly move",
     .numbers = "norm of the gradients {gradient:g3}; a step changes the weights by {move:g2} % of "
                "their size; {steps|observed step}",
     .advice = "Leave the factor out, or raise the learning rate by as much",
     .source = "AutoTrainer (ICSE 2021): slow convergence"},
    {.name = "rate-cycles",
     .evidence = "rate",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_rate_cycles,
     .cause = "The learning rate goes down and up again: {scheduler} has a period of {period} "
              "(T_max) but is stepped [{!per}for each batch][{?per}{per} times for each step of "
              "{optimizer}, also for batches that only add to the gradients], {scheduled} times",
     .numbers =
         "the rate changed its direction {turns} times in {steps|step}; between {top:g4} and "
         "less than that",
     .advice = "[{!per}Step {scheduler} once per epoch, or set T_max to the number of steps]"
               "[{?per}Step {scheduler} only after {optimizer} has stepped]",
     .source = "PyTorch documentation of CosineAnnealingLR"},
    {.name = "never-scheduled",
     .evidence = "rate",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_never_scheduled,
     .cause =
         "{scheduler} was created for {optimizer} but is never stepped, so the learning rate stays "
         "at {last:g4}",
     .numbers = "0 steps of {scheduler} in {steps|step} and {epochs} epochs",
     .advice = "Call scheduler.step() after each epoch (or step)",
     .source = "PyTorch documentation of torch.optim.lr_scheduler"},
    {.name = "clipped-to-nothing",
     .evidence = "clip",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_clipped,
     .cause = "Gradient clipping leaves almost nothing of the gradients: it scales their norm from "
              "{passed:g3} down to {gradient:g3} ({percent:g2} %), so the weights barely move",
     .numbers = "norm after backward() {passed:g3}, before the step {gradient:g3}, in all "
                "{steps|observed step}; a step changes the weights by {move:g2} %",
     .advice =
         "Raise the limit of the clipping to about the usual norm of the gradients, or leave it "
         "out",
     .source = "AutoTrainer (ICSE 2021): slow convergence"},
    {.name = "clip-before-unscale",
     .evidence = "clip",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_clip_scaled,
     .cause =
         "Gradients are clipped while they are still multiplied by the loss scale[ of {factor}], "
         "so the limit is that many times too small",
     .numbers = "{scaled} of {clippings} clippings that were observed",
     .advice =
         "Call scaler.unscale_(optimizer) before clipping, or divide the gradients by the scale "
         "first",
     .source = "PyTorch documentation, automatic mixed precision examples: gradient clipping"},
    {.name = "clipped-too-late",
     .evidence = "clip",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_clip_late,
     .cause =
         "Gradient clipping has no effect: it runs before backward() or after step(), when no new "
         "gradients are there to be clipped",
     .numbers =
         "no backward pass between the optimizer's step and the clipping in {late} of {clippings} "
         "observed steps",
     .advice = "Clip between backward() and step()",
     .source = "PyTorch documentation of clip_grad_norm_"},
    {.name = "decay-above-gradient",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_decay,
     .cause =
         "Weight decay of {weight_decay:g3} outweighs the gradient of the loss: updates are mostly "
         "decay, and the weights shrink towards 0",
     .numbers =
         "[decay is {ratio:g3} times as large as the gradient][decay makes up {part:g3} % of "
         "an update][decay takes {takes:g3} % of a weight in each step]; norm of the weights "
         "{weight_first:g3} at first, {weight_last:g3} at "
         "last; {steps|observed step}",
     .advice = "Lower weight_decay of {optimizer}: 1e-5 to 0.1 are usual",
     .source = "AutoTrainer (ICSE 2021); Loshchilov and Hutter 2019"},
    {.name = "scale-never-removed",
     .evidence = "loss-factor",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scale,
     .cause =
         "The loss is multiplied by a scale of {factor} and the gradients are never divided by it, "
         "so each update is {factor} times too large",
     .numbers =
         "norm of the gradients {passed:g3} after backward() and {gradient:g3} before the step",
     .advice = "Divide the gradients by {factor} before step(), or use torch.amp.GradScaler",
     .source = "NVIDIA, Training with Mixed Precision: loss scaling"},
    {.name = "scale-never-removed",
     .evidence = "past-scaler",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_past_scaler,
     .cause = "The optimizer's step() is called itself instead of scaler.step(optimizer), so the "
              "gradients are still multiplied by the loss scale, and each update is {factor} times "
              "too large",
     .numbers = "{times} of {steps|step} with gradients that GradScaler.scale() has multiplied by "
                "{factor}",
     .advice =
         "Call scaler.step(optimizer) and then scaler.update(), or scaler.unscale_(optimizer) "
         "before the optimizer's step()",
     .source = "PyTorch documentation of torch.amp.GradScaler"},
    {.name = "rounded-away",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_rounding,
     .cause =
         "Most updates are rounded away: the weights are kept in half precision, and an update of "
         "less than half a step of the type changes nothing",
     .numbers = "{percent:g3} % of the elements with a gradient are unchanged after a step; rate "
                "{rate:g3}; {steps|observed step}",
     .advice =
         "Keep the weights in float32 and compute under autocast, or keep a float32 copy for the "
         "optimizer",
     .source = "Micikevicius et al., Mixed Precision Training (ICLR 2018)"},
    {.name = "rate-too-low",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_rate_low,
     .cause =
         "The learning rate of {rate:g3} is too low: gradients are there, but a step changes the "
         "weights by {move:g2} % of their size, and the loss hardly falls[: the warm-up of "
         "{scheduler} is longer than the training, and has raised the rate from {first:g3} only]",
     .numbers = "the loss has fallen by {fall:g2} %; norm of the gradients {gradient:g3}; "
                "{steps|observed step}",
     .advice = "Raise the learning rate (10 or 100 times)[, with a shorter warm-up in {scheduler}]",
     .source = "DeepLocalize (ICSE 2021); AutoTrainer (ICSE 2021): slow convergence"},
    {.name = "rate-too-high",
     .evidence = "update",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_rate_high,
     .cause =
         "The learning rate of {rate:g3} is too high: each step changes the weights by "
         "{move:g3} % of their size[{!jump}, and the loss does not fall][, and the first steps "
         "raise the loss {jump:g3} times]",
     .numbers = "loss {early_loss:g4} at first, {late_loss:g4} at last; norm of the gradients "
                "{gradient:g3}; {steps|observed step}",
     .advice = "Lower the learning rate (10 or 100 times)",
     .source = "DeepLocalize (ICSE 2021); AutoTrainer (ICSE 2021): oscillating loss"},
    {.name = NULL},
};
