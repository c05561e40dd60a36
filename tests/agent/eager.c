// SPDX-License-Identifier: GPL-3.0-or-later
#include "eager.h"

#include <sys/wait.h>
#include <unistd.h>

float eager_value(int64_t step, int op, int i)
{
    return (float)(1000 * step + 10 * op + i);
}

float eager_weight(int64_t step, int i)
{
    return (float)(7000 + 1000 * step + i);
}

/* Calls into libgradb, as an interpreter makes them: without its lock. */
#define UNLOCKED(e, call)                                                                          \
    do {                                                                                           \
        pthread_mutex_unlock(&(e)->big_lock);                                                      \
        call;                                                                                      \
        pthread_mutex_lock(&(e)->big_lock);                                                        \
    } while (0)

/* ---- the source ------------------------------------------------------------------------------ */

static void take_lock(struct eager *e)
{
    pthread_mutex_lock(&e->big_lock);
    if (e->here && !pthread_equal(e->self, pthread_self())) {
        atomic_fetch_add(&e->wrong_thread, 1);
    }
}

/* Which operator a node is; -1: the parameter. */
static int op_of(const struct eager *e, gradb_node node)
{
    for (int i = 0; i < e->added; i++) {
        if (e->node[i] == node) {
            return i;
        }
    }
    return -1;
}

static const int64_t shape_of[1] = {EAGER_COUNT};

static gradb_answer odd_answer(struct eager *e, gradb_tensor *ret, char why[GRADB_WHY])
{
    static const int64_t negative[1] = {-6}, huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
    static const int64_t far[1] = {INT64_MAX / 2}, many[33] = {1};
    *ret = (gradb_tensor){GRADB_FLOAT32, 1, shape_of, NULL, e->weight};
    switch (atomic_load(&e->odd)) {
    case EAGER_SPARSE: snprintf(why, GRADB_WHY, "it is sparse"); return GRADB_UNSUPPORTED;
    case EAGER_BROKEN: return GRADB_FAILED;
    case EAGER_STRANGE_ANSWER: return (gradb_answer)77;
    case EAGER_LONG_WHY: memset(why, 'x', GRADB_WHY); return GRADB_NO_VALUE;
    case EAGER_NO_ADDRESS: ret->data = NULL; return GRADB_OK;
    case EAGER_WRONG_TYPE: ret->dtype = (gradb_dtype)99; return GRADB_OK;
    case EAGER_RANK_33:
        ret->rank = 33;
        ret->shape = many;
        return GRADB_OK;
    case EAGER_NEGATIVE_SIZE: ret->shape = negative; return GRADB_OK;
    case EAGER_HUGE_SHAPE:
        ret->rank = 2;
        ret->shape = huge;
        return GRADB_OK;
    case EAGER_FAR_STRIDES: ret->strides = far; return GRADB_OK;
    default: return GRADB_FAILED;
    }
}

static gradb_answer find_value(struct eager *e, gradb_node node, bool previous, gradb_tensor *ret,
                               int64_t *step, char why[GRADB_WHY])
{
    int odd = atomic_load(&e->odd), op = op_of(e, node);
    if (odd > EAGER_GONE) {
        return odd_answer(e, ret, why);
    }
    const float *data = op < 0 ? (previous ? e->kept_weight : e->weight)
                               : (previous ? e->kept_value[op] : e->value[op]);
    *step = op < 0 ? -1 : previous ? e->kept_step : e->value_step[op];
    if (op >= 0 && (odd == EAGER_GONE || *step == 0)) {
        snprintf(why, GRADB_WHY, "the program has let it go");
        return GRADB_NO_VALUE;
    }
    *ret = (gradb_tensor){GRADB_FLOAT32, 1, shape_of, NULL, data};
    return GRADB_OK;
}

static gradb_answer locate_value(void *ctx, gradb_node node, unsigned slot, bool previous,
                                 gradb_tensor *ret, int64_t *step, char why[GRADB_WHY])
{
    struct eager *e = ctx;
    take_lock(e);
    atomic_fetch_add(&e->locates, 1);
    gradb_answer answer = find_value(e, node, previous, ret, step, why);
    atomic_fetch_add(&e->located, 1);
    pthread_mutex_unlock(&e->big_lock);
    return answer;
}

static void release_value(void *ctx)
{
    struct eager *e = ctx;
    take_lock(e);
    atomic_fetch_add(&e->releases, 1);
    atomic_store(&e->located, 0);
    pthread_mutex_unlock(&e->big_lock);
}

static void hold_command(struct eager *e)
{
    atomic_store(&e->holding, 1);
    pthread_mutex_unlock(&e->big_lock);
    while (sem_wait(&e->let_go) != 0) {
    }
    pthread_mutex_lock(&e->big_lock);
    atomic_store(&e->holding, 0);
}

