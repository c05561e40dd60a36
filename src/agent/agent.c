// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_source.h"
#include "base/workers.h"

#define DEFAULT_ADDRESS  "127.0.0.1:50051"
#define MAX_GRAPH_MEMORY ((size_t)16 << 30)
#define CLOSE_SECONDS    3
#define WORTH_SHARING    UINT64_C(300000) /* nanoseconds */

bool agent_usable(const struct agent *a)
{
    return a && agent_fork_is_ours(a);
}

void agent_set_error(struct agent *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(a->error, sizeof(a->error), format, args);
    va_end(args);
}

void agent_wake(const struct agent *a)
{
    /* A full pipe wakes as well as one byte more. */
    if (a->wake[1] < 0) {
        return; /* a forked child */
    }
    ssize_t ignored = write(a->wake[1], "", 1);
    (void)ignored;
}

/* After the change: who has seen the number must see what it is about. */
static void wants_changed(struct agent *a)
{
    __atomic_fetch_add(&a->pub.changes, 1, __ATOMIC_RELEASE);
}

void agent_arm(struct agent *a)
{
    bool up = a->link == LINK_UP;
    bool any = up && (a->interrupt || a->run.kind == RUN_NEXT || a->run.kind == RUN_TO ||
                      a->run.kind == RUN_FINISH);
    bool nodes = any || (up && (a->break_count || a->expected_count || a->expected_not_finite ||
                                a->exact_items || a->seen_items || a->capturing.active));
    bool steps =
        nodes || a->hold_pending || a->keep_new || a->capturing.held ||
        (up && (a->run.kind == RUN_STEP || a->stop_pending || a->end_items || a->keep_count ||
                a->asked_keep_count || a->interrupt_at || a->capturing.last > 0));
    bool changed = any != a->hears_all || nodes != a->sees_nodes;
    a->hears_all = any;
    if (nodes != a->sees_nodes) {
        /* A thread that runs notices a little later: maybe at the end of this step. */
        a->sees_nodes = nodes;
        a->seen_from = PEEK(a->step) + (a->stopped ? 1 : 2);
    }
    POKE(a->quick, !any && !a->calling);
    POKE(a->attention, steps);
    bool wakes = nodes && !GRADB_IS_ARMED(&a->pub);
    __atomic_store_n(&a->pub.armed, nodes, __ATOMIC_RELAXED);
    if (wakes && a->on_armed) {
        a->on_armed(a->on_armed_ctx);
    }
    if (changed) {
        wants_changed(a);
    }
}

/* Whether it was added since gradb_sync, and the debugger waits for such a one. */
static bool is_awaited(const struct agent *a, uint32_t id)
{
    return a->expected_new && id >= a->synced_nodes && agent_is_expected(a, a->nodes[id].name);
}

static void mark(struct agent *a, uint32_t id)
{
    const struct agent_node *node = &a->nodes[id];
    bool value = node->flags & (NODE_CAPTURE_WATCH | NODE_WATCH_EXACT) || agent_captures(a, node);
    unsigned marks = value || node->flags & NODE_BREAK ? MARK_SLOW | MARK_RUN : 0;
    marks |= node->flags & NODE_WATCH_SEEN || is_awaited(a, id) ? MARK_RUN : 0;
    marks |= value ? MARK_VALUE : 0;
    marks |= a->expected_not_finite && id >= a->synced_nodes ? MARK_NOT_FINITE : 0;
    POKE(a->passes[id].marked, (unsigned char)marks);
}

void agent_mark_node(struct agent *a, uint32_t id)
{
    mark(a, id);
    wants_changed(a);
}

void agent_mark_nodes(struct agent *a, uint32_t first)
{
    for (uint32_t id = first; id < a->node_count; id++) {
        mark(a, id);
    }
    wants_changed(a);
}

