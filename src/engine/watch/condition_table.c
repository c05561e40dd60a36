// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/condition_impl.h"

#define FLOAT16_MAX  65504
#define BFLOAT16_MAX 3.3895313892515355e38

/* ---- parameters ---------------------------------------------------------------------------- */

#define PARAMS(list) .param = (list), .param_count = (int)(sizeof(list) / sizeof(*(list)))

static const struct gd_condition_param initial[] = {
    {.name = "zero_percentage_ge",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .value = 100,
     .statistic = GD_STAT_ZERO_PERCENTAGE,
     .op = GD_CMP_GE},
    {.name = "max_gt", .statistic = GD_STAT_MAX, .op = GD_CMP_GT},
    {.name = "min_lt", .statistic = GD_STAT_MIN, .op = GD_CMP_LT},
};
static const struct gd_condition_param above[] = {
    {.name = "abs_mean_gt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .statistic = GD_STAT_ABS_MEAN,
     .op = GD_CMP_GT},
    {.name = "max_gt", .statistic = GD_STAT_MAX, .op = GD_CMP_GT},
    {.name = "min_gt", .statistic = GD_STAT_MIN, .op = GD_CMP_GT},
    {.name = "mean_gt", .statistic = GD_STAT_MEAN, .op = GD_CMP_GT},
};
static const struct gd_condition_param below[] = {
    {.name = "abs_mean_lt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .statistic = GD_STAT_ABS_MEAN,
     .op = GD_CMP_LT},
    {.name = "max_lt", .statistic = GD_STAT_MAX, .op = GD_CMP_LT},
    {.name = "min_lt", .statistic = GD_STAT_MIN, .op = GD_CMP_LT},
    {.name = "mean_lt", .statistic = GD_STAT_MEAN, .op = GD_CMP_LT},
};
static const struct gd_condition_param not_changed[] = {
    {.name = "rtol", .range = GD_RANGE_NOT_NEGATIVE, .has_default = true, .value = 1e-5},
    {.name = "atol", .has_default = true, .value = 1e-8, .hidden = true},
    {.name = "equal_nan", .type = GD_PARAM_BOOL, .has_default = true, .hidden = true},
};
static const struct gd_condition_param change_above[] = {
    {.name = "abs_mean_update_ratio_gt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 0.1,
     .statistic = GD_STAT_UPDATE_RATIO,
     .op = GD_CMP_GT},
    {.name = "epsilon", .has_default = true, .value = 1e-9, .hidden = true},
};
static const struct gd_condition_param change_below[] = {
    {.name = "abs_mean_update_ratio_lt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 1e-4,
     .statistic = GD_STAT_UPDATE_RATIO,
     .op = GD_CMP_LT},
    {.name = "epsilon", .has_default = true, .value = 1e-9, .hidden = true},
};
static const struct gd_condition_param zeros[] = {
    {.name = "zero_percentage_ge",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .value = 100,
     .statistic = GD_STAT_ZERO_PERCENTAGE,
     .op = GD_CMP_GE},
};
static const struct gd_condition_param in_range[] = {
    {.name = "range_start_inclusive", .support = true},
    {.name = "range_end_inclusive", .support = true},
    {.name = "range_percentage_lt",
     .range = GD_RANGE_PERCENT,
     .needs_range = true,
     .statistic = GD_STAT_RANGE_PERCENTAGE,
     .op = GD_CMP_LT},
    {.name = "range_percentage_gt",
     .range = GD_RANGE_PERCENT,
     .needs_range = true,
     .statistic = GD_STAT_RANGE_PERCENTAGE,
     .op = GD_CMP_GT},
    {.name = "max_min_lt",
     .range = GD_RANGE_POSITIVE,
     .statistic = GD_STAT_SPREAD,
     .op = GD_CMP_LT},
    {.name = "max_min_gt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .statistic = GD_STAT_SPREAD,
     .op = GD_CMP_GT},
};