/* Not what libgradb would compute: `min` tells who did. */
static gradb_answer compute_stats(void *ctx, gradb_node node, unsigned slot, bool previous,
                                  const gradb_stats_wanted *wanted, gradb_stats *ret,
                                  gradb_tensor *what, char why[GRADB_WHY])
{
    struct eager *e = ctx;
    take_lock(e);
    atomic_fetch_add(&e->stats_calls, 1);
    gradb_tensor tensor;
    int64_t step = 0;
    gradb_answer answer = find_value(e, node, previous, &tensor, &step, why);
    if (op_of(e, node) < 0 && atomic_exchange(&e->hold_weight, 0)) {
        hold_command(e);
    }
    if (answer == GRADB_OK) {
        const float *data = tensor.data;
        *ret = (gradb_stats){.count = EAGER_COUNT,
                             .min = -4711,
                             .max = data ? data[EAGER_COUNT - 1] : 0,
                             .histogram = ret->histogram};
        for (int i = 0; data && i < EAGER_COUNT; i++) {
            ret->nan += data[i] != data[i];
        }
        for (int i = 0; i < wanted->range_count; i++) {
            ret->in_range[i] = (uint64_t)i + 1;
        }
        ret->has_previous = wanted->against_previous && e->kept_step > 0;
        ret->mean_abs_delta = 1000;
        for (unsigned i = 0; i < wanted->bins; i++) {
            ret->histogram[i] = i;
        }
        *what = tensor;
        what->data = NULL;
    }
    pthread_mutex_unlock(&e->big_lock);
    return answer;
}

static void keep_values(void *ctx, const gradb_node *nodes, size_t count)
{
    struct eager *e = ctx;
    take_lock(e);
    atomic_fetch_add(&e->keep_calls, 1);
    atomic_store(&e->kept, (int)count);
    pthread_mutex_unlock(&e->big_lock);
}

static void report_owed(struct eager *e)
{
    if (e->owed) {
        UNLOCKED(e, gradb_as_of(e->agent, e->owed));
        UNLOCKED(e, gradb_scalar(e->agent, "loss", (double)e->owed));
        UNLOCKED(e, gradb_as_of(e->agent, -1));
        atomic_fetch_add(&e->put_off, 1);
        e->owed = 0;
    }
}

static void hear_look(void *ctx, const gradb_ask *asks, size_t count)
{
    struct eager *e = ctx;
    take_lock(e);
    for (size_t i = 0; i < count; i++) {
        bool known = asks[i].node == e->w || op_of(e, asks[i].node) >= 0;
        atomic_fetch_add(&e->announced, known && asks[i].slot == 0 && asks[i].wanted);
        atomic_store(&e->located, 1); /* held for libgradb */
    }
    report_owed(e);
    pthread_mutex_unlock(&e->big_lock);
}

static void report_loss(struct eager *e, int64_t step)
{
    bool wanted;
    report_owed(e);
    UNLOCKED(e, wanted = gradb_wants_numbers(e->agent));
    if (wanted) {
        UNLOCKED(e, gradb_scalar(e->agent, "loss", (double)step));
    } else {
        e->owed = step;
    }
}

/* Everything that a command must not do, but may try. */
static void call_back(struct eager *e)
{
    gradb_node_info info = {.name = "net/late", .type = "Late", .phase = GRADB_FORWARD};
    UNLOCKED(e, gradb_scalar(e->agent, "inside", 5));
    UNLOCKED(e, gradb_log(e->agent, "from inside"));
    UNLOCKED(e, gradb_event(e->agent, "warning", "from inside", e->w));
    UNLOCKED(e, gradb_did_slow(e->agent, e->w));
    UNLOCKED(e, gradb_did_with_slow(e->agent, e->w, NULL, 0));
    UNLOCKED(e, gradb_step_end(e->agent));
    UNLOCKED(e, gradb_step_begin(e->agent, 99));
    UNLOCKED(e, gradb_enter(e->agent, GRADB_BACKWARD));
    UNLOCKED(e, gradb_stop(e->agent, "again"));
    UNLOCKED(e, gradb_wait(e->agent, 60));
    UNLOCKED(e, gradb_sync(e->agent));
    UNLOCKED(e, gradb_add_node(e->agent, &info));
    UNLOCKED(e, gradb_publish(e->agent));
    UNLOCKED(e, gradb_error(e->agent));
    UNLOCKED(e, gradb_close(e->agent, "no"));
}

/* The child comes back into libgradb and out of it again; see train(). */
static gradb_answer fork_here(struct eager *e, char why[GRADB_WHY])
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        atomic_store(&e->in_child, 1);
        alarm(60); /* should it hang: the parent waits for it */
        return GRADB_OK;
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        snprintf(why, GRADB_WHY, "the child ended with %d", status);
        return GRADB_FAILED;
    }
    return GRADB_OK;
}

