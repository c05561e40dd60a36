// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: lockstep */
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/ranks.h"
#include "repl/compare/lockstep_impl.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

#define CONNECT_SECONDS 60.0 /* seconds that a named session may take to connect */

struct expected {
    struct gd_debugger *debugger;
    int number;
};

static bool has_come(void *ctx)
{
    const struct expected *e = ctx;
    const struct gd_session *session = gd_debugger_session(e->debugger, e->number);

    return session && session->state != GD_WAITING && session->state != GD_CONNECTED &&
           !gd_ranks_is_running(session);
}

static int find_session(struct lockstep *l, const char *word, struct gd_session **ret,
                        struct gd_err *err)
{
    struct expected e = {.debugger = l->call->debugger};
    int64_t number;
    int rc = arg_count(word + (word[0] == '@'), 1, INT32_MAX, &number, err);

    if (rc != GD_OK) {
        return gd_fail(err, GD_EUSAGE,
                       "%.60s: write @ and a session number, as `info ranks` shows it", word);
    }
    e.number = (int)number;
    rc = has_come(&e) ? GD_OK : repl_wait(l->call->repl, has_come, &e, CONNECT_SECONDS);
    if (rc == GD_EINTR) {
        return gd_fail(err, rc, "interrupted while waiting for session %d", e.number);
    }
    if (rc != GD_OK) {
        return gd_fail(err, GD_ENOTFOUND, "session %d did not stop or connect within %g s",
                       e.number, CONNECT_SECONDS);
    }
    *ret = gd_debugger_session(l->call->debugger, e.number);
    if (!gd_session_is_live(*ret)) {
        return gd_fail(
            err, GD_ESTATE,
            "@%d is not a live training: use `compare` or `first-divergence` for finished runs",
            e.number);
    }
    return GD_OK;
}

static bool is_dump(const struct gd_session *session)
{
    return gd_session_is_record(session);
}

static int find_both(struct lockstep *l, struct gd_err *err)
{
    int rc = find_session(l, l->label_a, &l->a, err);

    rc = rc == GD_OK ? find_session(l, l->label_b, &l->b, err) : rc;
    if (rc != GD_OK) {
        return rc;
    }
    if (l->a == l->b) {
        return gd_fail(err, GD_EINVAL, "lockstep: specify two different sessions");
    }
    if (gd_ranks_of(l->a) && gd_ranks_of(l->a) == gd_ranks_of(l->b)) {
        return gd_fail(
            err, GD_EINVAL,
            "@%d and @%d are ranks of the same job, which move together: use `catch divergence`",
            l->a->number, l->b->number);
    }
    if (is_dump(l->a) && is_dump(l->b)) {
        return gd_fail(err, GD_EINVAL, "@%d and @%d are both dumps: use `first-divergence @%d @%d`",
                       l->a->number, l->b->number, l->a->number, l->b->number);
    }
    l->dump = is_dump(l->a) ? l->a : is_dump(l->b) ? l->b : NULL;
    return lockstep_check_place(l, err);
}

/* Ranks of a job move only by steps. */
static bool can_by_node(const struct gd_session *session)
{
    return (session->target->capabilities & GD_CAN_NEXT) != 0 && !gd_ranks_of(session);
}

/* Parses --by node|step; the default is node if both can stop at nodes. */
static int take_by(struct lockstep *l, const char *by, struct gd_err *err)
{
    const struct gd_session *sides[] = {l->a, l->b};
    bool both = true;

    if (by && strcmp(by, "step") != 0 && strcmp(by, "node") != 0) {
        return gd_fail(err, GD_EUSAGE, "--by %.40s: must be \"step\" or \"node\"", by);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!can_by_node(sides[i])) {
            both = false;
            if (by && strcmp(by, "node") == 0) {
                return gd_fail(err, GD_EUNSUPPORTED, "@%d cannot stop at every node: use --by step",
                               sides[i]->number);
            }
        }
    }
    l->by_node = both && (!by || strcmp(by, "node") == 0);
    return GD_OK;
}

/* Parses --shift N: how much higher A counts steps than B; negative: lower. */
static int take_shift(const char *text, int64_t *ret, struct gd_err *err)
{
    bool fewer = text[0] == '-';
    int rc = arg_count(text + fewer, 0, INT32_MAX, ret, err);

    if (rc != GD_OK) {
        return gd_fail(err, GD_EUSAGE, "--shift %.40s: must be a number of steps, such as 3 or -1",
                       text);
    }
    *ret = fewer ? -*ret : *ret;
    return GD_OK;
}

