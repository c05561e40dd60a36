# SPDX-License-Identifier: GPL-3.0-or-later
"""The phrases that a reader stumbles over: in strings, comments and documentation.

    check_text.py             the whole tree
    check_text.py PATH...     these files and folders; also a man page (*.1)

Prints one line per fault, FILE:LINE: "phrase": write "...", and then exits with status 1. RULES is the list;
CONTRIBUTING.md says how we write.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = ("src/**/*.c", "src/**/*.h", "src/*.c", "src/*.h", "python/*.py", "python/**/*.py", "python/**/*.c", "python/**/*.h",
        "examples/**/*.c", "examples/**/*.h", "examples/**/*.py")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md", "docs/**/*.md")

# (where, phrase, what to write instead). Where: s strings, c comments, d documentation. A match in which a group named `ok`
# took part is no fault. A blank in a phrase is any white space, a line's end included. Case does not matter.
RULES = (
    # "is no X"
    ("scd", r"(?P<ok>\bthere (?:\w+ )?)?\b(?:is|are|was|were|be) no (?!longer|more|less|fewer|greater|larger|smaller|later|earlier|better"
            r"|worse|different|good|problem|surprise|use\b|need|one\b|other\b)(?:such (?!an? )|[a-z]\w*)", "is not a ..."),
    ("scd", r"\b(?:that|which) (?:is|are) none\b(?! of\b)", "that is not one"),
    # where things are
    ("scd", r"(?<!long-)\b(?:stands?|standing|stood)\b(?! for\b| in for\b| alone| out\b| by\b|-)", "stop (a run), be (a place), hold (a rule)"),
    ("scd", r"(?P<ok>\b(?:fall|falls|fell|fallen|left|leave|leaves|stay|stays|lag|lags|remains?) (?:\w+ )?)?\bbehind\b"
            r"(?P<ok2> (?:a|the|another) (?:firewall|proxy|flag|scenes|program))?", "after, below, downstream"),
    ("scd", r"\b(?:what|that) lies\b|\blies? (?:there|here|elsewhere|beside|next|apart)\b"
            r"|\bwhere \S+(?: \S+)? (?:lies?|lay)\b", "is"),
    ("scd", r"\bin the place of\b", "instead of, in place of"),
    ("scd", r"\bin the midst\b", "in the middle of, during"),
    # who says what
    ("scd", r"\b(?:tells|telling)\b(?!\._?\w| apart\b| \S+(?: \S+){0,3} (?:apart|from)\b)|\btell (?:of|what|whether|how|why|which|that|so)\b",
     "reports, says, shows"),
    ("scd", r"\btold of\b|\b(?:is|are|was|were|be|been|being) told\b(?! apart| from| otherwise)", "reported, asked"),
    ("scd", r"\bas told\b|\bdid as\b|\bdoes as (?:it|told)", "as requested"),
    ("scd", r"\b(?:says?|said) of\b", "says about"),
    ("scd", r"\bhear[sd]?\b(?! =)", "is notified, learns"),
    ("scd", r"\bwhoever\b", "the caller, the process that ..."),
    ("sd", r"\b(?:no|some)body\b", "name who: no process, no thread, another program"),
    ("scd", r"\ba word about\b", "a note on"),
    # terms
    ("sd", r"(?<![\w./'\"<-])trainers?\b(?![\w/'\"(]|\.\w)", "training process, training script"),
    ("scd", r"(?<![\w*-])figures?\b(?![\w(/]|\.\w| out\b| \d)", "statistic, metric, measurement"),
    ("scd", r"\bnamed numbers?\b", "metric"),
    ("scd", r"\b(?:of|in|from|with|than|by|to|at) the (?:step|line|one|value) before\b(?! (?:it|that|this|the|a|an|which|any|each|step)\b)",
     "the previous step"),
    ("s", r"\btexts\b", "strings"),
    # time and repetition
    ("scd", r"\banew\b", "again"),
    ("scd", r"\bonce more\b", "again"),
    ("scd", r"\b(?:goes|go|went|going) on\b(?<!what is going on)", "continues, runs"),
    ("scd", r"\b(?:take|takes|took|taking) (?:it |them |this )?up\b(?! to\b| \S+ (?:bytes|rows|lines|columns))", "start, accept, resume"),
    ("scd", r"\b(?:stops?|stopped|used|needed|wanted|known|read|held|asked|called|checked|counted|valid) no more\b|\btraining no more\b",
     "no longer"),
    ("scd", r"\bas ever\b", "as usual"),
    ("scd", r"\b(?:did|does|do|has|have|had) not (?:yet )?(?:come|came) to\b|\b(?:comes?|came) to (?:it\b|its end|their end)",
     "was interrupted before, ends"),
    ("scd", r"\b(?:that|which) (?:is|are|was|were) to be\b", "that must be, that is going to be"),
    # words that are not used so
    ("scd", r"\bbesides\b", "also"),
    ("scd", r"\blikewise\b", "also, the same for"),
    ("scd", r"\bsuch an?\b", "a ... like this"),
    ("scd", r"\bof which (?:there|two|three|one|many)\b", "there are two of them"),
    ("scd", r"\b(?:let|lets|letting) go(?: of)?\b", "release, detach"),
    ("scd", r"\bas (?:it|they) (?:was|were) made\b", "since it was created"),
    ("scd", r"\b(?:is|are|was|were|be) (?:not )?to be had\b|\bnot to be had\b|\bcan(?:not)? be had\b", "available, unavailable"),
    ("scd", r"\bso maniet?h\b|\bso many(?:th)? (?=seconds|steps|bytes|lines|levels|elements|rows|columns|times|nodes|values|of)", "N, that many"),
    ("scd", r"\bits truth\b", "its value as a boolean"),
    ("scd", r"\bthe same of\b", "the same for"),
    ("scd", r"\bwhat only\b", "units that only ..."),
    ("scd", r"\bbut for\b", "except"),
    ("scd", r"\b(?:is|are|was|were|be) given back\b|\bgives? back\b|\bin one stroke\b", "released, returned"),
    ("scd", r"\b(?:be|is|are|was|were|been) looked at\b|\blooks? on\b", "checked, examined, watch"),
    ("scd", r"\bmends?\b", "fix"),
    ("scd", r", mostly\b|\bmostly is\b|\bit is mostly\b", "usually, most of"),
    ("scd", r"\bis without an?\b|\bare without\b", "has no"),
    ("scd", r"\bone (?:a|an) (?:line|step|rank|node|value|tensor|file|process)\b", "one per ..."),
    ("scd", r"\bnobody sets?\b|\b(?:sets?|been|is|are|not) (?:\w+ )?set back\b", "zeroed, reset"),
    ("scd", r"\bhad the name of another\b|\ba number behind\b", "renamed"),
    ("scd", r"\bis taken twice\b|\bgiven the scores before\b", "is applied twice: pass the raw logits"),
    ("scd", r"\bdoes not come by\b|\bcomes? by way of\b", "arrives through"),
)
# Words on the wire, and names that are kept because users type them.
EXCEPTIONS = ("not set back", "outputs of the step before", "as it lies there", "gradb.v1 trainer", "stats figures")


class Text:
    """White space is one blank each; knows the line of each place."""

    def __init__(self, kind, pieces):
        self.kind, self.places, words = kind, [], []
        length = 0
        for line, piece in pieces:
            for word in piece.split():
                self.places.append((length, line))
                words.append(word)
                length += len(word) + 1
        self.text = " ".join(words)

    def line(self, offset):
        return [line for start, line in self.places if start <= offset][-1]


# ---- what there is to read

C_TOKEN = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>\'(?:\\.|[^\'\\\n])+\')'
                     r"|(?P<include>^[ \t]*#[ \t]*include[^\n]*)|(?P<blank>(?:\s|\\\n)+)|(?P<code>[A-Za-z_]\w*|.)", re.S | re.M)


def lines_of(text, first):
    return [(first + i, line) for i, line in enumerate(text.split("\n"))]


def readable(literal):
    """A literal's text without its escapes."""
    return re.sub(r"\\[abefnrtv0]", " ", literal).replace('\\"', '"').replace("\\'", "'")


