// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/condition_impl.h"

#define FLOAT16_MAX  65504
#define BFLOAT16_MAX 3.3895313892515355e38

/* ---- parameters ---------------------------------------------------------------------------- */

#define PARAMS(list) .param = (list), .param_count = (int)(sizeof(list) / sizeof(*(list)))

static const struct gd_condition_param initial[] = {
    {"zero_percentage_ge", GD_STAT_ZERO_PERCENTAGE, GD_CMP_GE, GD_RANGE_PERCENT,
     .has_default = true, .value = 100},
    {"max_gt", GD_STAT_MAX, GD_CMP_GT},
    {"min_lt", GD_STAT_MIN, GD_CMP_LT},
};
static const struct gd_condition_param above[] = {
    {"abs_mean_gt", GD_STAT_ABS_MEAN, GD_CMP_GT, GD_RANGE_NOT_NEGATIVE},
    {"max_gt", GD_STAT_MAX, GD_CMP_GT},
    {"min_gt", GD_STAT_MIN, GD_CMP_GT},
    {"mean_gt", GD_STAT_MEAN, GD_CMP_GT},
};
static const struct gd_condition_param below[] = {
    {"abs_mean_lt", GD_STAT_ABS_MEAN, GD_CMP_LT, GD_RANGE_NOT_NEGATIVE},
    {"max_lt", GD_STAT_MAX, GD_CMP_LT},
    {"min_lt", GD_STAT_MIN, GD_CMP_LT},
    {"mean_lt", GD_STAT_MEAN, GD_CMP_LT},
};
static const struct gd_condition_param not_changed[] = {
    {"rtol", .range = GD_RANGE_NOT_NEGATIVE, .has_default = true, .value = 1e-5},
    {"atol", .has_default = true, .value = 1e-8, .hidden = true},
    {"equal_nan", .type = GD_PARAM_BOOL, .has_default = true, .hidden = true},
};
static const struct gd_condition_param change_above[] = {
    {"abs_mean_update_ratio_gt", GD_STAT_UPDATE_RATIO, GD_CMP_GT, GD_RANGE_NOT_NEGATIVE,
     .has_default = true, .value = 0.1},
    {"epsilon", .has_default = true, .value = 1e-9, .hidden = true},
};
static const struct gd_condition_param change_below[] = {
    {"abs_mean_update_ratio_lt", GD_STAT_UPDATE_RATIO, GD_CMP_LT, GD_RANGE_NOT_NEGATIVE,
     .has_default = true, .value = 1e-4},
    {"epsilon", .has_default = true, .value = 1e-9, .hidden = true},
};
static const struct gd_condition_param zeros[] = {
    {"zero_percentage_ge", GD_STAT_ZERO_PERCENTAGE, GD_CMP_GE, GD_RANGE_PERCENT,
     .has_default = true, .value = 100},
};
static const struct gd_condition_param in_range[] = {
    {"range_start_inclusive", .support = true},
    {"range_end_inclusive", .support = true},
    {"range_percentage_lt", GD_STAT_RANGE_PERCENTAGE, GD_CMP_LT, GD_RANGE_PERCENT,
     .needs_range = true},
    {"range_percentage_gt", GD_STAT_RANGE_PERCENTAGE, GD_CMP_GT, GD_RANGE_PERCENT,
     .needs_range = true},
    {"max_min_lt", GD_STAT_SPREAD, GD_CMP_LT, GD_RANGE_POSITIVE},
    {"max_min_gt", GD_STAT_SPREAD, GD_CMP_GT, GD_RANGE_NOT_NEGATIVE},
};

