// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What an operator did, by its type and the statistics of its inputs and output: a table of rules,
 * of which the first that holds is used. A rule is a row: operator types, a test, an id, a
 * sentence.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/why/why_impl.h"

#define HALF_MAX 65504.0

struct why_case {
    const struct why_walk *walk;
    const struct why_tensor *out;
    struct gd_node_info info;
    const struct why_tensor *in[WHY_MAX_INPUTS]; /* NULL: not known */
    uint32_t count;
    uint32_t at;    /* the input that the sentence is about: set by the test */
    uint32_t other; /* a second one */
    double bound;   /* including the scale: no exact result of the operator is larger; -1 unknown */
    double limit;   /* of the test: the largest harmless input */
    double largest; /* of the test: the largest magnitude of an input, including the scale */
    double scale;   /* by which the program multiplies its values; they are reported without */
    enum gd_dtype dtype; /* of the result */
};

enum property { /* of an input's statistics, or of the result's */
                HAS_NAN = 1 << 0,
                INF = 1 << 1,
                BAD = 1 << 2, /* NaN or Inf */
                FINITE = 1 << 3,
                POS_INF = 1 << 4,
                ONLY_NEG_INF = 1 << 5, /* and finite elements */
                ZERO = 1 << 6,
                NONZERO = 1 << 7,
                NEGATIVE = 1 << 8,
                NONE_POSITIVE = 1 << 9,
                MINUS_ONE = 1 << 10, /* or less */
                EQUAL = 1 << 11,
                NO_SPREAD = 1 << 12,
                SATURATED = 1 << 13, /* of an activation between -1 and 1 */
};

struct why_rule {
    enum gd_bad bad;
    const char *types; /* see why_type_in */
    /* It holds if the first two inputs and the result have these properties, and if the test, which
     * may be NULL, succeeds. */
    unsigned first, second, out;
    bool (*test)(struct why_case *c);
    uint32_t at; /* the input that the sentence is about, unless the test sets it */
    const char *id;
    const char *sentence; /* {name}, {in}, {in.zeros}, ...: see put_word */
};

/* ---- types ---------------------------------------------------------------------------------- */

#define SUMS       "Add AddN AddV2 TensorAdd Sub BiasAdd add_ iadd sub_ isub"
#define PRODUCTS   "Mul Muls MulNoNan Multiply Scale mul_ imul"
#define MATRICES   "MatMul BatchMatMul* MatMulV2 Dense Linear Gemm Conv* DepthwiseConv* addmm bmm mm"
#define REDUCTIONS "ReduceSum BiasAddGrad UnsortedSegmentSum Sum"
#define DIVISIONS  "Div DivMod RealDiv TrueDiv DivNoNan FloorDiv Divide div_ itruediv true_divide"
#define SOFTMAXES                                                                                  \
    "Softmax LogSoftmax SoftmaxCrossEntropy* SparseSoftmaxCrossEntropy* log_softmax cross_entropy"
#define MOVES                                                                                      \
    "Cast Reshape Transpose Split Concat* Gather* ReLU* Identity TensorMove Load Slice "           \
    "StridedSlice Squeeze ExpandDims Flatten Tile Pack Stack Unpack BroadcastTo ReduceMax "        \
    "ReduceMean MeanExt MaskedFill Select Neg Abs Dropout* Pad* MaxPool* AvgPool* half float "     \
    "bfloat16 "                                                                                    \
    "double to type view permute getitem clone contiguous detach unsqueeze chunk mean amax max "   \
    "cat ToCopyBackward* ToBackward* ViewBackward* TransposeBackward* CloneBackward*"

/* ---- statistics ----------------------------------------------------------------------------- */

static bool is_known(const struct why_case *c, uint32_t i)
{
    return i < c->count && c->in[i] && c->in[i]->has_stats;
}

static const struct gd_stats *input_stats(const struct why_case *c, uint32_t i)
{
    return &c->in[i]->stats;
}

static uint64_t inf_of(const struct gd_stats *stats)
{
    return stats->pos_inf + stats->neg_inf;
}

