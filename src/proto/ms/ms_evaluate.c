// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The end of a step: every tensor in the plans is fetched, examined and released, a few at a time,
 * in execution order. Reports are sent as soon as a plan requires them; when all is done, the
 * target stops or continues according to the verdict.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watch_report.h"
#include "engine/watch/watchpoint.h"
#include "proto/clock.h"
#include "proto/ms/ms_plan.h"

/* Small values are requested together. */
#define IN_FLIGHT    256
/* From this size on, the process's own statistics save work; below it the value costs no more and
 * yields more. */
#define SUMMARY_FROM 65536

struct request {
    struct ms_plans *plans;
    size_t job;
    struct gd_tensor *current; /* while the previous value is being fetched */
};

/* ---- jobs ---------------------------------------------------------------------------------- */

struct entry {
    uint32_t order;
    gd_node_id node;
    uint32_t slot;
    struct ms_work work;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    if (x->slot != y->slot) {
        return x->slot < y->slot ? -1 : 1;
    }
    return x->work.plan->id < y->work.plan->id ? -1 : x->work.plan->id > y->work.plan->id;
}

static struct entry *collect_entries(const struct ms_plans *plans, size_t *count)
{
    size_t total = 0;
    for (const struct ms_plan *plan = plans->plans; plan; plan = plan->next) {
        total += plan->item_count;
    }
    struct entry *entries = malloc((total + 1) * sizeof(*entries));
    *count = 0;
    for (struct ms_plan *plan = plans->plans; entries && plan; plan = plan->next) {
        for (size_t i = 0; i < plan->item_count; i++) {
            struct gd_node_info info;
            const struct ms_item *item = &plan->items[i];
            bool runs = gd_graph_node(plans->target->base.session->graph, item->node, &info) &&
                        info.order != GD_NO_ORDER;
            entries[(*count)++] = (struct entry){.order = runs ? info.order + 1 : 0,
                                                 .node = item->node,
                                                 .slot = item->slot,
                                                 .work = {plan, (uint32_t)i}};
        }
    }
    if (entries) {
        qsort(entries, total, sizeof(*entries), compare_entries);
    }
    return entries;
}

/* An `if` may use any statistic. */
static bool is_guarded(const struct gd_ms_target *target, gd_node_id node)
{
    int numbers[16];
    size_t count = gd_watch_of_node(target->base.session, node, numbers, 16);
    for (size_t i = 0; i < count && i < 16; i++) {
        const struct gd_watchpoint *watch = gd_watchpoint_at(target->debugger, numbers[i]);
        if (watch && watch->guard) {
            return true;
        }
    }
    return count > 16;
}

/* The process sends extremes as floats. */
static bool is_exact_as_float(enum gd_dtype dtype)
{
    return dtype == GD_FLOAT32 || dtype == GD_FLOAT16 || dtype == GD_BFLOAT16 || dtype == GD_INT8 ||
           dtype == GD_UINT8 || dtype == GD_INT16 || dtype == GD_UINT16 || dtype == GD_BOOL;
}

static bool summary_pays(const struct gd_ms_target *target, const struct ms_job *job)
{
    struct gd_output output;
    size_t bytes;
    return target->version.has_levels &&
           gd_graph_output(target->base.session->graph, job->node, job->slot, &output) &&
           is_exact_as_float(output.dtype) &&
           gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK &&
           bytes >= SUMMARY_FROM && !is_guarded(target, job->node);
}

static void finish_job(const struct ms_plans *plans, struct ms_job *job,
                       const struct ms_work *works)
{
    job->summary_enough = true;
    for (uint32_t i = 0; i < job->work_count; i++) {
        const struct ms_work *work = &works[job->first_work + i];
        const struct ms_recipe *recipe = &work->plan->recipes[work->plan->items[work->item].recipe];
        job->against_previous = job->against_previous || recipe->against_previous;
        job->dead = job->dead || recipe->dead_steps;
        job->summary_enough = job->summary_enough && recipe->summary_enough;
    }
    job->summary_enough = job->summary_enough && summary_pays(plans->target, job);
}

