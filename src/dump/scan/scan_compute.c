// SPDX-License-Identifier: GPL-3.0-or-later
/* Computes what the watchpoints need of one value, and no more. */
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"
#include "dump/scan/scan_impl.h"

#define BUFFER ((size_t)256 << 10)  /* bytes read at once */
#define BIG    ((uint64_t)32 << 20) /* bytes from which a value is split among all threads */

/* ---- buffers --------------------------------------------------------------------------------- */

void scan_buffers_init(struct scan_buffers *buffers)
{
    pthread_mutex_init(&buffers->mutex, NULL);
    buffers->count = 0;
}

void scan_buffers_free(struct scan_buffers *buffers)
{
    while (buffers->count > 0) {
        free(buffers->free[--buffers->count]);
    }
    pthread_mutex_destroy(&buffers->mutex);
}

static void *take_buffer(struct scan_buffers *buffers)
{
    void *buffer = NULL;

    pthread_mutex_lock(&buffers->mutex);
    if (buffers->count > 0) {
        buffer = buffers->free[--buffers->count];
    }
    pthread_mutex_unlock(&buffers->mutex);
    return buffer ? buffer : aligned_alloc(4096, BUFFER);
}

static void give_buffer(struct scan_buffers *buffers, void *buffer)
{
    bool kept = false;

    pthread_mutex_lock(&buffers->mutex);
    if (buffer && buffers->count < (int)(sizeof(buffers->free) / sizeof(buffers->free[0]))) {
        buffers->free[buffers->count++] = buffer;
        kept = true;
    }
    pthread_mutex_unlock(&buffers->mutex);
    if (!kept) {
        free(buffer);
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Whether a comparison holds, or cannot be made. */
static bool is_triggered(const struct dump_item *item, const struct gd_scan_stats *figures,
                         int64_t step)
{
    struct gd_observation seen = {
        .stats = &figures->stats, .dtype = figures->dtype, .step = step, .value_step = step};

    if (item->trigger_count == 0 || (item->against && !figures->stats.has_prev)) {
        return true;
    }
    for (size_t i = 0; i < item->trigger_count; i++) {
        const struct gd_watch_trigger *trigger = &item->trigger[i];
        double value;
        unsigned error;

        seen.range =
            (int64_t)trigger->range < figures->stats.range_count ? (int)trigger->range : -1;
        if (!gd_statistic_value(trigger->test.statistic, &seen, &value, &error) ||
            gd_compare(value, trigger->test.op, trigger->test.value)) {
            return true;
        }
    }
    return false;
}

static bool counts_not_finite(enum gd_statistic statistic)
{
    return statistic == GD_STAT_NAN || statistic == GD_STAT_INF || statistic == GD_STAT_POS_INF ||
           statistic == GD_STAT_NEG_INF || statistic == GD_STAT_NONFINITE;
}

/* Whether only non-finite elements matter, and a value without any need not be recorded. */
static bool asks_not_finite(const struct dump_item *item)
{
    const struct gd_scan_stats finite = {.stats = {.count = 1, .zero = 1}};

    if (item->trigger_count == 0 || item->against || item->dead) {
        return false;
    }
    for (size_t i = 0; i < item->trigger_count; i++) {
        if (!counts_not_finite(item->trigger[i].test.statistic)) {
            return false;
        }
    }
    return !is_triggered(item, &finite, 0);
}

/* ---- finite values --------------------------------------------------------------------------- */

struct finite {
    const struct scan_compute *look;
    struct gd_source *source;
    enum gd_dtype dtype;
    size_t item;          /* bytes */
    int64_t count, piece; /* elements */
    atomic_bool over;     /* decided, or undecidable: threads may stop */
};

static void look_at_piece(void *ctx, size_t part)
{
    struct finite *f = ctx;
    int64_t first = (int64_t)part * f->piece;
    int64_t count = f->count - first < f->piece ? f->count - first : f->piece;
    struct gd_tensor piece = {
        .dtype = f->dtype, .shape = {.rank = 1, .dim = {count}}, .stride = {(int64_t)f->item}};
    void *buffer = atomic_load(&f->over) ? NULL : take_buffer(f->look->buffers);

    piece.data = buffer;
    if (!buffer || !f->look->go_on(f->look->ctx, (uint64_t)count * f->item) ||
        gd_source_read_run(f->source, first, count, buffer, NULL) != GD_OK ||
        !gd_stats_all_finite(&piece)) {
        atomic_store(&f->over, true);
    }
    give_buffer(f->look->buffers, buffer);
}

/* False: not all finite, or unknown. */
static bool is_all_finite(const struct scan_compute *look, struct gd_source *source,
                          const struct gd_source_info *info)
{
    struct finite f = {.look = look,
                       .source = source,
                       .dtype = info->dtype,
                       .item = gd_dtype_size(info->dtype),
                       .count = gd_shape_count(&info->shape)};

    if (!gd_dtype_is_float(info->dtype) || f.count < 1) {
        return false;
    }
    f.piece = (int64_t)(BUFFER / f.item);
    atomic_init(&f.over, false);
    gd_workers_run(look->threads, (size_t)((f.count + f.piece - 1) / f.piece), look_at_piece, &f);
    return !atomic_load(&f.over);
}

struct amount { /* of a value */
    const struct scan_compute *look;
    uint64_t told, bytes, elements;
};

/* Counts bytes, not elements: they may be stored in a smaller type. */
static bool stats_go_on(void *ctx, uint64_t done)
{
    struct amount *amount = ctx;
    double share = amount->elements ? (double)done / (double)amount->elements : 1;
    uint64_t now = (uint64_t)(share * (double)amount->bytes), more = 0;

    if (now > amount->told) {
        more = now - amount->told;
        amount->told = now;
    }
    return amount->look->go_on(amount->look->ctx, more);
}

/* Whether all elements of a value in memory are finite. */
static bool is_finite(const struct gd_tensor *tensor)
{
    return gd_dtype_is_float(tensor->dtype) && gd_stats_all_finite(tensor);
}

/* Of a cached value. GD_ELIMIT without a message: it does not fit. */
static int compute_kept(const struct scan_compute *look, const struct scan_work *work,
                        struct gd_source *prev, const struct gd_stats_options *options,
                        struct gd_scan_stats *figures, struct scan_found *ret, struct gd_err *err)
{
    struct scan_cache_value *cur = NULL, *before = NULL;
    size_t bytes;
    int rc = gd_shape_bytes(&figures->shape, figures->dtype, &bytes, err);

    rc = rc != GD_OK ? rc : scan_cache_get(look->kept, work->value->source, bytes, &cur, err);
    if (rc == GD_OK && asks_not_finite(work->item)) {
        ret->done = is_finite(scan_cache_tensor(cur));
    }
    if (rc == GD_OK && !ret->done && prev) {
        rc = scan_cache_get(look->kept, prev, bytes, &before, err);
    }
    if (rc == GD_OK && !ret->done) {
        rc = gd_stats_compute(scan_cache_tensor(cur), scan_cache_tensor(before), options,
                              &figures->stats, err);
    }
    scan_cache_put(look->kept, before);
    scan_cache_put(look->kept, cur);
    return rc;
}

/* GD_OK without statistics in *figures (ret->done): none are needed. */
static int compute_stats(const struct scan_compute *look, const struct scan_work *work,
                         const struct gd_source_info *info, struct gd_scan_stats *figures,
                         struct scan_found *ret, struct gd_err *err)
{
    const struct dump_item *item = work->item;
    struct gd_stats_options options = item->options;
    struct gd_source *source = work->value->source, *prev;
    struct amount amount = {
        .look = look, .bytes = info->bytes, .elements = (uint64_t)gd_shape_count(&info->shape)};
    int rc = GD_ELIMIT;

    figures->dtype = info->dtype;
    figures->shape = info->shape;
    ret->bytes = info->bytes;
    look->size(look->ctx, info->bytes);
    options.threads = look->threads;
    options.go_on = stats_go_on;
    options.go_on_ctx = &amount;
    prev = item->against ? dump_before(look->target, work->value) : NULL;
    if (work->again) {
        rc = compute_kept(look, work, prev, &options, figures, ret, err);
    }
    if (rc == GD_ELIMIT && asks_not_finite(item)) {
        ret->done = is_all_finite(look, source, info);
        amount.told = info->bytes;
    }
    if (rc == GD_ELIMIT) {
        rc = ret->done ? GD_OK : gd_source_stats(source, prev, &options, &figures->stats, err);
    }
    stats_go_on(&amount, amount.elements);
    return rc;
}

/* Computes statistics of a value on disk; false: failed, or none are needed. */
static bool compute_value(const struct scan_compute *look, const struct scan_work *work,
                          struct gd_scan_stats *figures, struct scan_found *ret)
{
    struct gd_source_info info;
    struct gd_err err = {.text = ""};
    int rc = gd_source_info(work->value->source, &info, &err);

    if (rc == GD_OK && info.bytes >= BIG && look->threads <= 1) {
        ret->big = true;
        return false;
    }
    rc = rc != GD_OK ? rc : compute_stats(look, work, &info, figures, ret, &err);
    gd_source_close(work->value->source);
    if (rc != GD_OK) {
        ret->rc = rc;
        ret->why = strdup(err.text);
        ret->done = rc != GD_EINTR && rc != GD_ENOMEM;
        figures->error = rc == GD_EUNSUPPORTED ? GD_HIT_NOT_NUMBERS : GD_HIT_NO_VALUE;
        return ret->done;
    }
    return !ret->done;
}

void scan_compute(const struct scan_compute *look, const struct scan_work *work,
                  struct scan_found *ret)
{
    const struct gd_catalog_value *value = work->value;
    struct gd_scan_stats figures = {.dtype = value->dtype};

    *ret = (struct scan_found){.done = false};
    if (!look->go_on(look->ctx, 0)) {
        return;
    }
    if (value->source) {
        if (!compute_value(look, work, &figures, ret)) {
            return;
        }
    } else if (value->stats) {
        figures.stats = *value->stats;
        figures.shape = value->shape ? *value->shape : figures.shape;
    } else {
        figures.error = GD_HIT_NO_VALUE;
    }
    figures.stats.unknown |= work->item->dead ? (unsigned)GD_UNKNOWN_UNITS : 0;
    ret->done = true;
    if (figures.error || is_triggered(work->item, &figures, value->step)) {
        ret->figures = malloc(sizeof(figures));
        ret->done = ret->figures != NULL;
        ret->rc = ret->figures ? ret->rc : GD_ENOMEM;
        if (ret->figures) {
            *ret->figures = figures;
        }
    }
}