static unsigned properties_of(const struct gd_stats *s)
{
    uint64_t inf = inf_of(s);

    return (s->nan > 0 ? HAS_NAN : 0U) | (inf > 0 ? INF : 0U) | (s->nan + inf > 0 ? BAD : FINITE) |
           (s->pos_inf > 0 ? POS_INF : 0U) |
           (s->neg_inf > 0 && s->nan + s->pos_inf == 0 ? ONLY_NEG_INF : 0U) |
           (s->zero > 0 ? ZERO : 0U) | (s->zero < s->count ? NONZERO : 0U) |
           (s->negative > 0 ? NEGATIVE : 0U) | (s->positive == 0 ? NONE_POSITIVE : 0U) |
           (s->min <= -1 ? MINUS_ONE : 0U) | (s->count > 0 && s->min >= s->max ? EQUAL : 0U) |
           (s->count > 0 && s->std <= 0 ? NO_SPREAD : 0U) |
           (s->abs_mean > 0.999 && s->max <= 1 ? SATURATED : 0U);
}

/* Whether input number `i` is known, and has these properties. */
static bool has_properties(const struct why_case *c, uint32_t i, unsigned properties)
{
    return is_known(c, i) && (properties_of(input_stats(c, i)) & properties) == properties;
}

/* The first input from number `i` on with a property; sets c->at. */
static bool find_input(struct why_case *c, uint32_t i, enum property property)
{
    for (; i < c->count; i++) {
        if (has_properties(c, i, property)) {
            c->at = i;
            return true;
        }
    }
    return false;
}

/* The largest finite number of a type. */
static double type_max(enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_FLOAT16: return HALF_MAX;
    case GD_BFLOAT16: return 3.3895313892515355e38;
    case GD_FLOAT64:
    case GD_COMPLEX128: return DBL_MAX;
    default: return FLT_MAX;
    }
}

/* Upper bound for the number of elements that a matrix product adds up for one result. */
static double inner_size(const struct why_case *c)
{
    const struct gd_shape *a = &c->in[0]->shape;
    double size = 1;

    if (why_type_in(c->info.type, "Conv* DepthwiseConv*")) {
        return (double)input_stats(c, 1)->count;
    }
    if (why_type_in(c->info.type, "Linear Dense") && a->rank > 0) {
        return (double)a->dim[a->rank - 1];
    }
    for (int i = a->rank - 2; i < a->rank; i++) { /* either may be transposed */
        size = i >= 0 && (double)a->dim[i] > size ? (double)a->dim[i] : size;
    }
    return size;
}

static double factor_attr(const struct why_case *c)
{
    for (uint32_t i = 0; i < c->info.attr_count; i++) {
        if (why_type_in(c->info.attrs[i].name, "factor scale value alpha")) {
            return fabs(strtod(c->info.attrs[i].value, NULL));
        }
    }
    return -1;
}

/* What the operator's exact result cannot exceed, from its inputs; -1 if unknown. */
static double bound_of(const struct why_case *c)
{
    const char *type = c->info.type;
    double sum = 0, product = 1, largest = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        if (!has_properties(c, i, FINITE)) {
            return -1;
        }
        double max = why_max_abs(input_stats(c, i));
        sum += max;
        product *= max;
        largest = fmax(largest, max);
    }
    if (c->count == 0) {
        return -1;
    }
    if (why_type_in(type, SUMS)) {
        return sum;
    }
    if (why_type_in(type, PRODUCTS)) {
        return c->count > 1 ? product : factor_attr(c) < 0 ? -1 : product * factor_attr(c);
    }
    if (why_type_in(type, MATRICES) && c->count >= 2) {
        return inner_size(c) * why_max_abs(input_stats(c, 0)) * why_max_abs(input_stats(c, 1)) +
               (c->count > 2 ? why_max_abs(input_stats(c, 2)) : 0);
    }
    if (why_type_in(type, REDUCTIONS)) {
        return (double)input_stats(c, c->count - 1)->count * largest;
    }
    if (why_type_in(type, "Square")) {
        return largest * largest;
    }
    return why_type_in(type, MOVES) ? largest : -1;
}

