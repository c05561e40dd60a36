// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the benchmarks share. A figure is a ratio of two things measured in the same run, in turns,
 * because the machine is never quite the same a second later; the median of the pairs counts.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds, monotonic. */
double bench_now(void);
/* Sorts the values in place. */
double bench_median(double *values, size_t count);

/* Bytes of a memory figure of this process: "VmRSS", "VmHWM" (the peak). */
uint64_t bench_memory(const char *figure);
/* The peak starts again from what is resident now. */
void bench_reset_peak(void);

/* Prints `NAME RATIO target T pass|short`; at_least: larger is better, else smaller. */
void bench_report(const char *name, double ratio, double target, bool at_least);
/* A line that explains a figure; starts with "# ". */
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Something that must work did not: says what, with errno, and exits with 1. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A count from the environment, for quick or long runs: BENCH_REPEAT=3. */
unsigned bench_setting(const char *name, unsigned otherwise);

/* bench_read.c: reads all of it (a multiple of 256 bytes), in loads as wide as the processor has;
 * returns something that depends on every byte. */
uint64_t bench_read(const void *data, size_t size);

/* bench_tcp.c: the loopback references. A forked process is the other end. */

/* Seconds to send `total` bytes, in writes of write_size out of `data` (which is that large), to a
 * process that reads them with `read_size` at a time and then says that it has them all. It drops
 * them, or keeps them in fresh memory. */
double bench_tcp_send(const void *data, size_t total, size_t write_size, size_t read_size,
                      bool keep);
/* Seconds for `rounds` round trips of one write of `there` bytes and one of `back` bytes. */
double bench_tcp_ping_pong(unsigned rounds, size_t there, size_t back);

#endif
