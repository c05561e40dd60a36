# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics against scikit-learn's: the same numbers on the same batches."""
import math
import os
import sys
import unittest
import warnings

import harness
import metric_tool
import venvs
from metric_tool import CLASSES, LOGITS, PROBABILITIES, VALUES, MetricError

try:
    import numpy as np
    from sklearn import metrics as sk
except ImportError:
    np = sk = None

TOOL = harness.BUILD / "tests/base/metric_tool"
AVERAGES = ("macro", "micro", "weighted")


@unittest.skipIf(sk is None, "scikit-learn is missing: ./dev installs it")
class Case(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(7)
        warnings.simplefilter("ignore")

    def metric(self, spec):
        made = metric_tool.Metric(TOOL, spec)
        self.addCleanup(made.close)
        return made

    def batches(self, classes=5, sizes=(32, 32, 7), dtype="float32"):
        return [(self.random.normal(size=(n, classes)).astype(dtype),
                 self.random.integers(0, classes, size=n)) for n in sizes]

    def feed(self, spec, batches, form=CLASSES, **more):
        made = self.metric(spec)
        for outputs, labels in batches:
            made.update(outputs, labels, form, **more)
        return made


class Classes(Case):
    def check(self, batches):
        labels = np.concatenate([label.ravel() for _, label in batches])
        predicted = np.concatenate([out.argmax(1).ravel() for out, _ in batches])
        self.assertEqual(self.feed("accuracy", batches).value(), sk.accuracy_score(labels, predicted))
        for name, function in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
            for average in AVERAGES:
                self.assertAlmostEqual(self.feed("%s average=%s" % (name, average), batches).value(),
                                       function(labels, predicted, average=average, zero_division=0), 12)
            classes = batches[0][0].shape[1]
            every = function(labels, predicted, labels=range(classes), average=None, zero_division=0)
            numbers = self.feed(name + " average=none", batches).numbers()
            self.assertEqual(list(numbers), ["%s_%d" % (name, i) for i in range(classes)])
            np.testing.assert_allclose(list(numbers.values()), every, rtol=1e-14)
            self.assertAlmostEqual(self.feed(name + " average=all", batches).value(), every.mean(), 12)
            self.assertAlmostEqual(self.feed(name + " class=1", batches).value(), every[1], 14)
        np.testing.assert_array_equal(self.feed("confusion", batches).matrix(),
                                      sk.confusion_matrix(labels, predicted, labels=range(batches[0][0].shape[1])))

    def test_batches(self):
        for dtype in ("float32", "float64", "float16"):
            self.check(self.batches(dtype=dtype))

    def test_many_classes_of_few_samples_most_unseen(self):
        self.check(self.batches(classes=40, sizes=(3, 2)))

    def test_classes_that_are_only_predicted_or_only_labels(self):
        outputs = np.eye(4, dtype="float32")[[0, 0, 1, 3]]
        self.check([(outputs, np.array([0, 1, 1, 0]))])

    def test_nan_is_the_greatest_as_for_argmax(self):
        batches = self.batches(classes=40)
        for outputs, _ in batches:
            outputs[::3, 2] = outputs[1::4, 17] = np.nan
        self.check(batches)
        self.assertGreater(self.feed("accuracy", batches).counts()["nan"], 0)

    def test_more_axes_with_the_classes_first(self):
        outputs = self.random.normal(size=(4, 6, 3, 2)).astype("float32")
        self.check([(outputs, self.random.integers(0, 6, size=(4, 3, 2)))])

    def test_ignored_and_impossible_labels_are_left_out_and_counted(self):
        ((outputs, labels),) = self.batches(sizes=(64,))
        labels[::4], labels[1] = -100, 9
        kept = (labels >= 0) & (labels < 5)
        made = self.feed("accuracy", [(outputs, labels)], ignore=-100)
        self.assertEqual(made.value(), sk.accuracy_score(labels[kept], outputs.argmax(1)[kept]))
        counts = made.counts()
        self.assertEqual((counts["samples"], counts["ignored"], counts["out_of_range"]), (47, 16, 1))

    def test_shares_of_classes_as_labels(self):
        ((outputs, labels),) = self.batches(sizes=(64,))
        shares = 0.9 * np.eye(5, dtype="float32")[labels] + 0.02
        self.assertEqual(self.feed("accuracy", [(outputs, shares)]).value(),
                         sk.accuracy_score(labels, outputs.argmax(1)))

    def test_an_empty_batch_has_no_number(self):
        made = self.feed("accuracy", [(np.zeros((0, 5), "float32"), np.zeros(0, "int64"))])
        self.assertEqual(made.numbers(), {})
        self.assertEqual(made.counts()["batches"], 1)

    def test_top_k(self):
        batches = self.batches(classes=10)
        scores = np.concatenate([out for out, _ in batches])
        labels = np.concatenate([label for _, label in batches])
        for k in (1, 3, 10):
            self.assertEqual(self.feed("topk k=%d" % k, batches).value(),
                             sk.top_k_accuracy_score(labels, scores, k=k, labels=range(10)))

    def test_perplexity(self):
        batches = self.batches(dtype="float64")
        scores = np.concatenate([out for out, _ in batches])
        chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        labels = np.concatenate([label for _, label in batches])
        expected = math.exp(sk.log_loss(labels, chances, labels=range(5)))
        self.assertAlmostEqual(self.feed("perplexity", batches).value(), expected, 10)

    def test_classes_as_outputs(self):
        outputs, labels = self.random.integers(0, 4, size=(2, 50))
        self.assertEqual(self.feed("accuracy", [(outputs, labels)], 0).value(), sk.accuracy_score(labels, outputs))

    def test_classes_on_the_last_axis_as_in_language_models(self):
        outputs = self.random.normal(size=(2, 7, 11)).astype("float32")
        labels = self.random.integers(0, 11, size=(2, 7))
        self.assertEqual(self.feed("accuracy", [(outputs, labels)], 0).value(),
                         sk.accuracy_score(labels.ravel(), outputs.argmax(2).ravel()))


class Binary(Case):
    def test_logits_and_probabilities(self):
        logits = self.random.normal(size=(100, 1)).astype("float32")
        labels = self.random.integers(0, 2, size=(100, 1)).astype("float32")
        for form, scores, predicted in ((LOGITS, logits, logits > 0),
                                        (PROBABILITIES, 1 / (1 + np.exp(-logits)), logits > 0)):
            for name, function in (("accuracy", sk.accuracy_score), ("precision", sk.precision_score),
                                   ("recall", sk.recall_score), ("f1", sk.f1_score)):
                self.assertAlmostEqual(self.feed(name, [(scores, labels)], form).value(),
                                       function(labels.ravel(), predicted.ravel()), 14)
            self.assertAlmostEqual(self.feed("auc", [(scores, labels)], form).value(),
                                   sk.roc_auc_score(labels.ravel(), scores.ravel()), 14)

    def test_no_positive_at_all(self):
        labels, scores = np.zeros(8, "float32"), -np.ones(8, "float32")
        for name in ("precision", "recall", "f1"):
            self.assertEqual(self.feed(name, [(scores, labels)], LOGITS).value(), 0)
        self.assertTrue(math.isnan(self.feed("auc", [(scores, labels)], LOGITS).value()))


class Auc(Case):
    def test_ties_and_batches(self):
        batches = [(self.random.integers(0, 9, size=n).astype("float32"), self.random.integers(0, 2, size=n))
                   for n in (50, 1, 200, 3)]
        scores, labels = (np.concatenate(parts) for parts in zip(*batches))
        self.assertAlmostEqual(self.feed("auc", batches, PROBABILITIES).value(), sk.roc_auc_score(labels, scores), 14)

    def test_each_class_against_the_others(self):
        batches = self.batches(dtype="float64")
        scores = np.concatenate([out for out, _ in batches])
        chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        labels = np.concatenate([label for _, label in batches])
        for average in ("macro", "weighted"):
            self.assertAlmostEqual(self.feed("auc average=" + average, batches).value(),
                                   sk.roc_auc_score(labels, chances, multi_class="ovr", average=average), 12)

    def test_two_classes(self):
        ((outputs, labels),) = self.batches(classes=2, sizes=(60,), dtype="float64")
        chances = np.exp(outputs[:, 1]) / np.exp(outputs).sum(1)
        self.assertAlmostEqual(self.feed("auc", [(outputs, labels)]).value(), sk.roc_auc_score(labels, chances), 14)


class Values(Case):
    def check(self, shape):
        batches = [(self.random.normal(size=(n, *shape)), 1e6 + self.random.normal(size=(n, *shape))) for n in (9, 20)]
        outputs, labels = (np.concatenate(parts) for parts in zip(*batches))
        for name, function in (("mse", sk.mean_squared_error), ("mae", sk.mean_absolute_error), ("r2", sk.r2_score)):
            np.testing.assert_allclose(self.feed(name, batches, VALUES).value(), function(labels, outputs), rtol=1e-9)

    def test_one_and_several_columns(self):
        self.check(())
        self.check((3,))

    def test_constant_labels_and_a_single_sample(self):
        same = np.ones(5)
        for outputs in (same, same + 1):
            self.assertEqual(self.feed("r2", [(outputs, same)], VALUES).value(), sk.r2_score(same, outputs))
        self.assertTrue(math.isnan(self.feed("r2", [(same[:1], same[:1])], VALUES).value()))

    def test_nan_makes_nan(self):
        outputs = np.array([1.0, np.nan])
        for name in ("mse", "mae", "r2"):
            made = self.feed(name, [(outputs, np.ones(2))], VALUES)
            self.assertTrue(math.isnan(made.value()), name)
            self.assertEqual(made.counts()["nan"], 1)


class Own(Case):
    def test_an_expression(self):
        outputs, labels = self.random.normal(size=(2, 20)), None
        outputs, labels = outputs[0], outputs[1]
        made = self.feed("mape = update s += sum(abs((labels - outputs) / labels)), n += count(labels) "
                         "result s / n by epoch", [(outputs, labels)] * 2, VALUES)
        self.assertAlmostEqual(made.value(), sk.mean_absolute_percentage_error(labels, outputs), 12)
        self.assertEqual(made.spec, "mape = update s += sum(abs((labels - outputs) / labels)), n += count(labels) "
                                    "result s / n")

    def test_argmax_and_comparisons(self):
        batches = self.batches()
        made = self.feed("right = update a += sum(argmax(outputs) == labels), n += count(labels) result a / n",
                         batches)
        self.assertEqual(made.value(), self.feed("accuracy", batches).value())


class Ranks(Case):
    def test_counts_add_up_exactly(self):
        first, second = self.batches(classes=6)[:2]
        for spec in ("accuracy ranks", "f1 average=macro ranks", "confusion ranks", "topk k=2 ranks",
                     "perplexity ranks", "auc average=none ranks", "n = update s += sum(outputs) result s ranks"):
            both, one, two = (self.feed(spec, part) for part in ([first, second], [first], [second]))
            one.merge(two.save())
            self.assertEqual(one.matrix(), both.matrix(), spec)
            for name, value in both.numbers().items():
                self.assertAlmostEqual(one.numbers()[name], value, 12, spec)
            self.assertEqual(one.counts(), both.counts())

    def test_a_rank_without_samples_changes_nothing(self):
        labels = self.random.integers(0, 2, 40)
        two = [(self.random.normal(size=40) + labels, labels)]
        for spec, parts, form in (("f1 ranks", two, 2), ("f1 average=macro ranks", self.batches(), 0),
                                  ("auc ranks", two, 2), ("auc ranks", self.batches(), 0),
                                  ("confusion ranks", self.batches(), 0), ("r2 ranks", two, VALUES)):
            made, idle = self.feed(spec, parts, form), self.metric(spec)
            saved = made.save()
            made.merge(idle.save())
            self.assertEqual(made.save(), saved, spec)
            idle.merge(saved)
            self.assertEqual(idle.numbers(), made.numbers(), spec)

    def test_regressions(self):
        parts = [(self.random.normal(size=(n, 2)), 100 + self.random.normal(size=(n, 2))) for n in (30, 5)]
        for spec in ("r2 ranks", "mse ranks", "mae ranks"):
            both, one, two = (self.feed(spec, part, VALUES) for part in (parts, parts[:1], parts[1:]))
            one.merge(two.save())
            self.assertAlmostEqual(one.value(), both.value(), 10)

    def test_scores_of_many_steps(self):
        labels = self.random.integers(0, 2, 600)
        scores = (self.random.normal(size=600) + labels).round(1)  # with ties
        made = self.metric("auc ranks")
        for part in np.array_split(np.arange(600), 7):
            made.merge(self.feed("auc ranks", [(scores[part], labels[part])], LOGITS).save())
        self.assertAlmostEqual(made.value(), sk.roc_auc_score(labels, scores), 14)
        self.assertEqual(made.counts()["samples"], 600)

    def test_scores_that_are_nonsense_are_refused(self):
        made = self.feed("auc ranks", [(np.array([0.5, -1, 2]), np.array([1, 0, 1]))], LOGITS)
        saved = made.save()
        for text in (saved.rsplit(" ", 1)[0], saved + " 1", saved.rsplit(" ", 1)[0] + " nan",
                     saved.replace(" 1 1 2 ", " 1 1 99999999999 "), saved.replace(" 1 1 2 ", " 3 1 2 "),
                     saved.replace("0*5", "0*6"), saved.replace("0*5", "0*99999999999999999999"), saved.replace("0*5", "0*0")):
            with self.assertRaises(MetricError, msg=text):
                made.merge(text)
        self.assertEqual(made.save(), saved)

    def test_counts_that_are_nonsense_are_refused(self):
        made = self.feed("f1 ranks", self.batches())
        saved = made.save()
        for text in (saved.rsplit(" ", 1)[0], saved + " 1", saved.replace(" ", "x"), "", "1", "5 5 0 0 0 1 2", "99999999 99999999 0 0 0", "5 4 0 0 0", "x", "5 5 0 0 9999999"):
            with self.assertRaises(MetricError):
                made.merge(text)
        self.assertEqual(made.save(), saved)


class Mistakes(Case):
    def refused(self, function, *args, **more):
        with self.assertRaises(MetricError) as caught:
            function(*args, **more)
        return str(caught.exception)

    def test_definitions(self):
        for spec, word in (("accurcy", "did you mean accuracy"), ("nonsense", "there are accuracy"),
                           ("topk k=0", "k=0"), ("f1 average=mean", "macro, micro"), ("accuracy of a", "both nodes"),
                           ("accuracy average=macro", "not an option"), ("accuracy by day", "by step"),
                           ("m from m.py ranks", "ranks"), ("x = update s sum(outputs) result s", "+="),
                           ("x = update s += sum(outputs) result t", "unknown name"), ("a b", "no metric"),
                           ("x = update s += foo(outputs) result s", "no such function"), ("1x = f1", "cannot name"),
                           ("x = update s += " + "(" * 100 + "1 result s", "too many levels")):
            self.assertIn(word, self.refused(self.metric, spec), spec)

    def test_batches(self):
        ((outputs, labels),) = self.batches(sizes=(6,))
        made = self.metric("accuracy")
        self.assertIn("(6, 5) do not belong to labels of shape (4,)",
                      self.refused(made.update, outputs, labels[:4], CLASSES))
        self.assertIn("labels are float32", self.refused(made.update, outputs, labels.astype("float32"), CLASSES))
        self.assertIn("complex", self.refused(made.update, outputs.astype("complex64"), labels, CLASSES))
        self.assertIn("compares numbers", self.refused(made.update, outputs, outputs, VALUES))
        made.update(outputs, labels, CLASSES)
        self.assertIn("after outputs of 5 classes", self.refused(made.update, outputs[:, :3], labels % 3, CLASSES))
        self.assertEqual(made.value(), sk.accuracy_score(labels, outputs.argmax(1)))  # nothing was added
        self.assertIn("combines", self.refused(self.metric("x = update s += sum(outputs - labels) result s").update,
                                               outputs, labels))
        self.assertIn("put sum", self.refused(self.metric("x = update s += outputs result s").update, outputs, labels))


if __name__ == "__main__":
    if sk is None and venvs.python("dump") and not os.environ.get("GRADB_AGAIN"):  # which may have it
        os.execve(venvs.python("dump"), [venvs.python("dump"), *sys.argv], dict(os.environ, GRADB_AGAIN="1"))
    harness.main()