/* gradb's own */
static const struct gd_condition_param constant[] = {
    {.name = "spread_le",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .statistic = GD_STAT_SPREAD,
     .op = GD_CMP_LE},
};
static const struct gd_condition_param denormals[] = {
    {.name = "denormal_percentage_gt",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .value = 1,
     .statistic = GD_STAT_DENORMAL_PERCENTAGE,
     .op = GD_CMP_GT},
};
static const struct gd_condition_param dead[] = {
    {.name = "dead_percentage_ge",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .value = 50,
     .statistic = GD_STAT_DEAD_PERCENTAGE,
     .op = GD_CMP_GE},
    {.name = "steps",
     .range = GD_RANGE_STEPS,
     .has_default = true,
     .value = GD_DEAD_STEPS,
     .support = true},
};
static const struct gd_condition_param sudden[] = {
    {.name = "z_score_gt",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = 6,
     .two_sided = true,
     .statistic = GD_STAT_Z_SCORE,
     .op = GD_CMP_GT},
};
static const struct gd_condition_param norm_spike[] = {
    {.name = "norm_ratio_gt",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = 10,
     .statistic = GD_STAT_NORM_RATIO,
     .op = GD_CMP_GT},
};
static const struct gd_condition_param turned[] = {
    {.name = "cosine_lt",
     .has_default = true,
     .value = -0.9,
     .statistic = GD_STAT_COSINE,
     .op = GD_CMP_LT},
};
static const struct gd_condition_param update_band[] = {
    {.name = "abs_mean_update_ratio_lt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 1e-7,
     .statistic = GD_STAT_UPDATE_RATIO,
     .op = GD_CMP_LT},
    {.name = "abs_mean_update_ratio_gt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 0.1,
     .statistic = GD_STAT_UPDATE_RATIO,
     .op = GD_CMP_GT},
};
static const struct gd_condition_param missing[] = {
    {.name = "age_ge",
     .range = GD_RANGE_STEPS,
     .has_default = true,
     .value = 1,
     .statistic = GD_STAT_AGE,
     .op = GD_CMP_GE},
};
static const struct gd_condition_param half_range[] = {
    {.name = "clip_percentage_gt",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .statistic = GD_STAT_CLIP_PERCENTAGE,
     .op = GD_CMP_GT},
    {.name = "limit",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = FLOAT16_MAX,
     .support = true},
};
static const struct gd_condition_param bfloat_range[] = {
    {.name = "clip_percentage_gt",
     .range = GD_RANGE_PERCENT,
     .has_default = true,
     .statistic = GD_STAT_CLIP_PERCENTAGE,
     .op = GD_CMP_GT},
    {.name = "limit",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = BFLOAT16_MAX,
     .support = true},
};
static const struct gd_condition_param loss_jump[] = {
    {.name = "mean_ratio_gt",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = 3,
     .statistic = GD_STAT_MEAN_RATIO,
     .op = GD_CMP_GT},
    {.name = "mean_z_score_gt",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = 6,
     .statistic = GD_STAT_MEAN_Z_SCORE,
     .op = GD_CMP_GT},
    {.name = "rise_gt",
     .range = GD_RANGE_POSITIVE,
     .has_default = true,
     .value = 10,
     .statistic = GD_STAT_RISE,
     .op = GD_CMP_GT},
};
static const struct gd_condition_param plateau[] = {
    {.name = "stall_ge",
     .range = GD_RANGE_STEPS,
     .has_default = true,
     .value = 200,
     .statistic = GD_STAT_STALL,
     .op = GD_CMP_GE},
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
    {.id = "weight_initialization",
     .abbr = "WI",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_INITIALIZATION,
     .initial_only = true,
     .at_step_end = true,
     .fires = "the initial weights look wrong",
     .look = "the initializer",
     .advice = "The weight starts all zero, or outside the expected range. Zeros are normal for a "
               "bias and for the last layer of a residual block; a matrix of zeros gives every "
               "neuron the same gradient. Check the initializer, and whether a checkpoint should "
               "have been loaded but was not.",
     PARAMS(initial)},
    {.id = "weight_overflow",
     .abbr = "WO",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_FINITE,
     NOT_FINITE,
     .fires = "a weight is NaN or infinite",
     .look = "the learning rate (too high), the gradient (too large), the optimizer",
     .advice = "The update of an earlier step wrote a value that is not finite, and every step "
               "since then is lost. Check the gradient of that step and the state of the "
               "optimizer. Try a smaller learning rate, clipped gradients, or a larger epsilon in "
               "the optimizer; go back to an earlier checkpoint."},
    {.id = "weight_too_large",
     .abbr = "WL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the weight is above the threshold",
     .look = LOOK_UPDATE,
     .advice = "The weight has grown more than expected. Compare it with earlier steps: a jump "
               "points to one bad update, steady growth to missing weight decay or a learning rate "
               "that is too high. Check the size of its gradient and of its update.",
     PARAMS(above)},
    {.id = "weight_too_small",
     .abbr = "WS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the weight is below the threshold",
     .look = LOOK_UPDATE,
     .advice = "The weight has shrunk, or was never larger. Check the initializer, and whether "
               "weight decay is stronger than the gradient. A weight that shrinks to nothing takes "
               "its layer out of the network.",
     PARAMS(below)},
    {.id = "weight_not_changed",
     .abbr = "WNC",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_CHANGED,
     .always = {GD_STAT_MISMATCH, GD_CMP_LE, 0},
     .at_step_end = true,
     .fires = "every element is close to its previous value",
     .look = "the learning rate (too low), the gradient (near zero), the optimizer (does not hold "
             "it), whether it is frozen on purpose",
     .advice = "The step did not change this weight. It is frozen on purpose, or no optimizer "
               "holds it, or no gradient reaches it, or the update is lost to rounding. Check its "
               "gradient, the optimizer's parameter list and the learning rate of this step.",
     PARAMS(not_changed)},
    {.id = "weight_change_too_large",
     .abbr = "WCL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_LARGE,
     .at_step_end = true,
     .fires = "the relative update is above the threshold",
     .look = "the learning rate (too high), the gradient, the optimizer",
     .advice = "One step changed the weight by a large part of its size; about a thousandth is "
               "usual. Check the learning rate (missing warm-up?), the size of the gradient, and "
               "whether the weight was near zero anyway, like a new bias. Try a smaller learning "
               "rate or clipped gradients.",
     PARAMS(change_above)},
    {.id = "weight_change_too_small",
     .abbr = "WCS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_SMALL,
     .at_step_end = true,
     .fires = "the relative update is below the threshold",
     .look = "the learning rate (too low), the gradient, the optimizer",
     .advice = "The weight hardly changes; about a thousandth of its size per step is usual. Check "
               "the learning rate, its gradient (vanishing?), and whether the update is below the "
               "rounding of its type: 16-bit weights need a float32 copy.",
     PARAMS(change_below)},
    {.id = "gradient_vanishing",
     .abbr = "GV",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the gradient is below the threshold",
     .look = LOOK_INPUTS ", upstream to the first one that is too small",
     .advice = "Little or none of the error reaches this weight. Follow the backward pass to the "
               "first operator whose gradient is this small: often a saturated activation, a dead "
               "ReLU, a mask, or float16 without loss scaling. Try another activation or "
               "initializer, residual connections, or a larger loss scale.",
     PARAMS(below)},
    {.id = "gradient_too_large",
     .abbr = "GL",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the gradient is above the threshold",
     .look = LOOK_INPUTS ", upstream to the first one that is too large",
     .advice = "The next update will be as large. Follow the backward pass to the first operator "
               "whose gradient is too large, and check the batch of this step. Try clipped "
               "gradients, a smaller learning rate, or a smaller loss scale.",
     PARAMS(above)},
    {.id = "gradient_exploding",
     .abbr = "GE",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_NOT_FINITE,
     NOT_FINITE,
     .fires = "a gradient is NaN or infinite",
     .look = LOOK_INPUTS ", upstream to the first one that is not finite",
     .advice = "The update would destroy the weight: skip this step. With loss scaling, a single "
               "occurrence is normal: the scale is halved. Otherwise follow the backward pass "
               "(\"why\") to the first value that is not finite: a derivative of sqrt, norm or log "
               "at 0, 0 times Inf after a mask, or a forward value that overflowed."},
    {.id = "tensor_overflow",
     .abbr = "TO",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_NOT_FINITE,
     NOT_FINITE,
     .fires = "an element is NaN or infinite",
     .look = LOOK_INPUTS,
     .advice = ADVICE_OVERFLOW},
    {.id = "operator_overflow",
     .abbr = "OO",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OVERFLOW_FLAG,
     .ascend_only = true,
     .fires = "the device raised its overflow flag",
     .look = LOOK_INPUTS " and its data type",
     .advice = "The device saw a result beyond the range of the type, even if it then wrote the "
               "largest number instead of Inf. Check the inputs and their type; try float32 for "
               "this operator or a smaller loss scale."},
    {.id = "tensor_too_large",
     .abbr = "TL",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic is above the threshold",
     .look = LOOK_INPUTS,
     .advice = ADVICE_LARGE,
     PARAMS(above)},
    {.id = "tensor_too_small",
     .abbr = "TS",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic is below the threshold",
     .look = LOOK_INPUTS,
     .advice = ADVICE_SMALL,
     PARAMS(below)},
    {.id = "tensor_all_zero",
     .abbr = "TZ",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_ALL_ZERO,
     .fires = "the share of zeros reaches the threshold",
     .look = LOOK_INPUTS,
     .advice = "Nothing gets through here. Check the inputs: the first tensor that is all zero is "
               "the cause. Often it is a dead ReLU, a mask that covers everything, a product with "
               "a zero weight, or float16 values that were rounded to 0.",
     PARAMS(zeros)},
    {.id = "tensor_range",
     .abbr = "TR",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off",
     .look = LOOK_INPUTS,
     .advice = "The values are not where they were expected. Compare with earlier steps, then "
               "check the inputs: the first tensor that is off is the cause. The usual causes are "
               "wrongly scaled data and missing normalization.",
     PARAMS(in_range)},
    {.id = "activation_range",
     .abbr = "AR",
     .target = GD_COND_ACTIVATION,
     .wire = GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off",
     .look = LOOK_INPUTS,
     .advice = ADVICE_RANGE,
     PARAMS(in_range)},

    {.id = "tensor_constant",
     .abbr = "CT",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .least_count = 2,
     .fires = "all elements are equal",
     .look = LOOK_INPUTS,
     .advice =
         "The tensor no longer distinguishes its inputs. All zero: see tensor_all_zero. Another "
         "constant is often a saturated activation, a normalization over a single element, or a "
         "gain or bias that nothing has changed yet, which is normal at the start.",
     PARAMS(constant)},
    {.id = "tensor_denormal",
     .abbr = "DN",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "many elements are too small for full precision",
     .look = LOOK_INPUTS ", the loss scale",
     .advice = "The values are at the lower end of their type's range: they lose digits, the next "
               "product is 0, and processors can be much slower on them. In float16 gradients, the "
               "loss scale is too small. Otherwise find what shrinks upstream, or let the "
               "processor treat such numbers as 0.",
     PARAMS(denormals)},
    {.id = "dead_units",
     .abbr = "DU",
     .target = GD_COND_ACTIVATION,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "many units of an activation were 0 for several steps",
     .look = "the inputs of the activation, the learning rate, the bias before it",
     .advice = "A ReLU unit whose input is always negative outputs 0 and gets no gradient, so it "
               "stays dead. One large update is enough: check the weights and the bias before it "
               "at the step where the share rose. Try a smaller learning rate, another "
               "initializer, or a leaky activation.",
     PARAMS(dead)},
    {.id = "sudden_change",
     .abbr = "SC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the mean size jumped away from its values in earlier steps",
     .look = LOOK_INPUTS ", the batch of this step",
     .advice =
         "This step differs from earlier ones by far more than they differ from each other. Check "
         "the batch first, then the learning rate schedule and anything else that changed in this "
         "step; the first tensor in execution order that jumped is closest to the cause.",
     PARAMS(sudden)},
    {.id = "gradient_norm_spike",
     .abbr = "GS",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .aggregate = true,
     .at_step_end = true,
     .fires = "the norm of all gradients together is many times its running mean",
     .look = "the batch of this step, the learning rate",
     .advice = "A spike of the norm precedes most losses that diverge. Check the batch of this "
               "step (bad labels, a very long or empty sample), and which tensor has most of the "
               "norm. Try clipping by the global norm, or skip the step.",
     PARAMS(norm_spike)},
    {.id = "gradient_reversal",
     .abbr = "GR",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the gradient points against that of the previous step",
     .look = "the learning rate (too high), the momentum",
     .advice = "The weight jumps across the valley and back. A few such steps are normal; several "
               "in a row mean that the learning rate is too high for this weight. Try a smaller "
               "one, or a larger batch.",
     PARAMS(turned)},
    {.id = "gradient_missing",
     .abbr = "GM",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires_without_value = true,
     .fires = "no gradient arrived in this step",
     .look = "whether the weight takes part in the loss",
     .advice =
         "The backward pass did not reach this weight. Either it took no part in the forward pass "
         "of this step (a branch, an expert, an unused layer), or the graph was cut after it "
         "(detached, converted to a plain number, computed without gradients), or it is frozen.",
     PARAMS(missing)},
    {.id = "update_ratio_band",
     .abbr = "UB",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_OWN,
     .any_tests = true,
     .at_step_end = true,
     .fires = "the relative update is outside its band",
     .look = LOOK_UPDATE,
     .advice = "A healthy weight changes by about a thousandth of its size per step. Far above "
               "that, the training oscillates; far below it, it stalls. Adjust the learning rate "
               "of this group of weights, and check its gradient if only one layer is outside.",
     PARAMS(update_band)},
    {.id = "float16_clipping",
     .abbr = "FC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "elements are beyond what float16 can hold",
     .look = LOOK_INPUTS ", the loss scale",
     .advice = "As float16, these elements are Inf. Keep this operator in float32 or bfloat16, "
               "scale its inputs down, or lower the loss scale if it is a gradient.",
     PARAMS(half_range)},
    {.id = "bfloat16_clipping",
     .abbr = "BC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "elements are beyond what bfloat16 can hold",
     .look = LOOK_INPUTS,
     .advice = "As bfloat16, these elements are Inf. Its range is nearly that of float32, so the "
               "values are about to overflow anyway: find what grows upstream.",
     PARAMS(bfloat_range)},
    {.id = "loss_not_finite",
     .abbr = "LN",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     NOT_FINITE,
     .fires = "the loss is NaN or infinite",
     .look = "the first tensor of this step that is not finite",
     .advice = "The loss is the last to show it. Set \"watch TO\" and run this step again, or ask "
               "\"why\": the first tensor that is not finite, in this step or in a weight from the "
               "previous step, is the cause."},
    {.id = "loss_spike",
     .abbr = "LS",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .any_tests = true,
     .fires = "the loss is many times its running mean, many deviations above it, or far above its "
              "first values",
     .look = "the batch of this step, the update of the previous step",
     .advice = "Either this batch is unlike the others, or the previous update was too large. "
               "Check the samples of this step and the norm of the gradients one step earlier. If "
               "the loss does not come down again by itself, go back to a checkpoint with a "
               "smaller learning rate, or skip these batches.",
     PARAMS(loss_jump)},
    {.id = "loss_plateau",
     .abbr = "LP",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the loss has not decreased for many steps",
     .look = "the learning rate, the gradients",
     .advice = "Nothing is learned any more, or it is learned too slowly. Check whether the "
               "gradients vanish and whether the weights still change. Near the end of a training, "
               "lower the learning rate or stop; at the start, try a higher one, or look for a "
               "part of the network that is cut off.",
     PARAMS(plateau)},
};

const size_t gd_condition_total = sizeof(gd_condition_table) / sizeof(*gd_condition_table);
