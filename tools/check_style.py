# SPDX-License-Identifier: GPL-3.0-or-later
"""The C dialect and the order of the folders, as far as a program can check them.

Prints one line for each fault, `FILE:LINE: RULE: what`, and exits with 1 if there is one.
`check_style.py FILE...` checks these files only.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 50
MAX_FOLDER_FILES = 50
AT_THE_ROOT = {
    ".ci", ".clang-format", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "COPYING", "LICENSES", "README.md",
    "SECURITY.md", "bench", "completions", "debian", "dev", "docs", "examples", "meson.build", "meson_options.txt", "python",
    "src", "tests", "tools",
}
# Names that somebody else prescribes.
PRESCRIBED_NAMES = {"main"}
# Code that does not use src/base: an error code of 0 is not called GD_OK there.
WITHOUT_CODES = ("examples/", "python/", "tests/trainer/")

TOKEN = re.compile(
    r"""(?P<space>(?:\s|\\\n)+) | (?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*") | (?P<char>[uUL]?'(?:\\.|[^'\\\n])*')
    | (?P<name>[A-Za-z_]\w*) | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
    | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)""",
    re.X | re.S,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
TESTING_CALLS = {"if", "while", "assert", "assert_true", "assert_false", "FUZZ_CHECK"}

faults = []


class Source:
    """The tokens of a C file without its comments: `kind` and `text` by index, `partner` of each bracket."""

    def __init__(self, path):
        self.path = path
        self.code = path.read_text()
        self.kind, self.text, self.place, self.partner = [], [], [], {}
        opened = []
        for match in TOKEN.finditer(self.code):
            if match.lastgroup in ("space", "comment"):
                continue
            at = len(self.text)
            self.kind.append(match.lastgroup)
            self.text.append(match.group())
            self.place.append(match.start())
            if match.lastgroup == "mark" and match.group() in CLOSING:
                opened.append(at)
            elif opened and match.lastgroup == "mark" and match.group() == CLOSING[self.text[opened[-1]]]:
                self.partner[at] = opened[-1]
                self.partner[opened.pop()] = at
        # Guards, so that looking one or two tokens ahead or back needs no test.
        self.count = len(self.text)
        self.text += [""] * 4
        self.kind += [""] * 4

    def line(self, at):
        return self.code.count("\n", 0, self.place[at]) + 1

    def is_name(self, at, *names):
        return 0 <= at < self.count and self.kind[at] == "name" and (not names or self.text[at] in names)

    def fault(self, at, rule, text):
        fault(self.path, self.line(at), rule, text)

    def functions(self):
        """(index of the name, of the body's `{`, of its `}`) for each function definition."""
        at = 0
        while at < self.count:
            if self.text[at] == "{" and self.kind[at] == "mark" and at in self.partner:
                if self.text[at - 1] == ")" and at - 1 in self.partner and self.is_name(self.partner[at - 1] - 1):
                    yield self.partner[at - 1] - 1, at, self.partner[at]
                at = self.partner[at]
            at += 1

    def table_lines(self, begin, end):
        """How many of these lines are initializers: a table is data, whatever its length."""
        lines, at = 0, begin + 1
        while at < end:
            if self.text[at] == "{" and self.text[at - 1] == "=":
                lines += self.line(self.partner[at]) - self.line(at)
                at = self.partner[at]
            at += 1
        return lines

    def makes_a_test(self, first, last):
        """Whether the expression of these tokens is used as a condition, and not as a value."""
        before, after = self.text[first - 1] if first else "", self.text[last + 1]
        if before in ("&&", "||", "!") or after in ("&&", "||", "?") or (before == ";" and after == ";"):
            return True
        if before == "(" and self.partner.get(last + 1) == first - 1:
            head = first - 2
            if self.is_name(head) and self.text[head] != "return":
                return self.text[head] in TESTING_CALLS
            if self.text[head] in (")", "]", "==", "!=") or self.text[last + 2] in ("==", "!="):
                return False
            return self.makes_a_test(first - 1, last + 1)
        return False

    def operand_before(self, last):
        """The first token of the plain expression that ends at `last`; None if it is something else."""
        at = last
        while at >= 0:
            text = self.text[at]
            if self.kind[at] == "mark" and text in (")", "]"):
                if at not in self.partner:
                    return None
                at = self.partner[at] - 1
            elif text in ("&&", "||", "?", ":", ",", ";", "(", "[", "{", "}", "=", "!", "return"):
                break
            elif self.kind[at] in ("name", "number", "string") or text in (".", "->", "*", "&"):
                at -= 1
            else:
                return None
        return at + 1 if at < last else None


def fault(path, line, rule, text):
    name = path.relative_to(ROOT).as_posix() if isinstance(path, pathlib.Path) else path
    faults.append((rule, name, line, text))


def tracked(*patterns):
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in out.stdout.split("\n") if name]


def check_braces(source):
    for at in range(source.count):
        if not source.is_name(at, "if", "else", "for", "while", "do") or source.text[at - 1] == "#":
            continue
        word, body = source.text[at], at + 1
        if word in ("if", "for", "while"):
            if source.text[body] != "(" or body not in source.partner:
                continue
            body = source.partner[body] + 1
        opener = source.partner.get(at - 1, 0) if source.text[at - 1] == "}" else 0
        if word == "while" and opener and source.is_name(opener - 1, "do"):
            continue
        if source.text[body] != "{" and not (word == "else" and source.is_name(body, "if")):
            source.fault(at, "braces", f"the body of this `{word}` needs braces")


