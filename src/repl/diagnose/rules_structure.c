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

const struct diagnose_rule diagnose_rules_structure[] = {
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
