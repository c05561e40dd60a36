// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the structure of a network: what is not connected, or reads what it should not. */
#include "repl/diagnose/rule.h"

#define FEW_LOOKS 3

/* In each call that was observed; a twentieth of the positions, so that it matters. */
static enum diagnose_verdict judge_padding(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_number(piece, "steps", 0), share = diagnose_number(piece, "share", 0);

    (void)all;
    if (steps < FEW_LOOKS || diagnose_number(piece, "held", 0) < steps || share < 0.05) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * share);
    return DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_each_step(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_LOOKS ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* Batches of a text in its order continue each other; those of a shuffled loader do not. */
static enum diagnose_verdict judge_carried(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_LOOKS && diagnose_holds_always(piece)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A name that keeps the input, or a block that is called residual: a residual connection. */
static enum diagnose_verdict judge_residual(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_is(piece, "keeps") || !diagnose_has(piece, "name") ? DIAGNOSE_SUSPECT
                                                                       : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_branch(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_has(piece, "name") && !diagnose_is(piece, "keeps") ? DIAGNOSE_SUSPECT
                                                                       : DIAGNOSE_SILENT;
}

/* With scores of a usual size no weight of the first steps is near 1, if there are several. */
static enum diagnose_verdict judge_scores(cJSON *piece, const struct diagnose_evidence *all)
{
    double largest = diagnose_number(piece, "largest", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * largest);
    return largest > 0.75 && diagnose_number(piece, "size", 0) >= 16 ? DIAGNOSE_SUSPECT
                                                                     : DIAGNOSE_SILENT;
}

/* In each step, some parameters have a gradient and others only zeros. */
static enum diagnose_verdict judge_flat(cJSON *piece, const struct diagnose_evidence *all)
{
    double steps = diagnose_number(piece, "steps", 0);

    (void)all;
    return steps >= FEW_LOOKS && diagnose_number(piece, "held", 0) >= steps ? DIAGNOSE_FAULT
                                                                            : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_structure[] = {
    {.name = "made-in-forward",
     .evidence = "made-in-pass",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_each_step,
     .cause = "A layer (or parameter) is created again in each forward pass, so its weights are "
              "random each time, no optimizer holds them, and they are never trained",
     .numbers = "new parameters are read there in {steps|observed step}",
     .advice = "Create it once, in __init__, as an attribute of the module",
     .source = "PyTorch documentation of nn.Module; Humbatova et al. (ICSE 2020)"},
    {.name = "flat-operator",
     .evidence = "flat-operator",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_flat,
     .cause =
         "{operator} has a derivative of 0, so no gradient passes it: those of {parameter} and "
         "of all that comes before are 0, and nothing trains them",
     .numbers =
         "{count} of {of|gradient} are 0 in each element, in {held} of {steps|observed step}",
     .advice =
         "Use a straight-through estimator, x + ({operator}(x) - x).detach(), or leave it out "
         "in training",
     .source = "Bengio et al. 2013 (straight-through estimator)"},
    {.name = "cut-in-time",
     .evidence = "cut-in-time",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_each_step,
     .cause = "The hidden state is detached at each time step, so no gradient flows from one time "
              "step to an earlier one, and nothing is learnt about what happened before",
     .numbers =
         "the module reads its own detached result at least 3 times in {steps|observed step}",
     .advice = "Detach the state once per batch, before the loop over time",
     .source = "PyTorch examples: word_language_model, repackage_hidden"},
    {.name = "state-of-other-examples",
     .evidence = "carried-state",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_carried,
     .cause = "The hidden state is kept from batch to batch though the loader shuffles: each batch "
              "begins with the state in which {operator} left other, unrelated sequences",
     .numbers =
         "its first state is the last one of the previous batch in {held} of {steps|observed "
         "step}; {rows|row} per batch",
     .advice = "Begin each batch with a state of zeros (pass none), or read the text in order: "
               "shuffle=False, with each row of a batch continuing that of the previous one",
     .source = "PyTorch examples: word_language_model; forum threads on when to reset the hidden "
               "state"},
    {.name = "same-layer-twice",
     .evidence = "same-layer",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = diagnose_is_suspect,
     .cause = "{node} holds one {kind_of} {count} times: it is the same object, so these layers "
              "share their weights",
     .numbers = "{count} places, one object",
     .advice = "Create one for each place: \\[make() for _ in range(n)\\] instead of "
               "\\[layer\\] * n, or copy.deepcopy(layer)",
     .source = "PyTorch forum threads on [layer] * n"},
    {.name = "padding-read",
     .evidence = "padding",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_padding,
     .cause = "Padding is not masked: the {what} reads the padded positions (token {pad}) as if "
              "they were data, so the result of an example depends on how far its batch was padded",
     .numbers = "{percent:g3} % of the positions are padding, in sequences of {length|token}; in "
                "{steps|observed call}",
     .advice = "Pass a padding mask (src_key_padding_mask or key_padding_mask=tokens == {pad}), "
               "take means over the real tokens only: (h * mask).sum(1) / mask.sum(1), and pack "
               "sequences for a recurrence (pack_padded_sequence)",
     .look = "node {node}, where",
     .source = "PyTorch documentation of MultiheadAttention: key_padding_mask"},
    {.name = "channel-pool",
     .evidence = "channel-pool",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_each_step,
     .cause = "The {operator} before the linear layer pools over the {channels|channel} of "
              "{shape}, not over the places: what each channel has found is lost",
     .numbers = "{shape}; in {steps|observed step}",
     .advice = "Pool over space or time: mean(dim=(2, 3)) of (N, C, H, W), mean(dim=1) of "
               "(N, T, C)",
     .look = "node {node}, where",
     .source = "Lin et al., Network in Network (2014): global average pooling"},
    {.name = "no-activation",
     .evidence = "no-activation",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_suspect,
     .cause = "An activation is missing: two linear layers follow each other, {inputs} to {middle} "
              "to {outputs}, and together compute no more than one linear layer",
     .numbers = "the first one is {before}; in {steps|observed step}",
     .advice = "Put an activation (such as ReLU) between them, or remove one of them",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): missing activation"},
    {.name = "unscaled-scores",
     .evidence = "unscaled-scores",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scores,
     .cause = "The scores of attention are not scaled by 1 / sqrt({size}): from the start, the "
              "softmax is saturated and each position looks at one other only",
     .numbers = "the largest weight of a position is {largest:g3} on average, of {length}; in "
                "{steps|observed step}",
     .advice = "Divide the scores by the square root of the size of a head, {size}, before the "
               "softmax",
     .look = "node {node}, where",
     .source = "Vaswani et al. 2017, 3.2.1"},
    {.name = "residual-dropped",
     .evidence = "dropped",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_suspect,
     .cause = "A residual connection is missing: each of {blocks|block} {type} adds one branch to "
              "its input, but the result of its [{?first}first][{!first}last] branch replaces "
              "the input instead",
     .numbers = "in {steps|observed step}",
     .advice = "Add what the branch reads: x = x + branch(x)",
     .look = "node {node}, where",
     .source = "He et al., Deep Residual Learning (CVPR 2016)"},
    {.name = "residual-dropped",
     .evidence = "unread",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_residual,
     .cause = "The residual connection is missing: [{?name}{type}.forward() keeps {of} as {name} "
              "and never reads that again][{!name}{type} is called a residual block, but adds "
              "nothing to its input]",
     .numbers = "source of {type}",
     .advice = "Add the input to the result: return x + [{?name}{name}][{!name}branch(x)]",
     .look = "where",
     .source = "He et al., Deep Residual Learning (CVPR 2016)"},
    {.name = "branch-unused",
     .evidence = "unread",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_branch,
     .cause = "The result of a branch is never used: {type}.forward() computes {name} = {of} and "
              "does not read {name} again",
     .numbers = "source of {type}",
     .advice = "Use {name}, or remove the branch",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): missing connection"},
    {.name = NULL},
};