/* gradb's own */
static const struct gd_condition_param constant[] = {
    {"spread_le", GD_STAT_SPREAD, GD_CMP_LE, GD_RANGE_NOT_NEGATIVE, .has_default = true},
};
static const struct gd_condition_param denormals[] = {
    {"denormal_percentage_gt", GD_STAT_DENORMAL_PERCENTAGE, GD_CMP_GT, GD_RANGE_PERCENT,
     .has_default = true, .value = 1},
};
static const struct gd_condition_param dead[] = {
    {"dead_percentage_ge", GD_STAT_DEAD_PERCENTAGE, GD_CMP_GE, GD_RANGE_PERCENT,
     .has_default = true, .value = 50},
    {"steps", .range = GD_RANGE_STEPS, .has_default = true, .value = GD_DEAD_STEPS,
     .support = true},
};
static const struct gd_condition_param sudden[] = {
    {"z_score_gt", GD_STAT_Z_SCORE, GD_CMP_GT, GD_RANGE_POSITIVE, .has_default = true, .value = 6,
     .two_sided = true},
};
static const struct gd_condition_param norm_spike[] = {
    {"norm_ratio_gt", GD_STAT_NORM_RATIO, GD_CMP_GT, GD_RANGE_POSITIVE, .has_default = true,
     .value = 10},
};
static const struct gd_condition_param turned[] = {
    {"cosine_lt", GD_STAT_COSINE, GD_CMP_LT, .has_default = true, .value = -0.9},
};
static const struct gd_condition_param update_band[] = {
    {"abs_mean_update_ratio_lt", GD_STAT_UPDATE_RATIO, GD_CMP_LT, GD_RANGE_NOT_NEGATIVE,
     .has_default = true, .value = 1e-7},
    {"abs_mean_update_ratio_gt", GD_STAT_UPDATE_RATIO, GD_CMP_GT, GD_RANGE_NOT_NEGATIVE,
     .has_default = true, .value = 0.1},
};
static const struct gd_condition_param missing[] = {
    {"age_ge", GD_STAT_AGE, GD_CMP_GE, GD_RANGE_STEPS, .has_default = true, .value = 1},
};
static const struct gd_condition_param half_range[] = {
    {"clip_percentage_gt", GD_STAT_CLIP_PERCENTAGE, GD_CMP_GT, GD_RANGE_PERCENT,
     .has_default = true},
    {"limit", .range = GD_RANGE_POSITIVE, .has_default = true, .value = FLOAT16_MAX,
     .support = true},
};
static const struct gd_condition_param bfloat_range[] = {
    {"clip_percentage_gt", GD_STAT_CLIP_PERCENTAGE, GD_CMP_GT, GD_RANGE_PERCENT,
     .has_default = true},
    {"limit", .range = GD_RANGE_POSITIVE, .has_default = true, .value = BFLOAT16_MAX,
     .support = true},
};
static const struct gd_condition_param loss_jump[] = {
    {"mean_ratio_gt", GD_STAT_MEAN_RATIO, GD_CMP_GT, GD_RANGE_POSITIVE, .has_default = true,
     .value = 3},
    {"mean_z_score_gt", GD_STAT_MEAN_Z_SCORE, GD_CMP_GT, GD_RANGE_POSITIVE, .has_default = true,
     .value = 6},
    {"rise_gt", GD_STAT_RISE, GD_CMP_GT, GD_RANGE_POSITIVE, .has_default = true, .value = 10},
};
static const struct gd_condition_param plateau[] = {
    {"stall_ge", GD_STAT_STALL, GD_CMP_GE, GD_RANGE_STEPS, .has_default = true, .value = 200},
};

/* ---- advice -------------------------------------------------------------------------------- */

#define LOOK_INPUTS "the inputs of the operator"
#define LOOK_UPDATE "the learning rate, the size of the gradient, the optimizer"

#define ADVICE_OVERFLOW                                                                            \
    "An operator left the range of its type, or its result is undefined (log of 0, 0/0, Inf - "    \
    "Inf). The first one in execution order is the cause; the operators after it only pass it "    \
    "on: \"why\" finds it. Try a smaller learning rate, clipped gradients, an epsilon in the "     \
    "logarithm or the division, or float32 for this operator."
#define ADVICE_LARGE                                                                               \
    "Values that grow from step to step end in Inf. Check whether the inputs are already as "      \
    "large, and compare with earlier steps. Try a smaller learning rate, normalization before "    \
    "this operator, or clipped gradients."
#define ADVICE_SMALL                                                                               \
    "Little of the signal gets through here, so the layers upstream hardly learn. Check the "      \
    "inputs: the first tensor that is this small is where the signal is lost. Try another "        \
    "initializer or activation, a larger loss scale, or normalization."
#define ADVICE_RANGE                                                                               \
    "Most values lie where the function is flat, or where the next operator cannot use them. A "   \
    "saturated activation passes no gradient on. Check the inputs; try a smaller initial scale, "  \
    "a smaller learning rate, or normalization before the activation."

/* ---- the table ----------------------------------------------------------------------------- */

#define NOT_FINITE .always = {GD_STAT_NONFINITE, GD_CMP_GT, 0}

