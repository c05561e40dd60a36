// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/pairs.h"

#include <sched.h>
#include <stdlib.h>

#include "base/workers.h"

#define WAVE_PAIRS 128
#define WAVE_BYTES ((uint64_t)64 << 20)
#define BIG_BYTES  ((uint64_t)16 << 20)

struct task {
    struct gd_run_pair pair;
    uint64_t bytes;
    struct gd_err err;
    int rc;
};

struct run {
    const struct gd_run_options *options;
    struct task *tasks;
    size_t count;
    uint64_t bytes, done; /* of the wave; of earlier waves */
};

int gd_run_threads(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return count < 1 ? 1 : count > 16 ? 16 : count;
}

static uint64_t bytes_of(struct gd_source *source)
{
    struct gd_source_info info;
    size_t bytes;

    if (!source || gd_source_info(source, &info, NULL) != GD_OK ||
        gd_shape_bytes(&info.shape, info.dtype, &bytes, NULL) != GD_OK) {
        return 0;
    }
    return bytes;
}

struct going { /* a big pair, whose progress is in elements */
    struct run *run;
    uint64_t item;
};

static bool go_on_big(void *ctx, uint64_t elements)
{
    struct going *going = ctx;
    const struct gd_run_options *options = going->run->options;

    return !options->go_on ||
           options->go_on(options->go_on_ctx, going->run->done + elements * going->item);
}

static int compare_one(struct run *run, struct task *task, int threads)
{
    const struct gd_run_options *options = run->options;
    struct gd_run_pair *pair = &task->pair;
    struct going going = {run, 8};
    struct gd_compare_options how = {.profile = options->profile,
                                     .has_tolerance = pair->has_tolerance,
                                     .tolerance = pair->tolerance,
                                     .threads = threads};
    struct gd_tool_options view = options->view_options;
    int rc = GD_OK;

    if (threads > 1) {
        how.go_on = view.go_on = go_on_big;
        how.go_on_ctx = view.go_on_ctx = &going;
    }
    if (pair->a && pair->b) {
        rc = gd_compare_sources(pair->a, pair->b, &how, &pair->difference, &task->err);
    } else {
        pair->difference.verdict = pair->a ? GD_V_MISSING_B : GD_V_MISSING_A;
    }
    if (rc == GD_OK && options->view != GD_TOOL_OWN) {
        rc = gd_tool_compare(options->view, pair->a, pair->b, &view, &pair->row, &task->err);
    }
    return rc;
}

static void compare_pair(void *ctx, size_t i)
{
    struct run *run = ctx;

    run->tasks[i].rc = compare_one(run, &run->tasks[i], 1);
}

static int flush_wave(struct run *run, size_t first, const struct gd_run_ops *ops, void *ctx,
                      struct gd_err *err)
{
    int threads = run->options->threads > 0 ? run->options->threads : gd_run_threads();
    int rc = GD_OK;

    if (run->count == 1) {
        run->tasks[0].rc = compare_one(run, &run->tasks[0], threads > 1 ? threads : 2);
    } else {
        gd_workers_run(threads, run->count, compare_pair, run);
    }
    for (size_t i = 0; rc == GD_OK && i < run->count; i++) {
        rc = run->tasks[i].rc == GD_OK
                 ? ops->done(ctx, first + i, &run->tasks[i].pair, err)
                 : gd_fail(err, run->tasks[i].rc, "%s", run->tasks[i].err.text);
    }
    run->done += run->bytes;
    run->bytes = 0;
    run->count = 0;
    if (rc == GD_OK && run->options->go_on &&
        !run->options->go_on(run->options->go_on_ctx, run->done)) {
        rc = gd_fail(err, GD_EINTR, "interrupted");
    }
    return rc;
}

int gd_compare_run(size_t count, const struct gd_run_ops *ops, void *ctx,
                   const struct gd_run_options *options, struct gd_err *err)
{
    struct run run = {.options = options, .tasks = calloc(WAVE_PAIRS, sizeof(struct task))};
    size_t first = 0;
    int rc = run.tasks ? GD_OK : gd_fail_nomem(err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct task next = {.rc = GD_OK};

        rc = ops->get(ctx, i, &next.pair, err);
        if (rc != GD_OK) {
            break;
        }
        next.bytes = bytes_of(next.pair.a) + bytes_of(next.pair.b);
        if (run.count > 0 && (next.bytes > BIG_BYTES || run.count == WAVE_PAIRS ||
                              run.bytes + next.bytes > WAVE_BYTES)) {
            rc = flush_wave(&run, first, ops, ctx, err);
            first = i;
        }
        run.tasks[run.count++] = next;
        run.bytes += next.bytes;
        if (rc == GD_OK && next.bytes > BIG_BYTES) {
            rc = flush_wave(&run, first, ops, ctx, err);
            first = i + 1;
        }
    }
    if (rc == GD_OK && run.count > 0) {
        rc = flush_wave(&run, first, ops, ctx, err);
    }
    free(run.tasks);
    return rc;
}