void agent_disarm(struct agent *a)
{
    a->run = (struct agent_run){0};
    a->interrupt = false;
    a->interrupt_at = 0;
    a->stop_pending = false;
    agent_control_clear(a);
    a->verdict_first = a->verdict_for = a->verdict_stop = 0;
    agent_arm(a);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static char *copy_or(const char *text, const char *fallback)
{
    return strdup(text && text[0] ? text : fallback);
}

static char *program_name(void)
{
    char name[256] = "";
    FILE *f = fopen("/proc/self/cmdline", "re");
    if (f) {
        size_t len = fread(name, 1, sizeof(name) - 1, f);
        fclose(f);
        while (len > 0 && name[len - 1] == '\0') {
            len--;
        }
        for (size_t i = 0; i < len; i++) {
            if (name[i] == '\0') {
                name[i] = ' ';
            }
        }
        name[len] = '\0';
    }
    return copy_or(name, "unknown");
}

static int rank_of(const char *variable)
{
    const char *text = getenv(variable);
    long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 1 << 20 ? (int)value : 0;
}

#define MAX_THREADS 4 /* unless GRADB_THREADS says otherwise */

static int stats_threads(void)
{
    const char *text = getenv("GRADB_THREADS");
    long wanted = text ? strtol(text, NULL, 10) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    online = online < 1 ? 1 : online < MAX_THREADS ? online : MAX_THREADS;
    return wanted > 0 && wanted <= 256 ? (int)wanted : (int)online;
}

/* What all ranks of one job have in common. torchrun calls a job that nobody named "none"; `gradb
 * run` names what it starts, for ranks that nothing else is known of. */
static char *job_name(bool several)
{
    const char *run = getenv("TORCHELASTIC_RUN_ID"), *slurm = getenv("SLURM_JOB_ID");
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    const char *started = getenv("GRADB_JOB");
    char name[256] = "";
    if (run && run[0] && strcmp(run, "none") != 0) {
        return strdup(run);
    }
    if (slurm && slurm[0]) {
        return strdup(slurm);
    }
    if (host && host[0] && port && port[0]) {
        snprintf(name, sizeof(name), "%s:%s", host, port);
    } else if (several && started) {
        snprintf(name, sizeof(name), "%s", started);
    }
    return strdup(name);
}

static bool copy_source(struct agent *a, const gradb_source *source)
{
    if (!source) {
        return true;
    }
    a->source = *source;
    a->ask = calloc(1, sizeof(*a->ask));
    return a->ask != NULL;
}

/* A launcher's environment counts where the program does not know. */
static void take_rank(struct agent *a, const gradb_options *o)
{
    int size = rank_of("WORLD_SIZE"), rank = rank_of("RANK");
    if (o->world_size > 0 || rank >= size) {
        a->rank = o->rank > 0 ? o->rank : 0;
        a->world_size = o->world_size > 0 ? o->world_size : 1;
    } else {
        a->rank = rank;
        a->world_size = size;
    }
}

static bool copy_options(struct agent *a, const gradb_options *o)
{
    const char *address = o->address ? o->address : getenv("GRADB_ADDRESS");
    const char *token = o->token ? o->token : getenv("GRADB_TOKEN");
    a->address_given = address && address[0];
    a->framework = copy_or(o->framework, "c");
    a->framework_version = copy_or(o->framework_version, "");
    a->device = copy_or(o->device, "cpu");
    a->program = o->program ? strdup(o->program) : program_name();
    a->graph_name = copy_or(o->graph, "main");
    a->address = copy_or(address, DEFAULT_ADDRESS);
    a->token = copy_or(token, "");
    take_rank(a, o);
    a->job = job_name(a->world_size > 1);
    a->local_rank = rank_of("LOCAL_RANK");
    a->threads = stats_threads();
    return a->framework && a->framework_version && a->device && a->program && a->graph_name &&
           a->address && a->token && a->job && copy_source(a, o->source);
}

static bool start_locks(struct agent *a)
{
    pthread_condattr_t attr;
    if (pipe2(a->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
        a->wake[0] = a->wake[1] = -1;
        return false;
    }
    if (pthread_condattr_init(&attr) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    a->has_lock = pthread_mutex_init(&a->lock, NULL) == 0;
    bool ok = a->has_lock && pthread_cond_init(&a->go, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

/* The trainer's signals are the trainer's: our thread must never be the one that runs a handler. */
static bool start_thread(struct agent *a)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&a->thread, NULL, agent_io_main, a) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

void agent_free(struct agent *a)
{
    agent_fork_unregister(a);
    if (a->io) {
        agent_io_destroy(a);
    }
    a->passing = false;
    agent_control_clear(a);
    agent_ask_free(a);
    agent_graph_free(a);
    for (size_t i = 0; i < a->log_count; i++) {
        free(a->log[i]);
    }
    while (a->reports) {
        struct agent_packet *next = a->reports->next;
        free(a->reports);
        a->reports = next;
    }
    char *strings[] = {a->framework,  a->framework_version, a->device, a->program,
                       a->graph_name, a->address,           a->token,  a->job};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        free(strings[i]);
    }
    free(a->log);
    free(a->scalars);
    free(a->times);
    free(a->keep);
    free(a->asked_keep);
    free(a->ask);
    free(a->group);
    if (a->wake[0] >= 0) {
        close(a->wake[0]);
        close(a->wake[1]);
    }
    if (a->has_lock) {
        pthread_mutex_destroy(&a->lock);
        pthread_cond_destroy(&a->go);
    }
    free(a);
}

gradb *gradb_open(const gradb_options *options)
{
    static const gradb_options none;
    const char *disable = getenv("GRADB_DISABLE");
    if (disable && disable[0] && strcmp(disable, "0") != 0) {
        return NULL;
    }
    struct agent *a = calloc(1, sizeof(*a));
    if (!a) {
        return NULL;
    }
    gd_arena_init(&a->arena, MAX_GRAPH_MEMORY);
    a->reports_end = &a->reports;
    a->later_end = &a->later;
    a->log = calloc(AGENT_MAX_LOG, sizeof(*a->log));
    a->scalars = calloc(AGENT_MAX_SCALARS, sizeof(*a->scalars));
    a->times = calloc(AGENT_MAX_TIMES, sizeof(*a->times));
    POKE(a->pid, getpid());
    POKE(a->socket, -1);
    if (!start_locks(a) || !a->log || !a->scalars || !a->times ||
        !copy_options(a, options ? options : &none) || agent_io_create(a) < 0 || !start_thread(a)) {
        agent_free(a);
        return NULL;
    }
    agent_fork_register(a);
    return &a->pub;
}

void gradb_close(gradb *g, const char *why)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return; /* a forked child leaks it: the parent's thread may have been changing it */
    }
    if (!agent_turn_take(a)) {
        return; /* from inside the source: what called it needs the handle still */
    }
    a->published = a->node_count;
    a->late_published = a->late_count;
    snprintf(a->close_text, sizeof(a->close_text), "%s", why ? why : "");
    a->closing = true;
    agent_wake(a);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CLOSE_SECONDS;
    while (!a->thread_done && pthread_cond_timedwait(&a->go, &a->lock, &until) == 0) {
    }
    /* A name server that does not answer can hold the thread: it frees the agent when it is back.
     */
    bool done = a->thread_done;
    a->orphan = !done;
    pthread_t thread = a->thread;
    pthread_mutex_unlock(&a->lock);
    if (done) {
        pthread_join(thread, NULL);
        agent_free(a);
    } else {
        pthread_detach(thread);
    }
}

bool gradb_is_connected(const gradb *g)
{
    const struct agent *a = (const struct agent *)(const void *)g;
    return agent_usable(a) && PEEK(a->connected);
}

const char *gradb_error(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return "";
    }
    pthread_mutex_lock(&a->lock);
    memcpy(a->error_out, a->error, sizeof(a->error_out));
    pthread_mutex_unlock(&a->lock);
    return a->error_out;
}

