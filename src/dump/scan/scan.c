// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/scan/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/workers.h"
#include "dump/scan/scan_impl.h"
#include "engine/watch/watch_report.h"
#include "engine/watch/watchpoint.h"

#define WINDOW_ITEMS 4096 /* values whose units are processed together */
#define SLICE_ITEMS  256  /* values read before their results are written to the file */
/* Steps per window if values are compared with the previous step: each is read once then, except
 * those of the last step. */
#define CHAIN_STEPS  8
#define CHAIN_ITEMS  65536

static struct scan_found *found_of(const struct todo *todo)
{
    return &todo->unit->found[todo->index];
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Estimates the total of bytes to read: values of unknown size count as the average. */
static uint64_t expected_bytes(const struct scan *scan)
{
    uint64_t values = scan->summary->values - scan->summary->remembered;
    uint64_t sized = atomic_load(&scan->sized), read = atomic_load(&scan->read);
    double each = sized ? (double)atomic_load(&scan->bytes) / (double)sized : 0;
    uint64_t all = (uint64_t)(each * (double)values);

    return all > read ? all : read;
}

static void size_known(void *ctx, uint64_t bytes)
{
    struct scan *scan = ctx;

    atomic_fetch_add(&scan->bytes, bytes);
    atomic_fetch_add(&scan->sized, 1);
}

/* Called by all threads; only the starting thread may run the event loop. */
static bool go_on(void *ctx, uint64_t more)
{
    struct scan *scan = ctx;
    const struct gd_scan_options *options = scan->options;

    atomic_fetch_add_explicit(&scan->read, more, memory_order_relaxed);
    if (!atomic_load_explicit(&scan->stopped, memory_order_relaxed) && options->go_on &&
        pthread_equal(pthread_self(), scan->main) &&
        !options->go_on(options->ctx, atomic_load(&scan->read), expected_bytes(scan))) {
        atomic_store(&scan->stopped, true);
    }
    return !atomic_load_explicit(&scan->stopped, memory_order_relaxed);
}

static void look_at(struct scan *scan, const struct todo *todo, int threads)
{
    struct opened *open = todo->unit;
    struct scan_compute how = {.target = open->unit->target,
                               .at = open->unit->at,
                               .buffers = &scan->buffers,
                               .kept = scan->kept,
                               .threads = threads,
                               .go_on = go_on,
                               .size = size_known,
                               .ctx = scan};
    struct scan_found *found = &open->found[todo->index];

    scan_compute(&how, &open->work[todo->index], found);
}

static void look_alone(void *ctx, size_t part)
{
    struct scan *scan = ctx;

    look_at(scan, &scan->todo[scan->slice + part], 1);
}

/* ---- known results --------------------------------------------------------------------------- */

static bool is_mine(const struct scan *scan, const struct opened *open, uint32_t index)
{
    return ((uint64_t)open->unit->turn + index) % scan->head.shards == scan->head.shard - 1;
}

/* The number of the unit in a file whose results can be reused; UINT32_MAX: none. */
static uint32_t unit_in(const struct gd_scan_file *file, const struct gd_scan_unit *about,
                        bool same_files)
{
    uint32_t number = file ? gd_scan_file_find(file, about->member, about->step) : UINT32_MAX;
    const struct gd_scan_unit *there = file ? gd_scan_file_unit(file, number) : NULL;

    return there && there->items == about->items && there->names == about->names &&
                   (!same_files || there->stamps == about->stamps)
               ? number
               : UINT32_MAX;
}

static bool is_known(const struct scan *scan, const struct opened *open, uint32_t index,
                     const struct gd_scan_stats **ret)
{
    if (open->found[index].done) {
        *ret = open->found[index].figures;
        return true;
    }
    if (!scan->part) {
        return open->there[0] != UINT32_MAX &&
               gd_scan_file_result(scan->state.file, open->there[0], index, ret);
    }
    for (size_t i = 0; i < scan->part_count; i++) {
        if (open->there[i] != UINT32_MAX &&
            gd_scan_file_result(scan->part[i], open->there[i], index, ret)) {
            return true;
        }
    }
    return false;
}

static int find_there(const struct scan *scan, struct opened *open, struct gd_err *err)
{
    open->there = calloc(scan->part_count + 1, sizeof(*open->there));
    if (!open->there) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < scan->part_count; i++) {
        open->there[i] = unit_in(scan->part[i], &open->about, false);
    }
    if (!scan->part) {
        open->there[0] = unit_in(scan->state.file, &open->about, true);
    }
    open->number = open->there[0];
    return GD_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static bool is_unreadable(unsigned error)
{
    return (error & GD_HIT_NO_VALUE) != 0;
}

static void count_found(struct gd_scan_summary *summary, const struct scan_found *found)
{
    summary->bytes += found->bytes;
    if (found->figures && is_unreadable(found->figures->error) && found->why &&
        !summary->first_unreadable[0]) {
        snprintf(summary->first_unreadable, sizeof(summary->first_unreadable), "%s", found->why);
    }
}

static void put_results(struct scan *scan, struct opened *open,
                        const struct gd_scan_result *results, size_t count, struct gd_buf *out)
{
    if (count == 0 || scan->state.fd < 0) {
        return;
    }
    if (open->number == UINT32_MAX) {
        open->number = scan->state.units++;
        gd_scan_put_unit(out, open->number, &open->about);
    }
    gd_scan_put_results(out, open->number, results, count);
}

static int by_unit(const void *a, const void *b)
{
    const struct todo *x = a, *y = b;

    if (x->unit != y->unit) {
        return x->unit < y->unit ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

/* Writes the results of todo[from ... to), at most a slice, to the file. */
static int save_results(struct scan *scan, size_t from, size_t to, struct gd_err *err)
{
    struct gd_scan_result results[SLICE_ITEMS];
    struct todo slice[SLICE_ITEMS];
    struct gd_buf out = GD_BUF_INIT(SIZE_MAX);
    size_t count = 0;
    int rc;

    memcpy(slice, &scan->todo[from], (to - from) * sizeof(*slice));
    qsort(slice, to - from, sizeof(*slice), by_unit);
    for (size_t i = 0; i < to - from; i++) {
        const struct scan_found *found = found_of(&slice[i]);

        if (found->done) {
            count_found(scan->summary, found);
            results[count++] =
                (struct gd_scan_result){.index = slice[i].index, .figures = found->figures};
        }
        if (i + 1 == to - from || slice[i + 1].unit != slice[i].unit) {
            put_results(scan, slice[i].unit, results, count, &out);
            count = 0;
        }
    }
    rc = scan_progress_add(&scan->state, &out, err);
    gd_buf_deinit(&out);
    return rc;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Values that hold in every step are judged before the first step. */
static int64_t judged_step(const struct scan_unit *unit)
{
    int64_t first;

    if (unit->at != SIZE_MAX) {
        return unit->step;
    }
    first = dump_step_at(unit->target, 0);
    return first == GD_EVERY_STEP ? 0 : first;
}

/* GD_EPROTO: a part lacks a value. */
static int collect_values(struct scan *scan, const struct opened *open,
                          struct gd_watch_value *values, size_t *count, struct gd_err *err)
{
    for (uint32_t i = 0; i < open->unit->items; i++) {
        const struct gd_scan_stats *figures = NULL;
        const struct scan_work *work = &open->work[i];

        if (!is_known(scan, open, i, &figures)) {
            return gd_fail(
                err, GD_EPROTO,
                "no part has %.200s of step %lld, rank %d: were the parts made from this dump?",
                gd_graph_name(open->unit->target->base.session->graph, work->item->node),
                (long long)judged_step(open->unit), open->about.rank);
        }
        scan->quiet += figures == NULL; /* scanned, nothing to judge */
        if (figures) {
            scan->summary->unreadable += is_unreadable(figures->error);
            values[(*count)++] =
                (struct gd_watch_value){.plan = work->plan,
                                        .node = work->item->node,
                                        .slot = work->item->slot,
                                        .dtype = figures->dtype,
                                        .shape = &figures->shape,
                                        .stats = figures->error ? NULL : &figures->stats,
                                        .error = figures->error,
                                        .value_step = judged_step(open->unit)};
        }
    }
    return GD_OK;
}

static int judge_unit(struct scan *scan, const struct opened *open, struct gd_err *err)
{
    struct gd_watch_value *values = calloc((size_t)open->unit->items + 1, sizeof(*values));
    struct gd_watch_moment moment = {.step = judged_step(open->unit), .complete = true};
    size_t count = 0;
    int rc = values ? collect_values(scan, open, values, &count, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        if (open->unit->at != SIZE_MAX) {
            dump_tell_scalars(open->unit->target, open->unit->at);
        }
        gd_watch_on_values(open->unit->target->base.session, &moment, values, count, NULL, 0);
    }
    free(values);
    return rc;
}

/* Judges the units of the window for which everything before todo[end] is known. */
static int judge_until(struct scan *scan, size_t end, struct gd_err *err)
{
    int rc = GD_OK;

    while (rc == GD_OK && (scan->head.shards == 1 || scan->part) &&
           scan->judged < scan->open_count && scan->open[scan->judged].todo_end <= end) {
        rc = judge_unit(scan, &scan->open[scan->judged++], err);
        if (rc == GD_OK && !go_on(scan, 0)) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Computes small values in parallel; big ones are left and marked `big`. */
static int look_at_small(struct scan *scan, size_t from, size_t to, struct gd_err *err)
{
    int rc;

    scan->slice = from;
    gd_workers_run(scan->threads, to - from, look_alone, scan);
    rc = save_results(scan, from, to, err);
    for (size_t i = from; rc == GD_OK && i < to; i++) {
        rc = !found_of(&scan->todo[i])->done && found_of(&scan->todo[i])->rc == GD_ENOMEM
                 ? gd_fail_nomem(err)
                 : GD_OK;
    }
    return rc;
}

static int check_stopped(const struct scan *scan, struct gd_err *err)
{
    return atomic_load(&scan->stopped) ? gd_fail(err, GD_EINTR, "interrupted") : GD_OK;
}

static int look_at_all(struct scan *scan, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t at = 0; rc == GD_OK && at < scan->todo_count; at += SLICE_ITEMS) {
        size_t end = scan->todo_count - at > SLICE_ITEMS ? at + SLICE_ITEMS : scan->todo_count;

        rc = look_at_small(scan, at, end, err);
        for (size_t i = at; rc == GD_OK && check_stopped(scan, err) == GD_OK && i < end; i++) {
            struct scan_found *found = found_of(&scan->todo[i]);

            if (found->big) { /* two threads, so that it is not left again */
                look_at(scan, &scan->todo[i], scan->threads > 1 ? scan->threads : 2);
                rc =
                    found->rc == GD_ENOMEM ? gd_fail_nomem(err) : save_results(scan, i, i + 1, err);
                rc = rc != GD_OK || !found->done ? rc : judge_until(scan, i + 1, err);
            }
        }
        rc = rc != GD_OK ? rc : check_stopped(scan, err);
        rc = rc != GD_OK ? rc : judge_until(scan, end, err);
    }
    return rc != GD_OK ? rc : judge_until(scan, scan->todo_count, err);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void close_units(struct scan *scan)
{
    for (size_t i = 0; i < scan->open_count; i++) {
        struct opened *open = &scan->open[i];

        for (uint32_t k = 0; open->found && k < open->unit->items; k++) {
            free(open->found[k].figures);
            free(open->found[k].why);
        }
        free(open->found);
        free(open->there);
        free(open->work);
    }
    free(scan->open);
    free(scan->todo);
    scan->open = NULL;
    scan->todo = NULL;
    scan->open_count = scan->judged = scan->todo_count = scan->todo_cap = 0;
}

static int add_todo(struct scan *scan, struct opened *open, uint32_t index, struct gd_err *err)
{
    const struct gd_scan_stats *figures;

    if (!is_mine(scan, open, index)) {
        return GD_OK;
    }
    if (is_known(scan, open, index, &figures)) {
        scan->summary->remembered++;
        return GD_OK;
    }
    if (!gd_grow_list(&scan->todo, scan->todo_count, &scan->todo_cap, sizeof(*scan->todo))) {
        return gd_fail_nomem(err);
    }
    scan->todo[scan->todo_count++] = (struct todo){.unit = open, .index = index};
    return GD_OK;
}

static int open_unit(struct scan *scan, const struct scan_unit *unit, struct gd_err *err)
{
    struct opened *open = &scan->open[scan->open_count++];
    int rc;

    *open = (struct opened){.unit = unit};
    rc = scan_unit_works(&scan->list, unit, &open->work, &open->about, err);
    open->found = calloc((size_t)unit->items + 1, sizeof(*open->found));
    rc = rc != GD_OK || open->found ? rc : gd_fail_nomem(err);
    rc = rc != GD_OK ? rc : find_there(scan, open, err);
    for (uint32_t i = 0; rc == GD_OK && !scan->part && i < unit->items; i++) {
        rc = add_todo(scan, open, i, err);
    }
    return rc;
}

/* By tensor, then by step. */
static int by_chain(const void *a, const void *b)
{
    const struct todo *x = a, *y = b;
    const struct scan_work *p = &x->unit->work[x->index], *q = &y->unit->work[y->index];

    if (x->unit->about.member != y->unit->about.member) {
        return x->unit->about.member < y->unit->about.member ? -1 : 1;
    }
    if (p->item->node != q->item->node) {
        return p->item->node < q->item->node ? -1 : 1;
    }
    if (p->item->slot != q->item->slot) {
        return p->item->slot < q->item->slot ? -1 : 1;
    }
    return by_unit(a, b);
}

/* How many units, starting at `at`, form a window. */
static size_t window_size(const struct scan *scan, size_t at)
{
    const struct scan_list *list = &scan->list;
    size_t count = 0, chain = list->against ? CHAIN_STEPS * (list->plan_count + 1) : 0;
    uint64_t items = 0;

    while (at + count < list->count &&
           (count == 0 || items < WINDOW_ITEMS || (count < chain && items < CHAIN_ITEMS))) {
        items += list->unit[at + count++].items;
    }
    return count;
}

/* Reads and judges one window of units, starting at *at. */
static int do_window(struct scan *scan, size_t *at, struct gd_err *err)
{
    size_t count = window_size(scan, *at);
    int rc;

    scan->open = calloc(count + 1, sizeof(*scan->open));
    rc = scan->open ? GD_OK : gd_fail_nomem(err);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = open_unit(scan, &scan->list.unit[*at + i], err);
    }
    if (rc == GD_OK) {
        if (scan->list.against && scan->todo_count > 0) {
            qsort(scan->todo, scan->todo_count, sizeof(*scan->todo), by_chain);
        }
        for (size_t i = 0; i < scan->todo_count; i++) {
            scan->todo[i].unit->todo_end = i + 1;
        }
        rc = look_at_all(scan, err);
    }
    close_units(scan);
    *at += count;
    return rc;
}

/* ---- a scan ---------------------------------------------------------------------------------- */

/* The session's numbers are those of the scan's steps while it runs. */
static void move_numbers(const struct scan *scan, void (*move)(struct dump_target *target))
{
    for (size_t i = 0; i < scan->list.plan_count; i++) {
        move(scan->list.plan[i].target);
    }
}

static void forget_all(const struct scan *scan)
{
    for (size_t i = 0; i < scan->list.plan_count; i++) {
        gd_watch_forget(scan->list.plan[i].target->base.session);
    }
}

static uint64_t count_mine(const struct scan *scan)
{
    const struct gd_scan_head *head = &scan->head;
    uint64_t count = 0;

    for (size_t i = 0; i < scan->list.count; i++) {
        uint64_t items = scan->list.unit[i].items;
        /* indices with (turn + index) % shards == shard - 1 */
        uint64_t first = (head->shard - 1 + head->shards - scan->list.unit[i].turn % head->shards) %
                         head->shards;

        count += items > first ? (items - first - 1) / head->shards + 1 : 0;
    }
    return count;
}

int scan_run(struct scan *scan, struct gd_err *err)
{
    struct gd_debugger *debugger = scan->session->debugger;
    struct gd_watch_tally before, since;
    int rc = GD_OK;

    gd_watch_tally(debugger, &before);

    scan->main = pthread_self();
    scan->threads = scan->options->threads;
    if (scan->threads < 1) {
        long count = sysconf(_SC_NPROCESSORS_ONLN);

        scan->threads = count < 1 ? 1 : count > GD_MAX_WORKERS ? GD_MAX_WORKERS : (int)count;
    }
    atomic_init(&scan->stopped, false);
    atomic_init(&scan->read, 0);
    atomic_init(&scan->bytes, 0);
    atomic_init(&scan->sized, 0);
    scan_buffers_init(&scan->buffers);
    scan->kept = scan_cache_new();
    forget_all(scan);
    rc = scan->kept ? GD_OK : gd_fail_nomem(err);
    move_numbers(scan, dump_forget_scalars);
    for (size_t at = 0; rc == GD_OK && at < scan->list.count;) {
        rc = do_window(scan, &at, err);
    }
    since = gd_watch_tally_since(debugger, &before);
    scan->summary->checks = since.checks + scan->quiet;
    scan->summary->hits = since.hits;
    scan->summary->unclear = since.unclear;
    scan->summary->errors = since.errors;
    move_numbers(scan, dump_recall_scalars);
    forget_all(scan);
    scan_buffers_free(&scan->buffers);
    scan_cache_free(scan->kept);
    return rc;
}

/* Scalars (a loss) are judged when they are passed on, without reading a file. */
static bool watches_numbers(const struct gd_debugger *debugger)
{
    const struct gd_watchpoint *w = debugger->watchpoints;

    while (w && (!w->enabled || w->selector)) {
        w = w->next;
    }
    return w != NULL;
}

int scan_prepare(struct scan *scan, struct gd_err *err)
{
    int rc = scan_list_make(scan->group, &scan->head, &scan->list, err);

    if (rc == GD_OK && scan->list.items == 0 &&
        (scan->list.count == 0 || !watches_numbers(scan->session->debugger))) {
        rc = gd_fail(err, GD_ESTATE,
                     "nothing to scan: no watchpoint covers a value of these steps and ranks (info "
                     "watchpoints, info steps)");
        scan_list_free(&scan->list);
    }
    if (rc == GD_OK) {
        scan->summary->values = count_mine(scan);
        scan->summary->steps = scan->list.steps;
        scan->summary->ranks = scan->list.ranks;
    }
    return rc;
}

int scan_start(struct scan *scan, struct gd_session *session, const struct gd_scan_options *options,
               struct gd_scan_summary *summary, struct gd_err *err)
{
    const struct dump_target *target = dump_target_of(session);

    memset(summary, 0, sizeof(*summary));
    *scan = (struct scan){.session = session, .options = options, .summary = summary};
    if (!target) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "only a dump can be scanned: open one first (a live training is checked "
                       "while it runs)");
    }
    if (target->group->run.lead) {
        return gd_fail(err, GD_ESTATE, "the dump is being searched: interrupt that first");
    }
    scan->group = target->group;
    scan->head = options->asked;
    scan->head.watched = NULL;
    return scan_watched(session->debugger, &scan->head.watched, err);
}

int gd_scan(struct gd_session *session, const struct gd_scan_options *options,
            struct gd_scan_summary *ret, struct gd_err *err)
{
    struct scan scan;
    char *path;
    int rc = scan_start(&scan, session, options, ret, err), closed;

    if (rc != GD_OK) {
        return rc;
    }
    path = realpath(scan.group->path, NULL);
    rc = scan_prepare(&scan, err);
    if (rc == GD_OK) {
        rc = scan_progress_open(&scan.state, options, &scan.head, path ? path : scan.group->path,
                                ret->warning, sizeof(ret->warning), err);
        rc = rc != GD_OK ? rc : scan_run(&scan, err);
        closed = scan_progress_close(&scan.state, rc == GD_OK, rc != GD_OK ? NULL : err);
        rc = rc != GD_OK ? rc : closed;
        snprintf(ret->file, sizeof(ret->file), "%s", scan.state.path);
        scan_list_free(&scan.list);
    }
    free(path);
    free(scan.head.watched);
    return rc;
}
