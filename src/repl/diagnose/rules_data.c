// SPDX-License-Identifier: GPL-3.0-or-later
/* Rules about the data. */
#include <math.h>
#include <string.h>

#include "repl/diagnose/rule.h"
#include "repl/out/out.h"

#define FEW_EVALUATIONS 3

/* Whether the loss of the run has hardly fallen: by less than a fifth, or it is not finite. */
static bool is_stuck(const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");

    return course &&
           (diagnose_has(course, "not_finite_since") ||
            diagnose_number(course, "late", 0) > 0.8 * diagnose_number(course, "early", 0));
}

static enum diagnose_verdict judge_loader(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_is(piece, "loader") ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* The larger part may be for training, and the rest for validation. */
static enum diagnose_verdict judge_picked(cJSON *piece, const struct diagnose_evidence *all)
{
    bool most = diagnose_number(piece, "rows", 0) > diagnose_number(piece, "of", 0) / 3;

    (void)all;
    return diagnose_is(piece, "loader") || most ? DIAGNOSE_SILENT : DIAGNOSE_SUSPECT;
}

/* An operator of the program has made the first value that is not finite, from finite ones. */
static bool is_made_in_graph(const struct diagnose_evidence *all)
{
    const cJSON *first = diagnose_find(all, "why-overflow");
    const char *rule = first ? diagnose_text(first, "rule") : "";

    return rule[0] != '\0' && strncmp(rule, "bad-", 4) != 0;
}

static enum diagnose_verdict judge_nan_column(cJSON *piece, const struct diagnose_evidence *all)
{
    double columns = diagnose_number(piece, "columns", 0);

    out_set(piece, OUT_BOOL("one", columns == 1));
    return columns > 0 && !is_made_in_graph(all) ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_nan_input(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "columns", 0) > 0 ? DIAGNOSE_SILENT : DIAGNOSE_FAULT;
}

/* No state comes again by chance. Once may be a part that is computed again on purpose. */
static enum diagnose_verdict judge_reseeded(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "count", 0) > FEW_EVALUATIONS ? DIAGNOSE_SUSPECT
                                                                : DIAGNOSE_SILENT;
}

/* Of noise, which has no neighbours, the part is 0.75; of an image of two levels no pair counts. */
static enum diagnose_verdict judge_pixels(cJSON *piece, const struct diagnose_evidence *all)
{
    double jumps = diagnose_number(piece, "jumps", 0);

    (void)all;
    diagnose_set(piece, "percent", 100 * jumps);
    return jumps > 0.01 && diagnose_number(piece, "part", 1) < 0.6 &&
                   diagnose_number(piece, "steps", 0) >= FEW_EVALUATIONS
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* More weights than examples are an error that PyTorch reports. */
static enum diagnose_verdict judge_weights_of_sampler(cJSON *piece,
                                                      const struct diagnose_evidence *all)
{
    double weights = diagnose_number(piece, "weights", 0), rows = diagnose_number(piece, "rows", 0);

    (void)all;
    out_set(piece, OUT_BOOL("few", 10 * weights < rows));
    return weights < rows ? DIAGNOSE_FAULT : DIAGNOSE_SILENT;
}

/* Smooth in both directions if read in the other way, by a factor of two, and not as it is. */
static enum diagnose_verdict judge_interleaved(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "steps", 0) >= FEW_EVALUATIONS &&
                   2 * diagnose_number(piece, "row_apart", 0) < diagnose_number(piece, "row", 0) &&
                   2 * diagnose_number(piece, "column_apart", 0) <
                       diagnose_number(piece, "column", 0)
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

static enum diagnose_verdict judge_share(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "percent", 100 * diagnose_number(piece, "share", 0));
    return DIAGNOSE_FAULT;
}

static enum diagnose_verdict judge_vanished(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    diagnose_set(piece, "had", 100 * diagnose_number(piece, "before", 0));
    diagnose_set(piece, "has", 100 * diagnose_number(piece, "after", 0));
    return DIAGNOSE_FAULT;
}

/* Images hold many values; 2 % of them non-zero and none above 1, from whole numbers: a division
 * of whole numbers by the largest one. The line says so, or it is probable. */
static enum diagnose_verdict judge_empty(cJSON *piece, const struct diagnose_evidence *all)
{
    bool whole = diagnose_is(piece, "integers") && diagnose_number(piece, "high", 2) <= 1 &&
                 diagnose_number(piece, "low", -1) >= 0;

