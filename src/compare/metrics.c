// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Splits two tensors into segments of a fixed size, independent of the number of threads, and
 * merges their results in element order, so that the result is always the same. The few blocks with
 * the worst elements are then read again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/workers.h"
#include "compare/metrics_impl.h"

#define SEGMENT 64 /* blocks */
#define WAVE    16 /* segments between two calls of go_on */

struct segment {
    struct gd_pair_part part;
    struct gd_err err;
    int rc;
};

struct wave {
    const struct gd_pair_job *job;
    int64_t first, blocks; /* first block of the wave; blocks of the tensor */
    struct segment *segments;
};

static void do_segment(void *ctx, size_t index)
{
    struct wave *wave = ctx;
    struct segment *segment = &wave->segments[index];
    int64_t from = wave->first + (int64_t)index * SEGMENT;
    int64_t to = from + SEGMENT < wave->blocks ? from + SEGMENT : wave->blocks;
    struct gd_pair_room room;

    gd_pair_part_init(&segment->part);
    segment->rc = gd_pair_room_init(wave->job, &room, &segment->err);
    if (segment->rc != GD_OK) {
        return;
    }
    for (int64_t i = from; segment->rc == GD_OK && i < to; i++) {
        segment->rc = gd_pair_block(wave->job, i, &room, &segment->part, &segment->err);
    }
    gd_pair_room_deinit(&room);
}

static int do_wave(struct wave *wave, int threads, size_t count, struct gd_pair_part *total,
                   struct gd_err *err)
{
    gd_workers_run(threads > 1 ? threads : 1, count, do_segment, wave);
    for (size_t i = 0; i < count; i++) {
        if (wave->segments[i].rc != GD_OK) {
            return gd_fail(err, wave->segments[i].rc, "%s", wave->segments[i].err.text);
        }
        gd_pair_part_merge(total, &wave->segments[i].part);
    }
    return GD_OK;
}

static int do_all(const struct gd_pair_job *job, const struct gd_compare_options *options,
                  struct gd_pair_part *total, struct gd_err *err)
{
    int64_t blocks = (job->count + GD_PAIR_BLOCK - 1) / GD_PAIR_BLOCK;
    int64_t segments = (blocks + SEGMENT - 1) / SEGMENT;
    size_t most = segments < WAVE ? (size_t)segments : WAVE;
    struct wave wave = {.job = job, .blocks = blocks};
    int rc = GD_OK;

