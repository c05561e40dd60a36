# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/check_style.py: what it finds in C, and what it accepts."""
import pathlib
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tools"))
import check_style  # noqa: E402

FOUND = (
    ("braces", "if (n > 0) return;"),
    ("braces", "if (n) {\n} else\n    go(n);"),
    ("braces", "for (;;) go(n);"),
    ("braces", "do go(n); while (n);"),
    ("sizeof", "go(sizeof n);"),
    ("null", "if (p != NULL) {\n}"),
    ("null", "go(p == NULL ? 1 : 2);"),
    ("null", "while (n && (p = next(p)) != NULL) {\n}"),
    ("null", "assert_true(p != NULL);"),
    ("rc", "if (rc) {\n}"),
    ("rc", "if (!rc) {\n}"),
    ("rc", "return rc ? rc : go(n);"),
    ("rc", "if (n && !task->rc) {\n}"),
    ("long", "go(n);\n" * check_style.MAX_FUNCTION_LINES),
)
ACCEPTED = (
    "if (n) {\n} else if (p) {\n} else {\n}",
    "do {\n    go(n);\n} while (n);",
    "go(sizeof(n));",
    "return p != NULL;",
    "bool has = p != NULL;",
    "go(p != NULL, n);",
    "bool same = (p != NULL) == (q != NULL);",
    "if (rc != GD_OK || other.rc == GD_ENOMEM) {\n}",
    "go(rc);",
    "/* if (p == NULL) go(sizeof n); */",
    'go("if (rc) return;");',
    "static const int table[] = {" + "\n    1," * check_style.MAX_FUNCTION_LINES + "\n};\ngo(n);",
)


def rules_broken(code):
    """The rules that this code breaks as src/zz/file.c."""
    with tempfile.TemporaryDirectory(prefix="gradb-style-") as folder:
        check_style.ROOT = pathlib.Path(folder)
        check_style.faults.clear()
        path = pathlib.Path(folder, "file.c")
        path.write_text(code)
        check_style.check_source(check_style.Source(path))
        return {rule for rule, _, _, _ in check_style.faults}


def in_function(body, name="use_all"):
    return f"static void {name}(int n)\n{{\n{body}\n}}\n"


class CheckStyle(unittest.TestCase):
    def test_found(self):
        for rule, body in FOUND:
            with self.subTest(body=body):
                self.assertEqual(rules_broken(in_function(body)), {rule})

    def test_accepted(self):
        for body in ACCEPTED:
            with self.subTest(body=body):
                self.assertEqual(rules_broken(in_function(body)), set())

    def test_names(self):
        self.assertEqual(rules_broken(in_function("go(n);", name="find")), {"name"})
        self.assertEqual(rules_broken("int find(int n)\n{\n    return n;\n}\n"), set())


if __name__ == "__main__":
    harness.main()