def check_sizeof(source):
    for at in range(source.count):
        if source.is_name(at, "sizeof") and source.text[at + 1] != "(":
            source.fault(at, "sizeof", f"write sizeof({source.text[at + 1]}...)")


def check_null(source):
    for at in range(2, source.count):
        if not source.is_name(at, "NULL") or source.text[at - 1] not in ("==", "!="):
            continue
        first = source.operand_before(at - 2)
        if first is not None and source.makes_a_test(first, at):
            better = "!p" if source.text[at - 1] == "==" else "p"
            source.fault(at, "null", f"test a pointer bare: `{better}` instead of `p {source.text[at - 1]} NULL`")


def check_codes(source):
    """An error code is compared with GD_OK."""
    if source.path.relative_to(ROOT).as_posix().startswith(WITHOUT_CODES):
        return
    for at in range(source.count):
        if not source.is_name(at, "rc") or source.text[at + 1] not in (")", "&&", "||", "?", ";"):
            continue
        first = at
        while source.text[first - 1] in (".", "->") and source.is_name(first - 2):
            first -= 2
        before = source.text[first - 1]
        if before == "!" or (before in ("(", "&&", "||", ";", "?", ":", "=", "return", ",", "*")
                             and source.makes_a_test(first, at)):
            source.fault(at, "rc", "compare an error code with GD_OK")


def check_size(source):
    lines = source.code.count("\n")
    if lines > MAX_FILE_LINES:
        fault(source.path, lines, "size", f"{lines} lines: a file over {MAX_FILE_LINES} has more than one subject")


def check_functions(source):
    for name, begin, end in source.functions():
        lines = source.line(end) - source.line(name) + 1 - source.table_lines(begin, end)
        if lines > MAX_FUNCTION_LINES:
            source.fault(name, "long", f"{source.text[name]} has {lines} lines of code; {MAX_FUNCTION_LINES} are allowed")
        head = name - 1
        while source.is_name(head) or source.text[head] == "*":
            head -= 1
        words = source.text[head + 1:name]
        if "static" in words and "_" not in source.text[name].strip("_") and source.text[name] not in PRESCRIBED_NAMES:
            source.fault(name, "name", f"static function {source.text[name]}: name it verb_noun")


def check_commands(source):
    """A command is defined in commands/<its group>/<its name>.c; the head of that file lists all that it defines."""
    place = source.path.relative_to(ROOT)
    if not place.as_posix().startswith("src/repl/commands/"):
        return
    head = re.match(r"//[^\n]*\n/\*\s*(?:\* )?Commands: ([^\n.*]*)", source.code)
    listed = re.findall(r"[^\s,]+", head.group(1)) if head else []
    defined = []
    for at in range(source.count):
        if not (source.is_name(at, "command") and source.is_name(at - 1, "struct") and source.is_name(at + 1)):
            continue
        if source.text[at + 2:at + 4] != ["=", "{"] or source.is_name(at - 3, "static"):
            continue
        fields = {}
        for entry in range(at + 3, source.partner[at + 3]):
            if source.text[entry] == "." and source.text[entry + 2] == "=":
                fields.setdefault(source.text[entry + 1], source.text[entry + 3].strip('"'))
        defined.append(fields["name"])
        if fields["name"] not in listed:
            source.fault(at, "commands", f"the head comment does not list it: Commands: {fields['name']}")
        if fields["group"] != place.parent.name:
            source.fault(at, "commands", f"the group of {fields['name']} is {fields['group']}: move it to that folder")
    for name in sorted(set(listed) - set(defined)):
        source.fault(0, "commands", f"the head comment lists {name}, which is not defined here")
    if defined and place.stem not in [name.replace("-", "_") for name in defined]:
        source.fault(0, "commands", f"is not named after one of its commands: {', '.join(defined)}")


def check_source(source):
    for check in (check_braces, check_sizeof, check_null, check_codes, check_size, check_functions, check_commands):
        check(source)


def check_folders():
    folders = collections.Counter(pathlib.PurePosixPath(n).parent.as_posix() for n in tracked("src/*.[ch]"))
    for folder, count in folders.items():
        if count > MAX_FOLDER_FILES:
            fault(folder, 1, "folder", f"{count} files; a folder holds at most {MAX_FOLDER_FILES}")
    for name in sorted({name.split("/")[0] for name in tracked()} - AT_THE_ROOT):
        fault(name, 1, "root", "does not belong in the root of the repository; if it does, tools/check_style.py lists it")


def main():
    names = [pathlib.Path(name).resolve().relative_to(ROOT).as_posix() for name in sys.argv[1:]]
    for name in names or tracked("*.c", "*.h"):
        if (ROOT / name).exists():
            check_source(Source(ROOT / name))
    if not names:
        check_folders()
    print("".join(f"{path}:{line}: {rule}: {text}\n" for rule, path, line, text in faults), end="")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
