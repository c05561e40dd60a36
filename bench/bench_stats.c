// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Statistics of 256 MiB on one core, against a vector read of the same memory. The two alternate;
 * the median of the pairs counts. Also: two threads against one, a previous tensor against a read
 * of both, numpy computing the same statistics, and the error of sums over 1e8 elements.
 *
 * BENCH_REPEAT (default 11) pairs; argument: stats_numpy.py.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/base/random_bits.h"
#include "base/stats_impl.h"
#include "bench.h"

#define BYTES     ((size_t)256 << 20)
#define MANY      100000000
#define MAX_PAIRS 99

static volatile uint64_t sink; /* keeps the compiler from dropping the reads */

/* Roughly normal, like weights: mean 0, standard deviation 1. */
static float random_number(void)
{
    uint64_t bits = random_bits();
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += (double)(bits >> (16 * i) & 0xffff) / 65536 - 0.5;
    }
    return (float)(sum * sqrt(3));
}

static void fill_random(enum gd_dtype dtype, unsigned char *data, size_t count)
{
    size_t item = gd_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        float x = random_number();
        double wide = (double)x;
        uint16_t half = dtype == GD_FLOAT16 ? gd_float_to_half(x) : gd_float_to_bfloat16(x);

        if (dtype == GD_FLOAT32) {
            memcpy(data + i * item, &x, item);
        } else if (dtype == GD_FLOAT64) {
            memcpy(data + i * item, &wide, item);
        } else {
            memcpy(data + i * item, &half, item);
        }
    }
}

static struct gd_tensor *wrap_memory(enum gd_dtype dtype, const void *data, size_t count)
{
    const struct gd_shape shape = {.rank = 1, .dim = {(int64_t)count}};
    struct gd_tensor *tensor;

    if (gd_tensor_wrap(dtype, &shape, data, count * gd_dtype_size(dtype), NULL, NULL, &tensor,
                       NULL) != GD_OK) {
        bench_fail("out of memory");
    }
    return tensor;
}

static double time_stats(const struct gd_tensor *cur, const struct gd_tensor *prev, int threads)
{
    const struct gd_stats_options options = {.threads = threads, .rtol = 1e-5, .atol = 1e-8};
    double start = bench_now();
    struct gd_stats s;

    if (gd_stats_compute(cur, prev, &options, &s, NULL) != GD_OK) {
        bench_fail("the statistics failed");
    }
    sink += s.positive;
    return bench_now() - start;
}

static double time_read(const unsigned char *data, size_t bytes)
{
    double start = bench_now();

    sink += bench_read(data, bytes);
    return bench_now() - start;
}

static unsigned measure_pairs(void)
{
    unsigned n = bench_setting("BENCH_REPEAT", 11);

    return n > MAX_PAIRS ? MAX_PAIRS : n;
}

static void measure_read(const char *name, enum gd_dtype dtype, double target, unsigned char *data)
{
    struct gd_tensor *tensor = wrap_memory(dtype, data, BYTES / gd_dtype_size(dtype));
    double ratio[MAX_PAIRS], speed[MAX_PAIRS];
    unsigned n = measure_pairs();

    fill_random(dtype, data, BYTES / gd_dtype_size(dtype));
    for (unsigned i = 0; i < n; i++) {
        double read = time_read(data, BYTES), stats = time_stats(tensor, NULL, 1);

        ratio[i] = read / stats;
        speed[i] = (double)BYTES / stats / 1e9;
    }
    bench_report(name, bench_median(ratio, n), target, true);
    bench_note("%s: %.1f GB/s of statistics (%s); pairs from %.3f to %.3f", name,
               bench_median(speed, n), gd_stats_level()->name, ratio[0], ratio[n - 1]);
    gd_tensor_unref(tensor);
}

static void measure_previous(unsigned char *data)
{
    size_t count = BYTES / sizeof(float);
    struct gd_tensor *cur = wrap_memory(GD_FLOAT32, data, count);
    struct gd_tensor *prev = wrap_memory(GD_FLOAT32, data + BYTES, count);
    double ratio[MAX_PAIRS];
    unsigned n = measure_pairs();

    for (unsigned i = 0; i < n; i++) {
        ratio[i] = time_read(data, 2 * BYTES) / time_stats(cur, prev, 1);
    }
    bench_report("stats.prev", bench_median(ratio, n), 0.5, true);
    gd_tensor_unref(cur);
    gd_tensor_unref(prev);
}

static void measure_threads(unsigned char *data)
{
    struct gd_tensor *tensor = wrap_memory(GD_FLOAT32, data, BYTES / sizeof(float));
    double ratio[MAX_PAIRS];
    unsigned n = measure_pairs();

    for (unsigned i = 0; i < n; i++) {
        ratio[i] = time_stats(tensor, NULL, 1) / time_stats(tensor, NULL, 2);
    }
    bench_report("stats.threads2", bench_median(ratio, n), 1.5, true);
    gd_tensor_unref(tensor);
}

