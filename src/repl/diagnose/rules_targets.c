// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the values of targets, the weights of classes, and scores that cannot differ. */
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

static enum diagnose_verdict judge_turned(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return holds_always(piece) ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_signed(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_count(piece, "share"));
    return diagnose_count(piece, "held") >= FEW_STEPS ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Inverse frequencies have a slope of -1, none 0. */
static enum diagnose_verdict judge_weights(cJSON *piece, const struct diagnose_evidence *all)
{
    double ratio =
        diagnose_count(piece, "most_count") / fmax(1, diagnose_count(piece, "least_count"));

    (void)all;
    diagnose_set(piece, "ratio", ratio);
    return diagnose_count(piece, "slope") > 0.5 && ratio >= 2 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* The weight of positive examples is about their odds, instead of the odds' inverse. */
static enum diagnose_verdict judge_positive(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_count(piece, "positive") / fmax(1, diagnose_count(piece, "count"));
    double odds = share < 1 ? share / (1 - share) : 0, weight = diagnose_count(piece, "weight");

    (void)all;
    diagnose_set(piece, "percent", 100 * share);
    diagnose_set(piece, "wanted", odds > 0 ? 1 / odds : 0);
    return odds > 0 && weight > 0 && diagnose_count(piece, "count") >= 100 &&
                   fabs(log(odds)) > log(1.8) && fabs(log(weight / odds)) < 0.4
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Outputs are still far from targets that they cannot reach in the time. */
static enum diagnose_verdict judge_scale_of_targets(cJSON *piece,
                                                    const struct diagnose_evidence *all)
{
    bool far = diagnose_count(piece, "output") < 0.3 * diagnose_count(piece, "target");

    return diagnose_count(piece, "steps") >= 8 && diagnose_count(piece, "target") > 50 && far &&
                   diagnose_loss_left(all) > 0.5
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* With N classes, scores that differ by r leave a loss of at least log(1 + (N - 1) exp(-r)). */
static enum diagnose_verdict judge_narrow(cJSON *piece, const struct diagnose_evidence *all)
{
    double classes = diagnose_count(piece, "classes");
    double least = log1p((classes - 1) * exp(-diagnose_count(piece, "range")));

    diagnose_set(piece, "least", least);
    diagnose_set(piece, "chance", log(classes));
    return holds_always(piece) && diagnose_count(piece, "steps") >= 8 &&
                   least > 0.85 * log(classes) && diagnose_loss_left(all) > 0.85
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* It was the larger part at first, and the loss of the data stays where it was. */
static enum diagnose_verdict judge_penalty(cJSON *piece, const struct diagnose_evidence *all)
{
    double penalty = diagnose_count(piece, "penalty_first"),
           fit = diagnose_count(piece, "fit_first");

    (void)all;
    diagnose_set(piece, "percent", 100 * penalty / fmax(1e-300, penalty + fit));
    return diagnose_count(piece, "held") >= FEW_STEPS && penalty > 4 * fit &&
                   diagnose_count(piece, "steps") >= 8 && diagnose_count(piece, "fit") > 0.9 * fit
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A discount is below 1 and not small; a factor of 1 is a sum of other kinds. */
static enum diagnose_verdict judge_bootstrap(cJSON *piece, const struct diagnose_evidence *all)
{
    double factor = diagnose_number(piece, "factor", 1);

    (void)all; /* residual gradients are a method, too */
    return factor >= 0.5 && factor < 1 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_targets[] = {
    {.name = "penalty-outweighs",
     .evidence = "penalty",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_penalty,
     .cause =
         "The penalty on the weights makes up {percent:g3} % of the loss at first, so training "
         "shrinks the weights instead of fitting the data",
     .numbers = "penalty {penalty_first:g4} at first, {penalty:g4} at last; loss of the data "
                "{fit_first:g4} and {fit:g4}",
     .advice = "Lower the factor of the penalty by some orders of magnitude, or use a mean instead "
               "of a sum over the weights",
     .source = "Goodfellow et al. 2016 (Deep Learning), chapter 7: parameter norm penalties"},
    {.name = "signed-targets",
     .evidence = "signed-targets",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_signed,
     .cause = "The targets of {loss} must be 1 or -1, but {percent:g3} % of them have another "
              "value: a target of 0 adds nothing to the loss, or the wrong thing",
     .numbers = "targets from {low:g3} to {high:g3}; in {steps|observed step}",
     .advice = "Map labels of 0 and 1 to -1 and 1: 2 * y - 1",
     .source = "PyTorch documentation of CosineEmbeddingLoss, MarginRankingLoss, "
               "HingeEmbeddingLoss and SoftMarginLoss"},
    {.name = "hinge-labels",
     .evidence = "hinge-labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "The hinge loss max(0, 1 - y f(x)) is given labels of 0 and 1: where y is 0 it is 1 "
              "whatever the output, so those examples are not learnt; it wants -1 and 1",
     .numbers = "labels of 0 and 1 only in {steps|observed step}",
     .advice = "Map the labels: 2 * y - 1",
     .source = "Rosasco et al. 2004 (loss functions of classification)"},
    {.name = "self-compared",
     .evidence = "self-compared",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "{loss} compares a value with itself: its input and its target are equal in each "
              "element, so the loss is 0 and nothing is learnt",
     .numbers = "equal in {held} of {steps|observed step}; shape {shape}",
     .advice = "Pass the data as the target: a variable may have been overwritten by the output",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong loss calculation"},
    {.name = "target-in-graph",
     .evidence = "bootstrap",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_bootstrap,
     .cause =
         "The target of the temporal difference is not detached: it is a reward plus {factor:g3} "
         "times {estimate}, an estimate of the network that is trained, so gradients move the "
         "target towards the prediction as well",
     .numbers = "in {steps|observed step}",
     .advice = "Compute the target under torch.no_grad(), or detach it, best from a target network",
     .look = "node {node}, why loss",
     .source = "Mnih et al. (Nature 2015); Baird 1995: residual gradients"},
    {.name = "overlap-minimised",
     .evidence = "overlap",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_always,
     .cause = "The loss is the overlap of outputs and targets itself (the Dice or Jaccard "
              "coefficient), which is 1 for a perfect result: descent makes it 0, so the network "
              "learns the opposite",
     .numbers = "in {held} of {steps|observed step}",
     .advice = "Return 1 - coefficient, or its negative",
     .source = "Milletari et al. 2016 (V-Net)"},
    {.name = "class-weights-inverted",
     .evidence = "class-weights",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_weights,
     .cause = "The weights of the classes grow with their frequency, so rare classes count even "
              "less: class {most} is the most frequent and has the weight {most_weight:g3}, class "
              "{least} the rarest and {least_weight:g3}",
     .numbers = "{most_count:n} labels of class {most} and {least_count:n} of class {least} in the "
                "observed steps",
     .advice = "Use inverse frequencies: weight = total / (classes * count)",
     .source = "PyTorch documentation of CrossEntropyLoss: weight"},
    {.name = "positive-weight-inverted",
     .evidence = "pos-weight",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_positive,
     .cause = "pos_weight is upside down: {percent:g3} % of the targets are positive, and their "
              "weight is {weight:g3}, positives over negatives instead of negatives over positives",
     .numbers = "{count:n} targets in {steps|observed step}",
     .advice = "Use pos_weight = negatives / positives, here about {wanted:g3}",
     .source = "PyTorch documentation of BCEWithLogitsLoss: pos_weight"},
    {.name = "target-scale",
     .evidence = "target-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scale_of_targets,
     .cause = "The targets of {loss} are far larger than the outputs, and the outputs do not reach "
              "them: their root mean square is {target:g4}, that of the outputs {output:g4}",
     .numbers =
         "mean of the targets {mean:g4}[, deviation {deviation:g4}]; in {steps|observed step}",
     .advice = "Normalize the targets: subtract their mean and divide by their standard deviation",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): missing preprocessing"},
    {.name = "scores-transposed",
     .evidence = "turned-scores",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_turned,
     .cause = "The scores are transposed before {loss}, so that each row is a class and each "
              "column an example; {count} classes and a batch of {count} hide it",
     .numbers = "in {held} of {steps|observed step}",
     .advice = "Pass the scores as (batch, classes), and check it with a batch of another size",
     .source = "PyTorch documentation of CrossEntropyLoss: shape"},
    {.name = "scores-too-close",
     .evidence = "narrow-scores",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_narrow,
     .cause =
         "The scores of {loss} are multiplied by {factor:g3} and differ by {range:g2} at most, "
         "so no probability can move far from 1 / {classes}: the loss cannot fall below "
         "{least:g4}",
     .numbers = "chance is {chance:g4}; in {steps|observed step}",
     .advice = "Divide by the temperature (0.05 to 0.5 is usual) instead of multiplying by it, or "
               "scale the scores up",
     .source = "van den Oord et al. 2018 (InfoNCE); Chen et al. 2020 (SimCLR)"},
    {.name = NULL},
};
