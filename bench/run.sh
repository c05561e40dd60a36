#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the benchmarks of a build directory: run.sh BUILD [NAME...]. Prints one line for each measurement:
# `NAME RATIO target T pass|short`. The exit status is 0 also if a target is missed ("short").
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- wire graph step idle stats watch scale tui torch diagnose mindspore dump

bench()
{
    "$build/bench/$1" || printf '%s failed\n' "$1" >&2
}

for name in "$@"; do
    case $name in
    wire) bench bench_wire ;;
    graph) bench bench_graph ;;
    step) bench bench_step ;;
    idle)
        "$build/bench/bench_idle" "$build/src/gradb" "$build/examples/charlm/charlm"
        bench bench_shm
        ;;
    watch)
        "$build/bench/bench_watch" "$build/src/gradb" "$build/examples/charlm/charlm" ||
            printf 'watch failed\n' >&2
        bench bench_plans
        ;;
    scale) bench bench_scale ;;
    tui) bench bench_tui ;;
    torch)
        python3 "$(dirname "$0")/bench_torch.py" "$build/src/gradb" "$(dirname "$0")/../tests/torch/scripts" ||
            printf 'torch failed\n' >&2
        ;;
    diagnose)
        python3 "$(dirname "$0")/bench_diagnose.py" "$build/src/gradb" || printf 'diagnose failed\n' >&2
        ;;
    mindspore)
        python3 "$(dirname "$0")/bench_mindspore.py" "$build/src/gradb" || printf 'mindspore failed\n' >&2
        ;;
    dump)
        python3 "$(dirname "$0")/bench_open.py" "$build/bench/bench_open" || printf 'open failed\n' >&2
        python3 "$(dirname "$0")/bench_snapshot.py" "$build/src/gradb" || printf 'open.snapshot failed\n' >&2
        python3 "$(dirname "$0")/bench_compare.py" "$build/src/gradb" || printf 'compare failed\n' >&2
        python3 "$(dirname "$0")/bench_scan.py" "$build/src/gradb" || printf 'scan failed\n' >&2
        ;;
    stats) "$build/bench/bench_stats" "$(dirname "$0")/stats_numpy.py" ;;
    *)
        printf 'bench: unknown benchmark: %s (wire, graph, step, idle, stats, watch, scale, tui, torch, diagnose, mindspore, dump)\n' "$name" >&2
        exit 2
        ;;
    esac
done
