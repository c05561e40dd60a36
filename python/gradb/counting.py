# SPDX-License-Identifier: MIT
"""Counts of a batch, computed by the framework where the tensors are, so that only the counts cross the bus.

They are those of libgradb (src/base/metric_classes.c and so on) and are given to it with "counts"; what to count it
says itself ("plan"), from types and shapes. Nothing here waits for the device, changes a tensor or draws a number.

`ops` is the framework's part; its tensors have operators, masked_fill, reshape, sum, any and unsqueeze:

    whole(x), real(x)       as int64, as float64; is_whole(x): its type is that of integers or bool
    argmax(x, axis)         the first of equal ones; the first NaN is the greatest
    isnan(x), take(x, axis, index), most(x, axis), apply(name, x): abs, sqrt, log, exp, log1p
    tally(index, size)      how often each of 0 ... size - 1 is in index, as int64
    numbers(size)           0 ... size - 1
    join(list)              the tensors of any shape, as one of float64 with one axis"""
import ast

_LEAST = 1e-10  # what libgradb takes for a probability of 0
_FIXED = 5      # numbers at the start of a text: classes, room, binary, rows, columns


class Uncounted(Exception):
    """It cannot be counted there: libgradb must see the values."""


def count(ops, plan, outputs, labels, loss=None):
    """The counts of one metric: tensors for ops.join, whose numbers `text` writes. loss: of a metric of the loss."""
    kind = plan["kind"]
    if kind == "loss":
        return [ops.real(loss)]
    if kind == "update":
        return _program(ops, plan["update"], outputs, labels)
    return _values(ops, plan, outputs, labels) if "columns" in plan else _classes(ops, plan, outputs, labels)


# ---- classes ----

def _pairs(ops, plan, outputs, labels):
    """(predicted, its scores have a NaN, label, is ignored, is outside the classes) of each sample."""
    axis, threshold = plan["axis"], plan["threshold"]
    if axis < 0:
        scores = ops.real(outputs).reshape(-1)
        predicted, nan = ops.whole(scores >= threshold if threshold > 0 else scores > threshold), ops.isnan(scores)
    else:
        predicted, nan = ops.argmax(outputs, axis), ops.isnan(outputs).any(axis)
    if plan["shares"]:
        label, outside = ops.argmax(labels, axis), ops.isnan(labels).any(axis)
        return predicted, nan, label, outside & ~outside, outside
    labels = labels.reshape(predicted.shape)
    ignored = ops.real(labels) == plan["ignore"] if "ignore" in plan else ops.isnan(labels) & ~ops.isnan(labels)
    if axis < 0 and not ops.is_whole(labels):
        return predicted, nan, ops.whole(labels > 0.5), ignored, ops.isnan(labels) & ~ignored
    label = ops.whole(labels)
    return predicted, nan, label, ignored, ((label < 0) | (label >= plan["classes"])) & ~ignored


def _classes(ops, plan, outputs, labels):
    kind, classes, axis = plan["kind"], plan["classes"], plan["axis"]
    predicted, nan, label, ignored, outside = _pairs(ops, plan, outputs, labels)
    counts = ~(ignored | outside)
    label = label.masked_fill(~counts, 0)
    right = counts & (predicted == label)
    if kind == "topk":
        right = counts & _is_among(ops, outputs, axis, label, plan["k"])
    total = [ops.whole(mask).sum() for mask in (counts, nan & counts, ignored, outside, right)]
    if kind == "perplexity":
        likelihood = _likelihood(ops, plan, outputs, axis, label).masked_fill(~counts, 0.0)
        return total[:4] + [total[4] * 0, likelihood.sum()]
    if kind == "confusion":
        cell = (label * classes + predicted).masked_fill(~counts, classes * classes)
        return total + [ops.tally(cell.reshape(-1), classes * classes + 1)[:-1]]
    if kind in ("precision", "recall", "f1"):
        total += [ops.tally(index.masked_fill(~mask, classes).reshape(-1), classes + 1)[:-1]
                  for index, mask in ((label, right), (predicted, counts), (label, counts))]
    return total


def _is_among(ops, outputs, axis, label, k):
    """As is_among of libgradb: NaN is the least, and of equal scores the first counts."""
    own = ops.take(outputs, axis, label.unsqueeze(axis))
    shape = [1] * len(outputs.shape)
    shape[axis] = -1
    before = ops.numbers(outputs.shape[axis]).reshape(shape) < label.unsqueeze(axis)
    nan, own_nan = ops.isnan(outputs), ops.isnan(own)
    equal = (outputs == own) | (nan & own_nan)
    above = (outputs > own) | (own_nan & ~nan) | (equal & before)
    return ops.whole(above).sum(axis) < k