/* ---- tests: what is not finite --------------------------------------------------------------- */

/* The other operand is a number: an infinite result shows that it is the dividend. */
static bool divides_number_by_zero(struct why_case *c)
{
    return c->count == 1 && has_properties(c, 0, ZERO) &&
           inf_of(&c->out->stats) == input_stats(c, 0)->zero;
}

static bool exponent_too_large(struct why_case *c)
{
    c->limit = log(type_max(c->out->dtype));
    return is_known(c, 0) && input_stats(c, 0)->max > c->limit;
}

/* The difference of two scores of an example may be as large as that of all of them. */
static bool probability_rounds_to_zero(struct why_case *c)
{
    c->limit = c->in[0] && c->in[0]->dtype == GD_FLOAT64 ? 708 : 87; /* e^-x, not denormal */
    return is_known(c, 0) && input_stats(c, 0)->max - input_stats(c, 0)->min > c->limit;
}

/* Infinities that can meet with opposite signs. */
static bool infinities_meet(struct why_case *c)
{
    uint64_t pos = 0, neg = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        bool flips = i > 0 && why_type_in(c->info.type, "Sub");

        if (has_properties(c, i, INF)) {
            c->other = pos + neg > 0 ? c->at : i;
            c->at = i;
            pos += flips ? input_stats(c, i)->neg_inf : input_stats(c, i)->pos_inf;
            neg += flips ? input_stats(c, i)->pos_inf : input_stats(c, i)->neg_inf;
        }
    }
    return pos > 0 && neg > 0;
}

static bool zero_meets_infinity(struct why_case *c)
{
    for (c->at = 0; c->at < 2; c->at++) {
        c->other = 1 - c->at;
        if (has_properties(c, c->at, INF) && has_properties(c, c->other, ZERO)) {
            return true;
        }
    }
    return false;
}

static bool reads_infinity(struct why_case *c)
{
    return find_input(c, 0, INF);
}

/* A mask of -Inf and finite numbers. */
static bool reads_mask(struct why_case *c)
{
    return find_input(c, 0, ONLY_NEG_INF);
}

/* Of a gradient's operator with several sources, the sum that it received is not known. */
static bool reads_nothing_bad(struct why_case *c)
{
    return !find_input(c, 0, BAD);
}

/* Adam divides by sqrt(v) + eps. In float16 the default eps is 0, and v where |gradient| < 1e-3. */
static bool divides_by_no_epsilon(struct why_case *c)
{
    return c->out->dtype == GD_FLOAT16 && reads_nothing_bad(c);
}

/* The input with the largest magnitude; false: none is known. */
static bool find_largest(struct why_case *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (is_known(c, i) && (!is_known(c, c->at) || why_max_abs(input_stats(c, i)) >
                                                          why_max_abs(input_stats(c, c->at)))) {
            c->at = i;
        }
    }
    c->largest = is_known(c, c->at) ? c->scale * why_max_abs(input_stats(c, c->at)) : 0;
    return is_known(c, c->at);
}

static bool half_range(struct why_case *c)
{
    return find_largest(c) && c->dtype == GD_FLOAT16 && c->bound > HALF_MAX;
}

/* The bound of the operator is unknown. */
static bool half_range_unbound(struct why_case *c)
{
    return find_largest(c) && c->dtype == GD_FLOAT16 && c->bound < 0;
}

/* float32 would hold the result, whatever the signs: it was computed, or stored, in half
 * precision. */
static bool half_range_in_single(struct why_case *c)
{
    return find_largest(c) && c->dtype == GD_FLOAT32 && c->bound > HALF_MAX &&
           c->bound < (double)FLT_MAX;
}

/* A mean is in range where its values are, but it adds them first. */
static bool sum_leaves_range(struct why_case *c)
{
    if (!find_largest(c)) {
        return false;
    }
    c->limit = (double)input_stats(c, c->at)->count * c->largest;
    return c->dtype != GD_FLOAT16 && c->dtype != GD_BFLOAT16 && c->limit >= type_max(c->dtype);
}

