// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench_charlm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_STEPS 2000
#define MAX_ARGS  40

/* Starts argv with its stdout on *out; passes `address` in the environment of a training
 * process. */
static pid_t start_program(const char *const argv[], const char *address, FILE **out)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        bench_fail("cannot start %s", argv[0]);
    }
    if (pid == 0) {
        if (address) {
            setenv("GRADB_ADDRESS", address, 1);
            setenv("GRADB_RUN", address, 1); /* else the agent prints a notice on stderr */
        } else {
            unsetenv("GRADB_ADDRESS");
        }
        dup2(ends[1], STDOUT_FILENO);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[1]);
    *out = fdopen(ends[0], "r");
    if (!*out) {
        bench_fail("cannot read from %s", argv[0]);
    }
    return pid;
}

static double run_training(const struct bench_charlm *run, const char *address)
{
    char steps[16];
    const char *argv[MAX_ARGS] = {run->charlm, "--steps",     steps, "--threads",
                                  "1",         "--log-every", "1"};
    double took[MAX_STEPS], before = 0.0;
    size_t lines = 0, count = 0, args = 7;
    char line[256];
    FILE *out;
    int status;

    snprintf(steps, sizeof(steps), "%u", run->steps);
    for (size_t i = 0; run->size[i]; i++) {
        argv[args++] = run->size[i];
    }
    pid_t pid = start_program(argv, address, &out);
    while (fgets(line, sizeof(line), out)) {
        if (strncmp(line, "step ", 5) == 0) {
            double now = bench_now();
            if (++lines > run->warm_up && count < MAX_STEPS) {
                took[count++] = now - before;
            }
            before = now;
        }
    }
    fclose(out);
    waitpid(pid, &status, 0);
    if (lines < run->steps || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_fail("the training process did not finish");
    }
    return bench_median(took, count);
}

double bench_charlm_alone(const struct bench_charlm *run)
{
    return run_training(run, NULL);
}

static void parse_watch_cost(const char *line, const char *name, uint64_t *ret)
{
    const char *at = strstr(line, name);
    if (at) {
        *ret = strtoull(at + strlen(name), NULL, 10);
    }
}

/* Finds a free port. With --json gradb does not print its address before a process has
 * connected. */
static void free_address(char *ret, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
        bench_fail("no free port");
    }
    close(fd);
    snprintf(ret, size, "127.0.0.1:%d", ntohs(at.sin_port));
}

struct reader {
    FILE *from;
    struct bench_charlm_watch *watch;
};

/* Drains gradb's output, so that gradb never blocks. */
static void *read_all(void *arg)
{
    struct reader *reader = arg;
    char *line = NULL;
    size_t capacity = 0;

    while (getline(&line, &capacity, reader->from) > 0) {
        parse_watch_cost(line, "\"tensors\":", &reader->watch->tensors);
        parse_watch_cost(line, "\"compute_ns\":", &reader->watch->compute_ns);
        parse_watch_cost(line, "\"report_bytes\":", &reader->watch->report_bytes);
    }
    free(line);
    return NULL;
}

double bench_charlm_attached(const struct bench_charlm *run, const char *const commands[],
                             struct bench_charlm_watch *watch)
{
    char address[32];
    const char *argv[MAX_ARGS] = {run->gradb, "--batch", "--json", "-nx", "--listen", address};
    struct reader reader = {.watch = watch};
    pthread_t thread;
    size_t args = 6;

    *watch = (struct bench_charlm_watch){0};
    for (size_t i = 0; commands[i]; i++) {
        argv[args++] = "-ex";
        argv[args++] = commands[i];
    }
    argv[args++] = "listen";
    free_address(address, sizeof(address));
    pid_t pid = start_program(argv, NULL, &reader.from);
    if (pthread_create(&thread, NULL, read_all, &reader) != 0) {
        bench_fail("cannot start a thread");
    }
    double seconds = run_training(run, address);
    waitpid(pid, NULL, 0);
    pthread_join(thread, NULL);
    fclose(reader.from);
    return seconds;
}