static bool given_up(const struct agent *a)
{
    return a->link == LINK_DOWN && a->attempts > 0 && !a->address_given;
}

bool gradb_wait(gradb *g, double seconds)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return false;
    }
    seconds = seconds > 0 ? seconds : 0;
    seconds = seconds < 1e8 ? seconds : 1e8;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    if (!agent_turn_take(a)) {
        return false;
    }
    while (a->link != LINK_UP && !given_up(a) &&
           pthread_cond_timedwait(&a->go, &a->lock, &until) == 0) {
    }
    if (a->link == LINK_UP && a->stop_pending) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    }
    bool up = a->link == LINK_UP;
    agent_turn_end(a);
    return up;
}

/* ---- standing and going on ------------------------------------------------------------------ */

void agent_stand(struct agent *a, Gradb__V1__StopReason reason, gradb_node node, bool at_step_end,
                 const char *text, uint64_t report)
{
    a->stop = (struct agent_stop){.reason = reason, .node = node, .at_step_end = at_step_end};
    a->stop.step = PEEK(a->step);
    a->stop.phase = at_step_end ? 0 : PEEK(a->phase);
    a->stop.report = report;
    snprintf(a->stop.text, sizeof(a->stop.text), "%s", text ? text : "");
    a->run = (struct agent_run){0};
    a->interrupt = a->stop_pending = a->hold_pending = false;
    if (at_step_end && a->stop.step >= a->interrupt_at) {
        a->interrupt_at = 0;
    }
    a->published = a->node_count;
    a->late_published = a->late_count;
    a->stop_sent = false;
    a->stopped = true;
    agent_arm(a);
    agent_wake(a);
    while (a->stopped) {
        if (!agent_serve(a)) {
            pthread_cond_wait(&a->go, &a->lock);
        }
    }
    agent_source_release(a);
    agent_source_keep(a);
}

