// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the last operators and the loss. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"

/* Whether the piece's observation held in each step in which it was made. */
/* The loss is a softmax or sigmoid of its own, and its input is already probabilities. */
static enum diagnose_verdict judge_probabilities(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    if (!diagnose_has(piece, "made")) {
        cJSON_AddStringToObject(piece, "made", diagnose_text(piece, "applies"));
    }
    cJSON_AddBoolToObject(
        piece, "same", strcmp(diagnose_text(piece, "made"), diagnose_text(piece, "applies")) == 0);
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_single_class(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Rows without several labels may be in some batches. */
static enum diagnose_verdict judge_labels_compete(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_count(piece, "held") >= 3 &&
                   2 * diagnose_count(piece, "held") > diagnose_count(piece, "steps")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Probabilities sum up to 1; the numbers that a negative log likelihood takes are their
 * logarithms, which are never above 0. */
static enum diagnose_verdict judge_logarithm(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece) || !diagnose_is(piece, "probabilities")) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_FAULT;
}

/* A fifth: a few values above 0 may be rounding, or a bonus on purpose. */
static enum diagnose_verdict judge_raw_scores(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece) || diagnose_is(piece, "probabilities") ||
        diagnose_number(piece, "positive", 0) < 0.2) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_targets(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "held", 0) > 0 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* A tenth of the targets is more than outliers; below a hundredth they may be clipped on
 * purpose. */
static enum diagnose_verdict judge_output_range(cJSON *piece, const struct diagnose_evidence *all)
{
    double outside = diagnose_number(piece, "outside", 0);
    bool often = 2 * diagnose_number(piece, "held", 0) > diagnose_number(piece, "steps", 0);

    (void)all;
    if (!often || diagnose_is(piece, "scores") || outside < 0.01) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * outside);
    return outside >= 0.1 ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_score_range(cJSON *piece, const struct diagnose_evidence *all)
{
    double outside = diagnose_number(piece, "outside", 0);

    (void)all;
    if (!diagnose_holds_always(piece) || !diagnose_is(piece, "scores")) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * outside);
    return outside >= 0.1 ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Scores of classes that cannot be negative, or lie between -1 and 1, limit the probabilities. */
static enum diagnose_verdict judge_limited(cJSON *piece, const struct diagnose_evidence *all)
{
    const char *made = diagnose_text(piece, "made");

    (void)all;
    return diagnose_holds_always(piece) &&
                   (strncmp(made, "relu", 4) == 0 || strncmp(made, "tanh", 4) == 0)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_pairs(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* The only terms that measure an error are increased by descent, or decreased by ascent. Two
 * parameters: a single one may be an input that is to mislead the network. */
static enum diagnose_verdict judge_maximised(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece) || diagnose_is(piece, "chosen") ||
        diagnose_number(piece, "parameters", 0) < 2) {
        return DIAGNOSE_SILENT;
    }
    cJSON_AddStringToObject(piece, "how",
                            diagnose_is(piece, "maximize")
                                ? "is maximized by the optimizer (maximize=True)"
                                : "enters it with a negative sign");
    return DIAGNOSE_FAULT;
}

/* Where a log-likelihood is meant to be low, as for an entropy, something else bounds it. */
static bool falls_without_bound(const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double early = course ? diagnose_number(course, "early", NAN) : NAN;
    double late = course ? diagnose_number(course, "late", NAN) : NAN;

    return late < 0 && early - late > 5 * fmax(fabs(early), 1);
}

static enum diagnose_verdict judge_unlikely(cJSON *piece, const struct diagnose_evidence *all)
{
    if (!diagnose_holds_always(piece) || !diagnose_is(piece, "chosen")) {
        return DIAGNOSE_SILENT;
    }
    return !diagnose_is(piece, "density") || falls_without_bound(all) ? DIAGNOSE_SUSPECT
                                                                      : DIAGNOSE_SILENT;
}

/* Where the factor is a cost the sign is right: only the owner knows. */
static enum diagnose_verdict judge_policy(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* An error that is averaged before it is squared. Means of outputs and of data are compared on
 * purpose at times (matching of moments). */
static enum diagnose_verdict judge_cancels(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    bool falls = course && diagnose_number(course, "late", 0) < 0;

    if (!diagnose_holds_always(piece) || (diagnose_is(piece, "signed") && !falls)) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "difference") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* 20: a likelihood of densities may become negative, but not by that much. */
static enum diagnose_verdict judge_falling(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double early = course ? diagnose_number(course, "early", 0) : 0;
    double late = course ? diagnose_number(course, "late", 0) : 0;

    if (!diagnose_holds_always(piece) || late > -20 * fmax(1, fabs(early)) ||
        diagnose_number(course, "last", 0) > 0.1 * diagnose_number(course, "smallest", 0)) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "early", early);
    diagnose_set(piece, "late", late);
    return DIAGNOSE_SUSPECT;
}