static gradb_answer do_command(struct eager *e, const char *name, const char *args, gradb_node node,
                               const char **reply, char why[GRADB_WHY])
{
    static char text[256], *big;
    snprintf(text, sizeof(text), "%s(%s) on %u", name, args, node);
    *reply = text;
    if (strcmp(name, "fail") == 0) {
        snprintf(why, GRADB_WHY, "no %s today", args);
        return GRADB_NO_VALUE;
    }
    if (strcmp(name, "hold") == 0) {
        hold_command(e);
    } else if (strcmp(name, "call-back") == 0) {
        call_back(e);
    } else if (strcmp(name, "fork") == 0) {
        return fork_here(e, why);
    } else if (strcmp(name, "nothing") == 0) {
        *reply = NULL;
    } else if (strcmp(name, "flood") == 0) {
        size_t bytes = (size_t)strtoul(args, NULL, 10);
        free(big);
        big = malloc(bytes + 1);
        memset(big, 'y', bytes);
        big[bytes] = '\0';
        *reply = big;
    }
    return GRADB_OK;
}

static gradb_answer run_command(void *ctx, const char *name, const char *args, gradb_node node,
                                const char **reply, char why[GRADB_WHY])
{
    struct eager *e = ctx;
    take_lock(e);
    atomic_fetch_add(&e->commands, 1);
    gradb_answer answer = do_command(e, name, args, node, reply, why);
    pthread_mutex_unlock(&e->big_lock);
    return answer;
}

/* ---- the training ---------------------------------------------------------------------------- */

static const gradb_tensor nowhere = {GRADB_FLOAT32, 1, shape_of, NULL, NULL};

static void add_parameter(struct eager *e)
{
    gradb_node_info info = {.name = "net/w",
                            .type = "Parameter",
                            .kind = GRADB_WEIGHT,
                            .outputs = &nowhere,
                            .output_count = 1};
    e->w = gradb_add_node(e->agent, &info);
}

static void add_op(struct eager *e)
{
    char name[32];
    const gradb_frame frames[2] = {{"torchlike/nn.py", 7, "call", true},
                                   {"train.py", 10, "step", false}};
    gradb_input input = {.node = e->added ? e->node[e->added - 1] : e->w};
    snprintf(name, sizeof(name), "net/op%d", e->added);
    gradb_node_info info = {.name = name,
                            .type = "Op",
                            .phase = GRADB_FORWARD,
                            .inputs = &input,
                            .input_count = 1,
                            .outputs = &nowhere,
                            .output_count = 1,
                            .frames = frames,
                            .frame_count = 2};
    e->node[e->added] = gradb_add_node(e->agent, &info);
    e->added++;
}

static void sync_graph(struct eager *e)
{
    bool synced;
    UNLOCKED(e, synced = gradb_sync(e->agent));
    atomic_fetch_add(synced ? &e->synced : &e->unsynced, 1);
}

/* Operators that have run and were not told of yet. */
static void report_operators(struct eager *e, int up_to)
{
    for (; e->told_of < up_to; e->told_of++) {
        gradb_node node = e->node[e->told_of];
        if (e->told) {
            UNLOCKED(e, gradb_did_with(e->agent, node, &nowhere, 1));
        } else {
            UNLOCKED(e, gradb_did(e->agent, node));
        }
    }
}

static void compute_op(struct eager *e, int64_t step, int op)
{
    for (int i = 0; i < EAGER_COUNT; i++) {
        e->value[op][i] = eager_value(step, op, i);
    }
    if (op == e->nan_op && step == e->nan_step) {
        e->value[op][3] = __builtin_nanf("");
    }
    e->value_step[op] = step;
}