const struct gd_condition gd_condition_table[] = {
    {"weight_initialization", "WI", GD_COND_WEIGHT, GD_WIRE_INITIALIZATION, .initial_only = true,
     .at_step_end = true, .fires = "the initial weights look wrong", .look = "the initializer",
     .advice = "The weight starts all zero, or outside the expected range. Zeros are normal for a "
               "bias and for the last layer of a residual block; a matrix of zeros gives every "
               "neuron the same gradient. Check the initializer, and whether a checkpoint should "
               "have been loaded but was not.",
     PARAMS(initial)},
    {"weight_overflow", "WO", GD_COND_WEIGHT, GD_WIRE_NOT_FINITE, NOT_FINITE,
     .fires = "a weight is NaN or infinite",
     .look = "the learning rate (too high), the gradient (too large), the optimizer",
     .advice = "The update of an earlier step wrote a value that is not finite, and every step "
               "since then is lost. Check the gradient of that step and the state of the "
               "optimizer. Try a smaller learning rate, clipped gradients, or a larger epsilon in "
               "the optimizer; go back to an earlier checkpoint."},
    {"weight_too_large", "WL", GD_COND_WEIGHT, GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the weight is above the threshold", .look = LOOK_UPDATE,
     .advice = "The weight has grown more than expected. Compare it with earlier steps: a jump "
               "points to one bad update, steady growth to missing weight decay or a learning rate "
               "that is too high. Check the size of its gradient and of its update.",
     PARAMS(above)},
    {"weight_too_small", "WS", GD_COND_WEIGHT, GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the weight is below the threshold", .look = LOOK_UPDATE,
     .advice = "The weight has shrunk, or was never larger. Check the initializer, and whether "
               "weight decay is stronger than the gradient. A weight that shrinks to nothing takes "
               "its layer out of the network.",
     PARAMS(below)},
    {"weight_not_changed", "WNC", GD_COND_WEIGHT, GD_WIRE_NOT_CHANGED,
     .always = {GD_STAT_MISMATCH, GD_CMP_LE, 0}, .at_step_end = true,
     .fires = "every element is close to its previous value",
     .look = "the learning rate (too low), the gradient (near zero), the optimizer (does not hold "
             "it), whether it is frozen on purpose",
     .advice = "The step did not change this weight. It is frozen on purpose, or no optimizer "
               "holds it, or no gradient reaches it, or the update is lost to rounding. Check its "
               "gradient, the optimizer's parameter list and the learning rate of this step.",
     PARAMS(not_changed)},
    {"weight_change_too_large", "WCL", GD_COND_WEIGHT, GD_WIRE_CHANGE_TOO_LARGE,
     .at_step_end = true, .fires = "the relative update is above the threshold",
     .look = "the learning rate (too high), the gradient, the optimizer",
     .advice = "One step changed the weight by a large part of its size; about a thousandth is "
               "usual. Check the learning rate (missing warm-up?), the size of the gradient, and "
               "whether the weight was near zero anyway, like a new bias. Try a smaller learning "
               "rate or clipped gradients.",
     PARAMS(change_above)},
    {"weight_change_too_small", "WCS", GD_COND_WEIGHT, GD_WIRE_CHANGE_TOO_SMALL,
     .at_step_end = true, .fires = "the relative update is below the threshold",
     .look = "the learning rate (too low), the gradient, the optimizer",
     .advice = "The weight hardly changes; about a thousandth of its size per step is usual. Check "
               "the learning rate, its gradient (vanishing?), and whether the update is below the "
               "rounding of its type: 16-bit weights need a float32 copy.",
     PARAMS(change_below)},
    {"gradient_vanishing", "GV", GD_COND_GRADIENT, GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the gradient is below the threshold",
     .look = LOOK_INPUTS ", upstream to the first one that is too small",
     .advice = "Little or none of the error reaches this weight. Follow the backward pass to the "
               "first operator whose gradient is this small: often a saturated activation, a dead "
               "ReLU, a mask, or float16 without loss scaling. Try another activation or "
               "initializer, residual connections, or a larger loss scale.",
     PARAMS(below)},
    {"gradient_too_large", "GL", GD_COND_GRADIENT, GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the gradient is above the threshold",
     .look = LOOK_INPUTS ", upstream to the first one that is too large",
     .advice = "The next update will be as large. Follow the backward pass to the first operator "
               "whose gradient is too large, and check the batch of this step. Try clipped "
               "gradients, a smaller learning rate, or a smaller loss scale.",
     PARAMS(above)},
    {"gradient_exploding", "GE", GD_COND_GRADIENT, GD_WIRE_NOT_FINITE, NOT_FINITE,
     .fires = "a gradient is NaN or infinite",
     .look = LOOK_INPUTS ", upstream to the first one that is not finite",
     .advice = "The update would destroy the weight: skip this step. With loss scaling, a single "
               "occurrence is normal: the scale is halved. Otherwise follow the backward pass "
               "(\"why\") to the first value that is not finite: a derivative of sqrt, norm or log "
               "at 0, 0 times Inf after a mask, or a forward value that overflowed."},
    {"tensor_overflow", "TO", GD_COND_TENSOR, GD_WIRE_NOT_FINITE, NOT_FINITE,
     .fires = "an element is NaN or infinite", .look = LOOK_INPUTS, .advice = ADVICE_OVERFLOW},
    {"operator_overflow", "OO", GD_COND_TENSOR, GD_WIRE_OVERFLOW_FLAG, .ascend_only = true,
     .fires = "the device raised its overflow flag", .look = LOOK_INPUTS " and its data type",
     .advice = "The device saw a result beyond the range of the type, even if it then wrote the "
               "largest number instead of Inf. Check the inputs and their type; try float32 for "
               "this operator or a smaller loss scale."},
    {"tensor_too_large", "TL", GD_COND_TENSOR, GD_WIRE_TOO_LARGE,
     .fires = "a statistic is above the threshold", .look = LOOK_INPUTS, .advice = ADVICE_LARGE,
     PARAMS(above)},
    {"tensor_too_small", "TS", GD_COND_TENSOR, GD_WIRE_TOO_SMALL,
     .fires = "a statistic is below the threshold", .look = LOOK_INPUTS, .advice = ADVICE_SMALL,
     PARAMS(below)},
    {"tensor_all_zero", "TZ", GD_COND_TENSOR, GD_WIRE_ALL_ZERO,
     .fires = "the share of zeros reaches the threshold", .look = LOOK_INPUTS,
     .advice = "Nothing gets through here. Check the inputs: the first tensor that is all zero is "
               "the cause. Often it is a dead ReLU, a mask that covers everything, a product with "
               "a zero weight, or float16 values that were rounded to 0.",
     PARAMS(zeros)},
    {"tensor_range", "TR", GD_COND_TENSOR, GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off", .look = LOOK_INPUTS,
     .advice = "The values are not where they were expected. Compare with earlier steps, then "
               "check the inputs: the first tensor that is off is the cause. The usual causes are "
               "wrongly scaled data and missing normalization.",
     PARAMS(in_range)},
    {"activation_range", "AR", GD_COND_ACTIVATION, GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off", .look = LOOK_INPUTS,
     .advice = ADVICE_RANGE, PARAMS(in_range)},

    {"tensor_constant", "CT", GD_COND_TENSOR, GD_WIRE_OWN, .least_count = 2,
     .fires = "all elements are equal", .look = LOOK_INPUTS,
     .advice =
         "The tensor no longer distinguishes its inputs. All zero: see tensor_all_zero. Another "
         "constant is often a saturated activation, a normalization over a single element, or a "
         "gain or bias that nothing has changed yet, which is normal at the start.",
     PARAMS(constant)},
    {"tensor_denormal", "DN", GD_COND_TENSOR, GD_WIRE_OWN,
     .fires = "many elements are too small for full precision",
     .look = LOOK_INPUTS ", the loss scale",
     .advice = "The values are at the lower end of their type's range: they lose digits, the next "
               "product is 0, and processors can be much slower on them. In float16 gradients, the "
               "loss scale is too small. Otherwise find what shrinks upstream, or let the "
               "processor treat such numbers as 0.",
     PARAMS(denormals)},
    {"dead_units", "DU", GD_COND_ACTIVATION, GD_WIRE_OWN, .at_step_end = true,
     .fires = "many units of an activation were 0 for several steps",
     .look = "the inputs of the activation, the learning rate, the bias before it",
     .advice = "A ReLU unit whose input is always negative outputs 0 and gets no gradient, so it "
               "stays dead. One large update is enough: check the weights and the bias before it "
               "at the step where the share rose. Try a smaller learning rate, another "
               "initializer, or a leaky activation.",
     PARAMS(dead)},
    {"sudden_change", "SC", GD_COND_TENSOR, GD_WIRE_OWN, .at_step_end = true,
     .fires = "the mean size jumped away from its values in earlier steps",
     .look = LOOK_INPUTS ", the batch of this step",
     .advice =
         "This step differs from earlier ones by far more than they differ from each other. Check "
         "the batch first, then the learning rate schedule and anything else that changed in this "
         "step; the first tensor in execution order that jumped is closest to the cause.",
     PARAMS(sudden)},
    {"gradient_norm_spike", "GS", GD_COND_GRADIENT, GD_WIRE_OWN, .aggregate = true,
     .at_step_end = true,
     .fires = "the norm of all gradients together is many times its running mean",
     .look = "the batch of this step, the learning rate",
     .advice = "A spike of the norm precedes most losses that diverge. Check the batch of this "
               "step (bad labels, a very long or empty sample), and which tensor has most of the "
               "norm. Try clipping by the global norm, or skip the step.",
     PARAMS(norm_spike)},
    {"gradient_reversal", "GR", GD_COND_GRADIENT, GD_WIRE_OWN, .at_step_end = true,
     .fires = "the gradient points against that of the previous step",
     .look = "the learning rate (too high), the momentum",
     .advice = "The weight jumps across the valley and back. A few such steps are normal; several "
               "in a row mean that the learning rate is too high for this weight. Try a smaller "
               "one, or a larger batch.",
     PARAMS(turned)},
    {"gradient_missing", "GM", GD_COND_GRADIENT, GD_WIRE_OWN, .at_step_end = true,
     .fires_without_value = true, .fires = "no gradient arrived in this step",
     .look = "whether the weight takes part in the loss",
     .advice =
         "The backward pass did not reach this weight. Either it took no part in the forward pass "
         "of this step (a branch, an expert, an unused layer), or the graph was cut after it "
         "(detached, converted to a plain number, computed without gradients), or it is frozen.",
     PARAMS(missing)},
    {"update_ratio_band", "UB", GD_COND_WEIGHT, GD_WIRE_OWN, .any_tests = true, .at_step_end = true,
     .fires = "the relative update is outside its band", .look = LOOK_UPDATE,
     .advice = "A healthy weight changes by about a thousandth of its size per step. Far above "
               "that, the training oscillates; far below it, it stalls. Adjust the learning rate "
               "of this group of weights, and check its gradient if only one layer is outside.",
     PARAMS(update_band)},
    {"float16_clipping", "FC", GD_COND_TENSOR, GD_WIRE_OWN,
     .fires = "elements are beyond what float16 can hold", .look = LOOK_INPUTS ", the loss scale",
     .advice = "As float16, these elements are Inf. Keep this operator in float32 or bfloat16, "
               "scale its inputs down, or lower the loss scale if it is a gradient.",
     PARAMS(half_range)},
    {"bfloat16_clipping", "BC", GD_COND_TENSOR, GD_WIRE_OWN,
     .fires = "elements are beyond what bfloat16 can hold", .look = LOOK_INPUTS,
     .advice = "As bfloat16, these elements are Inf. Its range is nearly that of float32, so the "
               "values are about to overflow anyway: find what grows upstream.",
     PARAMS(bfloat_range)},
    {"loss_not_finite", "LN", GD_COND_SCALAR, GD_WIRE_OWN, .at_step_end = true, NOT_FINITE,
     .fires = "the loss is NaN or infinite",
     .look = "the first tensor of this step that is not finite",
     .advice = "The loss is the last to show it. Set \"watch TO\" and run this step again, or ask "
               "\"why\": the first tensor that is not finite, in this step or in a weight from the "
               "previous step, is the cause."},
    {"loss_spike", "LS", GD_COND_SCALAR, GD_WIRE_OWN, .at_step_end = true, .any_tests = true,
     .fires = "the loss is many times its running mean, many deviations above it, or far above its "
              "first values",
     .look = "the batch of this step, the update of the previous step",
     .advice = "Either this batch is unlike the others, or the previous update was too large. "
               "Check the samples of this step and the norm of the gradients one step earlier. If "
               "the loss does not come down again by itself, go back to a checkpoint with a "
               "smaller learning rate, or skip these batches.",
     PARAMS(loss_jump)},
    {"loss_plateau", "LP", GD_COND_SCALAR, GD_WIRE_OWN, .at_step_end = true,
     .fires = "the loss has not decreased for many steps",
     .look = "the learning rate, the gradients",
     .advice = "Nothing is learned any more, or it is learned too slowly. Check whether the "
               "gradients vanish and whether the weights still change. Near the end of a training, "
               "lower the learning rate or stop; at the start, try a higher one, or look for a "
               "part of the network that is cut off.",
     PARAMS(plateau)},
    {"histogram", "HI", GD_COND_WEIGHT, GD_WIRE_OWN, .at_step_end = true, .records_bins = true,
     .always = {GD_STAT_COUNT, GD_CMP_LT, 0},
     .fires = "never: the history records a histogram of each step",
     .look = "\"plot --histogram\" and the history pane",
     .advice =
         "It records how the elements are distributed, step by step. \"plot --histogram NODE\" "
         "draws it, and \"export\" writes it."},
};

const size_t gd_condition_total = sizeof(gd_condition_table) / sizeof(*gd_condition_table);