    gd_pair_part_init(total);
    wave.segments = calloc(most ? most : 1, sizeof(*wave.segments));
    if (!wave.segments) {
        return gd_fail_nomem(err);
    }
    for (int64_t at = 0; rc == GD_OK && at < segments; at += (int64_t)most) {
        int64_t left = segments - at;

        wave.first = at * SEGMENT;
        rc = do_wave(&wave, options->threads, left < (int64_t)most ? (size_t)left : most, total,
                     err);
        if (rc == GD_OK && options->go_on && !options->go_on(options->go_on_ctx, total->count)) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    free(wave.segments);
    return rc;
}

/* ---- the worst elements ---------------------------------------------------------------------- */

struct found {
    struct gd_worst one;
    double score;
};

struct worst {
    struct found found[GD_WORST];
    int count;
};

static void keep_worst(struct worst *worst, struct found found)
{
    int at = worst->count;

    if (at == GD_WORST && (worst->found[at - 1].score > found.score ||
                           (worst->found[at - 1].score == found.score &&
                            worst->found[at - 1].one.at < found.one.at))) {
        return;
    }
    at = at < GD_WORST ? worst->count++ : at - 1;
    for (; at > 0 && (worst->found[at - 1].score < found.score ||
                      (worst->found[at - 1].score == found.score &&
                       worst->found[at - 1].one.at > found.one.at));
         at--) {
        worst->found[at] = worst->found[at - 1];
    }
    worst->found[at] = found;
}

static void find_worst_in(const struct gd_pair_job *job, const struct gd_pair_room *room,
                          int64_t block, size_t n, struct worst *worst)
{
    for (size_t i = 0; i < n; i++) {
        struct gd_pair_element e = gd_pair_at(job, room, i);
        double score = e.finite ? gd_pair_score(&job->rule, e.distance, fabs(e.b))
                       : e.same ? 0
                                : INFINITY;

        if (score > 0) {
            keep_worst(worst,
                       (struct found){{block * GD_PAIR_BLOCK + (int64_t)i, e.a, e.b}, score});
        }
    }
}

static void look_max_abs(const struct gd_pair_job *job, const struct gd_pair_room *room,
                         const struct gd_pair_part *total, size_t n, struct gd_metrics *ret)
{
    for (size_t i = 0; i < n && ret->max_abs_at < 0; i++) {
        struct gd_pair_element e = gd_pair_at(job, room, i);

        if (e.finite && e.distance == total->max_abs) {
            ret->max_abs_at = total->max_abs_block * GD_PAIR_BLOCK + (int64_t)i;
        }
    }
}

static int look_again(const struct gd_pair_job *job, const struct gd_pair_part *total,
                      struct gd_metrics *ret, struct gd_err *err)
{
    struct worst worst = {.count = 0};
    struct gd_pair_room room;
    size_t n;
    int rc = gd_pair_room_init(job, &room, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (int i = 0; rc == GD_OK && i < total->spot_count; i++) {
        rc = gd_pair_read(job, total->spot[i].block, &room, &n, err);
        if (rc == GD_OK) {
            find_worst_in(job, &room, total->spot[i].block, n, &worst);
        }
    }
    if (rc == GD_OK && total->max_abs_block >= 0 && total->max_abs > 0) {
        rc = gd_pair_read(job, total->max_abs_block, &room, &n, err);
        if (rc == GD_OK) {
            look_max_abs(job, &room, total, n, ret);
        }
    }
    gd_pair_room_deinit(&room);
    ret->worst_count = worst.count;
    for (int i = 0; i < worst.count; i++) {
        ret->worst[i] = worst.found[i].one;
    }
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static double ulp_of(const struct gd_pair_job *job, const struct gd_pair_part *part)
{
    uint64_t all = 0, within = 0;

    for (size_t i = 0; i < GD_ULP_BUCKETS; i++) {
        all += part->ulp[i];
    }
    if (job->ulp == GD_DT_NONE || all == 0) {
        return NAN;
    }
    for (int i = 0; i < GD_ULP_BUCKETS; i++) {
        within += part->ulp[i];
        if ((double)within >= 0.99 * (double)all) {
            return ldexp(1, i) - 1;
        }
    }
    return INFINITY;
}

static void finish_metrics(const struct gd_pair_job *job, const struct gd_pair_part *part,
                           struct gd_metrics *ret)
{
    double finite = part->finite ? (double)part->finite : 1;

    *ret = (struct gd_metrics){
        .count = part->count,
        .same_nonfinite = part->same_nonfinite,
        .mismatch = part->mismatch,
        .equal = part->equal + part->same_nonfinite,
        .close = part->close,
        .max_abs = part->max_abs,
        .max_abs_at = -1,
        .mean_abs = gd_scaled_get(&part->abs) / finite,
        .rel_l2 = gd_scaled_root_ratio(&part->sq, &part->bb),
        .max_rel = part->max_rel,
        .r1k = part->finite ? (double)part->r1k / finite : 1,
        .r5k = part->finite ? (double)part->r5k / finite : 1,
        .cosine = gd_scaled_cosine(&part->ab, &part->aa, &part->bb),
        .ulp99 = ulp_of(job, part),
    };
    memcpy(ret->ulp, part->ulp, sizeof(ret->ulp));
    gd_stats_part_finish(&part->a, &ret->a);
    gd_stats_part_finish(&part->b, &ret->b);
}

double gd_metrics_close(const struct gd_metrics *metrics)
{
    return metrics->count
               ? (double)(metrics->close + metrics->same_nonfinite) / (double)metrics->count
               : 1;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_whole(enum gd_dtype dtype)
{
    return dtype == GD_BOOL || gd_dtype_is_int(dtype);
}

static bool is_narrow(enum gd_dtype dtype)
{
    return dtype == GD_FLOAT16 || dtype == GD_BFLOAT16 || dtype == GD_FLOAT32;
}

/* Bits of the stored mantissa: fewer are coarser. */
static int mantissa_bits(enum gd_stored stored, enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_BFLOAT16: return 7;
    case GD_FLOAT16: return 10;
    case GD_FLOAT32: return gd_stored_bits(stored) < 16 && stored != GD_STORED_NONE ? 0 : 23;
    case GD_FLOAT64: return 52;
    default: return 0; /* not a float, or one of at most 8 bits: not counted */
    }
}

static enum gd_dtype ulp_type(const struct gd_source_info *a, const struct gd_source_info *b)
{
    int x = mantissa_bits(a->stored, a->dtype), y = mantissa_bits(b->stored, b->dtype);

    if (x == 0 || y == 0) {
        return GD_DT_NONE;
    }
    return x < y ? a->dtype : b->dtype;
}

static double small_of(enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_FLOAT16:
    case GD_BFLOAT16: return 0x1p-10;
    case GD_FLOAT32:
    case GD_COMPLEX64: return 0x1p-20;
    case GD_FLOAT64:
    case GD_COMPLEX128: return 0x1p-40;
    default: return 0;
    }
}

static double small_of_both(const struct gd_source_info *a, const struct gd_source_info *b)
{
    double x = gd_stored_bits(a->stored) < 16 ? 0x1p-10 : small_of(a->dtype);
    double y = gd_stored_bits(b->stored) < 16 ? 0x1p-10 : small_of(b->dtype);

    if (is_whole(a->dtype) || is_whole(b->dtype)) {
        return is_whole(a->dtype) && is_whole(b->dtype) ? 0 : is_whole(a->dtype) ? y : x;
    }
    return x > y ? x : y;
}

static void prepare_job(struct gd_pair_job *job, struct gd_tolerance tolerance)
{
    enum gd_dtype a = job->info_a.dtype, b = job->info_b.dtype;

    job->mode = gd_dtype_is_complex(a) || gd_dtype_is_complex(b) ? GD_PAIR_COMPLEX
                : is_whole(a) && is_whole(b)                     ? GD_PAIR_INT
                : is_narrow(a) && is_narrow(b)                   ? GD_PAIR_FLOAT32
                                                                 : GD_PAIR_FLOAT64;
    job->ulp = ulp_type(&job->info_a, &job->info_b);
    job->same_type = a == b;
    job->rule = (struct gd_pair_rule){tolerance.rtol, tolerance.atol,
                                      small_of_both(&job->info_a, &job->info_b)};
    job->level = gd_pair_level();
    job->count = gd_shape_count(&job->info_a.shape);
}

static void squeeze_shape(const struct gd_shape *shape, struct gd_shape *ret)
{
    ret->rank = 0;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] != 1) {
            ret->dim[ret->rank++] = shape->dim[i];
        }
    }
}

