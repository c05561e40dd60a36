// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about what lasts over many steps: schedules of learning rates, restored states, averages of
 * weights. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

/* The training has ended by itself, and the schedule has hardly begun. Where its length is the
 * number of steps, it was meant for each step. Without that, only a warm-up says that it was meant
 * to come further: rates that fall may be planned for a longer training. */
static enum diagnose_verdict judge_schedule(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_count(piece, "steps"), length = diagnose_count(piece, "length");
    double scheduled = diagnose_count(piece, "scheduled"), peak = diagnose_count(piece, "peak");
    double last = diagnose_count(piece, "last"), first = diagnose_count(piece, "first");

    (void)all;
    if (!diagnose_is(piece, "ended") || steps < 20 || scheduled < 1 || peak <= 0 || last <= 0) {
        return DIAGNOSE_SILENT;
    }
    bool by_epoch = fabs(length - steps) <= 0.02 * steps + 1 && scheduled <= 0.34 * length;
    bool warming = diagnose_count(piece, "falls") == 0 && last < 0.5 * peak && first <= last &&
                   last >= 0.999 * diagnose_count(piece, "top") &&
                   diagnose_count(piece, "changed") > 0;
    if (!by_epoch && !warming) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, by_epoch ? "by_epoch" : "by_length", 1);
    if (warming) {
        diagnose_set(piece, "reached", 100 * last / peak);
    }
    return DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_group_rates(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_count(piece, "steps") < 5 ||
        diagnose_count(piece, "high") < 1.5 * diagnose_count(piece, "low") ||
        diagnose_count(piece, "low") <= 0) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_SUSPECT;
}

/* The schedule had lowered the rate when the state was saved, and it is back at its start. */
static enum diagnose_verdict judge_restored(cJSON *piece, const struct diagnose_evidence *all)
{
    double loaded = diagnose_count(piece, "loaded"), stepped = diagnose_count(piece, "stepped");
    double initial = diagnose_count(piece, "initial");

    (void)all;
    if (initial <= 0 || loaded <= 0 || loaded > 0.8 * initial ||
        fabs(stepped - initial) > 1e-3 * initial || diagnose_count(piece, "steps") < 3) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "times", stepped / loaded);
    return DIAGNOSE_SUSPECT;
}

/* A loss that falls together with that of the training is better when it is smaller, and a share
 * that rises meanwhile is an accuracy. Any metric: it has lowered the rate as often as it can from
 * its first metric on, so the metric never improved in its sense. */
static enum diagnose_verdict judge_plateau(cJSON *piece, const struct diagnose_evidence *all)
{
    double rounds = diagnose_count(piece, "rounds"), lowered = diagnose_count(piece, "lowered");
    double early = diagnose_count(piece, "early"), late = diagnose_count(piece, "late");
    double rises = diagnose_count(piece, "rises"), sinks = diagnose_count(piece, "sinks");
    double left = diagnose_loss_left(all);
    bool max = strcmp(diagnose_text(piece, "mode"), "max") == 0;

    if (left <= 0 || left > 0.98 || diagnose_count(piece, "metrics") < 3) {
        return DIAGNOSE_SILENT;
    }
    bool away = max ? late < early && sinks >= 2 * rises : late > 1.05 * early && rises > sinks;
    bool share = diagnose_has(piece, "share_of");
    if (away && !max && share) {
        diagnose_set(piece, "accuracy", 1);
    } else if (!(rounds >= 3 && lowered >= 3 && lowered >= 0.7 * rounds)) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_clip_empty(cJSON *piece, const struct diagnose_evidence *all)
{
    double clippings = diagnose_count(piece, "clippings");

    (void)all;
    return clippings >= 3 && diagnose_count(piece, "empty") >= clippings - 1 ? DIAGNOSE_FAULT
                                                                             : DIAGNOSE_SILENT;
}

/* ---- averages of weights --------------------------------------------------------------------- */

/* Where the training reads the average, its network is a target or a teacher: it is meant
 * to follow slowly. */
static enum diagnose_verdict judge_average_slow(cJSON *piece, const struct diagnose_evidence *all)
{
    double sum = diagnose_count(piece, "decay") + diagnose_count(piece, "share");

    (void)all;
    if (!diagnose_is(piece, "ended") || diagnose_count(piece, "updates") < 20 ||
        diagnose_count(piece, "kept") < 0.5 || fabs(sum - 1) > 1e-3 ||
        diagnose_count(piece, "reads") >= 0.5 * diagnose_count(piece, "looks")) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * diagnose_count(piece, "kept"));
    return DIAGNOSE_SUSPECT;
}

