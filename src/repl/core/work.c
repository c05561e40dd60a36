// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/work.h"
#include "repl/core/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"

#define LEAST_BYTES ((uint64_t)4 << 20) /* less work is done at once */
#define PUMP_EVERY  0.02                /* seconds */
#define PIECE       ((int64_t)1 << 20)  /* elements of a piece of a histogram, roughly */

void repl_work_name(char *ret, size_t size, const char *doing, const struct gd_session *session,
                    const struct gd_tensor_ref *ref)
{
    const char *name = gd_graph_name(session->graph, ref->node);
    const char *slash = strrchr(name, '/');

    snprintf(ret, size, "%s %.100s:%u", doing, slash ? slash + 1 : name, (unsigned)ref->slot);
}

void repl_work_begin_count(struct repl_work *work, struct command_call *call, const char *what,
                           const char *unit, uint64_t total)
{
    struct repl *repl = call->repl;

    *work = (struct repl_work){.call = call, .unit = unit, .total = total};
    work->progress = gd_progress_begin(call->debugger, what, unit, total);
    work->pumped_at = repl_now(repl);
    work->was_waiting = repl->busy.waiting;
    repl->busy.waiting = true; /* Ctrl-C interrupts this */
}

void repl_work_begin(struct repl_work *work, struct command_call *call, const char *what,
                     uint64_t bytes)
{
    if (bytes < LEAST_BYTES) {
        *work = (struct repl_work){.call = call, .total = bytes};
        return;
    }
    repl_work_begin_count(work, call, what, "B", bytes);
}

bool repl_work_at(void *ctx, uint64_t done)
{
    struct repl_work *work = ctx;
    struct repl *repl = work->call->repl;

    if (!work->progress || work->stopped) {
        return !work->stopped;
    }
    gd_progress_at(work->progress, done);
    double now = repl_now(repl);
    if (now >= work->pumped_at && now < work->pumped_at + PUMP_EVERY) {
        return true;
    }
    repl_pump(repl, 0);
    repl_progress_show(repl);
    work->pumped_at = repl_now(repl);
    if (repl_is_interrupted(repl)) {
        work->stopped = true;
        work->at = (struct gd_progress_info){.done = done, .total = work->total};
        snprintf(work->at.unit, sizeof(work->at.unit), "%s", work->unit);
    }
    return !work->stopped;
}

int repl_work_end(struct repl_work *work, int rc, struct gd_err *err)
{
    struct repl *repl = work->call->repl;

    if (!work->progress) {
        return rc;
    }
    repl_clear_interrupt(repl);
    repl->busy.waiting = work->was_waiting;
    repl_progress_clear(repl);
    gd_progress_end(work->progress);
    work->progress = NULL;
    return work->stopped ? repl_interrupted_at(&work->at, err) : rc;
}

/* ---- statistics ---------------------------------------------------------------------------- */

struct stats_work {
    struct repl_work work;
    uint64_t item;
};

static bool stats_go_on(void *ctx, uint64_t done)
{
    struct stats_work *mine = ctx;

    return repl_work_at(&mine->work, done * mine->item);
}

int repl_stats_compute(struct command_call *call, const char *what, const struct gd_tensor *tensor,
                       const struct gd_tensor *prev, struct gd_stats *ret, struct gd_err *err)
{
    struct stats_work mine = {.item = gd_dtype_size(tensor->dtype)};
    struct gd_stats_options options = {.go_on = stats_go_on, .go_on_ctx = &mine};

    repl_work_begin(&mine.work, call, what, gd_tensor_bytes(tensor));
    int rc = gd_stats_compute(tensor, prev, &options, ret, err);
    return repl_work_end(&mine.work, rc, err);
}

int repl_stats_of(struct command_call *call, const struct gd_tensor_ref *ref,
                  struct gd_tensor *tensor, int64_t step, struct gd_stats *ret, struct gd_err *err)
{
    struct stats_work mine = {.item = gd_dtype_size(tensor->dtype)};
    struct gd_stats_options options = {.go_on = stats_go_on, .go_on_ctx = &mine};
    char what[160];

    repl_work_name(what, sizeof(what), "statistics of", call->session, ref);
    repl_work_begin(&mine.work, call, what, gd_tensor_bytes(tensor));
    int rc = gd_session_stats_of(call->session, ref, tensor, step, &options, ret, err);
    return repl_work_end(&mine.work, rc, err);
}

/* The axis along which pieces are cut. */
static int longest_axis(const struct gd_shape *shape)
{
    int longest = 0;

    for (int i = 1; i < shape->rank; i++) {
        longest = shape->dim[i] > shape->dim[longest] ? i : longest;
    }
    return longest;
}

static int add_pieces(struct repl_work *work, const struct gd_tensor *tensor, double lo, double hi,
                      size_t bins, uint64_t *sum, uint64_t *one, struct gd_err *err)
{
    int axis = longest_axis(&tensor->shape);
    int64_t rows = tensor->shape.dim[axis], row = gd_tensor_count(tensor) / rows;
    int64_t most = row < PIECE ? PIECE / row : 1;
    uint64_t row_bytes = (uint64_t)row * gd_dtype_size(tensor->dtype);
    int rc = GD_OK;

    for (int64_t at = 0; rc == GD_OK && at < rows; at += most) {
        struct gd_tensor piece = *tensor;
        piece.data += at * tensor->stride[axis];
        piece.shape.dim[axis] = rows - at < most ? rows - at : most;
        rc = gd_stats_histogram(&piece, lo, hi, bins, one, err);
        for (size_t i = 0; rc == GD_OK && i < bins; i++) {
            sum[i] += one[i];
        }
        if (rc == GD_OK && !repl_work_at(work, (uint64_t)at * row_bytes)) {
            rc = GD_EINTR;
        }
    }
    return rc;
}

int repl_stats_histogram(struct command_call *call, const char *what,
                         const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                         uint64_t *ret, struct gd_err *err)
{
    struct repl_work work;

    if (gd_tensor_count(tensor) < PIECE || bins == 0) {
        return gd_stats_histogram(tensor, lo, hi, bins, ret, err);
    }
    uint64_t *one = calloc(bins, sizeof(*one));
    if (!one) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a histogram");
    }
    memset(ret, 0, bins * sizeof(*ret));
    repl_work_begin(&work, call, what, gd_tensor_bytes(tensor));
    int rc = add_pieces(&work, tensor, lo, hi, bins, ret, one, err);
    free(one);
    return repl_work_end(&work, rc, err);
}
