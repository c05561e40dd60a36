# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/check_text.py: which phrases it finds, where, and which sentences it leaves alone."""
import sys
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tools"))
import check_text  # noqa: E402

CAUGHT = (
    '"fc1" is no slot',
    "session 2 does not stand",
    "renamed, with a number behind it",
    "the file is empty: whoever wrote it did not come to it",
    "Trace 2 is without a guard now",
    "softmax is taken twice",
    "one element of every so manieth row",
    "its truth, the same of 0",
    "values are not to be had while it runs",
    "the history tells what was run",
    "the debugger was told of a new node",
    "the graph is built anew",
    "the figures of the tensor",
    "compared with that of the step before",
    "it is looked at in the next step",
    "the nodes lie where it lies in memory: nothing is known of what lies there",
    "hidden: it did as told",
    "stop in the midst of a step",
    "the training goes on",
)
PASSES = (
    '"fc1" is not a slot',
    "there is no slot 3",
    "where there may be no value",
    "it is no longer than 64 bytes",
    "MSE stands for mean squared error",
    "the rank falls behind the others",
    "gradb listens behind a proxy",
    "unless told otherwise",
    "two sides that only a hash can tell apart",
    "to stop at the previous step, set stop-at",
    "as the figure 3 shows",
    "this takes up to 3 bytes",
    "run ./trainer --steps 3",
    "nodes that are none of these",
)


def phrases(name, source):
    return [phrase for _, phrase, _ in check_text.faults_in(name, source)]


class Phrases(unittest.TestCase):
    def test_what_is_caught(self):
        for sentence in CAUGHT:
            with self.subTest(sentence):
                self.assertTrue(phrases("a.c", f"/* {sentence}. */\n"))

    def test_what_passes(self):
        for sentence in PASSES:
            with self.subTest(sentence):
                self.assertEqual(phrases("a.c", f"/* {sentence}. */\n"), [])
                self.assertEqual(phrases("a.md", sentence + ".\n"), [])

    def test_the_report_names_the_line_of_the_phrase(self):
        source = '/* A comment. */\nint f(void)\n{\n    return say("a node of the graph "\n               "that is no slot");\n}\n'
        self.assertEqual(check_text.faults_in("a.c", source), [(5, "is no slot", "is not a ...")])

    def test_a_phrase_over_two_lines(self):
        self.assertEqual(phrases("a.c", "/* The next\n * one is\n * no slot. */\n"), ["is no slot"])
        self.assertEqual(phrases("a.c", 'puts("%s is "\n     "no slot");\n'), ["is no slot"])
        self.assertEqual(phrases("a.c", 'printf("%" PRIu64 " is "\n       "no slot", n);\n'), ["is no slot"])
        self.assertEqual(phrases("a.md", "The name\nis no\nslot.\n"), ["is no slot"])
        self.assertEqual(phrases("a.py", 'print("the name is "\n      "no slot")\n'), ["is no slot"])
        self.assertEqual(phrases("a.py", "# The name is\n# no slot.\n"), ["is no slot"])

    def test_where_a_rule_holds(self):
        self.assertEqual(phrases("a.c", "/* The trainer. */\n"), [])
        self.assertEqual(phrases("a.c", 'puts("the trainer left");\n'), ["trainer"])
        self.assertEqual(phrases("a.md", "The trainer left.\n"), ["trainer"])

    def test_what_is_not_text(self):
        self.assertEqual(phrases("a.c", '#include "anew stands"\nint anew, behind;\nfind("anew");\n'), [])
        self.assertEqual(phrases("a.c", "// SPDX-License-Identifier: anew\n"), [])
        self.assertEqual(phrases("a.py", "anew = behind\nfind(b'it is built anew')\n"), [])
        self.assertEqual(phrases("a.md", "Type `anew`.\n"), [])

    def test_docstrings_and_examples(self):
        self.assertEqual(phrases("a.py", 'def f():\n    """It is built anew."""\n'), ["anew"])
        self.assertEqual(phrases("a.md", "```\n(gradb) step\nthe graph is built anew\n```\n"), ["anew"])
        self.assertEqual(phrases("gradb.1", ".SH NAME\n.B gradb\nis built\nanew\n"), ["anew"])

    def test_words_on_the_wire_are_exempt(self):
        self.assertEqual(phrases("a.py", 'reply = {"outputs of the step before": before}\n'), [])
        self.assertEqual(phrases("a.py", 'reply = {"loss of the step before": before}\n'), ["of the step before"])


if __name__ == "__main__":
    harness.main()