/* What stops the run at a step boundary, in order of importance. */
static void stand_between_steps(struct agent *a)
{
    if (a->hold_pending) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    } else if (a->link != LINK_UP) {
        return;
    } else if (a->interrupt || (a->interrupt_at && PEEK(a->step) >= a->interrupt_at)) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT, 0, true, "", 0);
    } else if (a->stop_pending) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    }
}

static void step_begin_slow(struct agent *a, int64_t step)
{
    if (!agent_turn_take(a)) {
        return;
    }
    stand_between_steps(a);
    agent_source_keep(a);
    agent_capture_step(a, step);
    agent_turn_end(a);
}

void gradb_on_armed(gradb *g, void (*call)(void *ctx), void *ctx)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->on_armed = call;
    a->on_armed_ctx = ctx;
    pthread_mutex_unlock(&a->lock);
}

void gradb_step_begin(gradb *g, int64_t step)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    if (PEEK(a->attention) && agent_usable(a)) {
        step_begin_slow(a, step);
    }
    POKE(a->step, step);
    POKE(a->begun, PEEK(a->begun) + 1);
    POKE(a->in_step, 1);
    POKE(a->phase, 0U);
    POKE(a->last_node, 0);
}

struct keeping {
    struct agent *a;
    atomic_uint failed; /* a node whose copy there is no memory for; 0 none */
};

static void keep_part(void *ctx, size_t i)
{
    struct keeping *k = ctx;
    gradb_node id = k->a->keep[i];
    uint64_t start = agent_now_ns();
    if (!agent_keep_node(k->a, id)) {
        POKE(k->failed, id);
    }
    agent_watch_kept(k->a, id, agent_now_ns() - start);
}

/* The work is shared when it took long in the step before. */
static void keep_previous(struct agent *a)
{
    struct keeping k = {.a = a};
    if (a->keep_stale) {
        agent_keep_collect(a);
    }
    if (a->link != LINK_UP || a->keep_count == 0) {
        return;
    }
    uint64_t start = agent_now_ns();
    gd_workers_run(a->keep_ns >= WORTH_SHARING ? a->threads : 1, a->keep_count, keep_part, &k);
    a->keep_ns = agent_now_ns() - start;
    if (PEEK(k.failed)) {
        agent_set_error(a, "out of memory for a copy of %.100s", a->nodes[PEEK(k.failed)].name);
    }
}

static void step_end_slow(struct agent *a)
{
    if (!agent_turn_take(a)) {
        return;
    }
    if (a->end_items && agent_watch_step_end(a)) {
        /* That was the stop of this place. */
    } else if (a->link == LINK_UP && a->run.kind == RUN_STEP && --a->run.left <= 0) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_STEP, 0, true, "", 0);
    } else if (a->link == LINK_UP && a->run.kind == RUN_FINISH && a->run.phase != 0) {
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_PHASE, 0, true, "", 0);
    } else {
        stand_between_steps(a);
    }
    agent_source_keep(a);
    keep_previous(a);
    agent_turn_end(a);
}

void gradb_step_end(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    POKE(a->in_step, 0);
    POKE(a->phase, 0U);
    if (PEEK(a->attention) && agent_usable(a)) {
        step_end_slow(a);
    }
}

