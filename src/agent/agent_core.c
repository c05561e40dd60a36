// SPDX-License-Identifier: MIT
/* What every part of libgradb uses: clocks, errors, waking the I/O thread, lines for stderr. */
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_core.h"
#include "agent/agent_fork.h"
#include "agent/agent_io.h"

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
    /* A full pipe wakes the thread as well. */
    if (a->wake[1] < 0) {
        return; /* a forked child */
    }
    ssize_t ignored = write(a->wake[1], "", 1);
    (void)ignored;
}

uint64_t agent_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

double agent_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct agent_node *agent_node_at(const struct agent *a, uint32_t id)
{
    return id != 0 && id < a->node_count ? &a->nodes[id] : NULL;
}

void agent_say(const char *format, ...)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    len = len < (int)sizeof(line) ? len : (int)sizeof(line) - 1;
    if (len > 0 && poll(&out, 1, 0) == 1 && (out.revents & POLLOUT)) {
        ssize_t ignored = write(STDERR_FILENO, line, (size_t)len);
        (void)ignored;
    }
}

void agent_refused(struct agent *a, const char *why)
{
    pthread_mutex_lock(&a->lock);
    bool tell = a->address_given && !a->refused_told;
    a->refused_told = a->refused_told || tell;
    pthread_mutex_unlock(&a->lock);
    if (tell) {
        agent_say("gradb: not connected to %.200s: %s\n", a->address, why);
    }
}
