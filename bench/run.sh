#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the benchmarks of one build directory: run.sh BUILD [FIGURE...]. Prints `NAME RATIO target T pass|short`,
# one line a figure. A figure that falls short is printed as short; the exit status stays 0.
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- wire graph step idle stats watch tui torch dump

bench()
{
    "$build/bench/$1" || printf '%s did not finish\n' "$1" >&2
}

for figure in "$@"; do
    case $figure in
    wire) bench bench_wire ;;
    graph) bench bench_graph ;;
    step) bench bench_step ;;
    idle)
        "$build/bench/bench_idle" "$build/src/gradb" "$build/examples/charlm/charlm"
        bench bench_shm
        ;;
    watch)
        "$build/bench/bench_watch" "$build/src/gradb" "$build/examples/charlm/charlm" ||
            printf 'watch did not finish\n' >&2
        bench bench_plans
        ;;
    tui) bench bench_tui ;;
    torch)
        python3 "$(dirname "$0")/bench_torch.py" "$build/src/gradb" "$(dirname "$0")/../tests/torch/scripts" ||
            printf 'torch did not finish\n' >&2
        ;;
    dump)
        python3 "$(dirname "$0")/bench_open.py" "$build/bench/bench_open" || printf 'open did not finish\n' >&2
        python3 "$(dirname "$0")/bench_compare.py" "$build/src/gradb" || printf 'compare did not finish\n' >&2
        python3 "$(dirname "$0")/bench_scan.py" "$build/src/gradb" || printf 'scan did not finish\n' >&2
        ;;
    stats) "$build/bench/bench_stats" "$(dirname "$0")/stats_numpy.py" ;;
    *)
        printf 'bench: no figure is named %s: wire, graph, step, idle, stats, watch, tui, torch, dump\n' "$figure" >&2
        exit 2
        ;;
    esac
done