/* Averages follow in 10 steps and more: 0.9 to 0.9999. */
static enum diagnose_verdict judge_average_swapped(cJSON *piece,
                                                   const struct diagnose_evidence *all)
{
    double decay = diagnose_count(piece, "decay"), share = diagnose_count(piece, "share");

    (void)all;
    return diagnose_count(piece, "looks") >= 5 && decay > 0 && decay <= 0.1 &&
                   fabs(decay + share - 1) < 1e-3
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_average_sum(cJSON *piece, const struct diagnose_evidence *all)
{
    double sum = diagnose_count(piece, "decay") + diagnose_count(piece, "share");

    (void)all;
    diagnose_set(piece, "sum", sum);
    if (sum > 1) {
        diagnose_set(piece, "grows", 1);
    }
    return diagnose_count(piece, "looks") >= 5 && diagnose_count(piece, "decay") >= 0.5 &&
                   fabs(sum - 1) > 1e-3
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_schedules[] = {
    {.name = "schedule-unfinished",
     .evidence = "schedule",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_schedule,
     .cause = "The schedule of {scheduler} hardly begins[{?by_epoch}: it is made for {length} "
              "steps, as many as the training has, but is stepped only {scheduled|time}, as if "
              "each epoch were a step][{?by_length}: the training ends within its warm-up][, so "
              "the learning rate reaches only {reached:g3} % of its peak]",
     .numbers = "{scheduled|step} of {scheduler} in {steps|step} of {optimizer}; rate {first:g3} "
                "at first and {last:g3} at last, planned peak {peak:g3}",
     .advice = "[{?by_epoch}Step {scheduler} after each step of the optimizer (in Lightning: "
               "'interval': 'step')][{?by_length}Shorten the warm-up to a part of the training, "
               "5 to 10 % are usual, or step {scheduler} more often]",
     .look = "set lr",
     .source = "PyTorch documentation of OneCycleLR; Lightning documentation of "
               "configure_optimizers; Hugging Face documentation of warmup_steps"},
    {.name = "rates-of-groups-lost",
     .evidence = "group-rates",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_group_rates,
     .cause = "The parameter groups of {optimizer} were given different learning rates (from "
              "{low:g3} to {high:g3}), but all groups have the same rate in each step[: "
              "{scheduler} replaces them by one][{!scheduler}: the script writes one rate into "
              "all groups]",
     .numbers = "{groups|group}; the same rate in all {steps|step}, {last:g3} at last",
     .advice = "[{?scheduler}Give {scheduler} a list of rates, one for each group]"
               "[{!scheduler}Multiply the rate of each group by the same factor: "
               "group\\['lr'\\] = group\\['initial_lr'\\] * factor]",
     .look = "info optimizer",
     .source = "PyTorch documentation of torch.optim: per-parameter options"},
    {.name = "restored-rate-lost",
     .evidence = "restored-rate",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_restored,
     .cause = "The restored training does not continue with its learning rate: the state of "
              "{optimizer} has the rate {loaded:g3}, but the next step uses {stepped:g3}, the rate "
              "at the start of the schedule, because {scheduler} is created after it or is not "
              "restored",
     .numbers = "rate {loaded:g3} in the loaded state, {stepped:g3} in the step after it; "
                "{times:g3} times as high",
     .advice = "Save the state of {scheduler} too, create {scheduler} before the states are "
               "loaded, and load both",
     .look = "set lr",
     .source = "PyTorch tutorial: saving and loading a general checkpoint; ultralytics/yolov5 "
               "issue 292"},
    {.name = "plateau-mode",
     .evidence = "plateau",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_plateau,
     .cause = "{scheduler} lowers the learning rate while the training improves: with mode="
              "'{mode}' the metric that it is given never improves[{?accuracy}; it is a share "
              "(of {share_of}) that rises while the loss falls, so more of it is better, as of an "
              "accuracy]",
     .numbers = "metric {first:g4} at first and {last:g4} at last; the rate was lowered "
                "{lowered|time} in {metrics|call}",
     .advice = "Give {scheduler} mode='min' for a loss, mode='max' for an accuracy",
     .look = "set lr",
     .source = "PyTorch documentation of ReduceLROnPlateau"},
    {.name = "clip-of-nothing",
     .evidence = "clip-empty",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_clip_empty,
     .cause = "Gradient clipping is given no gradients, so it has no effect: its parameters are "
              "an iterator that was used up before (model.parameters() kept in a variable), or "
              "have no gradients",
     .numbers = "no gradient in {empty} of {clippings|clipping} after a backward pass",
     .advice = "Pass model.parameters() itself, or keep list(model.parameters())",
     .source = "PyTorch documentation of clip_grad_norm_"},
    {.name = "average-too-slow",
     .evidence = "average",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_average_slow,
     .cause = "The average of the weights is still mostly what it started with: with a decay of "
              "{decay:g5}, {percent:g3} % of its starting weights are left in it at the end",
     .numbers = "{updates|update} with {decay:g5} of itself and {share:g3} of the trained weights",
     .advice = "Use a smaller decay, about 1 - 10 / steps, or let it grow: min(decay, (1 + step) / "
               "(10 + step))",
     .source = "TensorFlow documentation of ExponentialMovingAverage (num_updates)"},
    {.name = "average-swapped",
     .evidence = "average",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_average_swapped,
     .cause = "The average of the weights keeps only {decay:g3} of itself in each update, so it is "
              "a copy of the last weights: the decay and 1 - decay are probably swapped",
     .numbers = "{decay:g3} of itself and {share:g4} of the trained weights, in {looks|observed "
                "step}",
     .advice = "average = decay * average + (1 - decay) * weight, with a decay of 0.9 to 0.9999",
     .source = "Polyak and Juditsky 1992; PyTorch documentation of AveragedModel"},
    {.name = "average-sum",
     .evidence = "average",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_average_sum,
     .cause = "The average of the weights is not an average: it is {decay:g4} of itself plus "
              "{share:g4} of the trained weights, which together are {sum:g4} and not 1, so it "
              "[{?grows}grows][{!grows}shrinks] with each update",
     .numbers = "in {looks|observed step}",
     .advice = "average = decay * average + (1 - decay) * weight",
     .source = "PyTorch documentation of AveragedModel"},
    {.name = NULL},
};