/* A phase begins. FINISH from between two steps takes the first phase that comes. */
static void phase_begins(struct agent *a, uint32_t phase)
{
    uint32_t old = PEEK(a->phase);
    if (a->link == LINK_UP && a->run.kind == RUN_FINISH && phase != old) {
        if (a->run.phase == 0) {
            a->run.phase = phase;
        } else if (phase != a->run.phase) {
            agent_stand(a, GRADB__V1__STOP_REASON__STOP_PHASE, PEEK(a->last_node), false, "", 0);
            a->run.phase = phase; /* what another FINISH would be of */
        }
    }
    POKE(a->phase, phase);
}

void gradb_enter(gradb *g, gradb_phase phase)
{
    struct agent *a = agent_of(g);
    if (!a) {
        return;
    }
    if (PEEK(a->attention) && agent_usable(a)) {
        if (!agent_turn_take(a)) {
            return;
        }
        phase_begins(a, (uint32_t)phase);
        agent_turn_end(a);
    }
    POKE(a->phase, (uint32_t)phase);
}

/* `next` goes from one computation to the next, and an interrupt to one: data that came in is none.
 */
static bool is_computed(const struct agent_node *node)
{
    return node->phase != 0 || (node->kind != GRADB_PARAMETER && node->kind != GRADB_CONSTANT);
}

/* Why the run stops at a node that has just run; STOP_UNKNOWN: it does not. */
static Gradb__V1__StopReason node_reason(struct agent *a, gradb_node id)
{
    if (a->link != LINK_UP) {
        return GRADB__V1__STOP_REASON__STOP_UNKNOWN;
    }
    if (a->nodes[id].flags & NODE_BREAK) {
        return GRADB__V1__STOP_REASON__STOP_BREAKPOINT;
    }
    if (a->interrupt && is_computed(&a->nodes[id])) {
        return GRADB__V1__STOP_REASON__STOP_INTERRUPT;
    }
    if ((a->run.kind == RUN_NEXT && is_computed(&a->nodes[id]) && --a->run.left <= 0) ||
        (a->run.kind == RUN_TO && a->run.node == id)) {
        return GRADB__V1__STOP_REASON__STOP_NODE;
    }
    return GRADB__V1__STOP_REASON__STOP_UNKNOWN;
}

static void node_did(struct agent *a, gradb_node id, struct agent_told told)
{
    struct agent_node *node = agent_node_at(a, id);
    if (!node) {
        agent_set_error(a, "gradb_did: node %u was not added", id);
        return;
    }
    if (node->phase != 0 && node->phase != PEEK(a->phase) && PEEK(a->in_step)) {
        phase_begins(a, node->phase);
        node = &a->nodes[id];
    }
    POKE(a->passes[id].ran_step, PEEK(a->step));
    POKE(a->last_node, id);
    if (node->flags & NODE_WATCH_EXACT && agent_watch_node(a, id, told)) {
        return; /* that was the stop of this place */
    }
    Gradb__V1__StopReason reason = node_reason(a, id);
    if (reason != GRADB__V1__STOP_REASON__STOP_UNKNOWN) {
        agent_stand(a, reason, id, false, "", 0);
    }
}

/* The node is of no interest to anybody: it is only noted that it has run. Without the lock: the
 * node table changes only on this thread, and the rest is read when this thread stands. */
static bool pass_by(struct agent *a, gradb_node id)
{
    if (!PEEK(a->quick) || !PEEK(a->pid) || id == 0 || id >= a->node_count) {
        return false;
    }
    struct agent_pass *pass = &a->passes[id];
    if (PEEK(pass->marked) & MARK_SLOW) {
        return false;
    }
    if (pass->phase != 0 && PEEK(a->in_step)) {
        POKE(a->phase, (unsigned)pass->phase);
    }
    POKE(pass->ran_step, PEEK(a->step));
    POKE(a->last_node, id);
    return true;
}