static void add_note(struct gd_difference *ret, const char *text)
{
    size_t used = strlen(ret->note);

    if (text && text[0]) {
        snprintf(ret->note + used, sizeof(ret->note) - used, "%s%s", used ? "; " : "", text);
    }
}

static int mark_unreadable(struct gd_difference *ret, const char *side, const struct gd_err *why)
{
    ret->verdict = GD_V_UNREADABLE;
    snprintf(ret->note, sizeof(ret->note), "%s%.140s", side, why->text);
    return GD_OK;
}

static bool is_fatal(int rc)
{
    return rc == GD_EINTR || rc == GD_ENOMEM;
}

/* False: the verdict is known without reading. */
static bool check_kinds(const struct gd_pair_job *job, struct gd_difference *ret)
{
    const struct gd_source_info *a = &job->info_a, *b = &job->info_b;
    struct gd_shape x, y;
    char text[96];

    if (!gd_stats_kind(a->dtype) || !gd_stats_kind(b->dtype)) {
        ret->verdict = GD_V_UNREADABLE;
        snprintf(ret->note, sizeof(ret->note), "%s is not a numeric type",
                 gd_stored_name(gd_stats_kind(a->dtype) ? b->stored : a->stored));
        return false;
    }
    if (a->stored != b->stored) {
        snprintf(text, sizeof(text), "%s against %s", gd_stored_name(a->stored),
                 gd_stored_name(b->stored));
        add_note(ret, text);
    }
    add_note(ret, a->note);
    if (b->note && (!a->note || strcmp(a->note, b->note) != 0)) {
        add_note(ret, b->note);
    }
    if (!gd_shape_equal(&a->shape, &b->shape)) {
        squeeze_shape(&a->shape, &x);
        squeeze_shape(&b->shape, &y);
        ret->squeezed = gd_shape_equal(&x, &y);
        if (!ret->squeezed) {
            ret->verdict = GD_V_SHAPE;
            return false;
        }
        add_note(ret, "dimensions of size 1 dropped");
    }
    return true;
}

static void set_verdict(struct gd_difference *ret)
{
    const struct gd_metrics *m = &ret->metrics;

    if (m->mismatch > 0) {
        ret->verdict = GD_V_NONFINITE;
    } else if (m->equal == m->count) {
        ret->verdict = GD_V_SAME;
    } else if (m->close + m->same_nonfinite == m->count) {
        ret->verdict = GD_V_PASS;
    } else if (gd_metrics_close(m) >= 0.999 && m->rel_l2 <= 10 * ret->tolerance.rtol) {
        ret->verdict = GD_V_WARN;
    } else {
        ret->verdict = GD_V_FAIL;
    }
}

int gd_compare_sources(struct gd_source *a, struct gd_source *b,
                       const struct gd_compare_options *options, struct gd_difference *ret,
                       struct gd_err *err)
{
    struct gd_pair_job job = {.a = a, .b = b};
    struct gd_pair_part total;
    struct gd_err why = {.text = ""};
    int rc = gd_source_info(a, &job.info_a, &why);

    *ret = (struct gd_difference){.verdict = GD_V_UNREADABLE};
    if (rc != GD_OK) {
        return is_fatal(rc) ? gd_fail(err, rc, "%s", why.text) : mark_unreadable(ret, "A: ", &why);
    }
    rc = gd_source_info(b, &job.info_b, &why);
    if (rc != GD_OK) {
        return is_fatal(rc) ? gd_fail(err, rc, "%s", why.text) : mark_unreadable(ret, "B: ", &why);
    }
    ret->tolerance =
        options->has_tolerance
            ? options->tolerance
            : gd_profile_tolerance(options->profile, job.info_a.stored, job.info_b.stored);
    if (!check_kinds(&job, ret)) {
        return GD_OK;
    }
    prepare_job(&job, ret->tolerance);
    rc = do_all(&job, options, &total, &why);
    if (rc == GD_OK) {
        finish_metrics(&job, &total, &ret->metrics);
        rc = look_again(&job, &total, &ret->metrics, &why);
    }
    if (rc != GD_OK) {
        return is_fatal(rc) ? gd_fail(err, rc, "%s", why.text) : mark_unreadable(ret, "", &why);
    }
    ret->has_metrics = true;
    set_verdict(ret);
    return GD_OK;
}
