// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a debugger costs that is attached and lets the training run freely: the bundled trainer's
 * time for the same steps with gradb attached, over its time with nobody listening. The two take
 * turns; each time is taken between two lines that the trainer prints, so that start-up does not
 * count, and the median of the pairs' ratios does.
 *
 * BENCH_REPEAT (default 15) pairs of BENCH_STEPS (default 60) steps; arguments: GRADB CHARLM.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAX_PAIRS 99
#define MAX_STEPS 2000
#define WARM_UP   10 /* steps before the clock starts */

static const char *gradb_path;
static const char *charlm_path;

/* Starts argv with its stdout on *out; `address` goes to the environment of a trainer. */
static pid_t start(const char *const argv[], const char *address, FILE **out)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        bench_fail("cannot start %s", argv[0]);
    }
    if (pid == 0) {
        if (address) {
            setenv("GRADB_ADDRESS", address, 1);
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

/* Seconds of the median step of one training run, after the warm-up. */
static double train(const char *steps, const char *address)
{
    const char *argv[] = {charlm_path, "--steps",     steps, "--threads",
                          "1",         "--log-every", "1",   NULL};
    double took[MAX_STEPS], before = 0.0;
    size_t lines = 0, count = 0;
    char line[256];
    FILE *out;
    int status;
    pid_t pid = start(argv, address, &out);

    while (fgets(line, sizeof(line), out)) {
        if (strncmp(line, "step ", 5) == 0) {
            double now = bench_now();
            if (++lines > WARM_UP && count < MAX_STEPS) {
                took[count++] = now - before;
            }
            before = now;
        }
    }
    fclose(out);
    waitpid(pid, &status, 0);
    if (count == 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_fail("the trainer did not finish");
    }
    return bench_median(took, count);
}

/* gradb in batch mode: waits for the trainer, lets it run, ends with it. */
static double train_attached(const char *steps)
{
    const char *argv[] = {gradb_path, "--batch",  "-nx",    "--listen", "127.0.0.1:0",
                          "-ex",      "continue", "listen", NULL};
    char line[256], address[128] = "";
    double seconds;
    FILE *out;
    pid_t pid = start(argv, NULL, &out);

    while (!address[0] && fgets(line, sizeof(line), out)) {
        const char *at = strstr(line, "127.0.0.1:");
        if (at) {
            snprintf(address, sizeof(address), "127.0.0.1:%d", (int)strtol(at + 10, NULL, 10));
        }
    }
    if (!address[0]) {
        bench_fail("gradb did not say where it listens");
    }
    seconds = train(steps, address);
    while (fgets(line, sizeof(line), out)) {
    }
    fclose(out);
    waitpid(pid, NULL, 0);
    return seconds;
}

int main(int argc, char **argv)
{
    unsigned pairs = bench_setting("BENCH_REPEAT", 15);
    char steps[16];
    double ratio[MAX_PAIRS];

    if (argc != 3) {
        fprintf(stderr, "usage: bench_idle GRADB CHARLM\n");
        return 2;
    }
    gradb_path = argv[1];
    charlm_path = argv[2];
    if (pairs == 0 || pairs > MAX_PAIRS) {
        pairs = MAX_PAIRS;
    }
    snprintf(steps, sizeof(steps), "%u", bench_setting("BENCH_STEPS", 100));
    train(steps, NULL); /* files and caches are warm for both */
    for (unsigned i = 0; i < pairs; i++) {
        /* Whoever goes first in a pair changes, so that a drift of the machine cancels. */
        double attached = i % 2 ? train_attached(steps) : 0.0;
        double alone = train(steps, NULL);
        if (!(i % 2)) {
            attached = train_attached(steps);
        }
        ratio[i] = attached / alone;
    }
    bench_report("idle.attached", bench_median(ratio, pairs), 1.01, false);
    bench_note("idle.attached: %u pairs of %s steps, lowest %.4f, highest %.4f", pairs, steps,
               ratio[0], ratio[pairs - 1]);
    return 0;
}
