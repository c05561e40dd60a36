// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by all benchmarks. A result is a ratio of two durations measured alternately in one run,
 * because the machine's speed drifts; the median of the pairs counts.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Seconds, monotonic. */
double bench_now(void);
/* Sorts the values in place. */
double bench_median(double *values, size_t count);

/* A memory value of this process in bytes: "VmRSS" or "VmHWM" (the peak). */
uint64_t bench_memory(const char *figure);
uint64_t bench_memory_of(pid_t pid, const char *figure);
/* Resets the peak to what is resident now. */
void bench_reset_peak(void);

/* Prints `NAME RATIO target T pass|short`. at_least: larger is better; else smaller is. */
void bench_report(const char *name, double ratio, double target, bool at_least);
/* Prints a comment on a result; the line starts with "# ". */
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the message and errno, and exits with status 1. */
void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A count from the environment, e.g. BENCH_REPEAT=3; `otherwise` if unset. */
unsigned bench_setting(const char *name, unsigned otherwise);

/* bench_read.c: reads all bytes (a multiple of 256) with the widest loads of the processor; the
 * result depends on each of them. */
uint64_t bench_read(const void *data, size_t size);

/* bench_tcp.c: the loopback references. A forked process is the peer. */

/* Seconds to send `total` bytes in writes of write_size (the size of `data`) to a process that
 * reads `read_size` bytes at a time and then acknowledges. It drops the data, or keeps it in fresh
 * memory. */
double bench_tcp_send(const void *data, size_t total, size_t write_size, size_t read_size,
                      bool keep);
/* Seconds for `rounds` round trips of one write of `there` bytes and one of `back` bytes. */
double bench_tcp_ping_pong(unsigned rounds, size_t there, size_t back);

#endif
