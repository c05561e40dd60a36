// SPDX-License-Identifier: MIT
/*
 * Opening and closing: options and environment, the thread, and waiting for a debugger.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_event.h"
#include "agent/agent_fork.h"
#include "agent/agent_graph.h"
#include "agent/agent_io.h"
#include "agent/agent_source.h"
#include "agent/agent_stop.h"
#include "agent/agent_turn.h"
#include "agent/agent_words.h"
#include "agent/line/agent_line.h"
#include "base/owner.h"

#define MAX_GRAPH_MEMORY ((size_t)16 << 30)
#define MAX_THREADS      4 /* default maximum; GRADB_THREADS overrides it */
#define CLOSE_SECONDS    3

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

static int stats_threads(void)
{
    const char *text = getenv("GRADB_THREADS");
    long wanted = text ? strtol(text, NULL, 10) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    online = online < 1 ? 1 : online < MAX_THREADS ? online : MAX_THREADS;
    return wanted > 0 && wanted <= 256 ? (int)wanted : (int)online;
}

/* A name that all ranks of a job share. torchrun calls an unnamed job "none"; `gradb run` names the
 * jobs that it starts, for ranks of which nothing else is known. */
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

/* The launcher's environment counts if the program does not say. */
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

/* The default address of `gradb listen`. */
static char *usual_address(void)
{
    char directory[GD_SOCKET_PATH], address[GD_SOCKET_PATH + 32] = GD_UNIX_PREFIX;
    if (gd_own_directory(directory, sizeof(directory), NULL) == GD_OK) {
        snprintf(address, sizeof(address), GD_UNIX_PREFIX "%s/" GD_MEETING_POINT, directory);
    }
    return strdup(address);
}

static bool copy_options(struct agent *a, const gradb_options *o)
{
    const char *address = o->address ? o->address : getenv("GRADB_ADDRESS");
    const char *token = o->token ? o->token : getenv("GRADB_TOKEN");
    const char *run = getenv("GRADB_RUN");
    a->address_given = address && address[0];
    a->started_by_gradb = a->address_given && run && strcmp(run, address) == 0;
    a->framework = copy_or(o->framework, "c");
    a->framework_version = copy_or(o->framework_version, "");
    a->device = copy_or(o->device, "cpu");
    a->program = o->program ? strdup(o->program) : program_name();
    a->graph_name = copy_or(o->graph, "main");
    a->address = a->address_given ? strdup(address) : usual_address();
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

static void free_agent(struct agent *a)
{
    agent_fork_unregister(a);
    if (a->io) {
        agent_io_destroy(a);
    }
    a->passing = false;
    agent_control_clear(a);
    agent_ask_free(a);
    agent_graph_free(a);
    agent_words_drop(a);
    agent_event_free(a);
    agent_line_free(a);
    char *strings[] = {a->framework,  a->framework_version, a->device, a->program,
                       a->graph_name, a->address,           a->token,  a->job};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        free(strings[i]);
    }
    free(a->log);
    free(a->scalars);
    free(a->times);
    free(a->kept.nodes);
    free(a->kept.asked);
    free(a->ask);
    free(a->group);
    free(a->later);
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

static void *run_io_thread(void *agent)
{
    if (agent_io_main(agent)) {
        free_agent(agent);
    }
    return NULL;
}

/* The program's signals are its own: our thread must never run one of its handlers. */
static bool start_thread(struct agent *a)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = pthread_create(&a->thread, NULL, run_io_thread, a) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
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
    a->log = calloc(AGENT_MAX_LOG, sizeof(*a->log));
    a->scalars = calloc(AGENT_MAX_SCALARS, sizeof(*a->scalars));
    a->times = calloc(AGENT_MAX_TIMES, sizeof(*a->times));
    POKE(a->pid, getpid());
    POKE(a->socket, -1);
    POKE(a->due, UINT64_MAX);
    POKE(a->event_step, INT64_MAX);
    POKE(a->as_of, -1);
    if (!start_locks(a) || !a->log || !a->scalars || !a->times ||
        !copy_options(a, options ? options : &none) || agent_io_create(a) != GD_OK ||
        !start_thread(a)) {
        free_agent(a);
        return NULL;
    }
    agent_fork_register(a);
    return &a->pub;
}

void gradb_close(gradb *g, const char *why)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return; /* a forked child leaks it: the parent's thread may have been modifying it */
    }
    if (!agent_turn_take(a)) {
        return; /* called from inside the source, whose caller still needs the handle */
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
    /* A name server that does not answer can block the thread, which then frees the agent
     * itself. */
    bool done = a->thread_done;
    a->orphan = !done;
    pthread_t thread = a->thread;
    pthread_mutex_unlock(&a->lock);
    if (done) {
        pthread_join(thread, NULL);
        free_agent(a);
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
    return a->link == LINK_DOWN && a->attempts > 0 && (!a->address_given || a->refused_told);
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
        agent_stop_thread(a, GRADB__V1__STOP_REASON__STOP_CONNECTED, 0, true, "", 0);
    }
    bool up = a->link == LINK_UP;
    agent_turn_end(a);
    return up;
}