static int compare_tensors(const void *a, const void *b)
{
    const struct ms_job *x = a, *y = b;
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void drop_kept(struct ms_plans *plans, struct ms_job *job)
{
    if (job->kept) {
        plans->kept_bytes -= gd_tensor_bytes(job->kept);
    }
    gd_tensor_unref(job->kept);
    job->kept = NULL;
}

static void free_jobs(struct ms_plans *plans)
{
    for (size_t i = 0; i < plans->job_count; i++) {
        drop_kept(plans, &plans->jobs[i]);
        gd_units_destroy(plans->jobs[i].units);
    }
    free(plans->jobs);
    free(plans->works);
    plans->jobs = NULL;
    plans->works = NULL;
    plans->job_count = plans->work_count = 0;
}

/* Transfers what was kept for a tensor, as far as it is still needed. */
static void carry_over(struct ms_plans *plans, struct ms_job *jobs, size_t count)
{
    if (plans->job_count) {
        qsort(plans->jobs, plans->job_count, sizeof(*plans->jobs), compare_tensors);
    }
    for (size_t i = 0; i < count && plans->job_count; i++) {
        struct ms_job *old =
            bsearch(&jobs[i], plans->jobs, plans->job_count, sizeof(*plans->jobs), compare_tensors);
        if (!old) {
            continue;
        }
        jobs[i].bytes = old->bytes;
        if (jobs[i].against_previous) {
            jobs[i].kept = old->kept;
            jobs[i].kept_step = old->kept_step;
            old->kept = NULL;
        }
        if (jobs[i].dead) {
            jobs[i].units = old->units;
            old->units = NULL;
        }
    }
}

/* Rebuilds the jobs from the plans; false: out of memory. */
static bool make_jobs(struct ms_plans *plans)
{
    size_t total, count = 0;
    struct entry *entries = collect_entries(plans, &total);
    struct ms_job *jobs = calloc(total + 1, sizeof(*jobs));
    struct ms_work *works = malloc((total + 1) * sizeof(*works));
    if (!entries || !jobs || !works) {
        free(entries);
        free(jobs);
        free(works);
        return false;
    }
    for (size_t i = 0; i < total; i++) {
        const struct entry *e = &entries[i];
        if (!count || jobs[count - 1].node != e->node || jobs[count - 1].slot != e->slot) {
            jobs[count++] = (struct ms_job){
                .node = e->node, .slot = e->slot, .order = e->order, .first_work = (uint32_t)i};
        }
        works[i] = e->work;
        jobs[count - 1].work_count++;
    }
    free(entries);
    for (size_t i = 0; i < count; i++) {
        finish_job(plans, &jobs[i], works);
    }
    carry_over(plans, jobs, count);
    free_jobs(plans);
    plans->jobs = jobs;
    plans->job_count = count;
    plans->works = works;
    plans->work_count = total;
    plans->changed = false;
    ms_plan_drop_retired(plans);
    return true;
}

void ms_evaluate_forget(struct ms_plans *plans)
{
    free_jobs(plans);
    plans->changed = true;
}

/* ---- reporting ----------------------------------------------------------------------------- */

static void flush_batch(struct ms_plans *plans, struct ms_batch *batch, bool record)
{
    struct gd_watch_moment moment = {.step = plans->last_step, .record = record};
    char why[sizeof(plans->why)] = "";
    if (!batch->count) {
        return;
    }
    bool stop = gd_watch_on_values(plans->target->base.session, &moment, batch->value, batch->count,
                                   why, sizeof(why));
    batch->count = 0;
    if (stop && !plans->stop) {
        memcpy(plans->why, why, sizeof(why));
    }
    plans->stop = plans->stop || stop;
}

/* Whether the session must see the value: a comparison holds, or cannot be made. */
static bool is_triggered(const struct ms_recipe *recipe, const struct gd_stats *stats,
                         enum gd_dtype dtype, int64_t step)
{
    struct gd_observation seen = {.stats = stats, .dtype = dtype, .step = step, .value_step = step};
    for (size_t i = 0; i < recipe->trigger_count; i++) {
        const struct gd_watch_trigger *trigger = &recipe->triggers[i];
        double value;
        unsigned error;
        seen.range = (int)trigger->range < stats->range_count ? (int)trigger->range : -1;
        if (!gd_statistic_value(trigger->test.statistic, &seen, &value, &error) ||
            gd_compare(value, trigger->test.op, trigger->test.value)) {
            return true;
        }
    }
    return recipe->trigger_count == 0;
}

struct finding { /* what is known about a tensor for one item */
    enum gd_dtype dtype;
    const struct gd_shape *shape;
    const struct gd_stats *stats; /* NULL: error */
    unsigned error;
    uint64_t ns;
    const uint64_t *bins; /* NULL: not wanted */
};

static void report_hit(struct ms_plans *plans, const struct ms_job *job, const struct ms_work *work,
                       const struct finding *found)
{
    const struct ms_recipe *recipe = &work->plan->recipes[work->plan->items[work->item].recipe];
    bool judge =
        !found->stats || is_triggered(recipe, found->stats, found->dtype, plans->last_step);
    if (!judge && !work->plan->record) {
        return;
    }
    struct ms_batch *batch = judge ? &plans->judged : &plans->recorded;
    struct gd_watch_value *value = &batch->value[batch->count];
    *value = (struct gd_watch_value){.plan = work->plan->id,
                                     .node = job->node,
                                     .slot = job->slot,
                                     .dtype = found->dtype,
                                     .error = found->error,
                                     .value_step = plans->last_step,
                                     .cost_ns = found->ns};
    if (found->shape) {
        batch->shape[batch->count] = *found->shape;
        value->shape = &batch->shape[batch->count];
    }
    if (found->stats) {
        batch->stats[batch->count] = *found->stats;
        value->stats = &batch->stats[batch->count];
    }
    if (found->stats && found->bins) {
        memcpy(batch->bins[batch->count], found->bins, sizeof(batch->bins[0]));
        value->bins = batch->bins[batch->count];
    }
    if (++batch->count == MS_BATCH) {
        flush_batch(plans, batch, !judge);
    }
}

static void report_error(struct ms_plans *plans, const struct ms_job *job, unsigned error)
{
    const struct finding found = {.error = error};
    for (uint32_t i = 0; i < job->work_count; i++) {
        report_hit(plans, job, &plans->works[job->first_work + i], &found);
    }
}

/* ---- one tensor ---------------------------------------------------------------------------- */

static void look_at_units(struct ms_job *job, const struct gd_tensor *tensor)
{
    if (!job->units && gd_units_create(&job->units, NULL) != GD_OK) {
        return;
    }
    gd_units_look(job->units, tensor, NULL);
}

static unsigned error_of(int code)
{
    switch (code) {
    case GD_EUNSUPPORTED: return GD_HIT_NOT_NUMBERS;
    case GD_ENOMEM:
    case GD_ELIMIT: return GD_HIT_NO_MEMORY;
    default: return GD_HIT_NO_VALUE;
    }
}

/* None where no element is finite. */
static int count_bins(const struct gd_tensor *tensor, const struct gd_stats *stats, uint64_t *ret)
{
    memset(ret, 0, GD_WATCH_BINS * sizeof(*ret));
    return stats->min <= stats->max
               ? gd_stats_histogram(tensor, stats->min, stats->max, GD_WATCH_BINS, ret, NULL)
               : GD_OK;
}

static void compute_value(struct ms_plans *plans, struct ms_job *job, const struct ms_work *work,
                          const struct gd_tensor *now, const struct gd_tensor *before)
{
    struct ms_item *item = &work->plan->items[work->item];
    const struct ms_recipe *recipe = &work->plan->recipes[item->recipe];
    struct finding found = {.dtype = now->dtype, .shape = &now->shape};
    struct gd_stats stats;
    uint64_t bins[GD_WATCH_BINS];
    uint64_t began = gd_clock_ns();
    int rc = gd_stats_compute(now, recipe->against_previous ? before : NULL, &recipe->options,
                              &stats, NULL);
    if (rc == GD_OK && recipe->dead_steps && job->units) {
        gd_units_count(job->units, recipe->dead_steps, &stats.units, &stats.dead_units);
    }
    if (rc == GD_OK && recipe->bins) {
        rc = count_bins(now, &stats, bins);
        found.bins = bins;
    }
    found.ns = gd_clock_ns() - began;
    item->ns += found.ns;
    item->runs++;
    plans->busy += found.ns;
    if (rc != GD_OK) {
        found.error = error_of(rc);
    } else {
        found.stats = &stats;
    }
    report_hit(plans, job, work, &found);
}

static void keep_value(struct ms_plans *plans, struct ms_job *job, struct gd_tensor *tensor)
{
    struct gd_ms_target *target = plans->target;
    drop_kept(plans, job);
    if (plans->kept_bytes + gd_tensor_bytes(tensor) > target->debugger->settings.max_cache) {
        if (!plans->warned) {
            ms_warn(target, "max-cache is too small to keep the previous values of all tensors "
                            "whose changes are watched");
        }
        plans->warned = true;
        return;
    }
    job->kept = gd_tensor_ref(tensor);
    job->kept_step = plans->last_step;
    plans->kept_bytes += gd_tensor_bytes(tensor);
}

/* A complete tensor has arrived. */
static void use_tensor(struct ms_plans *plans, struct ms_job *job, struct gd_tensor *now,
                       const struct gd_tensor *before)
{
    if (before && !gd_tensor_is_alike(now, before)) {
        before = NULL;
    }
    if (job->dead) {
        look_at_units(job, now);
    }
    for (uint32_t i = 0; i < job->work_count; i++) {
        compute_value(plans, job, &plans->works[job->first_work + i], now, before);
    }
    if (job->against_previous) {
        keep_value(plans, job, now);
    }
}

static void use_summary(struct ms_plans *plans, struct ms_job *job, enum gd_dtype dtype,
                        const struct gd_shape *shape, const struct gd_stats *stats)
{
    const struct finding found = {.dtype = dtype, .shape = shape, .stats = stats};
    for (uint32_t i = 0; i < job->work_count; i++) {
        const struct ms_work *work = &plans->works[job->first_work + i];
        work->plan->items[work->item].runs++;
        report_hit(plans, job, work, &found);
    }
}

static void use_failure(struct ms_plans *plans, struct ms_job *job, const struct gd_err *err)
{
    struct gd_ms_target *target = plans->target;
    struct gd_node_info info;
    unsigned error = err ? error_of(err->code) : GD_HIT_NO_VALUE;
    bool runs = gd_graph_node(target->base.session->graph, job->node, &info) &&
                info.kind != GD_NODE_CONSTANT && strcmp(info.type, "Parameter") != 0;
    if (error == GD_HIT_NO_VALUE && runs) {
        if (target->is_gpu) {
            error = GD_HIT_NOT_CAPTURED;
        }
        /* A process on Ascend may be configured to keep only watched values. */
        if (!target->is_gpu && !plans->kernels_missing) {
            plans->kernels_missing = plans->capture_changed = true;
        }
    }
    report_error(plans, job, error);
}

/* ---- the whole step ------------------------------------------------------------------------ */

static void finish_run(struct ms_plans *plans)
{
    struct gd_ms_target *target = plans->target;
    uint64_t took = gd_clock_ns() - plans->began;
    flush_batch(plans, &plans->judged, false);
    flush_batch(plans, &plans->recorded, true);
    plans->active = false;
    /* All plans made the process wait together: each is charged by its number of tensors. */
    for (struct ms_plan *plan = plans->plans; plan; plan = plan->next) {
        plan->reports++;
        if (took > plans->busy && plans->work_count) {
            plan->wait_ns += (uint64_t)((double)(took - plans->busy) * (double)plan->item_count /
                                        (double)plans->work_count);
        }
    }
    if (plans->stop) {
        target->run.hit = true;
        memcpy(target->run.hit_text, plans->why, sizeof(target->run.hit_text));
    }
}

static void advance_run(struct ms_plans *plans);

static void job_done(struct request *request)
{
    struct ms_plans *plans = request->plans;
    gd_tensor_unref(request->current);
    free(request);
    plans->waiting--;
    if (plans->asking || !plans->active || plans->target->ending) {
        return;
    }
    advance_run(plans);
    if (plans->active) {
        return;
    }
    ms_arrived(plans->target);
    ms_pump(plans->target);
}

static void on_previous(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct request *request = ctx;
    (void)step;
    if (!request->plans->target->ending) {
        use_tensor(request->plans, &request->plans->jobs[request->job], request->current,
                   err ? NULL : tensor);
    }
    job_done(request);
}

/* The process keeps previous values of parameters; not on GPU in later releases. */
static bool process_has_previous(const struct gd_ms_target *target, gd_node_id node)
{
    struct gd_node_info info;
    return !(target->is_gpu && target->version.gpu_lacks_previous) &&
           gd_graph_node(target->base.session->graph, node, &info) &&
           strcmp(info.type, "Parameter") == 0;
}

static void count_bytes(struct ms_plans *plans, struct ms_job *job, const struct gd_tensor *tensor)
{
    job->bytes = gd_tensor_bytes(tensor);
    plans->works[job->first_work].plan->bytes += job->bytes;
}

static void on_summary(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                       const struct gd_stats *stats, int64_t step, const struct gd_err *err);

static void on_value(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct request *request = ctx;
    struct ms_plans *plans = request->plans;
    struct ms_job *job = &plans->jobs[request->job];
    struct gd_ms_target *target = plans->target;
    struct gd_tensor_ref ref = {.node = job->node, .slot = job->slot, .iter = GD_CURRENT};
    (void)step;
    if (target->ending) {
        job_done(request);
        return;
    }
    if (err || !tensor) {
        /* Too large to be sent: falls back to the process's own statistics. */
        if (err && err->code == GD_ELIMIT && target->version.has_levels &&
            ms_view_summary(target, &ref, on_summary, request, NULL) == GD_OK) {
            return;
        }
        use_failure(plans, job, err);
        job_done(request);
        return;
    }
    count_bytes(plans, job, tensor);
    bool kept = job->kept && job->kept_step == plans->last_step - 1;
    if (job->against_previous && !kept && process_has_previous(target, job->node)) {
        request->current = gd_tensor_ref(tensor);
        ref.iter = GD_PREVIOUS;
        if (ms_view_value(target, &ref, job->bytes, on_previous, request, NULL) == GD_OK) {
            return;
        }
    }
    use_tensor(plans, job, tensor, kept ? job->kept : NULL);
    job_done(request);
}

static void on_summary(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                       const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct request *request = ctx;
    struct ms_plans *plans = request->plans;
    struct ms_job *job = &plans->jobs[request->job];
    struct gd_tensor_ref ref = {.node = job->node, .slot = job->slot, .iter = GD_CURRENT};
    (void)step;
    if (plans->target->ending) {
        job_done(request);
        return;
    }
    /* MindSpore 2.3 includes NaN and Inf in the extremes: the value itself is needed. */
    bool mixed = stats && stats->count > stats->nan + stats->pos_inf + stats->neg_inf &&
                 !(isfinite(stats->min) && isfinite(stats->max));
    if (mixed && job->summary_enough) {
        job->summary_enough = false;
        if (ms_view_value(plans->target, &ref, 0, on_value, request, NULL) == GD_OK) {
            return;
        }
    }
    if (err || !stats) {
        use_failure(plans, job, err);
    } else {
        use_summary(plans, job, dtype, shape, stats);
    }
    job_done(request);
}

static void ask_for(struct ms_plans *plans, size_t index)
{
    struct ms_job *job = &plans->jobs[index];
    struct gd_tensor_ref ref = {.node = job->node, .slot = job->slot, .iter = GD_CURRENT};
    struct request *request = calloc(1, sizeof(*request));
    struct gd_err err;
    int rc = GD_ENOMEM;
    err.code = GD_ENOMEM;
    if (request) {
        *request = (struct request){.plans = plans, .job = index};
        plans->waiting++;
        if (job->summary_enough) {
            rc = ms_view_summary(plans->target, &ref, on_summary, request, &err);
        } else {
            rc = ms_view_value(plans->target, &ref, job->bytes, on_value, request, &err);
        }
    }
    if (rc == GD_OK) {
        return;
    }
    use_failure(plans, job, &err);
    plans->waiting -= request != NULL;
    free(request);
}

/* Requests what comes next; ends the step if there is nothing. */
static void advance_run(struct ms_plans *plans)
{
    plans->asking = true;
    while (plans->waiting < IN_FLIGHT && plans->next < plans->job_count) {
        ask_for(plans, plans->next++);
    }
    plans->asking = false;
    if (!plans->waiting && plans->next == plans->job_count) {
        finish_run(plans);
    }
}

/* A process that is stepped by nodes does not also stop at the end of the step. */
static void tell_missed(struct ms_plans *plans)
{
    struct gd_ms_target *target = plans->target;
    if (target->at.step - 1 <= plans->last_step) {
        return;
    }
    if (!plans->warned_missed) {
        ms_warn(target,
                "step %" PRId64
                " passed without a stop at its end because it was stepped by nodes, so the "
                "watchpoints that gradb evaluates were not checked there",
                target->at.step - 1);
    }
    plans->warned_missed = true;
    plans->last_step = target->at.step - 1;
}

bool ms_plan_begin(struct gd_ms_target *target)
{
    struct ms_plans *plans = target->plans;
    if (!plans || !plans->plans || plans->active) {
        return false;
    }
    tell_missed(plans);
    if (!target->at.at_end || target->at.step <= plans->last_step) {
        return false;
    }
    if (plans->changed && !make_jobs(plans)) {
        ms_warn(target, "out of memory: watchpoints were not evaluated in this step");
        return false;
    }
    target->phase = MS_SUSPENDED; /* its polls between the requests are not stops */
    plans->last_step = target->at.step;
    plans->active = true;
    plans->stop = false;
    plans->why[0] = '\0';
    plans->next = plans->waiting = 0;
    plans->busy = 0;
    plans->began = gd_clock_ns();
    advance_run(plans);
    return plans->active;
}
