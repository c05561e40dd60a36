// SPDX-License-Identifier: GPL-3.0-or-later
/* What commands ask a training process for: tensors, statistics, the answer to a command. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/await.h"
#include "repl/core/command.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"

struct answer {
    struct await await;
    int code;
    struct gd_err err;
    struct gd_tensor *tensor;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step;
    char *text;
};

static void set_error(struct answer *answer, const struct gd_err *err)
{
    answer->err = *err;
    answer->code = err->code != GD_OK ? err->code : GD_EIO;
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct answer *answer = ctx;

    if (!await_take(answer)) {
        return;
    }
    answer->step = step;
    if (err) {
        set_error(answer, err);
    } else {
        answer->tensor = gd_tensor_ref(tensor);
    }
}

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct answer *answer = ctx;

    if (!await_take(answer)) {
        return;
    }
    answer->step = step;
    if (err) {
        set_error(answer, err);
        return;
    }
    answer->dtype = dtype;
    answer->shape = *shape;
    answer->stats = *stats;
}

static void on_text(void *ctx, const char *text, const struct gd_err *err)
{
    struct answer *answer = ctx;

    if (!await_take(answer)) {
        return;
    }
    if (err) {
        set_error(answer, err);
        return;
    }
    answer->text = strdup(text);
    if (!answer->text) {
        answer->code = gd_fail_nomem(&answer->err);
    }
}

static int create_answer(struct command_call *call, struct answer **ret, struct gd_err *err)
{
    int rc = repl_need_session(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    *ret = calloc(1, sizeof(**ret));
    return *ret ? GD_OK : gd_fail_nomem(err);
}

/* `rc`: whether the request was accepted. The answer is moved to *ret, freed or left. */
static int wait_answer(struct command_call *call, struct answer *answer, int rc, struct answer *ret,
                       struct gd_err *err)
{
    if (rc != GD_OK) {
        free(answer);
        return rc;
    }
    if (!answer->await.arrived) {
        out_flush(call->out);
    }
    rc = repl_await(call->repl, answer, -1);
    if (rc != GD_OK) {
        return rc == GD_EINTR
                   ? repl_interrupted(call->repl,
                                      "interrupted while waiting for the training process", err)
                   : gd_fail(err, rc, "the training process did not answer");
    }
    *ret = *answer;
    free(answer);
    if (ret->code != GD_OK && err) {
        *err = ret->err;
        err->code = ret->code;
    }
    return ret->code;
}

int repl_fetch(struct command_call *call, const struct gd_tensor_ref *ref,
               const struct gd_slice *slice, struct gd_tensor **ret, int64_t *step,
               struct gd_err *err)
{
    struct answer *answer, got;
    int rc = create_answer(call, &answer, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_session_fetch(call->session, ref, slice, on_tensor, answer, err);
    rc = wait_answer(call, answer, rc, &got, err);
    if (rc == GD_OK) {
        *ret = got.tensor;
        if (step) {
            *step = got.step;
        }
    }
    return rc;
}

/* For a target without statistics: fetches the value and computes them here, interruptibly. */
static int stats_here(struct command_call *call, const struct gd_tensor_ref *ref,
                      enum gd_dtype *dtype, struct gd_shape *shape, struct gd_stats *ret,
                      int64_t *step, struct gd_err *err)
{
    struct gd_tensor *tensor = NULL;
    int64_t of = -1;
    int rc = repl_fetch(call, ref, NULL, &tensor, &of, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = repl_stats_of(call, ref, tensor, of, ret, err);
    if (rc == GD_OK) {
        *dtype = tensor->dtype;
        *shape = tensor->shape;
        if (step) {
            *step = of;
        }
    }
    gd_tensor_unref(tensor);
    return rc;
}

/* Requests for statistics made while the loop runs do not run it again. */
static bool run_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    struct repl_work *work = ctx;
    struct gd_debugger *debugger = work->call->debugger;

    debugger->meanwhile = NULL;
    gd_progress_of(work->progress, total);
    work->total = total;
    bool goes = repl_work_at(work, done);
    debugger->meanwhile = run_meanwhile;
    return goes;
}

/* A dump computes them before the call returns. */
static int ask_record(struct command_call *call, const struct gd_tensor_ref *ref,
                      struct answer *answer, struct gd_err *err)
{
    struct gd_debugger *debugger = call->debugger;
    struct repl_work work;
    char name[160];

    repl_work_name(name, sizeof(name), "statistics of", call->session, ref);
    repl_work_begin_count(&work, call, name, "B", 0);
    debugger->meanwhile = run_meanwhile;
    debugger->meanwhile_ctx = &work;
    int rc = gd_session_stats(call->session, ref, on_stats, answer, err);
    debugger->meanwhile = NULL;
    debugger->meanwhile_ctx = NULL;
    return repl_work_end(&work, rc, err);
}

static bool is_dump(const struct gd_session *session)
{
    return session->target && (session->target->capabilities & GD_CAN_GOTO) != 0;
}

int repl_stats(struct command_call *call, const struct gd_tensor_ref *ref, enum gd_dtype *dtype,
               struct gd_shape *shape, struct gd_stats *ret, int64_t *step, struct gd_err *err)
{
    int rc = repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (gd_session_computes_stats(call->session, ref)) {
        return stats_here(call, ref, dtype, shape, ret, step, err);
    }
    struct answer *answer, got;
    rc = create_answer(call, &answer, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = is_dump(call->session) ? ask_record(call, ref, answer, err)
                                : gd_session_stats(call->session, ref, on_stats, answer, err);
    rc = wait_answer(call, answer, rc, &got, err);
    if (rc == GD_OK) {
        *dtype = got.dtype;
        *shape = got.shape;
        *ret = got.stats;
        if (step) {
            *step = got.step;
        }
    }
    return rc;
}

int repl_command(struct command_call *call, const char *name, const char *args, gd_node_id node,
                 const char **ret, struct gd_err *err)
{
    struct answer *answer, got;
    int rc = create_answer(call, &answer, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_target_command(call->session->target, name, args, node, on_text, answer, err);
    rc = wait_answer(call, answer, rc, &got, err);
    if (rc == GD_OK) {
        *ret = gd_arena_strdup(call->arena, got.text);
        free(got.text);
    }
    return rc == GD_OK && !*ret ? gd_fail_nomem(err) : rc;
}