static int parse_words(struct lockstep *l, struct gd_err *err)
{
    struct command_call *call = l->call;
    const char *by = NULL, *steps = NULL, *shift = NULL;
    int rc = inspect_take_option(call, "--by", &by, err);

    rc = rc != GD_OK ? rc : inspect_take_option(call, "--steps", &steps, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--shift", &shift, err);
    if (rc == GD_OK && steps) {
        rc = arg_count(steps, 1, INT64_MAX, &l->steps, err);
    }
    if (rc == GD_OK && shift) {
        rc = take_shift(shift, &l->shift, err);
    }
    rc = rc != GD_OK ? rc : compare_options_take(call, &l->options, err);
    if (rc == GD_OK && (call->argc < 2 || (call->argc > 2 && (strcmp(call->argv[2], "on") != 0 ||
                                                              call->argc == 3)))) {
        rc = gd_fail(err, GD_EUSAGE,
                     "lockstep: specify two sessions, optionally followed by on SELECTOR");
    }
    if (rc == GD_OK && call->argc > 3) {
        rc = gd_selector_parse(inspect_join(call, 3, call->argc), &l->selector, err);
    }
    if (rc == GD_OK) {
        l->label_a = call->argv[0];
        l->label_b = call->argv[1];
        rc = find_both(l, err);
    }
    return rc == GD_OK ? take_by(l, by, err) : rc;
}

static int run_lockstep(struct command_call *call, struct gd_err *err)
{
    struct lockstep l = {
        .call = call, .good = GD_NO_NODE, .node_a = GD_NO_NODE, .node_b = GD_NO_NODE};
    int rc = parse_words(&l, err);

    if (rc == GD_OK) {
        out_flush(call->out);
        gd_session_hold(l.a);
        gd_session_hold(l.b);
        call->repl->job.drives[0] = l.a->number;
        call->repl->job.drives[1] = l.b->number;
        rc = lockstep_run(&l, err);
        call->repl->job.drives[0] = call->repl->job.drives[1] = 0;
        if (rc == GD_OK && l.ended != LOCKSTEP_GOES_ON) {
            rc = lockstep_show(&l, err);
        }
        gd_session_release(l.a);
        gd_session_release(l.b);
    }
    lockstep_nodes_free(&l);
    gd_selector_destroy(l.selector);
    compare_options_free(&l.options);
    return rc;
}

const struct command cmd_lockstep = {
    .name = "lockstep",
    .group = "running",
    .usage = "lockstep A B [on SELECTOR] [--by step|node] [--steps N] [--shift N] "
             "[--map FILE] [rtol=X] [atol=X]",
    .summary = "Run two trainings side by side until they diverge",
    .help =
        "A and B are sessions (@1 and @2, see `info ranks`) that are stopped at the end of the\n"
        "same step: two processes, two frameworks or two devices. gradb waits for a session\n"
        "that has not connected yet. Both are run to the same place again and again, and their\n"
        "tensors are compared there: after every node when both can stop at nodes, otherwise,\n"
        "or with --by step, after every step. Both stop where a tensor first differs beyond\n"
        "its tolerance. B is the reference; the options are those of `compare`. Without \"on\n"
        "SELECTOR\", the nodes that watchpoints cover are compared, or all nodes if there are\n"
        "no watchpoints. Nodes are matched by name, by the rules between frameworks, or by\n"
        "--map. Any other stop ends the comparison too.\n"
        "One of the two may be an open dump: it moves from one of its steps to the next.\n"
        "--shift N means that A's step count is N higher than B's: 3 when A resumed after step\n"
        "3, -1 when A counts from 0 and B from 1.\n"
        "The last line counts the tensors that were compared and those that could not be.\n"
        "gradb --batch exits with status 6 when they diverge, and 1 when nothing was compared.",
    .examples = "lockstep @1 @2\n"
                "lockstep @1 @2 on weights|gradients --by step --steps 100 rtol=1e-3\n"
                "lockstep @2 @1 --shift 1",
    .args = {ARG_WORD, ARG_WORD, ARG_WORD, ARG_SELECTOR},
    .run = run_lockstep,
};
