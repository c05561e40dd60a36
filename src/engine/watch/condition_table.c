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
    "An operator left the range of its type, or had no answer (log of 0, 0/0, Inf - Inf). "        \
    "The first one in execution order is the cause, those behind it only pass it on: \"why\" "     \
    "walks there. Try a smaller learning rate, clipped gradients, an epsilon in the logarithm or " \
    "the division, or float32 for this operator."
#define ADVICE_LARGE                                                                               \
    "Values that grow from step to step end in Inf. "                                              \
    "Look whether the inputs are as large already, and compare with the steps before. "            \
    "Try a smaller learning rate, normalisation in front of this operator, or clipped gradients."
#define ADVICE_SMALL                                                                               \
    "Little of the signal gets through here, so what lies upstream hardly learns. "                \
    "Look at the inputs: the first tensor that is this small is where it is lost. "                \
    "Try another initializer or activation, a larger loss scale, or normalisation."
#define ADVICE_RANGE                                                                               \
    "Most of the values lie where the function is flat, or where the next operator cannot use "    \
    "them. Saturated activations pass no gradient on. "                                            \
    "Look at the inputs; try a smaller initial scale, a smaller learning rate, or normalisation "  \
    "in front of the activation."

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
     .look = "the initializer that was chosen",
     .advice =
         "The weight starts all zero, or outside the range that was asked for. "
         "Zeros are normal for a bias and for the last layer of a residual block; a matrix of "
         "zeros gives every neuron the same gradient. Look at the initializer, and whether a "
         "checkpoint that should have been loaded was.",
     PARAMS(initial)},
    {.id = "weight_overflow",
     .abbr = "WO",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_FINITE,
     NOT_FINITE,
     .fires = "a weight is NaN or infinite",
     .look = "the learning rate (too high), the gradient (too large), the optimizer",
     .advice = "The update of a step before wrote a value that is not finite, and every step from "
               "then on is lost. Look at the gradient of that step and at the state of the "
               "optimizer. Try a smaller learning rate, clipped gradients, a larger epsilon in the "
               "optimizer; go back to a checkpoint from before."},
    {.id = "weight_too_large",
     .abbr = "WL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the weight is above the threshold",
     .look = LOOK_UPDATE,
     .advice =
         "The weight has grown beyond what was expected. Compare it with the steps before: a jump "
         "points to one bad update, steady growth to missing weight decay or too high a learning "
         "rate. Look at the size of its gradient and of its update.",
     PARAMS(above)},
    {.id = "weight_too_small",
     .abbr = "WS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the weight is below the threshold",
     .look = LOOK_UPDATE,
     .advice = "The weight has shrunk, or never was larger. Look at the initializer, and whether "
               "weight decay is stronger than the gradient. A weight that shrinks to nothing takes "
               "its layer out of the network.",
     PARAMS(below)},
    {.id = "weight_not_changed",
     .abbr = "WNC",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_CHANGED,
     .always = {GD_STAT_MISMATCH, GD_CMP_LE, 0},
     .at_step_end = true,
     .fires = "every element is close to that of the previous step",
     .look = "the learning rate (too low), the gradient (near zero), the optimizer (skips it), "
             "whether it is frozen on purpose",
     .advice =
         "The step did not move this weight. Either it is frozen on purpose, or the optimizer was "
         "not given it, or its gradient does not arrive, or the update is lost in rounding. "
         "Look at its gradient, at the optimizer's list of parameters and at the learning rate of "
         "this step.",
     PARAMS(not_changed)},
    {.id = "weight_change_too_large",
     .abbr = "WCL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_LARGE,
     .at_step_end = true,
     .fires = "the relative update is above the threshold",
     .look = "the learning rate (too high), the gradient, the optimizer",
     .advice = "One step changed the weight by a good part of its size; about a thousandth is "
               "usual. Look at the learning rate (warm-up missing?), the size of the gradient, and "
               "whether the weight was near zero anyway, as a new bias is. Try a smaller learning "
               "rate or clipped gradients.",
     PARAMS(change_above)},
    {.id = "weight_change_too_small",
     .abbr = "WCS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_SMALL,
     .at_step_end = true,
     .fires = "the relative update is below the threshold",
     .look = "the learning rate (too low), the gradient, the optimizer",
     .advice = "The weight hardly moves; about a thousandth of its size in a step is usual. "
               "Look at the learning rate, at its gradient (vanishing?), and whether the update is "
               "below the rounding of its type: 16-bit weights want a float32 copy.",
     PARAMS(change_below)},
    {.id = "gradient_vanishing",
     .abbr = "GV",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the gradient is below the threshold",
     .look = LOOK_INPUTS ", upstream to the first that is too small",
     .advice =
         "Little or nothing of the error reaches this weight. Follow the backward pass to the "
         "first operator whose gradient is this small: often a saturated activation, a dead ReLU, "
         "a mask, or float16 without loss scaling. Try another activation or initializer, residual "
         "connections, or a larger loss scale.",
     PARAMS(below)},
    {.id = "gradient_too_large",
     .abbr = "GL",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the gradient is above the threshold",
     .look = LOOK_INPUTS ", upstream to the first that is too large",
     .advice =
         "The next update will be as large. Follow the backward pass to the first operator whose "
         "gradient is too large, and look at the batch of this step. Try clipped gradients, a "
         "smaller learning rate, or a smaller loss scale.",
     PARAMS(above)},
    {.id = "gradient_exploding",
     .abbr = "GE",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_NOT_FINITE,
     NOT_FINITE,
     .fires = "a gradient is NaN or infinite",
     .look = LOOK_INPUTS ", upstream to the first that is not finite",
     .advice =
         "The update would destroy the weight; leave this step out. With loss scaling a single one "
         "is normal: the scale is halved. Otherwise walk the backward pass (\"why\") to the first "
         "value that is not finite: a derivative at 0 of sqrt, norm or log, 0 times Inf behind a "
         "mask, or a forward value that overflowed."},
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
     .advice = "The device saw a result beyond the range of the type, also where it then wrote the "
               "largest number instead of Inf. Look at the inputs and their type; try float32 for "
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
     .advice =
         "Nothing gets through here. Look at the inputs: the first tensor that is all zero is the "
         "cause. Often a dead ReLU, a mask that covers everything, a product with a zero weight, "
         "or float16 values that were rounded to 0.",
     PARAMS(zeros)},
    {.id = "tensor_range",
     .abbr = "TR",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off",
     .look = LOOK_INPUTS,
     .advice = "The values are not where they were expected. Compare with the steps before, then "
               "look at the inputs: the first tensor that is off is the cause. Wrongly scaled data "
               "and a missing normalisation are the usual ones.",
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
     .fires = "all elements are the same",
     .look = LOOK_INPUTS,
     .advice =
         "The tensor tells its inputs apart no longer. All zero: see tensor_all_zero. Another "
         "constant often is a saturated activation, a normalisation over a single element, or a "
         "gain or bias that nothing has changed yet, which is normal at the start.",
     PARAMS(constant)},
    {.id = "tensor_denormal",
     .abbr = "DN",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "many elements are too small for full precision",
     .look = LOOK_INPUTS ", the loss scale",
     .advice =
         "The values have come to the lower end of their type: they lose digits, the next product "
         "is 0, and processors can be much slower on them. In float16 gradients this means that "
         "the loss scale is too small. Else look for what shrinks upstream, or let the "
         "processor take such numbers for 0.",
     PARAMS(denormals)},
    {.id = "dead_units",
     .abbr = "DU",
     .target = GD_COND_ACTIVATION,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "many units of an activation were 0 for several steps",
     .look = "the inputs of the activation, the learning rate, the bias in front of it",
     .advice =
         "A ReLU unit whose input is always negative gives 0 and gets no gradient, so it stays "
         "dead. One large update is enough for that: look at the weights and the bias in front of "
         "it at the step when the share rose. Try a smaller learning rate, another initializer, or "
         "an activation that leaks.",
     PARAMS(dead)},
    {.id = "sudden_change",
     .abbr = "SC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the mean size jumped away from what it was in the steps before",
     .look = LOOK_INPUTS ", the batch of this step",
     .advice =
         "This step differs from those before it by far more than they differ from one another. "
         "Look first at the batch, then at the learning rate schedule and at what else changed in "
         "this step; the first tensor in execution order that jumped is nearest to the cause.",
     PARAMS(sudden)},
    {.id = "gradient_norm_spike",
     .abbr = "GS",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .aggregate = true,
     .at_step_end = true,
     .fires = "the norm of all gradients together is many times its running mean",
     .look = "the batch of this step, the learning rate",
     .advice = "A spike of the norm comes before most losses that run away. Look at the batch of "
               "this step (bad labels, a very long or empty sample), and at which tensor has most "
               "of the norm. Try clipping by the global norm, or leave the step out.",
     PARAMS(norm_spike)},
    {.id = "gradient_reversal",
     .abbr = "GR",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the gradient points against that of the step before",
     .look = "the learning rate (too high), the momentum",
     .advice =
         "The weight jumps over the valley and back. A few such steps are normal; one after the "
         "other they mean that the learning rate is too high for this weight. Try a smaller one, "
         "or a larger batch.",
     PARAMS(turned)},
    {.id = "gradient_missing",
     .abbr = "GM",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires_without_value = true,
     .fires = "no gradient arrived in this step",
     .look = "whether the weight takes part in the loss",
     .advice = "The backward pass did not come to this weight. Either it took no part in the "
               "forward pass of this step (a branch, an expert, an unused layer), or the graph was "
               "cut in front of it (detached, converted to a plain number, computed without "
               "gradients), or it is frozen.",
     PARAMS(missing)},
    {.id = "update_ratio_band",
     .abbr = "UB",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_OWN,
     .any_tests = true,
     .at_step_end = true,
     .fires = "the relative update is outside its band",
     .look = LOOK_UPDATE,
     .advice =
         "About a thousandth of its size is what a healthy weight moves in a step. Far above it "
         "training jumps about, far below it stands still. Adjust the learning rate of this "
         "group of weights, and look at its gradient if only one layer is outside.",
     PARAMS(update_band)},
    {.id = "float16_clipping",
     .abbr = "FC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "elements are beyond what float16 can hold",
     .look = LOOK_INPUTS ", the loss scale",
     .advice =
         "As float16 these elements are Inf. Keep this operator in float32 or bfloat16, scale its "
         "inputs down, or lower the loss scale when it is a gradient.",
     PARAMS(half_range)},
    {.id = "bfloat16_clipping",
     .abbr = "BC",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OWN,
     .fires = "elements are beyond what bfloat16 can hold",
     .look = LOOK_INPUTS,
     .advice = "As bfloat16 these elements are Inf. Its range is nearly that of float32, so the "
               "values are about to overflow anyway: look for what grows upstream.",
     PARAMS(bfloat_range)},
    {.id = "loss_not_finite",
     .abbr = "LN",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     NOT_FINITE,
     .fires = "the loss is NaN or infinite",
     .look = "the first tensor of this step that is not finite",
     .advice = "The loss is the last to know. Set \"watch TO\" and run this step again, or ask "
               "\"why\": the first tensor that is not finite, in this step or in a weight from the "
               "step before, is the cause."},
    {.id = "loss_spike",
     .abbr = "LS",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .any_tests = true,
     .fires = "the loss is many times its running mean, many deviations above it, or rises far "
              "above its "
              "first values",
     .look = "the batch of this step, the update of the step before",
     .advice =
         "Either this batch is unlike the others, or the update before was too large. Look at the "
         "samples of this step and at the norm of the gradients one step back. If it does not "
         "come down again by itself, go back to a checkpoint with a smaller learning rate or "
         "leave these batches out.",
     PARAMS(loss_jump)},
    {.id = "loss_plateau",
     .abbr = "LP",
     .target = GD_COND_SCALAR,
     .wire = GD_WIRE_OWN,
     .at_step_end = true,
     .fires = "the loss has not become lower for many steps",
     .look = "the learning rate, the gradients",
     .advice =
         "Nothing is learned any more, or it is learned too slowly. Look whether the gradients "
         "vanish and whether the weights still change. Near the end of a training it is the time "
         "to lower the learning rate or to stop; at the start try a higher one, or look for a "
         "part of the network that is cut off.",
     PARAMS(plateau)},
};

const size_t gd_condition_total = sizeof(gd_condition_table) / sizeof(*gd_condition_table);
