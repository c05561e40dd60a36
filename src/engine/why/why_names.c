// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules of `why` by name. Each name that a finding can have is listed here once. */
#include <stddef.h>

#include "engine/why/why.h"

#define STATISTICS "statistics of inputs and outputs"
#define GRAPH      "the graph"
#define PROCESS    "what the process reports"
#define STEPS      "statistics of several steps"

static const struct gd_why_rule rules[] = {
    {"bad-batch", "An input of the graph is not finite, or far from its usual size", STATISTICS},
    {"bad-buffer", "A buffer of a module is not finite, or all zero", STATISTICS},
    {"bad-constant", "A constant is not finite, large, or zero", STATISTICS},
    {"bad-weight", "A weight is not finite, large, or zero", STATISTICS},
    {"broadcast", "Two inputs broadcast to pairs of all elements: (N, 1) against (N)", GRAPH},
    {"cleared-before-step", "Gradients are zeroed between backward() and step()", PROCESS},
    {"cut-off", "A tensor leaves the graph: detach(), .data, numpy(), item(), an integer", GRAPH},
    {"dead-relu", "A ReLU lets nothing through", STATISTICS},
    {"diverging", "The loss grows without end", STEPS},
    {"division-by-zero", "A division by 0, or a reciprocal of 0", STATISTICS},
    {"empty-input", "The mean of no elements, as of an empty batch or selection", STATISTICS},
    {"epsilon-is-0", "Adam's eps is 0 in float16", STATISTICS},
    {"exp-overflow", "An exponential function of a number that is too large", STATISTICS},
    {"exploding", "A gradient or a state grows with each run of a recurrence", STEPS},
    {"float-range", "A result beyond the range of its type", STATISTICS},
    {"fp16-range", "A result beyond the range of float16", STATISTICS},
    {"frozen", "requires_grad is False", PROCESS},
    {"index-range", "An index or a label out of range", PROCESS},
    {"inf-arithmetic", "NaN from an infinity that the operator reads", STATISTICS},
    {"inf-minus-inf", "The difference of two infinities", STATISTICS},
    {"inf-over-inf", "The quotient of two infinities", STATISTICS},
    {"jump", "A value that is many times its size in earlier steps", STEPS},
    {"learning-rate", "A learning rate that is 0, grows, or changes weights far too much", STEPS},
    {"log-of-negative", "A logarithm of a negative number", STATISTICS},
    {"log-of-zero", "A logarithm of 0", STATISTICS},
    {"mask", "Infinities of a mask, which are meant", STATISTICS},
    {"masked-row", "A softmax over a row that is masked completely", STATISTICS},
    {"no-grad", "An operator ran while gradients were disabled", GRAPH},
    {"no-labels", "No label counts: all are left out by ignore_index", STATISTICS},
    {"no-logarithm", "Probabilities where logarithms of them are expected", GRAPH},
    {"no-path", "No gradient reaches a weight", GRAPH},
    {"no-step", "The optimizer of a weight did not step", PROCESS},
    {"no-variance", "A division by a deviation of 0", STATISTICS},
    {"normalised-twice", "A softmax or sigmoid before a loss that applies it itself", GRAPH},
    {"not-set-back", "Gradients are never zeroed", PROCESS},
    {"not-trained", "No optimizer holds a weight", PROCESS},
    {"one-class", "A softmax over a single class", GRAPH},
    {"power-of-negative", "A negative number to a power that is not whole", STATISTICS},
    {"raised", "An operator raised an exception", PROCESS},
    {"ranks-apart", "A parameter differs between ranks", PROCESS},
    {"saturated", "A tanh or sigmoid whose inputs are too large: it lets no gradient through",
     STATISTICS},
    {"skipped-step", "The gradient scaler skipped the update", PROCESS},
    {"slope-at-one", "The infinite slope of acos or asin at 1", STATISTICS},
    {"slope-at-zero", "The infinite slope of a root, a norm or a power at 0", STATISTICS},
    {"small-update", "An update that is below the rounding of a weight", STATISTICS},
    {"small-weight", "A weight that makes its output small", STATISTICS},
    {"softmax-axis", "A softmax over another axis than that of the classes", GRAPH},
    {"softmax-of-inf", "A softmax over an infinity", STATISTICS},
    {"sqrt-of-negative", "A square root of a negative number", STATISTICS},
    {"sum-reduction", "A loss that is a sum over examples", GRAPH},
    {"too-few", "A deviation of a single element", STATISTICS},
    {"unused", "Nothing that leads to the loss uses a weight", GRAPH},
    {"vanishing", "A gradient that shrinks on its way from the loss", STATISTICS},
    {"zero-by-algebra", "A gradient that is 0 by algebra, except for rounding", GRAPH},
    {"zero-factor", "A gradient that is 0 because a factor is", STATISTICS},
    {"zero-gradients", "All gradients of the optimizer are 0", PROCESS},
    {"zero-over-zero", "The quotient of two zeros", STATISTICS},
    {"zero-times-inf", "The product of 0 and an infinity", STATISTICS},
    {NULL, NULL, NULL},
};

const struct gd_why_rule *gd_why_rules(void)
{
    return rules;
}