def _likelihood(ops, plan, outputs, axis, label):
    scores = ops.real(outputs)
    if axis < 0:
        scores = scores.reshape(-1)
        sign = ops.real(label) * 2 - 1
        if plan["threshold"] > 0 or plan["probabilities"]:
            nan, probability = ops.isnan(scores), (1 - ops.real(label)) + sign * scores
            return _logarithm(ops, probability).masked_fill(nan, float("nan"))
        logit = sign * scores
        tail = ops.apply("log1p", ops.apply("exp", -ops.apply("abs", logit)))
        return -((-logit).masked_fill(~(logit < 0), 0.0) + tail)
    own = ops.take(scores, axis, label.unsqueeze(axis))
    if plan["probabilities"]:
        return _logarithm(ops, own).reshape(label.shape)
    most = ops.most(scores, axis)
    total = ops.apply("exp", scores - most).sum(axis)
    return (own - most).reshape(label.shape) - ops.apply("log", total)


def _logarithm(ops, probability):
    return ops.apply("log", probability.masked_fill(~(probability > _LEAST), _LEAST))


# ---- regressions ----

def _values(ops, plan, outputs, labels):
    output, label = (ops.real(x).reshape((-1, plan["columns"])) for x in (outputs, labels))
    if label.shape[0] == 0:
        raise Uncounted("no samples")
    shift, difference = label[0], label - output
    moved = label - label[:1]
    return [ops.whole(ops.isnan(output) | ops.isnan(label)).sum(), shift, moved.sum(0), (moved * moved).sum(0),
            (difference * difference).sum(0), ops.apply("abs", difference).sum(0)]


# ---- expressions of the user's, whose grammar is part of Python's and was checked by libgradb ----

_OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
              ast.Div: lambda a, b: a / b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
              ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b, ast.Eq: lambda a, b: a == b,
              ast.NotEq: lambda a, b: a != b}


def updates(text):
    """The expressions of "NAME += EXPR, ...", parsed. Uncounted."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            _, plus, expression = text[start:at].partition("+=")
            try:
                found.append(ast.parse(expression.strip(), mode="eval").body)
            except (SyntaxError, ValueError) as error:
                raise Uncounted(str(error)) from None
            start = at + 1
    return found


def _program(ops, text, outputs, labels):
    sides = {"outputs": outputs, "labels": labels}
    return [_evaluate(ops, tree, sides) for tree in updates(text)]


def _evaluate(ops, tree, sides):
    """A float64 tensor with one axis, or with none for a number."""
    def of(part):
        return _evaluate(ops, part, sides)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)):
        return ops.constant(float(tree.value))
    if isinstance(tree, ast.Name) and tree.id in sides:
        return ops.real(sides[tree.id]).reshape(-1)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -of(tree.operand)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return _combine(ops, type(tree.op), of(tree.left), of(tree.right))
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _combine(ops, type(tree.ops[0]), of(tree.left), of(tree.comparators[0]))
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and len(tree.args) == 1:
        return _call(ops, tree.func.id, tree.args[0], sides)
    raise Uncounted("an expression that is not known here")


def _combine(ops, operator, left, right):
    if len(left.shape) and len(right.shape) and left.shape != right.shape:
        raise Uncounted("different lengths")
    return ops.real(_OPERATORS[operator](left, right))


def _call(ops, name, argument, sides):
    if name == "argmax":
        tensor = sides[argument.id]
        return ops.real(ops.argmax(tensor, 1 if len(tensor.shape) > 1 else 0)).reshape(-1)
    value = _evaluate(ops, argument, sides)
    if name == "square":
        return value * value
    if name in ("abs", "sqrt", "log", "exp"):
        return ops.apply(name, value)
    count_of = value.shape[0] if len(value.shape) else 1
    if name == "count":
        return ops.constant(float(count_of))
    if name in ("sum", "mean"):
        return value.sum() if name == "sum" else value.sum() / count_of
    raise Uncounted("%s of a batch" % name)  # min and max ignore NaN


# ---- as libgradb reads them ----

def text(plan, numbers, labels_shape):
    """The counts as text: those of gd_metric_save. numbers: floats, of what `count` returned."""
    kind = plan["kind"]
    if "columns" in plan:
        return _text_of_values(plan, numbers)
    if kind == "loss":
        return "0 0 0 0 0 1 1 %d 0 0 0 0 %s" % (numbers[0] != numbers[0], numbers[0].hex())
    if kind == "update":
        rows = labels_shape[0] if len(labels_shape) else 1
        return "0 0 0 0 0 %d 1 0 0 0 0 0 0 %s" % (rows, " ".join(number.hex() for number in numbers))
    classes = plan["classes"]
    samples, nan, ignored, outside, correct = map(int, numbers[:5])
    total = numbers[5] if kind == "perplexity" else 0.0
    lists = [] if kind == "perplexity" else list(map(int, numbers[5:]))
    return "%d %d %d 0 0 %d 1 %d %d %d 0 %d %s%s" % (
        classes, classes if lists else 0, plan["axis"] < 0, samples, nan, ignored, outside, correct,
        "".join("%d " % number for number in lists), float(total).hex())


def _text_of_values(plan, numbers):
    columns, elements = plan["columns"], plan["elements"]
    parts = [numbers[1 + index * columns:1 + (index + 1) * columns] for index in range(5)]
    rows = ("%s %d" % (" ".join(number.hex() for number in row), elements // columns) for row in zip(*parts))
    return "0 0 0 %d %d %d 1 %d 0 0 0 0 0x0p+0 %s" % (plan["rows"], columns, elements, numbers[0], " ".join(rows))