static bool single_range(struct why_case *c)
{
    return find_largest(c) && c->bound >= type_max(c->dtype);
}

/* The bound of the operator is unknown: it read values near the end of float16's range. */
static bool near_half_range(struct why_case *c)
{
    return find_largest(c) && c->bound < 0 && c->largest > HALF_MAX / 64 && c->largest <= HALF_MAX;
}

static bool reads_nothing(struct why_case *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const struct why_tensor *in = c->in[i];

        for (int axis = 0; in && axis < in->shape.rank; axis++) {
            if (in->shape.dim[axis] == 0) {
                c->at = i;
                return true;
            }
        }
    }
    return false;
}

static bool reads_huge(struct why_case *c)
{
    return find_largest(c) && c->bound < 0 && c->largest > sqrt(type_max(c->dtype)) / 1e4;
}

/* ---- tests: what is all zero ----------------------------------------------------------------- */

static bool activation_dead(struct why_case *c)
{
    return find_input(c, 1, NONE_POSITIVE);
}

static bool is_saturated(struct why_case *c)
{
    return find_input(c, 1, SATURATED);
}

static bool too_small(struct why_case *c)
{
    double least = c->out->dtype == GD_FLOAT16 ? 2.9802322387695312e-08 : 7.006492321624085e-46;

    return find_largest(c) && c->bound >= 0 && c->bound <= least;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define NF GD_BAD_NONFINITE

static const struct why_rule rules[] = {
    {NF, "Log Log2 Log10", NEGATIVE, 0, HAS_NAN, NULL, 0, "log-of-negative",
     "{name} takes the logarithm of negative numbers: {in.negatives} elements of {in} are below 0 "
     "(minimum {in.min}), and their logarithm is NaN."},
    {NF, "Log Log2 Log10", ZERO, 0, INF, NULL, 0, "log-of-zero",
     "{name} takes the logarithm of 0: {in.zeros} elements of {in} are 0, and the logarithm of 0 "
     "is -Inf. Nothing keeps the argument above 0."},
    {NF, "Log1p", MINUS_ONE, 0, 0, NULL, 0, "log-of-zero",
     "{name} takes the logarithm of 1 + x where x is -1 or less: the minimum of {in} is {in.min}."},
    {NF, "LogGrad", 0, ZERO, 0, NULL, 1, "division-by-zero",
     "{name}, the gradient of a logarithm, divides by the logarithm's argument: {in.zeros} "
     "elements of {in} are 0, as in {forward}."},
    {NF, DIVISIONS, INF, INF, HAS_NAN, NULL, 1, "inf-over-inf",
     "{name} divides Inf by Inf: {other} and {in} both have infinite elements."},
    {NF, DIVISIONS, ZERO, ZERO, HAS_NAN, NULL, 1, "zero-over-zero",
     "{name} divides 0 by 0: {in.zeros} elements of the divisor {in} are 0, and so are "
     "{other.zeros} of {other}."},
    {NF, DIVISIONS " Mod FloorMod Xdivy", 0, ZERO, 0, NULL, 1, "division-by-zero",
     "{name} divides by 0: {in.zeros} elements of the divisor {in} are 0."},
    {NF, DIVISIONS, 0, 0, 0, divides_number_by_zero, 0, "division-by-zero",
     "{name} divides by 0: {in.zeros} elements of the divisor {in} are 0."},
    {NF, "Reciprocal Inv Rsqrt", ZERO, 0, INF, NULL, 0, "division-by-zero",
     "{name} divides by 0: {in.zeros} elements of {in} are 0."},
    {NF, "Sqrt Rsqrt SqrtGrad", NEGATIVE, 0, HAS_NAN, NULL, 0, "sqrt-of-negative",
     "{name} takes the square root of negative numbers: {in.negatives} elements of {in} are below "
     "0 (minimum {in.min})."},
    {NF, "SqrtGrad RsqrtGrad ReciprocalGrad", ZERO, 0, INF, NULL, 0, "division-by-zero",
     "{name} divides by 0: its slope is infinite where {in} is 0, in {in.zeros} elements."},
    {NF, "SqrtBackward* RsqrtBackward*", 0, 0, BAD, reads_nothing_bad, 0, "slope-at-zero",
     "{name}: the slope of a square root is infinite at 0, and {argument} is 0 or nearly 0. The "
     "root itself is finite but its gradient is not, even where a mask or where() hides the "
     "result. Keep the argument above 0."},
    {NF, "LogBackward* Log2Backward* Log10Backward* ReciprocalBackward* DivBackward*", 0, 0, BAD,
     reads_nothing_bad, 0, "slope-at-zero",
     "{name} divides by {argument}, which is 0 or nearly 0: the slope is infinite, even where a "
     "mask or where() hides the result."},
    {NF, "AcosBackward* AsinBackward*", 0, 0, BAD, reads_nothing_bad, 0, "slope-at-one",
     "{name}: the slope is infinite at 1 and -1, and {argument} reaches or nearly reaches them."},
    {NF, "PowBackward*", 0, 0, BAD, reads_nothing_bad, 0, "slope-at-zero",
     "{name}: the slope of a power below 1 is infinite at 0, and {argument} is 0 or nearly 0; or "
     "the base and the exponent are too large for {out.dtype}."},
    {NF, "Pow Power", ZERO, NEGATIVE, 0, NULL, 0, "division-by-zero",
     "{name} raises 0 to a negative power: {in.zeros} elements of {in} are 0."},
    {NF, "Pow Power", NEGATIVE, 0, HAS_NAN, NULL, 0, "power-of-negative",
     "{name} raises negative numbers to a fractional power: {in.negatives} elements of {in} are "
     "below 0 (minimum {in.min})."},
    {NF, "Exp Expm1 Sinh Cosh", 0, 0, 0, exponent_too_large, 0, "exp-overflow",
     "{name} overflows: the maximum of {in} is {in.max}, and e^x is infinite in {out.dtype} from "
     "{limit} on."},
    {NF, "*", 0, 0, HAS_NAN, reads_nothing, 0, "empty-input",
     "{name} has nothing to compute with: {in} has no elements, and the mean of nothing is NaN. "
     "Look for an empty batch, selection or split."},
    {NF, "cross_entropy nll_loss", FINITE, EQUAL, HAS_NAN, NULL, 1, "no-labels",
     "{name} has no labels left: all of {in} are {in.max}, which ignore_index excludes, and the "
     "mean of nothing is NaN."},
    {NF, SOFTMAXES, POS_INF, 0, HAS_NAN, NULL, 0, "softmax-of-inf",
     "{name} received Inf: {in} has infinite elements, and Inf / Inf is NaN."},
    {NF, SOFTMAXES, ONLY_NEG_INF, 0, HAS_NAN, NULL, 0, "masked-row",
     "{name} has rows in which every element is -Inf: where a whole row of {in} is masked, its sum "
     "is 0, and 0 / 0 is NaN."},
    {NF, "multi_head_attention_forward scaled_dot_product_attention", 0, 0, HAS_NAN, reads_mask, 0,
     "masked-row",
     "{name} has rows in which every element is masked: where a whole row of scores is -Inf by "
     "{in} (as for an example of padding only), its sum is 0, and 0 / 0 is NaN."},
    {NF, SOFTMAXES, 0, 0, HAS_NAN, exponent_too_large, 0, "exp-overflow",
     "{name} overflows: the maximum of {in} is {in.max}, e^x is infinite in {out.dtype} from "
     "{limit} on, and apparently the largest element is not subtracted first."},
    {NF, "SoftmaxCrossEntropy* SparseSoftmaxCrossEntropy*", FINITE, 0, POS_INF,
     probability_rounds_to_zero, 0, "log-of-zero",
     "{name} takes the logarithm of a probability that {in.dtype} rounds to 0: the scores {in} "
     "range from {in.min} to {in.max}, and e^x is 0 for scores more than {limit} below the "
     "largest."},
    {NF, SUMS " " REDUCTIONS " ReduceMean MeanExt " MATRICES, 0, 0, HAS_NAN, infinities_meet, 0,
     "inf-minus-inf",
     "{name} adds infinities of opposite signs, and Inf - Inf is NaN: they come from {in}."},
    {NF, PRODUCTS " " MATRICES, 0, 0, HAS_NAN, zero_meets_infinity, 0, "zero-times-inf",
     "{name} multiplies 0 by Inf, which is NaN: {in} has infinite elements where {other} can be 0 "
     "({other.zeros} elements). Masking by multiplication does this: use where() or masked_fill() "
     "instead."},
    {NF, "*", 0, 0, HAS_NAN, reads_infinity, 0, "inf-arithmetic",
     "{name} computes with Inf from {in}: Inf - Inf, 0 x Inf and Inf / Inf are NaN."},
    {NF, "LayerNorm LayerNormV3 BatchNorm GroupNorm InstanceNorm layer_norm batch_norm group_norm",
     NO_SPREAD, 0, 0, NULL, 0, "no-variance",
     "{name} divides by a standard deviation of 0: all elements of {in} are equal ({in.max})."},
    {NF, "std var std_mean var_mean", FINITE, 0, HAS_NAN, NULL, 0, "too-few",
     "{name} computes the deviation of a single element along an axis, which divides 0 by 0; {in} "
     "is finite. Use unbiased=False (correction=0), or more elements."},
    {NF, "ReduceMean MeanExt mean", 0, 0, BAD, sum_leaves_range, 0, "float-range",
     "{name} exceeds the range of {out.dtype} while it adds: with values up to {in.max_abs} ({in}) "
     "the sum can reach {limit}, though the mean is in range."},
    {NF, "Adam AdamW NAdam RAdam", 0, 0, BAD, divides_by_no_epsilon, 0, "epsilon-is-0",
     "{name} divides by 0: eps is below 6e-8 (its default is 1e-8), which float16 rounds to 0, and "
     "so is the average of the squares of small gradients."},
    {NF, "*", 0, 0, BAD, half_range, 0, "fp16-range",
     "{name} exceeds the range of float16: its maximum is 65504, and with values up to "
     "{in.max_abs} ({in}) the result can reach {bound}."},
    {NF, "*", 0, 0, BAD, half_range_unbound, 0, "fp16-range",
     "{name} exceeds the range of float16, whose maximum is 65504, with values up to {in.max_abs} "
     "({in})."},
    {NF, "*", 0, 0, BAD, half_range_in_single, 0, "fp16-range",
     "{name} exceeds the range of float16: with values up to {in.max_abs} ({in}) the result can "
     "reach {bound}, which is beyond 65504 but well inside float32: it is computed or rounded in "
     "half precision."},
    {NF, "*", 0, 0, BAD, single_range, 0, "float-range",
     "{name} exceeds the range of {out.dtype}: with values up to {in.max_abs} ({in}) the result "
     "can reach {bound}."},
    {NF, "*", 0, 0, BAD, near_half_range, 0, "fp16-range",
     "{name} produced non-finite values from finite ones up to {in.max_abs} ({in}), close to the "
     "float16 maximum of 65504. It is probably computed or rounded in half precision."},
    {NF, "*", 0, 0, BAD, reads_huge, 0, "float-range",
     "{name} produced non-finite values from {in}, whose largest magnitude is {in.max_abs}: its "
     "squares or sums exceed the range of {out.dtype}."},
    {GD_BAD_ZERO, "ReluGrad* ReLUGrad*", 0, 0, 0, activation_dead, 0, "dead-relu",
     "{name} lets no gradient through: no element of {in} is above 0 (maximum {in.max})."},
    {GD_BAD_ZERO, "ReluBackward* ThresholdBackward*", NONZERO, 0, 0, NULL, 0, "dead-relu",
     "{name} lets no gradient through: no element of {argument} is above 0 where a gradient comes "
     "back."},
    {GD_BAD_ZERO, "ReLU*", NONE_POSITIVE | FINITE, 0, 0, NULL, 0, "dead-relu",
     "{name} lets nothing through: no element of {in} is above 0 (maximum {in.max})."},
    {GD_BAD_ZERO, "TanhGrad SigmoidGrad", 0, 0, 0, is_saturated, 0, "saturated",
     "{name} lets no gradient through: the activation is saturated (the mean magnitude of {in} is "
     "{in.abs_mean})."},
    {GD_BAD_ZERO, "*", 0, 0, 0, too_small, 0, "underflow",
     "{name} underflows: with values up to {in.max_abs} ({in}) no result exceeds {bound}, which "
     "{out.dtype} rounds to 0."},
};

/* ---- sentences ------------------------------------------------------------------------------- */

void why_say(struct why_finding *ret, const char *rule, const char *format, ...)
{
    va_list args;

    ret->rule = rule;
    gd_buf_clear(&ret->text);
    va_start(args, format);
    gd_buf_vprintf(&ret->text, format, args);
    va_end(args);
}

static void put_figure(const struct why_case *c, const struct why_tensor *tensor, const char *word,
                       size_t len, struct gd_buf *text)
{
    const struct gd_stats *s = &tensor->stats;
    char share[64];
    const struct {
        const char *word;
        double value;
    } figures[] = {{".min", s->min},
                   {".max", s->max},
                   {".abs_mean", s->abs_mean},
                   {".max_abs", c->scale * why_max_abs(s)}};

    if (len == 0) {
        gd_buf_puts(text, why_name(c->walk, tensor));
    } else if (strncmp(word, ".zeros", len) == 0) {
        gd_buf_puts(text, why_share(s->zero, s->count, share, sizeof(share)));
    } else if (strncmp(word, ".negatives", len) == 0) {
        gd_buf_puts(text, why_share(s->negative, s->count, share, sizeof(share)));
    } else if (strncmp(word, ".dtype", len) == 0) {
        gd_buf_puts(text, gd_dtype_name(tensor == c->out ? c->dtype : tensor->dtype));
    }
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (strlen(figures[i].word) == len && strncmp(word, figures[i].word, len) == 0) {
            gd_buf_printf(text, "%.6g", figures[i].value);
        }
    }
}