/* Data that needs more than one pass, relative to normal data. */
static void measure_odd_data(const char *what, unsigned char *data, float every_other, float offset)
{
    size_t count = BYTES / sizeof(float);
    struct gd_tensor *tensor = wrap_memory(GD_FLOAT32, data, count);
    double ratio[MAX_PAIRS];
    unsigned n = measure_pairs();

    for (size_t i = 0; i < count; i++) {
        float x = i % 2 ? every_other : random_number() + offset;

        memcpy(data + i * sizeof(x), &x, sizeof(x));
    }
    for (unsigned i = 0; i < n; i++) {
        ratio[i] = time_read(data, BYTES) / time_stats(tensor, NULL, 1);
    }
    bench_note("stats.float32 if %s: %.3f of the read", what, bench_median(ratio, n));
    gd_tensor_unref(tensor);
}

/* Seconds that numpy needed for the data in `fd`, as reported by a Python process. */
static double time_numpy(const char *script, int fd)
{
    char path[32], line[64] = "";
    int out[2], status;
    FILE *from;
    pid_t pid;

    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    if (pipe(out)) {
        bench_fail("cannot create a pipe");
    }
    pid = fork();
    if (pid < 0) {
        bench_fail("cannot create a process");
    }
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl("/usr/bin/python3", "python3", script, path, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    from = fdopen(out[0], "r");
    if (!from || !fgets(line, sizeof(line), from)) {
        line[0] = '\0';
    }
    if (from) {
        fclose(from);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        return 0;
    }
    return strtod(line, NULL);
}

static void measure_numpy(const char *script, const unsigned char *data)
{
    struct gd_tensor *tensor = wrap_memory(GD_FLOAT32, data, BYTES / sizeof(float));
    int fd = memfd_create("array", 0);
    double ratio[3], seconds;

    for (size_t at = 0; at < BYTES;) {
        ssize_t n = write(fd, data + at, BYTES - at);

        if (n <= 0) {
            bench_fail("cannot share the array with numpy");
        }
        at += (size_t)n;
    }
    for (int i = 0; i < 3; i++) {
        double stats = time_stats(tensor, NULL, 1);

        seconds = time_numpy(script, fd);
        if (seconds <= 0) {
            bench_note("stats.numpy: skipped, no python3 with numpy");
            break;
        }
        ratio[i] = seconds / stats;
        if (i == 2) {
            bench_report("stats.numpy", bench_median(ratio, 3), 10, true);
        }
    }
    close(fd);
    gd_tensor_unref(tensor);
}

/* The largest error of mean, sum of squares and std over 1e8 elements, in units of 1e-6. In the
 * first run the mean is far from zero; in the second it is a small difference of large numbers. */
static void measure_error(const char *name, unsigned char *data, float offset, float alternating)
{
    long double sum = 0, sq = 0, abs = 0, m2 = 0, mean;
    struct gd_tensor *tensor = wrap_memory(GD_FLOAT32, data, MANY);
    struct gd_stats s;
    double error;
    float x;

    for (size_t i = 0; i < MANY; i++) {
        x = random_number() + offset + (i % 2 ? alternating : -alternating);
        memcpy(data + i * sizeof(x), &x, sizeof(x));
        sum += (long double)x;
        abs += fabsl((long double)x);
        sq += (long double)x * (long double)x;
    }
    mean = sum / MANY;
    for (size_t i = 0; i < MANY; i++) {
        memcpy(&x, data + i * sizeof(x), sizeof(x));
        m2 += ((long double)x - mean) * ((long double)x - mean);
    }
    if (gd_stats_compute(tensor, NULL, NULL, &s, NULL) != GD_OK) {
        bench_fail("the statistics failed");
    }
    error = (double)(fabsl((long double)s.mean - mean) / (abs / MANY));
    error = fmax(error, (double)fabsl((long double)s.sum_sq / sq - 1));
    error = fmax(error, (double)fabsl((long double)s.std / sqrtl(m2 / MANY) - 1));
    error = fmax(error, (double)fabsl((long double)s.abs_mean / (abs / MANY) - 1));
    bench_report(name, error * 1e6, 1, false);
    bench_note("%s: %.1e, elements about %g and %g", name, error, (double)(offset + alternating),
               (double)(offset - alternating));
    gd_tensor_unref(tensor);
}

int main(int argc, char **argv)
{
    unsigned char *data = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (data == MAP_FAILED) {
        bench_fail("out of memory");
    }
    measure_read("stats.float32", GD_FLOAT32, 0.85, data);
    if (argc > 1) {
        measure_numpy(argv[1], data);
    }
    measure_threads(data);
    fill_random(GD_FLOAT32, data + BYTES, BYTES / sizeof(float));
    measure_previous(data);
    measure_odd_data("every other element is 0", data, 0, 0);
    measure_odd_data("every other element is -Inf", data, -INFINITY, 0);
    measure_odd_data("the mean is 100 deviations", data, 100, 100);
    measure_read("stats.float64", GD_FLOAT64, 0.85, data);
    measure_read("stats.float16", GD_FLOAT16, 0.60, data);
    measure_read("stats.bfloat16", GD_BFLOAT16, 0.60, data);
    measure_error("stats.error_ppm", data, 1000, 0);
    measure_error("stats.error_ppm_cancelling", data, 0, 10000);
    return 0;
}
