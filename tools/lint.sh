#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck disable=SC2016,SC2317 # functions and strings that `check` runs
# The checks of ./dev lint. Prints one line for each check, and the output of those that fail.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

check()
{
    name=$1
    shift
    if output=$("$@" 2>&1); then
        printf 'lint: %-12s ok\n' "$name"
    else
        printf 'lint: %-12s FAILED\n%s\n' "$name" "$output"
        status=1
    fi
}

sources()
{
    git ls-files -co --exclude-standard '*.c' '*.cpp' '*.h'
}

format()
{
    sources | xargs clang-format --dry-run -Werror
}

clang_warnings() # the fuzz build makes the generated headers
{
    ./dev build fuzz && python3 tools/clang_check.py build/fuzz
}

check format format
check gcc ./dev build release
check clang clang_warnings
check rules python3 tools/check_rules.py
check text python3 tools/check_text.py
check style python3 tools/check_style.py
check scripts shellcheck dev .ci/run tools/lint.sh bench/run.sh
check hardening python3 tools/check_hardening.py build/release
check man-text python3 tools/check_text.py build/release/docs/gradb.1
check manual sh -c 'test -z "$(man --warnings -l build/release/docs/gradb.1 2>&1 >/dev/null)"'
exit $status