void gradb_did_slow(gradb *g, gradb_node id)
{
    struct agent *a = agent_of(g);
    if (!a || pass_by(a, id) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    node_did(a, id, (struct agent_told){NULL, 0});
    if (a->source.locate) {
        agent_capture_node(a, id);
    }
    agent_turn_end(a);
}

void gradb_did_with_slow(gradb *g, gradb_node id, const gradb_tensor *outputs, size_t count)
{
    gradb_did_with_same_slow(g, id, outputs, count, NULL);
}

void gradb_did_with_same_slow(gradb *g, gradb_node id, const gradb_tensor *outputs, size_t count,
                              const gradb_same *same)
{
    struct agent *a = agent_of(g);
    if (!a || pass_by(a, id) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    static const gradb_tensor none = {.rank = 0};
    const struct agent_node *known = agent_node_at(a, id);
    unsigned slots = known ? known->slot_count : 0;
    count = known && count > slots ? slots : count;
    for (unsigned i = 0; i < slots; i++) {
        agent_bind(a, id, i, i < count ? &outputs[i] : &none);
    }
    node_did(a, id, (struct agent_told){same, same ? count : 0});
    agent_capture_node(a, id);
    for (unsigned i = 0; known && i < count; i++) {
        agent_bind(a, id, i, NULL);
    }
    agent_turn_end(a);
}

/* node 0: the one that ran last. */
static void stop_at(gradb *g, Gradb__V1__StopReason reason, gradb_node node, const char *why)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP) {
        bool inside = PEEK(a->in_step) != 0;
        node = node != 0 && node < a->node_count ? node : PEEK(a->last_node);
        agent_stand(a, reason, inside ? node : 0, !inside, why, 0);
    }
    agent_turn_end(a);
}

void gradb_stop(gradb *g, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_PROGRAM, 0, why);
}

void gradb_stop_at(gradb *g, gradb_node node, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_PROGRAM, node, why);
}

void gradb_raised(gradb *g, gradb_node node, const char *why)
{
    stop_at(g, GRADB__V1__STOP_REASON__STOP_EXCEPTION, node, why);
}

void gradb_heed(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a || !GRADB_IS_ARMED(g) || !agent_usable(a) || !agent_turn_take(a)) {
        return;
    }
    if (a->link == LINK_UP && a->interrupt) {
        bool inside = PEEK(a->in_step) != 0;
        agent_stand(a, GRADB__V1__STOP_REASON__STOP_INTERRUPT, inside ? PEEK(a->last_node) : 0,
                    !inside, "", 0);
    }
    agent_turn_end(a);
}

unsigned gradb_wants(const gradb *g, gradb_node id)
{
    const struct agent *a = (const struct agent *)(const void *)g;
    if (!a || !GRADB_IS_ARMED(g) || !PEEK(a->pid) || id == 0 || id >= a->node_count) {
        return 0;
    }
    unsigned marks = PEEK(a->passes[id].marked);
    return (!PEEK(a->quick) || marks & MARK_RUN ? GRADB_WANT_RUN : 0U) |
           (marks & MARK_VALUE ? GRADB_WANT_VALUE : 0U) |
           (marks & MARK_NOT_FINITE ? GRADB_WANT_IF_NOT_FINITE : 0U);
}

/* ---- the graph as it grows ------------------------------------------------------------------- */

/* Publishes, and waits for the debugger to have taken it in. */
static void sync_graph(struct agent *a)
{
    uint32_t nodes = a->published = a->node_count;
    size_t late = a->late_published = a->late_count;
    if (a->link != LINK_UP || (nodes == a->synced_nodes && late == a->synced_late)) {
        return;
    }
    agent_wake(a);
    if (!a->can_sync) {
        return;
    }
    uint64_t mine = ++a->sync_wanted;
    while (a->link == LINK_UP && a->sync_seen < mine && !a->closing) {
        pthread_cond_wait(&a->go, &a->lock);
    }
    if (a->sync_seen >= mine) {
        uint32_t first = a->synced_nodes; /* those before it were not new before */
        a->synced_nodes = nodes;
        a->synced_late = late;
        if (a->expected_new || a->capturing.active) {
            a->expected_new = false;
            agent_mark_nodes(a, first > 0 ? first : 1);
        }
    }
}

bool gradb_sync(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a) || !agent_turn_take(a)) {
        return false;
    }
    sync_graph(a);
    agent_source_keep(a);
    bool up = a->link == LINK_UP;
    agent_turn_end(a);
    return up;
}