/* The forward operator that a gradient's operator belongs to: it has the same input. */
static void put_forward(const struct why_case *c, struct gd_buf *text)
{
    const struct gd_graph *graph = c->walk->session->graph;
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(graph, c->in[c->at]->node, &edges);
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, edges[i].node, &info) && info.kind != GD_NODE_GRADIENT &&
            strlen(info.type) < strlen(c->info.type) &&
            strncasecmp(info.type, c->info.type, strlen(info.type)) == 0) {
            gd_buf_printf(text, "%.120s (%s)", info.name, info.type);
            return;
        }
    }
    gd_buf_puts(text, "the forward pass");
}

/* The input of the forward operator: the divisor, if there is one. */
static void put_argument(const struct why_case *c, struct gd_buf *text)
{
    const struct gd_graph *graph = c->walk->session->graph;
    struct gd_node_info forward;
    uint32_t at = why_type_in(c->info.type, "DivBackward*") ? 1 : 0;

    if (gd_graph_node(graph, why_forward(graph, &c->info), &forward) && at < forward.input_count) {
        gd_buf_printf(text, "%.120s", gd_graph_name(graph, forward.inputs[at].node));
    } else {
        gd_buf_puts(text, "the input of the forward operator");
    }
}

static void put_word(const struct why_case *c, const char *word, size_t len, struct gd_buf *text)
{
    if (len == 4 && strncmp(word, "name", 4) == 0) {
        gd_buf_printf(text, "%s (%s)", why_name(c->walk, c->out), c->info.type);
    } else if (len == 5 && strncmp(word, "bound", 5) == 0) {
        gd_buf_printf(text, "%.6g", c->bound);
    } else if (len == 5 && strncmp(word, "limit", 5) == 0) {
        gd_buf_printf(text, "%.4g", c->limit);
    } else if (len == 7 && strncmp(word, "forward", 7) == 0 && is_known(c, c->at)) {
        put_forward(c, text);
    } else if (len == 8 && strncmp(word, "argument", 8) == 0) {
        put_argument(c, text);
    } else if (strncmp(word, "out", 3) == 0) {
        put_figure(c, c->out, word + 3, len - 3, text);
    } else if (strncmp(word, "other", 5) == 0 && is_known(c, c->other)) {
        put_figure(c, c->in[c->other], word + 5, len - 5, text);
    } else if (strncmp(word, "in", 2) == 0 && is_known(c, c->at)) {
        put_figure(c, c->in[c->at], word + 2, len - 2, text);
    }
}

