// SPDX-License-Identifier: GPL-3.0-or-later
/* Histories of invented values in a directory of their own, and what they must hold. */
#ifndef TESTS_ENGINE_HISTORY_BENCH_H
#define TESTS_ENGINE_HISTORY_BENCH_H

#include "engine/history/history.h"

#define KIB        UINT64_C(1024)
/* docs/history.md */
#define RECORD     232
#define HEADER     4096
#define ENTRY      64
#define RING_FIELD 64 /* where the header says where the ring begins */

extern char hist_home[];    /* XDG_STATE_HOME while the tests run */
extern char hist_path[256]; /* of a file in it */
extern struct gd_history_record hist_records[5000];

int hist_make_home(void **state);
int hist_drop_home(void **state);

struct gd_history_tensor hist_tensor(const char *name);
/* Every figure has a value of its own, made of x. */
struct gd_history_record hist_record(int64_t step, double x);
void hist_add(struct gd_history *history, const char *name, int64_t step, double x);
struct gd_history *hist_create(uint64_t bytes);
struct gd_history *hist_open_again(void);
size_t hist_read_all(const struct gd_history *history, const char *name); /* into hist_records */
void hist_expect_stats(const struct gd_stats *a, double x);
/* The steps first ... last, each with x = 10 * step. */
void hist_expect_steps(const struct gd_history *history, const char *name, int64_t first,
                       int64_t last);
void hist_expect_no_file(uint64_t bytes, int code, const char *text);

/* The file, at most 64 KiB of it; and such a one. */
uint64_t hist_ring_offset(const unsigned char *bytes);
unsigned char *hist_read_bytes(size_t *size);
void hist_write_bytes(const unsigned char *bytes, size_t size);

#endif
