// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The inside of a scan, shared by scan*.c.
 */
#ifndef GD_DUMP_SCAN_IMPL_H
#define GD_DUMP_SCAN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dump/dump_target_impl.h"
#include "dump/scan/scan.h"

/* ---- scan_cache.c: values that are wanted again -----------------------------------------------
 */

struct scan_cache;
struct scan_cache_value;
struct scan_cache *scan_cache_new(void);       /* NULL: out of memory */
void scan_cache_free(struct scan_cache *kept); /* NULL is fine; no value may be in use */
/* Returns the whole value, which takes `bytes` as a tensor; thread-safe. GD_ELIMIT without a
 * message: no room, read it in pieces. */
int scan_cache_get(struct scan_cache *kept, struct gd_source *source, size_t bytes,
                   struct scan_cache_value **ret, struct gd_err *err);
const struct gd_tensor *scan_cache_tensor(const struct scan_cache_value *value); /* NULL for NULL */
void scan_cache_put(struct scan_cache *kept, struct scan_cache_value *value);    /* NULL is fine */

/* ---- scan_compute.c: one value ------------------------------------------------------------------
 */

struct scan_buffers { /* read buffers shared by the threads */
    pthread_mutex_t mutex;
    void *free[64];
    int count;
};
void scan_buffers_init(struct scan_buffers *buffers);
void scan_buffers_free(struct scan_buffers *buffers);

struct scan_work { /* a value to compute */
    uint32_t plan;
    const struct dump_item *item;
    const struct gd_catalog_value *value;
    uint32_t order; /* in execution; 0: before everything */
    bool again;     /* needed again: by other watchpoints, or by the next step */
};
struct scan_found {
    bool done;
    bool big;                      /* left for all threads together */
    struct gd_scan_stats *figures; /* NULL: nothing to judge; malloc'd */
    uint64_t bytes;                /* of the file, read */
    int rc;                        /* why it could not be read, with the message */
    char *why;
};
struct scan_compute {
    struct dump_target *target;
    size_t at; /* index of the step */
    struct scan_buffers *buffers;
    struct scan_cache *kept;
    int threads;                             /* 1: leave big values */
    bool (*go_on)(void *ctx, uint64_t more); /* called with the bytes read since the last call */
    void (*size)(void *ctx, uint64_t bytes); /* called with the total bytes of a value */
    void *ctx;
};
/* Thread-safe. Not `done`: interrupted, or out of memory (rc). */
void scan_compute(const struct scan_compute *look, const struct scan_work *work,
                  struct scan_found *ret);

/* ---- scan_progress.c: what is remembered --------------------------------------------------------
 */

struct scan_progress {
    int fd; /* < 0: nothing is saved */
    char path[4096];
    bool keeps;                /* requested by the user, stays */
    struct gd_scan_file *file; /* of an earlier scan; NULL: none */
    uint32_t units;            /* in the file so far */
    bool written;              /* something was added */
};
/* `key` tells scans of different dumps apart. It is not an error if the file in the state directory
 * cannot be used: `warning` says why. */
int scan_progress_open(struct scan_progress *state, const struct gd_scan_options *options,
                       const struct gd_scan_head *head, const char *key, char *warning, size_t size,
                       struct gd_err *err);
int scan_progress_add(struct scan_progress *state, struct gd_buf *bytes, struct gd_err *err);
/* complete: the scan has finished. */
int scan_progress_close(struct scan_progress *state, bool complete, struct gd_err *err);

/* ---- scan_units.c: what there is to look at -------------------------------------------------- */

struct scan_unit {
    struct dump_target *target;
    size_t at;    /* index of the step; SIZE_MAX: values of every step */
    int64_t step; /* or GD_EVERY_STEP */
    uint32_t items;
    uint32_t turn; /* which part of a split scan gets its first value */
};
struct scan_plan { /* of one rank; the watchpoints as they were when the scan began */
    struct dump_target *target;
    struct dump_plan *plans;
    size_t count;
};
struct scan_list {
    struct scan_unit *unit; /* by step, then rank */
    size_t count;
    struct scan_plan *plan; /* by member of the group */
    size_t plan_count;
    uint64_t items, steps, ranks;
    bool against; /* something is compared with the previous step */
};
int scan_list_make(const struct dump_group *group, const struct gd_scan_head *asked,
                   struct scan_list *ret, struct gd_err *err);
void scan_list_free(struct scan_list *list);
/* The values of a unit in execution order, malloc'd, and hashes that identify them. */
int scan_unit_works(const struct scan_list *list, const struct scan_unit *unit,
                    struct scan_work **ret, struct gd_scan_unit *about, struct gd_err *err);
/* The active watchpoints, one line each; malloc'd. */
int scan_watched(struct gd_debugger *debugger, char **ret, struct gd_err *err);

/* ---- scan.c: all of it ----------------------------------------------------------------------- */

struct opened { /* a unit being processed */
    const struct scan_unit *unit;
    struct scan_work *work;
    struct gd_scan_unit about;
    struct scan_found *found; /* per value */
    uint32_t *there;          /* its number in the earlier file, or in each part */
    uint32_t number;          /* in the file being written; UINT32_MAX: not there yet */
    size_t todo_end;          /* all of its values in the window's todo are before this index */
};
struct todo {
    struct opened *unit;
    uint32_t index;
};

struct scan {
    struct gd_session *session;
    const struct dump_group *group;
    const struct gd_scan_options *options;
    struct gd_scan_summary *summary;
    uint64_t quiet; /* values with nothing to judge */
    struct gd_scan_head head;
    struct scan_list list;
    struct scan_progress state;
    struct scan_buffers buffers;
    struct scan_cache *kept;
    struct gd_scan_file **part; /* being merged; NULL: this is a scan */
    size_t part_count, part_cap;
    int threads;
    pthread_t main;
    atomic_bool stopped;
    atomic_uint_fast64_t read, bytes, sized; /* bytes read, and sizes of how many values */
    /* the window */
    struct opened *open;
    size_t open_count, judged; /* units in the window, and how many of them are judged */
    struct todo *todo;
    size_t todo_count, todo_cap;
    size_t slice; /* first index in todo of the current slice */
};

/* Sets up a scan of the session's dump from `options`, which also provide the head; head.watched is
 * malloc'd. */
int scan_start(struct scan *scan, struct gd_session *session, const struct gd_scan_options *options,
               struct gd_scan_summary *summary, struct gd_err *err);
/* Lists what there is to scan according to the head; call scan_list_free afterwards. */
int scan_prepare(struct scan *scan, struct gd_err *err);
int scan_run(struct scan *scan, struct gd_err *err);

#endif