static void put_sentence(const struct why_case *c, const char *sentence, struct gd_buf *text)
{
    while (*sentence) {
        size_t plain = strcspn(sentence, "{");

        gd_buf_add(text, sentence, plain);
        sentence += plain;
        if (*sentence == '{') {
            size_t len = strcspn(sentence + 1, "}");
            put_word(c, sentence + 1, len, text);
            sentence += len + 2;
        }
    }
}

static bool make_case(const struct why_walk *walk, const struct why_tensor *out,
                      struct why_case *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->walk = walk;
    ret->out = out;
    if (!gd_graph_node(walk->session->graph, out->node, &ret->info)) {
        return false;
    }
    for (uint32_t i = 0; i < ret->info.input_count && ret->count < WHY_MAX_INPUTS; i++) {
        if (!ret->info.inputs[i].control) {
            ret->in[ret->count++] = why_input(walk, out, i);
        }
    }
    ret->scale = 1;
    ret->dtype = out->dtype;
    if (walk->facts.scale > 1 && why_in_phase(&ret->info, "backward")) {
        struct gd_output output;

        ret->scale = walk->facts.scale;
        if (gd_graph_output(walk->session->graph, out->node, out->slot, &output)) {
            ret->dtype = output.dtype;
        }
    }
    ret->bound = bound_of(ret);
    ret->bound *= ret->bound > 0 ? ret->scale : 1;
    return true;
}

