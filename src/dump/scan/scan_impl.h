// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The insides of a scan, shared by scan*.c and nobody else.
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
void scan_cache_free(struct scan_cache *kept); /* NULL is fine; nobody has a value any more */
/* The whole value, which has so many bytes as a tensor, from any thread: read now, or lately.
 * GD_ELIMIT without a word: there is no room for it, it must be read by pieces. */
int scan_cache_get(struct scan_cache *kept, struct gd_source *source, size_t bytes,
                   struct scan_cache_value **ret, struct gd_err *err);
const struct gd_tensor *scan_cache_tensor(const struct scan_cache_value *value); /* NULL of NULL */
void scan_cache_put(struct scan_cache *kept, struct scan_cache_value *value);    /* NULL is fine */

/* ---- scan_compute.c: one value ------------------------------------------------------------------
 */

struct scan_buffers { /* that threads read into; each takes one and gives it back */
    pthread_mutex_t mutex;
    void *free[64];
    int count;
};
void scan_buffers_init(struct scan_buffers *buffers);
void scan_buffers_free(struct scan_buffers *buffers);

struct scan_work { /* a value that is to be looked at */
    uint32_t plan;
    const struct dump_item *item;
    const struct gd_catalog_value *value;
    uint32_t order; /* of execution; 0 before everything */
    bool again;     /* the value is wanted more than once: by others, or by the step behind it */
};
struct scan_found {
    bool done;
    bool big;                      /* left for all threads together */
    struct gd_scan_stats *figures; /* NULL: nothing worth judging; malloc'd */
    uint64_t bytes;                /* of the file that were looked at */
    int rc;                        /* why it could not be read, and in words */
    char *why;
};
struct scan_compute {
    const struct dump_target *target;
    size_t at; /* of its steps */
    struct scan_buffers *buffers;
    struct scan_cache *kept;
    int threads;                             /* 1: a big value is left */
    bool (*go_on)(void *ctx, uint64_t more); /* so many bytes were read since it was asked */
    void (*size)(void *ctx, uint64_t bytes); /* so many there are of a value */
    void *ctx;
};
/* not done: it was stopped, or memory is short (rc). May be called from any thread. */
void scan_compute(const struct scan_compute *look, const struct scan_work *work,
                  struct scan_found *ret);

/* ---- scan_progress.c: what is remembered --------------------------------------------------------
 */

struct scan_progress {
    int fd; /* < 0: nothing is written down */
    char path[4096];
    bool keeps;                /* it was asked for, and stays */
    struct gd_scan_file *file; /* from before; NULL none */
    uint32_t units;            /* in the file by now */
    bool written;              /* something was added */
};
/* `key` tells scans of different dumps apart. A file in the state directory that cannot be had is
 * no error: `warning` says why. */
int scan_progress_open(struct scan_progress *state, const struct gd_scan_options *options,
                       const struct gd_scan_head *head, const char *key, char *warning, size_t size,
                       struct gd_err *err);
int scan_progress_add(struct scan_progress *state, struct gd_buf *bytes, struct gd_err *err);
/* complete: all that was to be done is done. */
int scan_progress_close(struct scan_progress *state, bool complete, struct gd_err *err);

/* ---- scan_units.c: what there is to look at -------------------------------------------------- */

struct scan_unit {
    struct dump_target *target;
    size_t at;    /* of its steps; SIZE_MAX: what holds in every step */
    int64_t step; /* GD_EVERY_STEP */
    uint32_t items;
    uint32_t turn; /* which part of a scan begins with its first value */
};
struct scan_plan { /* of one rank, as the watchpoints were when the scan began */
    const struct dump_target *target;
    struct dump_plan *plans;
    size_t count;
    struct gd_scalar *numbers; /* of the session before the scan; NULL: not kept yet */
    int number_count;
};
struct scan_list {
    struct scan_unit *unit; /* by step, then rank */
    size_t count;
    struct scan_plan *plan; /* by member of the group */
    size_t plan_count;
    uint64_t items, steps, ranks;
    bool against; /* something is judged against the step before */
};
int scan_list_make(const struct dump_group *group, const struct gd_scan_head *asked,
                   struct scan_list *ret, struct gd_err *err);
void scan_list_free(struct scan_list *list);
/* The values of a unit in execution order, malloc'd, and what identifies them. */
int scan_unit_works(const struct scan_list *list, const struct scan_unit *unit,
                    struct scan_work **ret, struct gd_scan_unit *about, struct gd_err *err);
/* The watchpoints that are in force, a line each; malloc'd. */
int scan_watched(struct gd_debugger *debugger, char **ret, struct gd_err *err);

/* ---- scan.c: all of it ----------------------------------------------------------------------- */

struct opened { /* a unit of which the values are looked at */
    const struct scan_unit *unit;
    struct scan_work *work;
    struct gd_scan_unit about;
    struct scan_found *found; /* by value */
    uint32_t *there;          /* its number in what was remembered, or in each part */
    uint32_t number;          /* in the file that is written; UINT32_MAX: not there yet */
    size_t todo_end;          /* its last one of the window's todo is before this */
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
    uint64_t quiet; /* values of which nothing was worth judging */
    struct gd_scan_head head;
    struct scan_list list;
    struct scan_progress state;
    struct scan_buffers buffers;
    struct scan_cache *kept;
    struct gd_scan_file **part; /* that are merged; NULL: it is a scan */
    size_t part_count;
    int threads;
    pthread_t main;
    atomic_bool stopped;
    atomic_uint_fast64_t read, bytes, sized; /* bytes read, bytes of how many values */
    /* the window */
    struct opened *open;
    size_t open_count, judged; /* so many of them are judged */
    struct todo *todo;
    size_t todo_count, todo_cap;
    size_t slice; /* of todo: the first that is looked at now */
};

/* What `options` ask of the dump of the session; the head is theirs, the watchpoints' text is
 * malloc'd: head.watched. */
int scan_start(struct scan *scan, struct gd_session *session, const struct gd_scan_options *options,
               struct gd_scan_summary *summary, struct gd_err *err);
/* What there is to look at, by the head; scan_list_free afterwards. */
int scan_prepare(struct scan *scan, struct gd_err *err);
int scan_run(struct scan *scan, struct gd_err *err);

#endif
