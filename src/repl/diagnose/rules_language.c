// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about language models: labels and tokens, routers of experts, adapters, tied weights. */
#include "repl/diagnose/rule.h"

#define FEW_LOOKS 3
#define LATE_STEP 64   /* later than that, an autoencoder uses more than a few codes */
#define HUGE      50   /* a score; the softmax of scores that differ by 10 is one-hot */
#define GROWTH    4    /* times the first score */
#define SHARP     0.5  /* of the rows have one weight above 0.999 */
#define UNLEARNED 0.95 /* of the loss of a guess by frequency */
#define LEARNED   0.85
#define MOST_OF   0.5 /* of the labels */
#define OFTEN     0.9 /* of the batches; in one, all sequences may have the same length */
#define MUCH_MORE 4   /* times as many labels: with sequences of similar length it is below 2 */

static enum diagnose_verdict judge_masked(cJSON *piece, const struct diagnose_evidence *all)
{
    double masked = diagnose_number(piece, "masked", 0);

    (void)all;
    if (masked == 0) {
        return DIAGNOSE_SILENT;
    }
    return masked == diagnose_number(piece, "calls", 0) ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

/* How the labels lie to the tokens must be the same in each batch that could be compared. */
static bool is_steady(const cJSON *piece, const char *key)
{
    double compared = diagnose_number(piece, "compared", 0);

    return compared >= FEW_LOOKS && diagnose_number(piece, key, 0) == compared;
}

/* A second head may predict the token after the next one beside another that predicts the next. */
static enum diagnose_verdict judge_shifted_twice(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return is_steady(piece, "after_next") && diagnose_number(piece, "straight", 0) == 0
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_unshifted(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    if (diagnose_number(piece, "straight", 0) > 0) { /* an encoder may read what a decoder writes */
        return DIAGNOSE_SILENT;
    }
    if (is_steady(piece, "previous") && !is_steady(piece, "after_next")) {
        diagnose_set(piece, "backwards", 1);
        return DIAGNOSE_SUSPECT;
    }
    if (is_steady(piece, "same") && diagnose_is(piece, "causal")) {
        diagnose_set(piece, "unshifted", 1);
        return DIAGNOSE_SUSPECT;
    }
    return DIAGNOSE_SILENT;
}

/* Nine of ten rows for one expert; or half of the experts were never chosen. */
static enum diagnose_verdict judge_uneven(cJSON *piece, const struct diagnose_evidence *all)
{
    double least = diagnose_number(piece, "least", 0), most = diagnose_number(piece, "most", 0);

    (void)all;
    if (diagnose_number(piece, "uneven", 0) < FEW_LOOKS || least <= 0 || most <= least) {
        return DIAGNOSE_SILENT;
    }
    return most > MUCH_MORE * least ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

static enum diagnose_verdict judge_router(cJSON *piece, const struct diagnose_evidence *all)
{
    double experts = diagnose_number(piece, "experts", 0),
           unused = diagnose_number(piece, "unused", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    if (diagnose_number(piece, "full", 0) >= FEW_LOOKS || (experts > 2 && 2 * unused >= experts)) {
        return DIAGNOSE_SUSPECT;
    }
    return unused > 0 && experts > 2 ? DIAGNOSE_NOTE : DIAGNOSE_SILENT;
}

/* At the start a few codes may be the nearest to all vectors; the others come into use. */
static enum diagnose_verdict judge_codebook(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    return diagnose_number(piece, "few", 0) >= FEW_LOOKS &&
                   diagnose_number(piece, "step", 0) >= LATE_STEP
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Scores that have grown past where the softmax is one-hot: hardly any gradient comes back. */
static enum diagnose_verdict judge_scores(cJSON *piece, const struct diagnose_evidence *all)
{
    double first = diagnose_number(piece, "first", 0), last = diagnose_number(piece, "last", 0);
    double share = diagnose_number(piece, "share", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * share);
    return diagnose_number(piece, "looks", 0) >= FEW_LOOKS && last >= HUGE &&
                   last >= GROWTH * first && share >= SHARP
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* What comes before a separator can only be guessed by its frequency, what comes after it
 * is learned. */
static enum diagnose_verdict judge_prompt(cJSON *piece, const struct diagnose_evidence *all)
{
    double before = diagnose_number(piece, "before", 0), after = diagnose_number(piece, "after", 0);
    double before_guess = diagnose_number(piece, "before_guess", 0),
           after_guess = diagnose_number(piece, "after_guess", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    return before_guess > 1 && after_guess > 0.5 && diagnose_number(piece, "share", 0) >= MOST_OF &&
                   before >= UNLEARNED * before_guess && after <= LEARNED * after_guess
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_end(cJSON *piece, const struct diagnose_evidence *all)
{
    double looks = diagnose_number(piece, "end_looks", 0);

    (void)all;
    return looks >= FEW_LOOKS && diagnose_number(piece, "widths", 0) > 1 &&
                   diagnose_number(piece, "ends", 0) >= OFTEN * looks
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A table of a model whose other parts are trained. What was learned elsewhere is not random. */
static enum diagnose_verdict judge_frozen_table(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_LOOKS && diagnose_is(piece, "random")
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_twin(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_LOOKS &&
                   (diagnose_is(piece, "memory") || !diagnose_is(piece, "equal"))
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_language[] = {
    {.name = "labels-masked",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_masked,
     .cause =
         "Every label is masked: all labels of a batch are ignore_index ({ignore}), so no token "
         "counts, and the mean over none is NaN (a sum is 0)",
     .numbers = "{masked} of {calls} batches examined have no label left",
     .advice =
         "Check how the labels are masked (prompt, padding, truncation): some must remain in each "
         "batch",
     .source =
         "PyTorch documentation of CrossEntropyLoss, ignore_index; huggingface/trl threads on "
         "completion-only collators"},
    {.name = "shifted-twice",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_shifted_twice,
     .cause =
         "The labels are shifted twice: each position is trained to predict the token two places "
         "ahead, the next but one, because the labels were already shifted before a model that "
         "shifts them itself",
     .numbers =
         "in {after_next} of {compared} batches the label at each position is the input token two "
         "places later, in none the next one",
     .advice =
         "Pass labels equal to input_ids to a model that shifts them itself, or shift once, by "
         "hand",
     .look = "why loss",
     .source = "Transformers documentation of GPT2LMHeadModel, labels (shifted inside the model)"},
    {.name = "unshifted-labels",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_unshifted,
     .cause =
         "The labels are not shifted to the next token: [{?unshifted}each position is trained to "
         "repeat the token that it reads][{?backwards}each position is trained to predict the "
         "previous token, which it has read already]",
     .numbers = "in all {compared} batches compared",
     .advice = "Shift by one: scores\\[:, :-1\\] against tokens\\[:, 1:\\]",
     .look = "why loss",
     .source = "Transformers documentation of causal language modeling"},
    {.name = "uneven-micro-batches",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_uneven,
     .cause =
         "The losses of accumulated micro-batches are normalized each by its own number of "
         "tokens, and these differ: a token of a short micro-batch weighs more than one of a long "
         "one",
     .numbers = "{least} to {most} labels in a micro-batch, in {uneven} of {split} steps examined",
     .advice =
         "Sum the losses (reduction='sum') and divide by the number of tokens of all micro-batches "
         "of the step",
     .source = "Hugging Face, Fixing Gradient Accumulation (2024)"},
    {.name = "router-collapse",
     .evidence = "router",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_router,
     .cause =
         "The router collapses: it sends {percent:g3} % of the tokens to expert {expert}[, and "
         "{unused} of {experts} experts were never chosen]: an expert that is not chosen gets no "
         "gradient and stays dead",
     .numbers = "{rows|token} and {experts|expert} in step {step}; {looks|step} examined",
     .advice =
         "Add a load-balancing loss (or noise) to the router, and start its weights small and its "
         "bias at 0",
     .look = "print {node}",
     .source = "Shazeer et al. 2017; Fedus et al., Switch Transformer (2021)"},
    {.name = "codebook-collapse",
     .evidence = "codebook",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_codebook,
     .cause =
         "The codebook collapses: a batch uses {used} of its {codes} codes, and code "
         "{code} stands for {percent:g3} % of the vectors, so what is quantized carries almost no "
         "information, and codes that are not chosen never change",
     .numbers = "{rows} vectors in step {step}; as few in the last {few|step} examined; "
                "at most {most_used|code} in a batch",
     .advice = "Start the codes at the scale of the encoder's outputs (at vectors of a first "
               "batch, or by k-means), set codes that are not used to such vectors again, and "
               "weigh the commitment loss",
     .source = "van den Oord et al. 2017 (VQ-VAE); Kaiser et al. 2018: index collapse"},
    {.name = "adapter-without-effect",
     .evidence = "zero-layer",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_suspect,
     .cause = "{names}[ and {more} more] are all 0 and stay so, because [{?frozen}they are frozen "
              "(requires_grad is False)][{!frozen}no optimizer has them]: these layers (such as "
              "the B of "
              "a LoRA adapter) have no effect",
     .numbers = "{count|weight} all 0 after {steps|step}",
     .advice =
         "Pass these parameters to the optimizer, with requires_grad=True, after the adapter was "
         "added",
     .source = "Hu et al., LoRA (2021): B starts at 0"},
    {.name = "prompt-in-loss",
     .evidence = "prompt",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_prompt,
     .cause =
         "The prompt is in the loss: {percent:g3} % of the labels are tokens before the "
         "separator (token {token}), which cannot be predicted, so most of the loss and of the "
         "gradient is noise of the prompt",
     .numbers =
         "loss before the separator {before:g3}, by frequency alone {before_guess:g3}; after "
         "it {after:g3}, by frequency alone {after_guess:g3}; {looks|observed step}",
     .advice = "Mask the labels of the prompt: labels\\[:, :prompt_length\\] = -100 "
               "(completion_only_loss in trl)",
     .source = "TRL documentation: SFTTrainer, completion_only_loss"},
    {.name = "end-masked",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_end,
     .cause =
         "The end token is masked: token {end} ends every sequence, also the longest one, and "
         "is the padding, too; where the padding is masked ({ignore}), so is the real end, and "
         "the model never learns to stop",
     .numbers = "in {ends} of {end_looks} batches; {widths} different lengths",
     .advice = "Use a padding token of its own (pad_token is not eos_token), or mask the labels by "
               "the attention mask",
     .source = "Transformers documentation: DataCollatorForLanguageModeling; issues on pad_token = "
               "eos_token"},
    {.name = "attention-scores-grow",
     .evidence = "attention-scores",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scores,
     .cause = "The attention scores (logits) of {node} grow until its softmax is saturated: the "
              "largest of head {head} is {last:g3}, and was {first:g3} in step {first_step}, so "
              "nearly all weight is on one position and hardly any gradient comes back",
     .numbers = "in step {step} {percent:g3} % of the rows of that head have a weight above 0.999; "
                "{heads|head}",
     .advice =
         "[{!divided}Divide the scores by sqrt(d) of the head, or normalize][{?divided}Normalize] "
         "queries and keys, or lower the learning rate",
     .look = "print {node}, watch {node}",
     .source = "Wortsman et al. 2023; Dehghani et al. 2023 (ViT-22B)"},
    {.name = "embedding-frozen",
     .evidence = "frozen-table",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_frozen_table,
     .cause = "The embedding {node} is frozen (requires_grad is False), and its values are random: "
              "no token vector is ever trained, while the rest of the model is",
     .numbers = "{rows|row} of {width}; no direction varies more than in a random sample; "
                "{steps|step}",
     .advice = "Set requires_grad to True: Embedding.from_pretrained(vectors, freeze=False), for "
               "its default is to freeze; or load vectors that were trained",
     .look = "print {node}",
     .source = "PyTorch documentation of Embedding.from_pretrained: freeze"},
    {.name = "tied-weights",
     .evidence = "twin",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_twin,
     .cause =
         "{head} starts as a copy of the embedding {table}, but is not tied to it[{?was_tied} any "
         "longer (it was before)]: [{?memory}they are two parameters with the same memory, so each "
         "is updated over the other's update][{!memory}they part with the first update]",
     .numbers = "[{!close}equal before the first update][{?close}in step {since} they differ by "
                "{apart:g3} % of their norm]; after {steps|step} more [{?equal}still "
                "equal][{!equal}different]",
     .advice = "Assign the parameter itself: head.weight = embedding.weight",
     .source = "Press and Wolf, Using the Output Embedding (2017)"},
    {.name = NULL},
};