static const struct why_rule *rule_for(struct why_case *c)
{
    unsigned out = properties_of(&c->out->stats);

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const struct why_rule *rule = &rules[i];

        c->at = rule->at;
        c->other = 1 - rule->at;
        if (rule->bad == c->walk->bad && why_type_in(c->info.type, rule->types) &&
            (out & rule->out) == rule->out && (!rule->first || has_properties(c, 0, rule->first)) &&
            (!rule->second || has_properties(c, 1, rule->second)) &&
            (!rule->test || rule->test(c))) {
            return rule;
        }
    }
    return NULL;
}

void why_explain(const struct why_walk *walk, const struct why_tensor *origin,
                 struct why_finding *ret)
{
    struct why_case c;
    const struct why_rule *rule = make_case(walk, origin, &c) ? rule_for(&c) : NULL;

    if (rule) {
        ret->rule = rule->id;
        put_sentence(&c, rule->sentence, &ret->text);
    }
}

/* ---- Inf that turned into NaN ---------------------------------------------------------------- */

void why_explain_turn(const struct why_walk *walk, const struct why_tensor *origin,
                      struct why_finding *ret)
{
    const struct why_tensor *first = NULL;
    struct why_case c;

    if (walk->bad != GD_BAD_NONFINITE || origin->stats.nan > 0 || walk->tensors[0].stats.nan == 0) {
        return;
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (tensor != origin && !tensor->is_leaf && tensor->has_stats && tensor->stats.nan > 0 &&
            make_case(walk, tensor, &c) && !find_input(&c, 0, HAS_NAN) &&
            (!first || tensor->step < first->step ||
             (tensor->step == first->step && tensor->order < first->order))) {
            first = tensor;
        }
    }
    if (!first || !make_case(walk, first, &c)) {
        return;
    }
    const struct why_rule *rule = rule_for(&c);
    gd_buf_puts(&ret->text, " It is Inf from there on and becomes NaN later: ");
    if (rule) {
        put_sentence(&c, rule->sentence, &ret->text);
    } else {
        gd_buf_printf(&ret->text, "%s (%s) is the first with NaN.", why_name(walk, first),
                      c.info.type);
    }
}
