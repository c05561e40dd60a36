# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks layering, licences, banned functions, the version, and that every test is built.

Prints one line for each fault, `FILE:LINE: what`; the exit status is 1 if there are any.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A folder of src/ may include from itself and from these.
MAY_INCLUDE = {
    "base": set(),
    "engine": {"base"},
    "mindspore": {"base", "engine"},
    "proto": {"base", "engine", "mindspore"},
    "dump": {"base", "engine", "mindspore"},
    "compare": {"base", "engine", "dump"},
    "agent": {"base", "proto"},
    "repl": {"base", "engine", "dump", "compare"},
    "drive": {"base", "engine", "dump", "repl"},
    "tui": {"base", "engine", "repl", "dump"},
    "resident": {"base", "engine", "repl", "tui"},
    "": {"base", "engine", "proto", "dump", "compare", "repl", "drive", "tui", "resident"},
}
# Folders of tests/ that do not test a folder of src/.
OTHER_TESTS = {"device", "docs", "e2e", "fuzz", "golden", "msagent", "tools", "torch", "trainer"}
MAX_PYTHON_COLUMNS = 120

faults = []


def fault(path, line, text):
    faults.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def tracked(*patterns):
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in out.stdout.split("\n") if name]


def licence_of(path):
    head = "\n".join(path.read_text(errors="replace").split("\n")[:3])
    match = re.search(r"SPDX-License-Identifier: (\S+)", head)
    return match.group(1) if match else None


def check_licences(files):
    """Every file names its licence. What training programs link or copy is MIT."""
    for path in files:
        licence = licence_of(path)
        if licence not in ("MIT", "GPL-3.0-or-later"):
            fault(path, 1, "the first lines must name MIT or GPL-3.0-or-later in an SPDX-License-Identifier")
        place = path.relative_to(ROOT).as_posix()
        must_be_mit = place.startswith(("src/agent/", "src/base/", "examples/", "python/")) or place.endswith(".proto")
        if must_be_mit and licence != "MIT":
            fault(path, 1, f"must be MIT, because training programs link or copy it; is {licence}")


def check_agent_closure():
    """The sources of libgradb, and all that they include, are MIT."""
    todo = [p for p in (ROOT / "src/agent").glob("*.c")]
    for name in ("src/base/meson.build", "src/proto/meson.build"):
        text = (ROOT / name).read_text()
        for group in re.findall(r"(?:base|wire)_sources\s*\+?=\s*files\(([^)]*)\)", text):
            todo += [ROOT / pathlib.Path(name).parent / f for f in re.findall(r"'([^']+)'", group)]
    seen = set()
    while todo:
        path = todo.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        if licence_of(path) != "MIT":
            fault(path, 1, "must be MIT, because libgradb contains or includes it")
        for include in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            todo.append(ROOT / "src" / include)
    if len(seen) < 5:
        fault(ROOT / "src/agent/gradb.h", 1, "found no sources of libgradb: correct tools/check_rules.py")


def check_layers(files):
    for path in files:
        parts = path.relative_to(ROOT).parts
        if parts[0] != "src":
            continue
        layer = parts[1] if len(parts) > 2 else ""
        for number, line in enumerate(path.read_text().split("\n"), 1):
            match = re.match(r'#include "(\w+)/', line)
            if match and match.group(1) != layer and match.group(1) not in MAY_INCLUDE.get(layer, set()):
                fault(path, number, f"src/{layer} must not include {match.group(1)}/")


def strip_comments(text):
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def check_banned(files):
    banned = {}
    for line in (ROOT / "tools/banned.txt").read_text().split("\n"):
        if line and not line.startswith("#"):
            name, instead = line.split("\t")
            banned[name] = instead
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned) + r")\s*\(")
    for path in files:
        for number, line in enumerate(strip_comments(path.read_text()).split("\n"), 1):
            for match in pattern.finditer(line):
                fault(path, number, f"{match.group(1)} is banned: use {banned[match.group(1)]}")


def check_python(files):
    """Python that is installed compiles, and its lines are not too long."""
    for path in files:
        text = path.read_text()
        try:
            compile(text, str(path), "exec")
        except SyntaxError as error:
            fault(path, error.lineno or 1, f"does not compile: {error.msg}")
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MAX_PYTHON_COLUMNS:
                fault(path, number, f"{len(line)} columns; at most {MAX_PYTHON_COLUMNS} are allowed")


def check_version():
    """python/gradb/VERSION has the version, which meson.build and the package for Python read."""
    version = (ROOT / "python/gradb/VERSION").read_text().strip()
    changelog = ROOT / "CHANGELOG.md"
    if not re.search(rf"^## \[?{re.escape(version)}\b", changelog.read_text(), re.M):
        fault(changelog, 1, f"has no section for version {version} of python/gradb/VERSION")


def check_tests_registered():
    """The build file of each test's folder names it: `test_slice.c`, or `slice` in quotes."""
    for path in tracked("tests/**/test_*.c", "tests/**/test_*.py", "tests/fuzz/fuzz_*.c"):
        build = path.parent / "meson.build"
        text = build.read_text()
        words = path.stem.split("_")
        names = ["_".join(words[i:]) for i in range(len(words))]
        if path.name not in text and not any(f"'{name}'" in text for name in names):
            fault(path, 1, f"is not built: name it in {build.relative_to(ROOT)}")


def check_test_folders():
    for folder in sorted({path.parent for path in tracked("tests/*/meson.build")}):
        name = folder.relative_to(ROOT / "tests")
        if name.parts[0] not in OTHER_TESTS and not (ROOT / "src" / name).is_dir():
            fault(folder, 1, f"src/{name} does not exist: tests/ has the folders of src/")


def main():
    c_files = tracked("*.c", "*.h")
    check_licences(c_files + tracked("*.py", "*.proto", "*.sh", "*meson.build"))
    check_agent_closure()
    check_layers(c_files)
    check_banned(c_files)
    check_python(tracked("python/*.py", "python/**/*.py"))
    check_version()
    check_tests_registered()
    check_test_folders()
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