    (void)all;
    if (!whole || diagnose_number(piece, "nonzero", 1) > 0.02 ||
        diagnose_number(piece, "steps", 0) < 4 || diagnose_number(piece, "elements", 0) < 64 ||
        diagnose_number(piece, "dims", 0) < 3) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * (1 - diagnose_number(piece, "nonzero", 0)));
    if (diagnose_text(piece, "source_file")[0] != '\0') {
        cJSON_ReplaceItemInObject(piece, "file",
                                  cJSON_CreateString(diagnose_text(piece, "source_file")));
        diagnose_set(piece, "line", diagnose_number(piece, "source_line", 0));
    }
    return diagnose_is(piece, "divides") ? DIAGNOSE_FAULT : DIAGNOSE_SUSPECT;
}

static enum diagnose_verdict judge_constant(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    bool empty = diagnose_is(piece, "integers") && diagnose_number(piece, "nonzero", 1) < 0.02;
    return diagnose_is(piece, "same") && !empty && diagnose_number(piece, "steps", 0) >= 4
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* Weights of usual size make of inputs of 20 and more sums that saturate tanh and softmax, and
 * gradients as many times as large. It is a mistake only where training does not succeed. */
static enum diagnose_verdict judge_scale(cJSON *piece, const struct diagnose_evidence *all)
{
    double largest = diagnose_number(piece, "largest", 0);

    if (diagnose_is(piece, "normed") || largest < 20) {
        return DIAGNOSE_SILENT;
    }
    /* images of bytes, as they were read */
    bool bytes = diagnose_number(piece, "dims", 0) >= 3 && diagnose_number(piece, "low", -1) >= 0 &&
                 diagnose_number(piece, "high", 0) > 100 &&
                 diagnose_number(piece, "high", 0) <= 255;
    out_set(piece, OUT_BOOL("apart", largest > 5 * diagnose_number(piece, "smallest", 0)));
    return is_stuck(all) || bytes || largest > 1000 ? DIAGNOSE_SUSPECT : DIAGNOSE_NOTE;
}

/* 1/255 is the largest value of an image of bytes that was divided by 255 twice. */
static enum diagnose_verdict judge_divided_twice(cJSON *piece, const struct diagnose_evidence *all)
{
    double high = diagnose_number(piece, "high", 0);

    (void)all;
    return diagnose_number(piece, "low", -1) >= 0 && high > 0.9 / 255 && high < 1.001 / 255 &&
                   !diagnose_is(piece, "normed")
               ? DIAGNOSE_FAULT
               : DIAGNOSE_SILENT;
}

/* Of batches of eight and more, nine in ten with a single class while there are several. */
static enum diagnose_verdict judge_order(cJSON *piece, const struct diagnose_evidence *all)
{
    bool several = diagnose_number(piece, "classes", 0) >= 2;
    double single = diagnose_number(piece, "single", 0), rows = diagnose_number(piece, "rows", 0);
    double within = diagnose_number(piece, "within", 1);
    double entropy = diagnose_number(piece, "entropy", 0);

    (void)all;
    if (!several || rows < 8 || diagnose_number(piece, "majority", 1) > 0.9) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * single);
    if (single >= 0.8) {
        return DIAGNOSE_FAULT;
    }
    return within < 0.4 * entropy ? DIAGNOSE_SUSPECT : DIAGNOSE_SILENT;
}

/* At least 85 % of the labels, and every prediction: nothing else was learned. */
static enum diagnose_verdict judge_imbalance(cJSON *piece, const struct diagnose_evidence *all)
{
    double majority = diagnose_number(piece, "majority", 0);

    (void)all;
    if (diagnose_is(piece, "weighted") || diagnose_number(piece, "classes", 0) < 2 ||
        majority < 0.85 || diagnose_number(piece, "guessed", 0) < 1 ||
        diagnose_number(piece, "last_step", 0) < 32) {
        return DIAGNOSE_SILENT;
    }
    diagnose_set(piece, "percent", 100 * majority);
    return DIAGNOSE_SUSPECT;
}

/* K classes from 1 to K, each of which occurs, and K + 1 outputs. */
static enum diagnose_verdict judge_from_one(cJSON *piece, const struct diagnose_evidence *all)
{
    double classes = diagnose_number(piece, "classes", 0);
    double labels = diagnose_number(piece, "rows", 0) * diagnose_number(piece, "steps", 0);

