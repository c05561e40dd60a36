// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about hand-written objectives: their form, and the values that they are computed from. */
#include <math.h>

#include "repl/diagnose/rule.h"

#define FEW_STEPS 3

static bool holds_always(const cJSON *piece)
{
    return diagnose_count(piece, "steps") >= FEW_STEPS && diagnose_holds_always(piece);
}

static enum diagnose_verdict judge_always(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return holds_always(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* 2 %: rounding, and smoothing over the other classes, are less. */
static enum diagnose_verdict judge_soft(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return holds_always(piece) && fabs(diagnose_count(piece, "sum") - 1) > 0.02 ? DIAGNOSE_SUSPECT
                                                                                : DIAGNOSE_SILENT;
}

/* Of the first steps on each batch 1 is right; with one step on each it always is. */
static enum diagnose_verdict judge_ratio(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return holds_always(piece) && diagnose_count(piece, "steps") >= 4 &&
                   diagnose_count(piece, "again") >= 16
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Two steps more than half: scores of 0 at first do not count. */
static enum diagnose_verdict judge_overlap(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_count(piece, "share");

    (void)all;
    diagnose_set(piece, "percent", 100 * share);
    return diagnose_count(piece, "held") >= FEW_STEPS &&
                   2 * diagnose_count(piece, "held") > diagnose_count(piece, "steps") &&
                   share > 0.01
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Where the loss does not fall there is no network yet that copies: something else is wrong. */
static enum diagnose_verdict judge_identity(cJSON *piece, const struct diagnose_evidence *all)
{
    double left = diagnose_loss_left(all);

    return holds_always(piece) && left > 0 && left < 0.1 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_generator(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return holds_always(piece) && diagnose_count(piece, "others") >= 1 ? DIAGNOSE_FAULT
                                                                       : DIAGNOSE_SILENT;
}

/* Before the training, like is nearer than unlike. At last, all is equal, or still so. */
static enum diagnose_verdict judge_order(cJSON *piece, const struct diagnose_evidence *all)
{
    double first = diagnose_count(piece, "first_size"), last = diagnose_count(piece, "size");
    double larger = diagnose_count(piece, "larger");
    bool equal = last < 0.25 * first && larger > 0.2, still = larger >= 0.9;

    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_count(piece, "first_larger"));
    return diagnose_count(piece, "steps") >= 8 && diagnose_count(piece, "first_larger") >= 0.9 &&
                   (equal || still)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_objectives[] = {
    {.name = "loss-swapped",
     .evidence = "loss-swapped",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "The arguments of {loss} are swapped: the first one is data, and the second one, the "
              "target, is the output of the network",
     .numbers = "only the target needs a gradient; in {steps|observed step}",
     .advice = "Pass the output first: {loss}(output, target)",
     .look = "why loss",
     .source = "PyTorch documentation of BCELoss, CrossEntropyLoss: input, target"},
    {.name = "focal-of-mean",
     .evidence = "focal-mean",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "The focal factor is computed from the mean loss of the batch: {loss} is reduced to "
              "one number before exp(-loss), so all examples get the same weight, hard or easy",
     .numbers = "one factor for the batch in {steps|observed step}",
     .advice = "Pass reduction='none' to the loss, and take the mean after the multiplication",
     .look = "node {node}",
     .source = "Lin et al. 2017 (Focal loss): the factor is of each example"},
    {.name = "target-sum",
     .evidence = "soft-targets",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_soft,
     .cause = "The soft targets of each example sum up to {sum:g4} instead of 1, so they are not "
              "probabilities of the {classes} classes",
     .numbers = "the smallest target is {low:g3}; in {steps|observed step}",
     .advice = "Smoothing by e gives each class e / {classes}: (1 - e) * one_hot + e / {classes}",
     .source = "Szegedy et al. 2016 (label smoothing)"},
    {.name = "ratio-is-1",
     .evidence = "ratio",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_ratio,
     .cause = "The ratio of new to old probabilities is always 1: the old log-probabilities are "
              "computed again with the current parameters, so clipping the ratio never acts",
     .numbers = "exactly 1 in each of {count|value} in {steps|observed step}, with rows that were "
                "trained on before",
     .advice = "Store the log-probabilities when the actions are chosen, before the first update",
     .look = "node {node}",
     .source = "Schulman et al. 2017 (PPO); higgsfield-ai/higgsfield issue 20"},
    {.name = "overlap-of-scores",
     .evidence = "overlap-range",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_overlap,
     .cause = "The overlap of outputs and targets (Dice or Jaccard) is computed from raw scores "
              "instead of probabilities: the outputs range from {low:g3} to {high:g3}, so the "
              "quotient has no bound",
     .numbers = "{percent:g3} % of the outputs are outside of 0 to 1; in {held} of {steps|observed "
                "step}",
     .advice = "Apply sigmoid (or softmax, of several classes) to the outputs before the loss",
     .look = "node {node}",
     .source = "Milletari et al. 2016 (V-Net)"},
    {.name = "target-is-input",
     .evidence = "identity",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_identity,
     .cause = "The target of {loss} is the input of the network itself, and nothing in between is "
              "narrower: the network learns to copy its input",
     .numbers = "{columns|number} for each example; in {steps|observed step}",
     .advice = "Check which tensor is the target (in diffusion models the noise); an autoencoder "
               "needs a layer that is narrower than its input",
     .look = "node {node}",
     .source = "Goodfellow et al. 2016 (Deep Learning), chapter 14: undercomplete autoencoders"},
    {.name = "generator-label",
     .evidence = "generator-label",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_generator,
     .cause = "The generator is trained with the label of generated examples, {label:g3}, as the "
              "discriminator is: it helps the discriminator instead of deceiving it",
     .numbers = "the same target in {steps|observed step}",
     .advice = "Use the label of real examples in the generator's loss",
     .look = "node {node}",
     .source = "Goodfellow et al. 2014 (GAN)"},
    {.name = "hinge-swapped",
     .evidence = "hinge-order",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_order,
     .cause = "The two distances in the hinge with margin {margin:g3} seem to be swapped: before "
              "training the one that is made smaller was the larger one in {percent:g3} % of the "
              "rows, so like examples are pushed apart and unlike ones together",
     .numbers = "median of their difference {first_size:g3} at first, {size:g3} at last; in "
                "{steps|observed step}",
     .advice = "Use max(0, distance to the positive - distance to the negative + margin)",
     .look = "node {node}",
     .source = "Schroff et al. 2015 (FaceNet): triplet loss"},
    {.name = NULL},
};