def is_sentence(text):
    return " " in text.strip() and re.search(r"[A-Za-z]{2}", text)


def c_texts(source):
    strings, line, counted = [], 1, 0
    for match in C_TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        line += source.count("\n", counted, match.start())
        counted = match.start()
        if kind == "string":
            strings.append((line, text[1:-1]))
        elif kind == "comment":
            if "SPDX-" not in text:
                plain = re.sub(r"(?m)^[ \t]*\*(?!/)|^//+|\n[ \t]*//+|/\*+|\*+/", lambda m: "\n" if "\n" in m.group() else " ", text)
                yield Text("c", lines_of(plain, line))
        elif kind == "code":
            if strings and re.fullmatch("[A-Z][A-Z0-9_]*|PRI[a-zA-Z]+[0-9]*", text):
                continue        # a macro between literals
            yield from joined(strings)
            strings = []
    yield from joined(strings)


def joined(strings):
    """Adjacent literals as one text; a word may be split between two."""
    if is_sentence("".join(text for _, text in strings)):
        text = Text("s", [])
        parts, length = [], 0
        for line, literal in strings:
            piece = readable(literal)
            text.places.append((length, line))
            parts.append(piece)
            length += len(piece)
        text.text = "".join(parts)
        yield text


def python_texts(source):
    comment, string, before = [], [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if comment and comment[-1][0] != line - 1:
                yield Text("c", comment)
                comment = []
            if not re.match("#!|# ?SPDX-|# noqa", token.string):
                comment.append((line, token.string.lstrip("#")))
            continue
        if token.type == tokenize.NL:
            continue
        if comment:
            yield Text("c", comment)
            comment = []
        if token.type == tokenize.STRING:
            if "b" not in token.string.split(token.string[-1])[0].lower():
                body = re.sub(r"(?s)^[A-Za-z]*('''|\"\"\"|'|\")(.*)\1$", r"\2", token.string)
                if before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT) and token.string.endswith('"""'):
                    yield Text("c", lines_of(body, line))
                elif token.string.endswith('"""'):
                    yield Text("s", lines_of(readable(body), line))
                else:
                    string.append((line, body))
        else:
            yield from joined(string)
            string = []
        before = token.type