    (void)all;
    /* of tokens, 0 may be padding */
    return diagnose_number(piece, "outputs", 0) == classes + 1 && classes > 1 &&
                   !diagnose_is(piece, "sequences") && labels > 30 * classes &&
                   diagnose_number(piece, "least", 0) == 1
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* A share of correct guesses (or a correlation, whose chance is 0) that chance explains. Pairs of
 * neighbours are not independent of each other, so 2 standard deviations are not rare. */
static bool is_chance(const cJSON *piece, const char *key, double chance, double count)
{
    bool classed = diagnose_is(piece, "classed");
    double variance = classed ? chance * (1 - chance) : 1;

    return diagnose_number(piece, key, 1) < chance + (classed ? 2.5 : 3) * sqrt(variance / count);
}

/* A weak relation, of which both the neighbours and the network find a little: a function that is
 * hard to learn. In standard deviations, squares of normal targets having one of sqrt(2). */
static bool is_weak(const cJSON *piece, double late, double entropy)
{
    double root = sqrt(diagnose_number(piece, "examples", 0));
    double near = root * diagnose_number(piece, "nearest", 0);
    double fallen = root * (1 - late / entropy) / M_SQRT2;

    return !diagnose_is(piece, "classed") && fallen > 0 && near + fmin(fallen, 1.5) > 2.5;
}

/* Whether neither the nearest neighbours nor a linear model find anything in the inputs. */
static bool is_unrelated(const cJSON *piece)
{
    double count = diagnose_number(piece, "examples", 0);
    double majority = diagnose_number(piece, "majority", 0);

    return is_chance(piece, "nearest", diagnose_number(piece, "chance", 0), count) &&
           is_chance(piece, "linear", majority, count / 2);
}

/* Whether what the network has learned never held for examples that it was not trained on. */
static bool is_memorised(const cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *held = diagnose_find(all, "held-out");
    double majority = diagnose_number(held, "majority", 0);
    double examples = diagnose_number(held, "examples", 0);
    double entropy = diagnose_is(piece, "classed") ? diagnose_number(held, "entropy", INFINITY)
                                                   : diagnose_number(piece, "entropy", 0);

    if (!held || diagnose_number(held, "evaluations", 0) < FEW_EVALUATIONS || examples < 32) {
        return false;
    }
    return diagnose_number(held, "best", 0) >= 0.95 * entropy &&
           (!diagnose_has(held, "right") ||
            diagnose_number(held, "right", 0) < majority + 3 * sqrt(majority / examples));
}

/* The labels of the neighbouring row are found in the inputs, with five standard deviations. */
static bool is_moved(cJSON *piece)
{
    double chance = diagnose_number(piece, "majority", 0);
    double count = diagnose_number(piece, "examples", 0) / 2;
    double most = fmax(diagnose_number(piece, "next", 0), diagnose_number(piece, "previous", 0));
    double variance = diagnose_is(piece, "classed") ? chance * (1 - chance) : 1;

    out_set(piece, OUT_BOOL("after", most == diagnose_number(piece, "next", 0)));
    return most > chance + 5 * sqrt(variance / count);
}

/* The network, its nearest neighbours and a linear model find nothing in the inputs. */
static enum diagnose_verdict judge_relation(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *course = diagnose_find(all, "loss-course");
    double entropy = diagnose_number(piece, "entropy", 0);
    double late = diagnose_number(course, "late", 0);
    /* the deviation of a mean of squares is larger than that of an entropy */
    double least = diagnose_is(piece, "classed") ? 0.93 : 0.8;

    if (!course || diagnose_number(course, "steps", 0) < 30 || entropy <= 0 ||
        diagnose_number(piece, "majority", 0) > 0.8 || /* one class hides any relation */
        diagnose_find(all, "no-gradient") ||           /* then the network has not tried */
        !is_unrelated(piece)) {
        return DIAGNOSE_SILENT;
    }
    bool learned = late < least * entropy || is_weak(piece, late, entropy);

    if (learned && !is_memorised(piece, all)) {
        return DIAGNOSE_SILENT;
    }
    out_set(piece, OUT_BOOL("memorised", learned));
    out_set(piece, OUT_BOOL("moved", is_moved(piece)));
    diagnose_set(piece, "near_percent", 100 * diagnose_number(piece, "nearest", 0));
    diagnose_set(piece, "chance_percent", 100 * diagnose_number(piece, "chance", 0));
    diagnose_set(piece, "late", late);
    return DIAGNOSE_SUSPECT;
}

/* Inputs of evaluations of another size than those of the training, or of another sign: images
 * from 0 to 1 beside normalised ones. Where the network does as well on them, it is meant. */
static enum diagnose_verdict judge_held_input(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *held = diagnose_find(all, "held-out"), *course = diagnose_find(all, "loss-course");
    double ratio = diagnose_number(piece, "ratio", 1), shift = diagnose_number(piece, "shift", 0);
    double below = diagnose_number(piece, "negative", 0);
    double held_below = diagnose_number(piece, "held_negative", 0);
    bool images = strncmp(diagnose_text(piece, "operator"), "conv", 4) == 0;
    bool sign = images && fmin(below, held_below) == 0 && fmax(below, held_below) > 0.2;

    if (diagnose_number(piece, "rows", 0) < 32 || diagnose_number(piece, "columns", 0) < 1 ||
        (ratio < 4 && ratio > 0.25 && shift < 6 && !sign)) {
        return DIAGNOSE_SILENT;
    }
    if (held && course &&
        diagnose_number(held, "last", 0) < 1.2 * diagnose_number(course, "late", 0)) {
        return DIAGNOSE_SILENT;
    }
    return DIAGNOSE_SUSPECT;
}

/* Another class for each label, three labels at least; a network that confuses classes guesses the
 * same one for several. */
static enum diagnose_verdict judge_renumbered(cJSON *piece, const struct diagnose_evidence *all)
{
    const cJSON *labels = diagnose_find(all, "labels");
    double right = diagnose_number(piece, "right", 1), usual = diagnose_number(piece, "usual", 0);
    double trained = diagnose_number(labels, "right", 0);
    bool one_to_one = diagnose_number(piece, "guesses", 0) == diagnose_number(piece, "classes", -1);

