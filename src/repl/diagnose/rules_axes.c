// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about axes and structure. */
#include <string.h>

#include "repl/diagnose/rule.h"

#define FEW_STEPS 3

/* An axis has moved without its elements. Of data, only a mere change of order is certain. */
static enum diagnose_verdict judge_reshape(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_is(piece, "trained") || diagnose_is(piece, "pure") ? DIAGNOSE_FAULT
                                                                       : DIAGNOSE_SUSPECT;
}

/* Without one label for each example the axis of the batch is known from the loader only. */
static enum diagnose_verdict judge_recurrence(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "sure") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* Attention to one token, such as a class, may be meant. */
static enum diagnose_verdict judge_one(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_count(piece, "steps") < FEW_STEPS || !diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    return diagnose_is(piece, "pairs") ? DIAGNOSE_NOTE : DIAGNOSE_FAULT;
}

static bool is_softmax(const cJSON *piece)
{
    return strstr(diagnose_text(piece, "operator"), "softmax") != NULL;
}

static enum diagnose_verdict judge_softmax(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && is_softmax(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_normalize(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && !is_softmax(piece) && diagnose_is(piece, "normalises")
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_reduced(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && diagnose_is(piece, "read") ? DIAGNOSE_FAULT
                                                                      : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_causal_mask(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) && diagnose_is(piece, "causal") ? DIAGNOSE_FAULT
                                                                        : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_padding_mask(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    return diagnose_holds_always(piece) && !diagnose_is(piece, "causal") ? DIAGNOSE_FAULT
                                                                         : DIAGNOSE_SILENT;
}

/* Certain where labels say which of the others matches. */
static enum diagnose_verdict judge_diagonal(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (!diagnose_holds_always(piece)) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "largest", 0));
    return diagnose_has(piece, "is_own") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_misplaced(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (strcmp(diagnose_text(piece, "axis"), "batch") == 0) {
        diagnose_set(piece, "over_batch", 1);
    }
    return diagnose_holds_always(piece) && diagnose_number(piece, "steps", 0) >= FEW_STEPS
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_future(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_holds_always(piece) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Of a bag of tokens the order may not matter. Where the order was needed, the loss stays. */
static enum diagnose_verdict judge_positions(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    bool stuck =
        course && diagnose_number(course, "late", 0) > 0.8 * diagnose_number(course, "early", 0);

    if (!diagnose_holds_always(piece) || diagnose_is(piece, "recurrent")) {
        return DIAGNOSE_SILENT;
    }
    return stuck ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

const struct diagnose_rule diagnose_rules_axes[] = {
    {.name = "no-causal-mask",
     .evidence = "future",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_future,
     .cause = "The model sees the future: the targets are the input shifted by one, but {what}, so "
              "position t reads the token t + 1 that it has to predict",
     .numbers = "sequences of {length|token}; in {steps|observed call}",
     .advice = "Mask later positions (is_causal=True, or an upper triangle of -inf), and do not "
               "read in both directions",
     .look = "node {node}, where",
     .source = "PyTorch documentation of scaled_dot_product_attention: is_causal"},
    {.name = "no-positions",
     .evidence = "positions",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_positions,
     .cause = "No positional encoding: nothing but the tokens themselves enters the attention, so "
              "the network cannot tell the order of the tokens",
     .numbers = "sequences of {length|token}; in {steps|observed step}",
     .advice = "Add an embedding of the positions to that of the tokens (or sines, or rotary "
               "embeddings), if the order matters",
     .look = "node {node}, where",
     .source = "Vaswani et al. 2017, 3.5"},
    {.name = "positions-misplaced",
     .evidence = "misplaced",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_misplaced,
     .cause = "[{?over_batch}The positions are counted over the batch, not over the sequence: all "
              "{length} tokens of a row get the same position, and each of the {rows} rows another "
              "one][{!over_batch}All positions are the same: each of the {length} tokens gets the "
              "same row of the table of positions]",
     .numbers = "vectors of {shape}; attention or recurrence runs over {length}; in "
                "{steps|observed step}",
     .advice =
         "Count along the axis of the tokens: torch.arange(x.size(1)), added as \\[1, T, d\\]",
     .look = "node {node}, where",
     .source = "PyTorch tutorial Language Modeling with nn.Transformer: the encoding expects time "
               "first"},
    {.name = "reshaped",
     .evidence = "reshaped",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_reshape,
     .cause = "{operator} from {before} to {after} does not swap axes: it cuts the elements in "
              "memory order, so the axis of {size} mixes with the others; a transpose or permute "
              "is meant",
     .numbers = "{operator} {before} to {after}; the axis of {size} is at another place; in "
                "{steps|observed call}",
     .advice = "Move axes with transpose() or permute(), and use view() or reshape() only to split "
               "or merge neighbouring axes: view(B, T, heads, d).transpose(1, 2)",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong shape"},
    {.name = "joined-rows",
     .evidence = "joined",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_fault,
     .cause = "cat joins {count|tensor} along axis 0, the batch, and {operator} then cuts the "
              "result into rows again: each row gets values of different examples",
     .numbers = "{count} times {rows|row} become {before}, then {after}; in {steps|observed call}",
     .advice = "Join the features: torch.cat([a, b], dim=1), without {operator}",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong axis"},
    {.name = "over-batch",
     .evidence = "recurrence",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_recurrence,
     .cause = "{operator} runs along the batch as if it were time: its input is {shape}, and "
              "batch_first is {batch_first}, so each example depends on the other examples of the "
              "batch",
     .numbers =
         "{examples|example} per batch, along the axis that is taken as {time|time step}; in "
         "{steps|observed step}",
     .advice = "Pass batch_first=True for inputs (batch, time, features), or transpose the input "
               "to (time, batch, features)",
     .look = "node {node}, where",
     .source = "PyTorch documentation of LSTM and MultiheadAttention: batch_first"},
    {.name = "softmax-axis",
     .evidence = "over-batch",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_softmax,
     .cause = "{operator} is computed over axis 0 of {shape}, which is the batch: the examples "
              "share one sum, so the result of each depends on the others",
     .numbers = "{examples|example} per batch, and {rows|row} in the sum; in {steps|observed step}",
     .advice = "Pass the axis that is meant, such as dim=1 or dim=-1",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong axis"},
    {.name = "softmax-of-one",
     .evidence = "softmax-one",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_one,
     .cause = "{operator} runs over an axis of one element (dim={dim} of {shape}), so each result "
              "is {result} whatever the input, and no gradient passes it",
     .numbers = "one element along dim={dim} in {held} of {steps|observed call}",
     .advice = "Pass the axis that is meant (of attention weights, that of the positions), or use "
               "sigmoid for a single output",
     .look = "node {node}, where",
     .source = "PyTorch documentation of softmax; forum threads on softmax of a single output"},
    {.name = "normalised-axis",
     .evidence = "over-batch",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_normalize,
     .cause = "{operator} is computed over axis 0 of {shape}, which is the batch, not over the "
              "features: the result of each example depends on the others",
     .numbers = "{examples|example} per batch; in {steps|observed step}",
     .advice = "Pass the axis that is meant, such as dim=1 or dim=-1",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong axis"},
    {.name = "reduced-batch",
     .evidence = "over-batch",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_reduced,
     .cause = "{operator} is computed over axis 0 of {shape}, which is the batch, and the next "
              "layer reads nothing else: all examples of a batch get the same value",
     .numbers = "{examples|example} per batch; in {steps|observed step}",
     .advice = "Pass the axis that is meant, such as dim=1",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong axis"},
    {.name = "causal-mask-inverted",
     .evidence = "mask-inverted",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_causal_mask,
     .cause = "The causal mask is inverted: each position attends to later positions only, and "
              "the past is masked out",
     .numbers = "scores of {shape}; in {steps|observed step}",
     .advice = "Invert the mask. In scaled_dot_product_attention True means: may attend",
     .look = "node {node}, where",
     .source = "PyTorch documentation of scaled_dot_product_attention: attn_mask"},
    {.name = "mask-inverted",
     .evidence = "mask-inverted",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_padding_mask,
     .cause = "The padding mask is inverted: attention looks at the padded positions (token {pad}) "
              "only, and the real tokens are masked out",
     .numbers = "{percent:g3} % of the positions are padding; scores of {shape}; in "
                "{steps|observed step}",
     .advice = "Invert the mask. In key_padding_mask True means: ignore; in the attn_mask of "
               "scaled_dot_product_attention True means: may attend",
     .look = "node {node}, where",
     .source = "PyTorch documentation of MultiheadAttention: key_padding_mask"},
    {.name = "own-diagonal",
     .evidence = "own-diagonal",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_diagonal,
     .cause = "The diagonal of the similarity matrix, each vector with itself, is not masked out "
              "of {loss}: it is the largest entry of nearly every row and competes with the "
              "matching pair",
     .numbers = "a matrix of {size} x {size}; the diagonal is the largest entry in {percent:g3} % "
                "of the rows; in {steps|observed step}",
     .advice = "Exclude it: sim.masked_fill(torch.eye(n, dtype=torch.bool), float('-inf')) before "
               "the softmax",
     .look = "node {node}, where",
     .source = "Chen et al., SimCLR (ICML 2020): the sum leaves out k = i"},
    {.name = NULL},
};