/* Where the loss stays above 0, something else keeps the errors positive. */
static enum diagnose_verdict judge_one_sided(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double late = course ? diagnose_number(course, "late", 0) : 0;

    if (!diagnose_holds_always(piece) || late >= 0) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "early", diagnose_number(course, "early", 0));
    diagnose_set(piece, "late", late);
    return DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_advantage(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* The first argument is what is trained; the reverse divergence is computed on purpose at times. */
static enum diagnose_verdict judge_kl_swapped(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && diagnose_is(piece, "target_trained") &&
                   !diagnose_is(piece, "input_trained")
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_kl_input(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && diagnose_is(piece, "input_is_probabilities")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* 0.05: of a logarithm of a sum; of log-probabilities it is 0. */
static enum diagnose_verdict judge_kl_scores(cJSON *piece, const struct diagnose_evidence *all)
{
    bool raw = !diagnose_is(piece, "input_is_probabilities") && !diagnose_is(piece, "input_is_log");

    (void)all;
    return diagnose_holds_always(piece) && raw &&
                   fabs(diagnose_number(piece, "input_total", 0)) > 0.05 &&
                   diagnose_is(piece, "target_is_probabilities")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_kl_target(cJSON *piece, const struct diagnose_evidence *all)
{
    bool log_target = diagnose_is(piece, "log_target");

    (void)all;
    if (!diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    if (log_target) {
        return diagnose_is(piece, "target_is_probabilities") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "target_is_log") || diagnose_number(piece, "min_target", 0) < -1e-3
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Above a half the true class gets less than the others together: meant is 0.1, not 0.9. */
static enum diagnose_verdict judge_smoothing(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "own", 1));
    return diagnose_number(piece, "smoothing", 0) > 0.5 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* Of sequences, the ignored class may be the padding. */
static enum diagnose_verdict judge_ignored(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_number(piece, "share", 0);

    (void)all;
    if (2 * diagnose_number(piece, "held", 0) < diagnose_number(piece, "steps", 0) ||
        diagnose_is(piece, "sequences")) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * share);
    /* half of what equal classes would have: a label that stands for "unknown" is rarer or rows
     * of it are left out */
    return share * diagnose_number(piece, "classes", 2) >= 0.5 ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

/* A tenth: less padding changes little. */
static enum diagnose_verdict judge_padding(cJSON *piece, const struct diagnose_evidence *all)
{
    double share = diagnose_number(piece, "share", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * share);
    return diagnose_holds_always(piece) && share >= 0.1 ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* A sum is a mistake where the step was chosen for a mean: where the loss did not fall. */
static enum diagnose_verdict judge_sum(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double early = course ? diagnose_number(course, "early", 0) : 0;
    double late = course ? diagnose_number(course, "late", 0) : 0;
    bool bad = course && (diagnose_has(course, "not_finite_since") || late > 2 * early);

    return diagnose_number(piece, "count", 0) >= 2 && bad && early > 0 ? DIAGNOSE_SUSPECT
                                                                       : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_class_axis(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_poisson(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Where rows of the batch stand out, the batch is the cause; a spike alone may have many. */
static enum diagnose_verdict judge_spike(cJSON *piece, const struct diagnose_evidence *all)
{
    double usual = diagnose_number(piece, "usual", 0);

    (void)all;
    if (usual <= 0) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "times", diagnose_number(piece, "loss", 0) / usual);
    if (diagnose_number(piece, "count", 0) > 0) {
        diagnose_set(piece, "far",
                     diagnose_number(piece, "size", 0) / diagnose_number(piece, "typical", 1));
        return DIAGNOSE_SUSPECT;
    }
    return DIAGNOSE_NOTE;
}

const struct diagnose_rule diagnose_rules_loss[] = {
    {.name = "normalised-twice",
     .evidence = "loss-input",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_probabilities,
     .cause =
         "[{?same}{made} is applied twice][{!same}{made} and {applies} are both applied]: {loss} "
         "applies {applies} itself, and its input, the output of {node}, already consists of "
         "probabilities",
     .numbers = "values of the input from {min_value:g3} to {max_value:g3}[; sums of its rows from "
                "{sum_min:g4} to {sum_max:g4}]; in {steps|observed step}",
     .advice = "Pass the raw scores (logits) to {loss}: leave out {made}",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of CrossEntropyLoss; Schoop et al., UMLAUT (CHI 2021)"},
    {.name = "one-class",
     .evidence = "one-class",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_single_class,
     .cause = "The softmax is over a single class: over one score it is always 1, so the loss says "
              "nothing about the outputs and their gradient is 0",
     .numbers = "1 score for each example; in {steps|observed step}",
     .advice = "With one score for two classes, use sigmoid and binary cross-entropy "
               "(binary_cross_entropy_with_logits); else give the last layer one output per class",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong activation"},
    {.name = "softmax-of-labels",
     .evidence = "softmax-labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_labels_compete,
     .cause = "softmax makes the {labels} outputs compete: they sum up to 1, while an example has "
              "up to {most:g3} labels, so no output can become 1 for all of them",
     .numbers = "{usual:g3} of {labels} labels per example; in {held} of {steps|observed step}",
     .advice = "Use a sigmoid for each label: binary_cross_entropy_with_logits of the scores",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of BCEWithLogitsLoss; forum threads on multi-label outputs"},
    {.name = "no-logarithm",
     .evidence = "log-likelihood",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_logarithm,
     .cause = "{loss} expects log-probabilities, but its input, the output of {node}, consists of "
              "probabilities: the logarithm is missing",
     .numbers = "values of the input from {min_value:g3} to {max_value:g3}; in {steps|observed "
                "step}",
     .advice = "Use log_softmax in place of softmax, or cross_entropy on the raw scores",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of NLLLoss"},
    {.name = "no-log-softmax",
     .evidence = "log-likelihood",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_raw_scores,
     .cause = "{loss} expects log-probabilities, but its input, the output of {node}, consists of "
              "raw scores (logits): log_softmax is missing, so the loss has no lower bound",
     .numbers = "values of the input from {min_value:g3} to {max_value:g3}[; the exponentials of a "
                "row sum up to {total:g3} instead of 1]; in {steps|observed step}",
     .advice = "Apply log_softmax before {loss}, or use cross_entropy",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of NLLLoss"},
    {.name = "target-range",
     .evidence = "binary-targets",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_targets,
     .cause = "The targets of {loss} are outside of 0 to 1: this loss then has no lower bound, and "
              "outputs are driven to infinity",
     .numbers = "targets from {min_value:g3} to {max_value:g3}; in {held|observed step}",
     .advice = "Map the labels to 0 and 1 (for example (y + 1) / 2 for labels -1 and 1)",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of BCELoss: targets are numbers between 0 and 1"},
    {.name = "output-range",
     .evidence = "output-range",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_output_range,
     .cause =
         "The output ends in {made}, whose results cannot reach the targets: they are {range}, "
         "but the targets range from {min_target:g3} to {max_target:g3}",
     .numbers = "{percent:g3} % of the targets are outside of the range of the output; in "
                "{held|observed step}",
     .advice = "Leave out {made} after the last layer, or scale the targets to its range",
     .look = "node {node}, why loss",
     .source = "Wardat et al., DeepLocalize (ICSE 2021); Zhang et al., AutoTrainer (ICSE 2021)"},
    {.name = "score-range",
     .evidence = "output-range",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_score_range,
     .cause = "{made} is applied to the scores before {loss}: scores that are never negative give "
              "probabilities of 0.5 and above only, and the class 0 cannot be predicted",
     .numbers = "{percent:g3} % of the targets are below 0.5; in {held|observed step}",
     .advice = "Leave out {made} after the last layer",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong activation"},
    {.name = "limited-scores",
     .evidence = "limited-scores",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_limited,
     .cause = "{made} is applied to the scores of the classes before {loss}, which limits the "
              "range of the logits and stops their gradients",
     .numbers = "scores are {range}; in {steps|observed step}",
     .advice = "Pass the raw output of the last layer to {loss}: leave out {made}",
     .look = "node {node}, why loss",
     .source = "Schoop et al., UMLAUT (CHI 2021); Humbatova et al. (ICSE 2020)"},
    {.name = "broadcast",
     .evidence = "broadcast",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_pairs,
     .cause = "{loss} combines shapes {first} and {second} by broadcasting: each output is "
              "compared with every target, not only its own",
     .numbers = "{count:n} x {count:n} pairs; in {steps|observed step}",
     .advice = "Give both the same shape: squeeze(1) the one, or unsqueeze(1) the other",
     .look = "node {node}, why loss",
     .source = "PyTorch's warning of mse_loss on target sizes that differ from the input size"},
    {.name = "maximised",
     .evidence = "maximised",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_maximised,
     .cause = "The loss has the wrong sign: {loss} {how}, so each step increases the error instead "
              "of reducing it",
     .numbers = "the loss was {value:g4}; in {steps|observed step}",
     .advice = "Remove the minus sign, or maximize=True: the error is to be minimised",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong loss calculation"},
    {.name = "errors-cancel",
     .evidence = "cancels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_cancels,
     .cause =
         "[{?difference}The errors are averaged over the batch before they are squared]"
         "[{?means}The mean of the outputs is compared with the mean of the targets]"
         "[{?signed}The errors are averaged with their signs, without a square or magnitude], so "
         "errors of different examples cancel: the loss says nothing about a single one",
     .numbers = "in {steps|observed step}",
     .advice = "Compute the loss of each example first, and then its mean over the batch: "
               "(output - target).pow(2).mean(), or mse_loss",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong loss calculation"},
    {.name = "one-sided-errors",
     .evidence = "one-sided",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_one_sided,
     .cause = "Errors enter the loss with their sign: those of one sign lower it, so it falls "
              "without a lower bound as the outputs move past the targets",
     .numbers = "loss {early:g4} at first, {late:g4} at last; in {steps|observed step}",
     .advice = "Make each term positive on its side: of a quantile q, "
               "max(q * error, (q - 1) * error)",
     .look = "node {node}, why loss",
     .source = "scikit-learn issue 6076; Koenker and Bassett 1978 (quantile regression)"},
    {.name = "unbounded-loss",
     .evidence = "falling-term",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_falling,
     .cause = "The loss falls without a lower bound: a term that can grow without limit ({name}) "
              "enters it with a negative sign",
     .numbers = "loss {early:g4} at first, {late:g4} at last",
     .advice =
         "Change the sign of that term (the KL divergence of a VAE is -0.5 * (1 + logvar - mu^2 "
         "- exp(logvar))), or limit it",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong loss calculation"},
    {.name = "advantage-in-graph",
     .evidence = "advantage",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_advantage,
     .cause = "The advantage {factor} is not detached: the policy loss, log-probability times "
              "advantage, also trains what estimates the value",
     .numbers = "in {steps|observed step}",
     .advice = "Multiply with advantage.detach(); train the value by a loss of its own",
     .look = "node {node}, why loss",
     .source =
         "Mnih et al., Asynchronous Methods for Deep RL (2016); forum threads on actor-critic"},
    {.name = "likelihood-sign",
     .evidence = "maximised",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_unlikely,
     .cause =
         "The loss has the wrong sign: log-probabilities of the data (their log-likelihood) are "
         "minimised; the minus of a negative log likelihood is missing",
     .numbers = "the loss was {value:g4}; in {steps|observed step}",
     .advice = "Minimise the negative: -log_prob.mean()",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of torch.distributions: score function"},
    {.name = "policy-sign",
     .evidence = "policy-sign",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_policy,
     .cause = "The policy loss has the wrong sign if {factor} is an advantage or a reward: "
              "log-probability times advantage is minimised, so that good actions become less "
              "likely; the minus is missing",
     .numbers = "{node} multiplies {log} by {factor}, and reaches the loss with a positive sign; "
                "in {steps|observed step}",
     .advice = "Minimise -(log_prob * advantage).mean(); leave it if the factor is a cost",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of torch.distributions: score function"},
    {.name = "kl-arguments",
     .evidence = "kl-arguments",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_kl_input,
     .cause = "kl_div expects log-probabilities as its first argument, but gets probabilities: the "
              "logarithm is missing",
     .numbers = "the rows of the input sum up to 1; in {steps|observed step}",
     .advice = "Pass log_softmax(scores) as the first argument, and probabilities as the second",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of KLDivLoss"},
    {.name = "kl-swapped",
     .evidence = "kl-arguments",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_kl_swapped,
     .cause =
         "The arguments of kl_div are swapped, it seems: the first one, which the loss is to move, "
         "needs no gradient, and the target is what is trained",
     .numbers = "in {steps|observed step}",
     .advice =
         "Pass the log-probabilities of the model that is trained first, and those that it is to "
         "match as the target (detached)",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of KLDivLoss: input and target"},
    {.name = "kl-scores",
     .evidence = "kl-arguments",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_kl_scores,
     .cause = "kl_div expects log-probabilities as its first argument, but gets raw scores "
              "(logits) of {made}: log_softmax is missing",
     .numbers = "the logarithm of the sum of a row's exponentials is {input_total:g3} instead of "
                "0; in {steps|observed step}",
     .advice = "Pass log_softmax(scores) as the first argument",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of KLDivLoss"},
    {.name = "kl-target",
     .evidence = "kl-arguments",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_kl_target,
     .cause = "The target of kl_div is of the wrong kind: log_target is {log_target}, but the "
              "target has values down to {min_target:g3}: probabilities and log-probabilities are "
              "mixed up",
     .numbers = "in {steps|observed step}",
     .advice = "Pass probabilities (softmax) as the second argument, or log-probabilities together "
               "with log_target=True",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of KLDivLoss"},
    {.name = "poisson-input",
     .evidence = "poisson-input",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_poisson,
     .cause = "The exponential is applied twice: poisson_nll_loss with log_input=True takes the "
              "logarithm of the rate, but its input, the output of {node_made}, is already the "
              "rate ({made})",
     .numbers = "in {steps|observed step}",
     .advice = "Leave out {made}, or pass log_input=False",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of PoissonNLLLoss"},
    {.name = "label-smoothing",
     .evidence = "label-smoothing",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_smoothing,
     .cause = "Label smoothing of {smoothing:g3} leaves the true class {percent:g3} % of the "
              "target: the labels hardly matter",
     .numbers = "{classes} classes; in {steps|observed step}",
     .advice = "Use a small label_smoothing, usually 0.1: it is the share that is taken away from "
               "the true class",
     .look = "node {node}, why loss",
     .source = "Szegedy et al. 2016; PyTorch documentation of CrossEntropyLoss"},
    {.name = "ignored-class",
     .evidence = "ignored-class",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_ignored,
     .cause = "ignore_index={ignored} leaves a class out of the loss: {percent:g3} % of the labels "
              "are class {ignored}, and the network never learns it",
     .numbers = "{classes} classes; in {held|observed step}",
     .advice = "Remove ignore_index, or use a value that is not a class (-100)",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of CrossEntropyLoss: ignore_index"},
    {.name = "padded-loss",
     .evidence = "padded-loss",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_padding,
     .cause = "Padding counts in the loss: the labels of padded positions ({pad}) are treated as a "
              "class, and no position is ignored",
     .numbers = "{percent:g3} % of the labels are padding: runs of {pad} at the end of rows, where "
                "the tokens end in runs of {token}; in {steps|observed step}",
     .advice = "Pass ignore_index={pad} (or label the padding -100), or mask the loss",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of CrossEntropyLoss: ignore_index"},
    {.name = "sum-loss",
     .evidence = "sum-loss",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_sum,
     .cause = "The loss is a sum over the batch, not a mean (reduction='sum'): its gradients are "
              "as many times as large, and the training diverges",
     .numbers = "a sum over {count|value}; in {steps|observed step}",
     .advice = "Use reduction='mean', or divide the learning rate by the number of examples",
     .look = "node {node}, why loss",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong loss calculation"},
    {.name = "class-axis",
     .evidence = "class-axis",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_class_axis,
     .cause = "{loss} takes axis 1 as the classes, but the output of {node_made} has them along "
              "the last axis: positions and classes are mixed up",
     .numbers = "both axes have {classes} elements; in {steps|observed step}",
     .advice = "Pass scores.transpose(1, 2), or flatten both: scores.flatten(0, 1) and "
               "targets.flatten()",
     .look = "node {node}, why loss",
     .source = "PyTorch documentation of CrossEntropyLoss: shape of the input"},
    {.name = "loss-spike",
     .evidence = "loss-spike",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_spike,
     .cause =
         "The loss spikes in step {step}: {loss:g4}, {times:g3} times the usual {usual:g3}[, "
         "with gradients of norm {norm:g3}][ instead of {usual_norm:g3}][{?count}, and {count} of "
         "the {of} rows of that batch have {part} about {far:g3} times as large as other "
         "rows]",
     .numbers = "{spikes|spike}, in step {steps}[{?count}; rows {rows} of the batch: {size:g3} on "
                "average, others {typical:g3}][; batch {batch} of epoch {epoch}]",
     .advice = "[{?count}Look at these rows: outliers, wrong units or weights. Remove or clip "
               "them][{!count}Save the batch of that step (catch loss-spike) and look at its "
               "rows]; clip the gradient norm, so that one batch cannot undo the training",
     .look = "catch loss-spike, rerun",
     .source = "Chowdhery et al., PaLM (2022), 5.1: loss spikes by batches"},
    {.name = NULL},
};
