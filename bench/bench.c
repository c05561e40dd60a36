// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

uint64_t bench_memory(const char *figure)
{
    return bench_memory_of(getpid(), figure);
}

uint64_t bench_memory_of(pid_t pid, const char *figure)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    size_t len = strlen(figure);
    char line[256];
    uint64_t kib = 0;

    if (!file) {
        bench_fail("cannot read %s", path);
    }
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, figure, len) == 0 && line[len] == ':') {
            kib = strtoull(line + len + 1, NULL, 10);
        }
    }
    fclose(file);
    return kib * 1024;
}

void bench_reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "5", 1) != 1) {
        bench_note("cannot reset the memory peak on this system");
    }
    if (fd >= 0) {
        close(fd);
    }
}

void bench_report(const char *name, double ratio, double target, bool at_least)
{
    bool pass = at_least ? ratio >= target : ratio <= target;

    printf("%s %.3f target %.2f %s\n", name, ratio, target, pass ? "pass" : "short");
    fflush(stdout);
}

void bench_note(const char *format, ...)
{
    va_list args;

    fputs("# ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void bench_fail(const char *format, ...)
{
    int saved = errno;
    va_list args;

    fputs("bench: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, saved ? ": %s\n" : "\n", strerror(saved));
    exit(1);
}

unsigned bench_setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    unsigned long value = text ? strtoul(text, NULL, 10) : 0;

    return value > 0 && value < 1000000 ? (unsigned)value : otherwise;
}
