# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages say about other places is true: links lead somewhere, commands and settings that are shown exist."""
import functools
import json
import re
import unittest

import harness

DOCS = harness.SOURCE / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *harness.SOURCE.glob("*.md"), *harness.SOURCE.glob("LICENSES/*.md"),
                *harness.SOURCE.glob("examples/**/*.md")])
FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@functools.lru_cache(maxsize=None)
def prose(path):
    """A page without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The names of a page's headings in links, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", prose(path), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return found


def links(path):
    return LINK.findall(prose(path))


class Links(unittest.TestCase):
    def test_they_lead_somewhere(self):
        for page in PAGES:
            for link in links(page):
                if re.match(r"[a-z]+:", link):
                    continue
                place, _, anchor = link.partition("#")
                target = (page.parent / place).resolve() if place else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists(), "there is no such file")
                    if anchor:
                        self.assertIn(anchor, anchors(target), "the page has no such heading")

    def test_pages_that_sources_name_exist(self):
        for folder, patterns in (("src", ("*.c", "*.h", "*.proto")), ("python", ("*.py", "*.c", "*.h"))):
            for path in (path for pattern in patterns for path in (harness.SOURCE / folder).rglob(pattern)):
                for page in re.findall(r"\bdocs/[\w-]+\.md", path.read_text(encoding="utf-8")):
                    self.assertTrue((harness.SOURCE / page).exists(), f"{path}: {page}")
        for page in PAGES:
            for name in re.findall(r"`(docs/[\w-]+\.md)`", page.read_text(encoding="utf-8")):
                self.assertTrue((harness.SOURCE / name).exists(), f"{page}: {name}")

    def test_the_index_has_every_page(self):
        listed = {link.partition("#")[0] for link in links(DOCS / "README.md")}
        for page in DOCS.glob("*.md"):
            if page.name != "README.md":
                self.assertIn(page.name, listed)


class Tables(unittest.TestCase):
    def test_rows_have_as_many_cells_as_their_header(self):
        for page in PAGES:
            cells = 0
            for line in prose(page).splitlines():
                count = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
                with self.subTest(page=page.name, line=line):
                    self.assertIn(count, (0, cells or count))
                cells = count


class Commands(unittest.TestCase):
    """A command of a page is one of gradb's; its other words are not looked at."""

    @classmethod
    def setUpClass(cls):
        table = json.loads(harness.run_gradb("--generate", "json-commands").stdout)
        cls.names = {name for command in table for name in (command["name"], *command["aliases"].split())}
        shown = harness.run_gradb("--json", "--batch", "-nx", "-q", "-ex", "info settings").stdout
        cls.settings = {setting["name"] for setting in harness.read_records(shown)[0]["settings"]}

    def is_command(self, word):
        return word in self.names or sum(name.startswith(word) for name in self.names) == 1

    def typed(self):
        """(page, command) of what is typed at gradb's prompt, and of each -ex."""
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for line in re.findall(r"^\(gradb\) (\S.*)$", text, re.M) + re.findall(r"-ex '([^']+)'", text):
                yield page, line

    def test_they_exist(self):
        lines = list(self.typed())
        self.assertGreater(len(lines), 30)
        for page, line in lines:
            with self.subTest(page=page.name, command=line):
                self.assertTrue(self.is_command(line.split()[0]), "gradb has no such command")

    def test_settings_exist(self):
        found = set()
        for page in PAGES:
            found.update(re.findall(r"`set (\w[\w-]*(?: (?:size|width|precision|suppress|threshold|edge-items))?)",
                                    page.read_text(encoding="utf-8")))
        self.assertGreater(len(found), 15)
        self.assertEqual({name for name in found if name not in self.settings and not name.startswith("print")} - {"lr", "NODE", "requires_grad"},
                         set())


class Json(unittest.TestCase):
    def test_the_records_of_the_golden_files_are_explained(self):
        page = (DOCS / "json.md").read_text(encoding="utf-8")
        words = set(re.findall(r"[\w-]+", page))
        types = set()
        for path in (harness.SOURCE / "tests" / "golden").glob("*.json.out"):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line) if line.startswith("{") else {"type": "ok"}
                types.add(record["type"])
                self.assertIn(f"`{record['type']}`", page)
                self.assertEqual(record.keys() - words, set(), f"{path.name}: {record['type']}")
        self.assertGreater(len(types), 50)


class Reference(unittest.TestCase):
    def test_it_has_every_command_and_setting(self):
        page = (harness.BUILD / "docs" / "reference.md").read_text(encoding="utf-8")
        for command in json.loads(harness.run_gradb("--generate", "json-commands").stdout):
            self.assertIn(f"\n### {command['name']}\n", page)
        shown = harness.run_gradb("--json", "--batch", "-nx", "-q", "-ex", "info settings").stdout
        for setting in harness.read_records(shown)[0]["settings"]:
            self.assertIn(f"\n| `{setting['name']}` | ", page)
        for fence in re.findall(r"^```.*$", page, re.M):
            self.assertEqual(fence, "```")
        self.assertEqual(page.count("\n```\n") % 2, 0)


class Readme(unittest.TestCase):
    def test_its_session_is_the_tutorials(self):
        """Which test_tutorials.py types."""
        readme = (harness.SOURCE / "README.md").read_text(encoding="utf-8")
        session = re.search(r"^```text\n(\(gradb\) .*?)^```$", readme, re.M | re.S).group(1)
        tutorial = (DOCS / "tutorial-pytorch.md").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line for line in session.splitlines() if line not in tutorial], [])

    def test_readme_names_those_that_dev_installs(self):
        script = (harness.SOURCE / "dev").read_text(encoding="utf-8")
        wanted = re.search(r'^BUILD_PACKAGES="([^"]*)"', script, re.M).group(1).split()
        readme = (harness.SOURCE / "README.md").read_text(encoding="utf-8")
        command = re.search(r"^(?:sudo )?apt-get install ((?:.*\\\n)*.*)$", readme, re.M).group(1)
        self.assertEqual(sorted(command.replace("\\\n", " ").split()), sorted(wanted))


if __name__ == "__main__":
    harness.main()
