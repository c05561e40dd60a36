#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run-target.sh TARGET CORPUS_DIR DICT MAX_LEN: a short libFuzzer run as one TAP test.
# New inputs go to a directory of their own that is thrown away: a test changes no sources.
# FUZZ_SECONDS (10) and FUZZ_RUNS (20000) make it longer.
target=$1 corpus=$2 dict=$3 max_len=$4
work=$(mktemp -d "${TMPDIR:-/tmp}/gradb-fuzz-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/new"
set -- -max_len="$max_len" -runs="${FUZZ_RUNS:-20000}" -max_total_time="${FUZZ_SECONDS:-6}" \
    -seed=1 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$work/" -print_final_stats=1
[ -f "$dict" ] && set -- "$@" -dict="$dict"
echo 1..1
if "$target" "$@" "$work/new" "$corpus" >"$work/log" 2>&1; then
    sed -n 's/^stat::/# stat::/p' "$work/log"
    echo "ok 1 - $(basename "$target")"
    exit 0
fi
sed 's/^/# /' "$work/log" | tail -n 80
for input in "$work"/crash-* "$work"/oom-* "$work"/timeout-* "$work"/leak-*; do
    [ -f "$input" ] && echo "# input $(basename "$input"): $(od -An -v -tx1 "$input" | tr -d ' \n' | head -c 8192)"
done
echo "not ok 1 - $(basename "$target")"
exit 1