    diagnose_set(piece, "right_percent", 100 * right);
    diagnose_set(piece, "usual_percent", 100 * usual);
    diagnose_set(piece, "trained_percent", 100 * trained);
    return one_to_one && diagnose_number(piece, "moved", 0) >= 3 && usual > 0.8 &&
                   right < usual - 0.3 && trained > 0.8 &&
                   diagnose_number(piece, "examples", 0) >= 64
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

/* All but a rounding error; of half of the columns and more, the input is the target, as in an
 * autoencoder. Targets that are computed from the input itself may be an exercise. */
static enum diagnose_verdict judge_leak(cJSON *piece, const struct diagnose_evidence *all)
{
    double columns = diagnose_number(piece, "columns", 0);

    (void)all;
    if (!diagnose_is(piece, "tabular") || diagnose_number(piece, "alike", 0) <= 0.9999 ||
        2 * diagnose_number(piece, "matching", 0) >= columns) {
        return DIAGNOSE_SILENT;
    }
    /* a line through one column is also what a first example of regression fits */
    bool certain = diagnose_is(piece, "equal") || diagnose_is(piece, "classed");

    return diagnose_is(piece, "own") || !certain ? DIAGNOSE_NOTE : DIAGNOSE_SUSPECT;
}

/* Of smooth series a few steps before the last one are nearly alike, too. */
static enum diagnose_verdict judge_window(cJSON *piece, const struct diagnose_evidence *all)
{
    (void)all;
    return diagnose_number(piece, "window", 0) >= 4 && diagnose_is(piece, "equal") &&
                   !diagnose_is(piece, "classed") && !diagnose_is(piece, "own") &&
                   diagnose_number(piece, "matching", 0) == 1
               ? DIAGNOSE_SUSPECT
               : DIAGNOSE_SILENT;
}

const struct diagnose_rule diagnose_rules_data[] = {
    {.name = "same-batch",
     .evidence = "same-batch",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_loader,
     .cause = "Each step gets the same batch: the loader has {batches} batches, but it is started "
              "again at every step, or returns its first batch each time",
     .numbers = "the same values in {steps|observed step}",
     .advice = "Iterate over the loader (for batch in loader), or make its iterator once before "
               "the loop, not next(iter(loader)) in each step",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): training data"},
    {.name = "same-rows",
     .evidence = "same-batch",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_picked,
     .cause = "Each step gets the same batch: the same {rows|row} of {of} are selected again, and "
              "the others are never used",
     .numbers = "the same values in {steps|observed step}",
     .advice = "Select other rows in each step: the index does not change",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): training data"},
    {.name = "equal-examples",
     .evidence = "same-rows",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = diagnose_is_suspect,
     .cause = "All {rows|example} of a batch are the same: [{?ids}every token of them is {value}, "
              "as where the vocabulary has none of the words][{!ids}the dataset returns one "
              "example for every index, or one tensor that it fills again]",
     .numbers = "in {steps|observed step}",
     .advice =
         "[{?ids}Prepare words for the look-up as for the vocabulary (lower case, the same "
         "tokenizer)][{!ids}Let __getitem__ use its index, and return a copy of a buffer that "
         "it fills]",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): training data"},
    {.name = "sampler-weights",
     .evidence = "sampler-weights",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_weights_of_sampler,
     .cause = "The sampler gets {weights|weight} for {rows|example}: it draws as many different "
              "examples only, the first ones[{?few}, again and again]",
     .numbers = "{weights} of {rows|example} can be drawn",
     .advice = "Give each example a weight: class_weights[labels]",
     .look = "where",
     .source = "PyTorch documentation of WeightedRandomSampler: weights"},
    {.name = "same-draw",
     .evidence = "same-draw",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_fault,
     .cause = "The same random numbers are drawn in each step: the generator is seeded again "
              "before the draw of {node}",
     .numbers = "equal values of shape {shape} in {steps|observed step}",
     .advice = "Seed once (torch.manual_seed), before the loop",
     .look = "node {node}, where",
     .source = "PyTorch documentation, Reproducibility"},
    {.name = "same-draw",
     .evidence = "reseeded",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_reseeded,
     .cause = "The same random numbers are drawn again: the generator of {generator} is seeded "
              "again while the training runs, so noise, augmentation and order repeat",
     .numbers = "after {count} of {steps|step} its state was one that it had before; first after "
                "step {step}, as after step {before}",
     .advice = "Seed once, before the loop, not in the dataset or in each epoch; give draws that "
               "must repeat a generator of their own",
     .look = "where",
     .source = "PyTorch documentation, Reproducibility"},
    {.name = "same-draw",
     .evidence = "same-order",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = diagnose_is_suspect,
     .cause = "The loader shuffles, but in the same way in each epoch: its generator is seeded "
              "again with the same seed",
     .numbers = "the first {batches|batch} are the same in {epochs|epoch}",
     .advice = "Make the generator once, before the epochs, or seed it with the epoch",
     .look = "where",
     .source = "PyTorch documentation of DataLoader: generator"},
    {.name = "wrapped",
     .evidence = "wrapped-pixels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_pixels,
     .cause = "The pixels of the input wrap around: neighbours jump from one end of the 256 levels "
              "to the other, as after arithmetic of uint8 values that overflows",
     .numbers =
         "{percent:g3} % of the neighbours differ by more than 128 levels; if 255 and 0 were "
         "neighbours, their mean difference would be {part:g2} of what it is; in "
         "{steps|observed step}",
     .advice = "Convert to a wider type before computing (image.astype(numpy.float32)), and clip "
               "to 0 and 255",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong type of data"},
    {.name = "wrapped",
     .evidence = "wrapped",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_share,
     .cause = "{operator} of {type} values wraps around: results from {smallest} to {largest} do "
              "not fit the integer type",
     .numbers = "{percent:g3} % of the results are wrong; in {steps|call}",
     .advice = "Convert to float before computing: x.float()",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong type of data"},
    {.name = "reshaped",
     .evidence = "interleaved",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_interleaved,
     .cause = "The images were reshaped from (height, width, channel) to (channel, height, width) "
              "instead of transposed: neighbours in a row are the {channels} channels of a pixel, "
              "and no channel is an image",
     .numbers = "mean difference of neighbours in a row {row:g3}, and {row_apart:g3} if the values "
                "are read as (height, width, channel); in a column {column:g3} and "
                "{column_apart:g3}; in {steps|observed step}",
     .advice =
         "Use transpose(0, 3, 1, 2) in numpy, or permute(0, 3, 1, 2) of a tensor, not reshape",
     .look = "node {node}",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong tensor shape"},
    {.name = "divided-to-zero",
     .evidence = "divided-to-zero",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_vanished,
     .cause = "The {what} turns nearly all values into 0: the data is lost",
     .numbers = "{had:g3} % of the values were not 0 before, {has:g3} % are after; type {type}; in "
                "{steps|call}",
     .advice = "Convert to float first, and use a true division (/)",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong type of data"},
    {.name = "divided-to-zero",
     .evidence = "input-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_empty,
     .cause = "The input is nearly all 0: it was made of integers by an integer division, which "
              "leaves no image",
     .numbers = "{percent:g3} % of the input are 0, its largest value is {high:g3}; in "
                "{steps|observed step}",
     .advice = "Convert to float before dividing: pixels.astype(numpy.float32) / 255",
     .look = "info tensors",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong type of data"},
    {.name = "nan-column",
     .evidence = "bad-input",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_nan_column,
     .cause =
         "[{?one}Column {first} of the input is][{!one}{columns} columns of the input, the first "
         "of them {first}, are] NaN or infinite in every row: a constant column that was "
         "divided by its standard deviation of 0, or one that is empty in the data",
     .numbers = "{bad:n} of {count:n} values; columns are counted from 0, {of_columns} in all; in "
                "{steps|observed step}",
     .advice = "Leave out columns that are constant or empty, or add a small number to the "
               "deviation; fill missing values before training",
     .look = "print {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): preprocessing"},
    {.name = "nan-input",
     .evidence = "bad-input",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_nan_input,
     .cause = "The data contains values that are NaN or infinite: they enter the first layer",
     .numbers =
         "{bad:n} of {count:n} values, {nan:n} of them NaN; in {rows} of {of_rows} examples; "
         "in {steps|observed step}",
     .advice = "Find these examples before training (torch.isfinite), and leave them out or fill "
               "them",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): training data"},
    {.name = "constant-input",
     .evidence = "input-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_constant,
     .cause = "All examples of a batch have the same input, so the outputs cannot differ",
     .numbers = "values from {low:g3} to {high:g3} in {rows|row}; in {steps|observed step}",
     .advice = "Look at the data before {operator}: it is constant",
     .look = "node {node}, where",
     .source = "Schoop et al., UMLAUT (CHI 2021): input data"},
    {.name = "scaled-twice",
     .evidence = "input-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_divided_twice,
     .cause = "The input is normalised twice: its largest value is 1/255, as of bytes that were "
              "divided by 255 two times",
     .numbers = "values from {low:g3} to {high:g3}; in {steps|observed step}",
     .advice = "Divide by 255 once: ToTensor() does it already",
     .look = "node {node}, where",
     .source = "Schoop et al., UMLAUT (CHI 2021): input normalisation"},
    {.name = "scaled-twice",
     .evidence = "scaled-twice",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_fault,
     .cause = "The input is normalised twice: {operator} by the same number is applied two times",
     .numbers = "in {steps|observed step}",
     .advice = "Normalise once",
     .look = "node {node}, where",
     .source = "Schoop et al., UMLAUT (CHI 2021): input normalisation"},
    {.name = "unscaled-input",
     .evidence = "input-scale",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_scale,
     .cause =
         "The input is not normalised: [{?apart}columns of size {largest:g3} enter {operator}, "
         "the first layer, beside others of size {smallest:g3}][{!apart}values from {low:g4} to "
         "{high:g4} enter {operator}, the first layer]",
     .numbers = "values from {low:g4} to {high:g4}; root mean square of a column up to "
                "{largest:g4}; in {steps|observed step}",
     .advice = "Standardize the inputs: subtract the mean and divide by the standard deviation of "
               "each column",
     .look = "node {node}, where",
     .source = "Schoop et al., UMLAUT (CHI 2021): input normalisation; LeCun et al. 1998"},
    {.name = "shuffled-apart",
     .evidence = "shuffled-apart",
     .cost = DIAGNOSE_OPERATORS,
     .judge = diagnose_is_fault,
     .cause = "Inputs and labels are shuffled by two different permutations, so the labels do not "
              "belong to the inputs",
     .numbers = "in {steps|observed step}",
     .advice = "Draw one permutation and use it for both: x[order], y[order]",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong labels"},
    {.name = "class-order",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_order,
     .cause = "The data is sorted by class and not shuffled: a batch holds one class, or few of "
              "{classes}, and the next ones others",
     .numbers = "{percent:g3} % of the batches have a single class; entropy of the labels "
                "{within:g3} within a batch and {entropy:g3} over all; in {steps|observed step}",
     .advice = "Shuffle: DataLoader(..., shuffle=True), or a random permutation in each epoch",
     .look = "node {node}, where",
     .source = "PyTorch documentation of DataLoader: shuffle"},
    {.name = "labels-from-one",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_from_one,
     .cause = "The labels start at 1: class 0 never occurs, each of the classes 1 to {classes} "
              "does, and the network has {outputs|output}",
     .numbers = "{steps|batch} of {rows:g3} labels",
     .advice = "Subtract 1 from the labels, and give the network {classes|output}: classes count "
               "from 0",
     .look = "node {node}, where",
     .source = "PyTorch documentation of CrossEntropyLoss: class indices in [0, C)"},
    {.name = "class-imbalance",
     .evidence = "labels",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_imbalance,
     .cause = "The classes are imbalanced: {percent:g3} % of the labels are class {top}, and the "
              "network predicts the majority class for every example",
     .numbers = "{classes} classes; in step {last_step} all predictions are class {top}; "
                "{steps|observed step}",
     .advice = "Weight the classes (weight=, pos_weight=) or sample them equally, and measure "
               "recall instead of accuracy",
     .look = "node {node}, where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): unbalanced data"},
    {.name = "unrelated-labels",
     .evidence = "label-relation",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_relation,
     .cause =
         "The labels do not depend on the inputs: [{!memorised}neither the network nor similar "
         "examples predict them better than chance][{?memorised}the network memorises "
         "them, and predicts other examples no better than chance][{!moved}; labels and "
         "inputs may be shuffled apart, or an index is wrong][{?moved}; they belong to the "
         "[{?after}next][{!after}previous] row, so an index is off by one]",
     .numbers = "the loss ends at {late:g3}, [{?classed}the entropy of the labels "
                "is][{!classed}that of the best constant is] {entropy:g3}; [{?classed}the most "
                "similar of {examples|example} has the same label in {near_percent:g3} % of the "
                "cases, chance is {chance_percent:g3} %][{!classed}the correlation with the most "
                "similar of {examples|example} is {nearest:g3}]",
     .advice = "Check that inputs and labels are in the same order: one permutation for both, and "
               "the same index",
     .look = "node {node}, where",
     .source = "Humbatova et al. (ICSE 2020); Northcutt et al., label errors (NeurIPS 2021)"},
    {.name = "validation-input",
     .evidence = "held-out-input",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_held_input,
     .cause =
         "Validation data is not preprocessed as the training data: what enters {operator}, "
         "the first layer, has a mean of {held_mean:g3} and a deviation of {held_deviation:g3} "
         "in evaluations, but {mean:g3} and {deviation:g3} in training",
     .numbers = "{rows|row} of {evaluations|evaluation}; the smallest value is {held_low:g3} in "
                "evaluations, {low:g3} in training",
     .advice = "Normalise both in the same way, with the mean and the deviation of the training "
               "data",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): preprocessing"},
    {.name = "classes-renumbered",
     .evidence = "renumbered",
     .cost = DIAGNOSE_EACH_STEP,
     .judge = judge_renumbered,
     .cause = "The evaluation numbers its classes in another way than the training: what has one "
              "label is nearly always guessed as one other class, for {moved} of {classes|class}",
     .numbers = "{right_percent:g3} % of {examples|guess} are right, {usual_percent:g3} % if each "
                "label stands for the class that is usually guessed; {trained_percent:g3} % are "
                "right in training",
     .advice = "Number the classes once, from the labels of the training, and use the same table "
               "for each split",
     .look = "where",
     .source = "Humbatova et al., Taxonomy of real faults (ICSE 2020): wrong labels"},
    {.name = "leaked-target",
     .evidence = "leaked",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_leak,
     .cause = "The target leaks into the input: column {column} of the input is the target itself, "
              "or a linear function of it",
     .numbers = "correlation {alike:.9} over {examples|example}; {columns|column}",
     .advice = "Remove the column from the input",
     .look = "node {node}, where",
     .source = "Kaufman et al., Leakage in data mining (KDD 2011)"},
    {.name = "predicts-the-present",
     .evidence = "leaked",
     .cost = DIAGNOSE_OPERATORS,
     .judge = judge_window,
     .cause = "The target is the last of the {window} values of the window itself, not the one "
              "after it: the network copies its last input and forecasts nothing",
     .numbers = "equal in all {examples|example}",
     .advice = "Take the target from after the window: series[start + window]",
     .look = "node {node}, where",
     .source = "Kaufman et al., Leakage in data mining (KDD 2011)"},
    {.name = NULL},
};