def page_texts(source):
    """Paragraphs, items, rows; and the lines of examples, which show what gradb prints."""
    paragraph, fenced = [], False
    for number, line in enumerate(source.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            line = ""
        if fenced:
            yield Text("s", [(number, line)]) if is_sentence(line) else Text("s", [])
            continue
        if not line.strip() or re.match(r"\s*([-*+]|\d+\.)\s|\||#", line):
            yield Text("d", paragraph)
            paragraph = []
        paragraph.append((number, re.sub(r"`([^`]*)`", lambda m: m.group(1) if m.group(1).count(" ") > 2 else "`-`", line)))
    yield Text("d", paragraph)


def man_texts(source):
    paragraph = []
    for number, line in enumerate(source.split("\n"), 1):
        if re.match(r"\.(\\\"|SH|SS|TP|PP|nf|fi|RS|RE|IP)", line):
            yield Text("s", paragraph)
            paragraph = []
            line = ""
        paragraph.append((number, re.sub(r"\\f.|\\&|^\.[A-Z]+ ", "", line).replace("\\-", "-")))
    yield Text("s", paragraph)


def texts(name, source):
    suffix = pathlib.Path(name).suffix
    return {".md": page_texts, ".py": python_texts, ".1": man_texts}.get(suffix, c_texts)(source)


# ---- faults

COMPILED = [(where, re.compile(phrase.replace(" ", r"\s"), re.I), instead) for where, phrase, instead in RULES]


def faults_in(name, source):
    """(line, phrase, what to write) of each fault."""
    found = []
    for text in texts(name, source):
        if not text.text:
            continue
        excused = [(m.start(), m.end()) for sentence in EXCEPTIONS for m in re.finditer(re.escape(sentence), text.text, re.I)]
        for where, pattern, instead in COMPILED:
            if text.kind not in where:
                continue
            for match in pattern.finditer(text.text):
                if any(value for key, value in match.groupdict().items() if key.startswith("ok")):
                    continue
                if not any(start <= match.start() and match.end() <= end for start, end in excused):
                    found.append((text.line(match.start()), " ".join(match.group().split()), instead))
    return sorted(found)


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *(f":(glob){pattern}" for pattern in patterns)], cwd=ROOT, capture_output=True,
                         text=True, check=True)
    return [name for name in out.stdout.split("\n") if name]


def show(name, faults):
    for line, phrase, instead in faults:
        print(f'{name}:{line}: "{phrase}": write "{instead}"')


def check_paths(paths):
    count = 0
    for path in map(pathlib.Path, paths):
        names = sorted(p for p in path.rglob("*") if p.suffix in (".c", ".h", ".py", ".md")) if path.is_dir() else [path]
        for name in names:
            faults = faults_in(name, name.read_text())
            show(name, faults)
            count += len(faults)
    return 1 if count else 0


def check_tree():
    status = 0
    for name in tracked(*CODE, *PAGES):
        if (ROOT / name).exists():
            faults = faults_in(name, (ROOT / name).read_text())
            show(name, faults)
            status = 1 if faults else status
    return status


def main(args):
    return check_paths(args) if args else check_tree()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