static void run_step(struct eager *e, int64_t step)
{
    UNLOCKED(e, gradb_step_begin(e->agent, step));
    e->told_of = 0;
    int running = e->ops - (e->rests_from && step >= e->rests_from);
    for (int op = 0; op < running; op++) {
        compute_op(e, step, op);
        if (op == e->added) {
            add_op(e);
        }
        bool full = e->batch && e->added - e->told_of >= e->batch;
        if (step == 1 && e->batch && (full || op + 1 == e->ops)) {
            sync_graph(e);
            report_operators(e, op + 1);
        } else if (step > 1 || !e->batch) {
            report_operators(e, op + 1);
        }
    }
    if (step == 1 && !e->batch) {
        gradb_publish(e->agent);
    }
    if (e->times) {
        const gradb_op_time ops[3] = {
            {e->node[1], 2, 0.25}, {e->node[0], 1, 0.5}, {e->node[2], 1, __builtin_nan("")}};
        const gradb_times times = {.total = 2,
                                   .data = -1,
                                   .forward = 1,
                                   .backward = __builtin_nan(""),
                                   .optimizer = 0.5,
                                   .gap = 0.25,
                                   .ops = ops,
                                   .op_count = 3};
        UNLOCKED(e, gradb_timing_compiled(e->agent, step == 3 ? 0.125 : 0));
        UNLOCKED(e, gradb_timing(e->agent, &times));
        UNLOCKED(
            e, gradb_event(e->agent, "skipped-step", "the gradients were not finite", e->node[0]));
    }
    for (int i = 0; i < EAGER_COUNT; i++) {
        e->weight[i] = eager_weight(step, i);
    }
    if (e->looks) {
        report_loss(e, step);
    }
    if (!e->keeps) {
        UNLOCKED(e, gradb_step_end(e->agent));
        return;
    }
    float weight[EAGER_COUNT];
    memcpy(weight, e->weight, sizeof(weight));
    UNLOCKED(e, gradb_step_end(e->agent));
    memcpy(e->kept_value, e->value, sizeof(e->value));
    memcpy(e->kept_weight, weight, sizeof(weight));
    e->kept_step = step;
}

static void leave_child(const struct eager *e)
{
    if (atomic_load(&e->in_child)) {
        _exit(gradb_is_connected(e->agent) || gradb_error(e->agent)[0] ? 1 : 0);
    }
}

static void wait_at_gate(struct eager *e, int64_t step)
{
    while (!atomic_load(&e->end) && atomic_load(&e->gate) && step > atomic_load(&e->gate)) {
        UNLOCKED(e, sched_yield());
    }
}

static void *run_training(void *arg)
{
    struct eager *e = arg;
    const gradb_source source = {.ctx = e,
                                 .locate = locate_value,
                                 .release = release_value,
                                 .stats = e->stats ? compute_stats : NULL,
                                 .keep = e->keeps ? keep_values : NULL,
                                 .command = run_command};
    gradb_options options = {.framework = "eager", .address = e->address, .source = &source};
    pthread_mutex_lock(&e->big_lock);
    e->self = pthread_self();
    e->here = true;
    e->agent = gradb_open(&options);
    if (e->looks) {
        gradb_on_look(e->agent, hear_look, e);
    }
    if (e->parameter_first) {
        add_parameter(e);
        gradb_publish(e->agent);
    }
    if (!e->no_wait) {
        bool waited;
        UNLOCKED(e, waited = gradb_wait(e->agent, 60));
        atomic_store(&e->waited, 1 + waited);
    }
    leave_child(e);
    if (!e->parameter_first) {
        add_parameter(e);
    }
    for (int64_t step = 1; !atomic_load(&e->end) && (e->steps == 0 || step <= e->steps); step++) {
        wait_at_gate(e, step);
        run_step(e, step);
        leave_child(e);
        atomic_store(&e->step, step);
        pthread_mutex_unlock(&e->big_lock);
        sched_yield();
        pthread_mutex_lock(&e->big_lock);
    }
    UNLOCKED(e, gradb_close(e->agent, NULL));
    atomic_store(&e->done, 1);
    pthread_mutex_unlock(&e->big_lock);
    return NULL;
}

void eager_start(struct eager *e, const struct world *w)
{
    snprintf(e->address, sizeof(e->address), "%s", w->address);
    e->nan_op = e->nan_step ? e->nan_op : -1;
    for (int i = 0; i < EAGER_COUNT; i++) {
        e->weight[i] = eager_weight(0, i);
    }
    assert_int_equal(pthread_mutex_init(&e->big_lock, NULL), 0);
    assert_int_equal(sem_init(&e->let_go, 0, 0), 0);
    assert_int_equal(pthread_create(&e->thread, NULL, run_training, e), 0);
}

void eager_join(struct eager *e)
{
    atomic_store(&e->end, 1);
    pthread_join(e->thread, NULL);
    pthread_mutex_destroy(&e->big_lock);
    sem_destroy(&e->let_go);
}

void eager_begin(struct eager *eager, struct world *world)
{
    eager_start(eager, world);
    world_until_stops(world, 1);
}

void eager_end(struct eager *eager, struct world *world)
{
    const struct gd_session *session = world_session(world);

    atomic_store(&eager->end, 1);
    while (!world_has_ended(world)) {
        if (session->state == GD_STOPPED) {
            world_resume(world, GD_RUN_CONTINUE, 0, NULL);
        }
        ev_run(world->loop, EVRUN_ONCE);
        gd_debugger_reap(world->debugger);
    }
    eager_join(eager);
    assert_int_equal(atomic_load(&eager->wrong_thread), 0);
}
