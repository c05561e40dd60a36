// SPDX-License-Identifier: GPL-3.0-or-later
/* Answers requests for a dump's values and statistics. dump_stepping.c moves it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump/dump_target_impl.h"
#include "dump/format.h"
#include "engine/memory/memory.h"

#define MAX_THREADS 16

/* ---- finding values -------------------------------------------------------------------------- */

int64_t dump_step_at(const struct dump_target *target, size_t at)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(target->catalog, &count);

    return at < count ? steps[at].step : GD_EVERY_STEP;
}

/* The nearest step that has a value of the tensor; GD_EVERY_STEP: none. */
static int64_t nearest_step(const struct dump_target *target, const struct gd_tensor_ref *ref)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(target->catalog, &count);

    for (size_t far = 1; far < count; far++) {
        size_t places[2] = {target->at - far, target->at + far};

        for (int i = 0; i < 2; i++) {
            if (places[i] < count &&
                gd_catalog_find(target->catalog, ref->node, ref->slot, steps[places[i]].step)) {
                return steps[places[i]].step;
            }
        }
    }
    return GD_EVERY_STEP;
}

static int not_dumped(const struct dump_target *target, const struct gd_tensor_ref *ref,
                      int64_t step, struct gd_err *err)
{
    const char *name = gd_graph_name(target->base.session->graph, ref->node);
    const char *why = gd_catalog_why_not(target->catalog, ref->node);
    int64_t other = why ? GD_EVERY_STEP : nearest_step(target, ref);
    char slot[16], text[64] = "";

    gd_graph_slot_name(target->base.session->graph, ref->node, ref->slot, slot);
    if (other != GD_EVERY_STEP) {
        snprintf(text, sizeof(text), "the nearest step that has it is %lld", (long long)other);
        why = text;
    }
    if (step == GD_EVERY_STEP) {
        return gd_fail(err, GD_ENODATA, "%.300s:%s was not dumped%s%.120s", name, slot,
                       why ? ": " : "", why ? why : "");
    }
    return gd_fail(err, GD_ENODATA, "%.300s:%s was not dumped in step %lld: %.120s", name, slot,
                   (long long)step, why ? why : "no step has it");
}

/* Finds the value in a step, or in the previous one. */
static int find_value(const struct dump_target *target, const struct gd_tensor_ref *ref,
                      const struct gd_catalog_value **ret, struct gd_err *err)
{
    bool before = ref->iter == GD_PREVIOUS;
    int64_t step = dump_step_at(target, target->at);
    const struct gd_catalog_value *found;

    step = before ? gd_catalog_step_before(target->catalog, ref->node, step) : step;
    if (before && step == GD_EVERY_STEP) {
        return gd_fail(err, GD_ENODATA,
                       "%.300s has no previous value: this is the first step of %s",
                       gd_graph_name(target->base.session->graph, ref->node),
                       gd_graph_is_qualified(target->base.session->graph) ? "its graph in the dump"
                                                                          : "the dump");
    }
    found = gd_catalog_find(target->catalog, ref->node, ref->slot, step);
    if (!found) {
        found = gd_catalog_find_given(target->catalog, target->base.session->graph, ref->node,
                                      ref->slot, step);
    }
    if (found && before && found->step == GD_EVERY_STEP) {
        return gd_fail(err, GD_ENODATA, "%.300s is the same in every step of the dump",
                       gd_graph_name(target->base.session->graph, ref->node));
    }
    if (!found) {
        return not_dumped(target, ref, step, err);
    }
    *ret = found;
    return GD_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Prefers the file's own shape to the one its name gave. */
static void learn_shape(struct dump_target *target, const struct gd_catalog_value *value,
                        const struct gd_tensor *tensor)
{
    struct gd_output output = {.dtype = tensor->dtype, .shape = tensor->shape};
    struct gd_output known;

    if (gd_graph_output(target->base.session->graph, value->node, value->slot, &known) &&
        known.dtype == GD_DT_NONE) {
        gd_graph_set_output(target->base.session->graph, value->node, value->slot, &output);
    }
}

static int fetch_tensor(struct gd_target *base, const struct gd_tensor_ref *ref,
                        const struct gd_slice *slice, gd_tensor_fn fn, void *ctx,
                        struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;
    const struct gd_catalog_value *value = NULL;
    uint64_t max = base->session->debugger->settings.max_tensor;
    struct gd_tensor *tensor;
    int rc = find_value(target, ref, &value, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!value->source) {
        char slot[16];

        gd_graph_slot_name(base->session->graph, ref->node, ref->slot, slot);
        return gd_fail(err, GD_ENODATA,
                       "the values of %.300s:%s were not dumped: the dump has only its statistics",
                       gd_graph_name(base->session->graph, ref->node), slot);
    }
    rc =
        gd_source_read(value->source, slice, max > SIZE_MAX ? SIZE_MAX : (size_t)max, &tensor, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!slice || slice->count == 0) {
        learn_shape(target, value, tensor);
    }
    fn(ctx, tensor, value->step == GD_EVERY_STEP ? -1 : value->step, NULL);
    gd_tensor_unref(tensor);
    return GD_OK;
}

static int thread_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int)count;
}

struct gd_source *dump_before(const struct dump_target *target,
                              const struct gd_catalog_value *value)
{
    int64_t step = value->step == GD_EVERY_STEP
                       ? GD_EVERY_STEP
                       : gd_catalog_step_before(target->catalog, value->node, value->step);
    const struct gd_catalog_value *found =
        step == GD_EVERY_STEP ? NULL
                              : gd_catalog_find(target->catalog, value->node, value->slot, step);
    struct gd_source_info now, then;

    if (!found || found->step == GD_EVERY_STEP || !found->source || !value->source ||
        gd_source_info(value->source, &now, NULL) != GD_OK ||
        gd_source_info(found->source, &then, NULL) != GD_OK || now.dtype != then.dtype ||
        !gd_shape_equal(&now.shape, &then.shape)) {
        return NULL;
    }
    return found->source;
}

int dump_stats(const struct dump_target *target, const struct gd_catalog_value *value,
               const struct gd_stats_options *options, struct dump_figures *ret, struct gd_err *err)
{
    struct gd_stats_options mine = options ? *options : (struct gd_stats_options){.rtol = 0};
    struct gd_source_info info;
    int rc;

    memset(ret, 0, sizeof(*ret));
    if (!value->source) {
        ret->dtype = value->dtype;
        ret->shape = value->shape ? *value->shape : ret->shape;
        if (!value->stats) {
            return gd_fail(err, GD_ENODATA, "the dump has neither its values nor its statistics");
        }
        ret->stats = *value->stats;
        return GD_OK;
    }
    rc = gd_source_info(value->source, &info, err);
    if (rc != GD_OK) {
        return rc;
    }
    ret->dtype = info.dtype;
    ret->shape = info.shape;
    mine.threads = thread_count();
    return gd_source_stats(value->source, dump_before(target, value), &mine, &ret->stats, err);
}

struct waiting { /* progress of statistics that the user waits for */
    struct gd_debugger *debugger;
    uint64_t item, total; /* bytes */
};

static bool wait_on(void *ctx, uint64_t done)
{
    const struct waiting *waiting = ctx;
    struct gd_debugger *debugger = waiting->debugger;

    return !debugger->meanwhile ||
           debugger->meanwhile(debugger->meanwhile_ctx, done * waiting->item, waiting->total);
}

static int stats_while_waiting(const struct dump_target *target,
                               const struct gd_catalog_value *value, struct dump_figures *ret,
                               struct gd_err *err)
{
    struct waiting waiting = {.debugger = target->base.session->debugger};
    struct gd_stats_options options = {.go_on = wait_on, .go_on_ctx = &waiting};
    struct gd_source_info info;

    if (value->source && gd_source_info(value->source, &info, NULL) == GD_OK) {
        waiting.item = gd_dtype_size(info.dtype);
        waiting.total = (uint64_t)gd_shape_count(&info.shape) * waiting.item;
    }
    return dump_stats(target, value, &options, ret, err);
}

static int answer_stats(struct gd_target *base, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                        void *ctx, struct gd_err *err)
{
    struct dump_target *target = (struct dump_target *)base;
    const struct gd_catalog_value *value = NULL;
    struct dump_figures figures;
    int rc = find_value(target, ref, &value, err);

    rc = rc != GD_OK ? rc : stats_while_waiting(target, value, &figures, err);
    if (rc != GD_OK) {
        return rc;
    }
    fn(ctx, figures.dtype, &figures.shape, &figures.stats,
       value->step == GD_EVERY_STEP ? -1 : value->step, NULL);
    return GD_OK;
}

static int recall_stats(struct gd_target *base, const struct gd_tensor_ref *ref, gd_recall_fn fn,
                        void *ctx, struct gd_err *err)
{
    const struct dump_target *target = (const struct dump_target *)base;
    size_t count, seen = 0;
    const struct gd_catalog_step *steps = gd_catalog_steps(target->catalog, &count);

    for (size_t i = 0; i < count; i++) {
        const struct gd_catalog_value *value =
            gd_catalog_find(target->catalog, ref->node, ref->slot, steps[i].step);
        struct dump_figures figures;

        if (!value || value->step == GD_EVERY_STEP) {
            continue;
        }
        seen++;
        if (dump_stats(target, value, NULL, &figures, NULL) == GD_OK
                ? !fn(ctx, value->step, figures.dtype, &figures.shape, &figures.stats)
                : !fn(ctx, value->step, GD_DT_NONE, NULL, NULL)) {
            return gd_fail(err, GD_EINTR, "interrupted after %zu of %zu steps", i + 1, count);
        }
    }
    return seen ? GD_OK : not_dumped(target, ref, GD_EVERY_STEP, err);
}

/* ---- facts ----------------------------------------------------------------------------------- */

typedef void (*fact_fn)(void *ctx, const char *name, const char *value);

/* With several graphs, each counts its own steps. */
static void describe_graph_steps(const struct dump_target *target, fact_fn fact, void *ctx)
{
    const struct gd_graph *graph = target->base.session->graph;
    struct gd_graph_counts counts;
    char text[400];

    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; i < counts.subgraphs; i++) {
        int64_t first, last;
        size_t steps = gd_catalog_graph_steps(target->catalog, i, &first, &last);

        if (steps) {
            snprintf(text, sizeof(text), "%.300s: %zu, from %lld to %lld",
                     gd_graph_subgraph_name(graph, i), steps, (long long)first, (long long)last);
            fact(ctx, "graph's steps", text);
        }
    }
}

static void describe_steps(const struct dump_target *target, fact_fn fact, void *ctx)
{
    size_t count, values = 0;
    const struct gd_catalog_step *steps = gd_catalog_steps(target->catalog, &count);
    char text[96];

    for (size_t i = 0; i < count; i++) {
        values += steps[i].values;
    }
    if (count == 0) {
        snprintf(text, sizeof(text), "none");
    } else if (count == 1) {
        snprintf(text, sizeof(text), "%lld", (long long)steps[0].step);
    } else {
        snprintf(text, sizeof(text), "%zu, from %lld to %lld", count, (long long)steps[0].step,
                 (long long)steps[count - 1].step);
    }
    fact(ctx, "dumped steps", text);
    describe_graph_steps(target, fact, ctx);
    snprintf(text, sizeof(text), "%zu", values);
    fact(ctx, "dumped values", text);
}

static void describe_target(struct gd_target *base, fact_fn fact, void *ctx)
{
    const struct dump_target *target = (const struct dump_target *)base;
    const struct gd_findings *findings = gd_dump_findings(target->group->dump);
    size_t count;
    const struct gd_catalog_fact *facts = gd_catalog_facts(target->catalog, &count);
    uint64_t more;

    fact(ctx, "path", target->group->path);
    for (size_t i = 0; i < findings->count; i++) {
        if (i == 0 || findings->item[i].format != findings->item[i - 1].format) {
            fact(ctx, "format", findings->item[i].format->what);
        }
    }
    describe_steps(target, fact, ctx);
    for (size_t i = 0; i < count; i++) {
        fact(ctx, facts[i].name, facts[i].value);
    }
    gd_dump_left(target->group->dump, &count, &more);
    if (count + more > 0) {
        char text[96];

        snprintf(text, sizeof(text), "%llu (info formats)", (unsigned long long)(count + more));
        fact(ctx, "left out", text);
    }
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static void destroy_target(struct gd_target *base)
{
    struct dump_target *target = (struct dump_target *)base;
    struct dump_group *group = target->group;

    dump_run_forget(target);
    for (size_t i = 0; i < group->count; i++) {
        group->member[i] = group->member[i] == target ? NULL : group->member[i];
    }
    if (--group->users == 0) {
        gd_dump_destroy(group->dump);
        free(group->member);
        free(group->path);
        free(group);
    }
    free(target);
}

/* The values of the previous step are always on disk: nothing to do. */
static int keep_previous(struct gd_target *base, const gd_node_id *nodes, size_t count,
                         struct gd_err *err)
{
    (void)base;
    (void)nodes;
    (void)count;
    (void)err;
    return GD_OK;
}

/* A walk through the steps asks at each event. */
static int set_events(struct gd_target *base, const struct gd_event_wish *wishes, size_t count,
                      struct gd_err *err)
{
    (void)base;
    (void)wishes;
    (void)count;
    (void)err;
    return GD_OK;
}

static int report_memory(struct gd_target *base, struct gd_memory *report, struct gd_err *err)
{
    const struct dump_target *target = (const struct dump_target *)base;
    const struct gd_memory *memory = gd_catalog_has_memory(target->catalog);

    if (!memory) {
        return gd_fail(err, GD_ENODATA, "the dump has no memory snapshot");
    }
    return gd_memory_copy(memory, report) == GD_OK ? GD_OK : gd_fail_nomem(err);
}

static const struct gd_target_ops dump_ops = {
    .kind = "dump",
    .resume = dump_resume,
    .interrupt = dump_interrupt,
    .set_breakpoints = dump_set_breakpoints,
    .set_events = set_events,
    .fetch = fetch_tensor,
    .stats = answer_stats,
    .keep_previous = keep_previous,
    .watch_plan = dump_watch_plan,
    .recall = recall_stats,
    .memory = report_memory,
    .work = dump_work,
    .describe = describe_target,
    .destroy = destroy_target,
};

struct dump_target *dump_target_of(const struct gd_session *session)
{
    return session && session->target && session->target->ops == &dump_ops
               ? (struct dump_target *)session->target
               : NULL;
}

struct gd_dump *gd_dump_of(const struct gd_session *session)
{
    const struct dump_target *target = dump_target_of(session);

    return target ? target->group->dump : NULL;
}

struct gd_catalog *gd_catalog_of(const struct gd_session *session)
{
    const struct dump_target *target = dump_target_of(session);

    return target ? target->catalog : NULL;
}

static int order_jobs(const void *a, const void *b)
{
    const struct gd_peer *const *x = a, *const *y = b;

    return strcmp((*x)->job, (*y)->job);
}

/* A job's world size is its highest rank plus one; 1: not distributed. */
static int fill_worlds(const struct dump_group *group, struct gd_err *err)
{
    struct gd_peer **peers = calloc(group->count + 1, sizeof(*peers));

    if (!peers) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < group->count; i++) {
        peers[i] = gd_catalog_peer(gd_dump_at(group->dump, i));
    }
    qsort(peers, group->count, sizeof(*peers), order_jobs);
    for (size_t i = 0, end; i < group->count; i = end) {
        int world = 1;
        for (end = i; end < group->count && strcmp(peers[end]->job, peers[i]->job) == 0; end++) {
            world = peers[end]->rank >= world ? peers[end]->rank + 1 : world;
        }
        for (size_t k = i; k < end; k++) {
            peers[k]->world_size = end - i > 1 ? world : 1;
        }
    }
    free(peers);
    return GD_OK;
}

/* Ranks of one dump with the same job name share a job, which differs from every job of other
 * dumps. */
static int fill_peers(const struct dump_group *group, struct gd_err *err)
{
    static unsigned dumps;
    const char *slash = strrchr(group->path, '/');
    int rc = fill_worlds(group, err);

    if (rc != GD_OK) {
        return rc;
    }
    dumps++;
    for (size_t i = 0; i < group->count; i++) {
        struct gd_peer *peer = gd_catalog_peer(gd_dump_at(group->dump, i));

        if (!peer->program[0]) {
            snprintf(peer->program, sizeof(peer->program), "%s",
                     slash && slash[1] ? slash + 1 : group->path);
        }
        char job[sizeof(peer->job)];

        snprintf(job, sizeof(job), "dump %u %.40s", dumps, peer->job);
        snprintf(peer->job, sizeof(peer->job), "%s", job);
    }
    return GD_OK;
}

static int make_session(struct gd_debugger *debugger, struct dump_group *group, size_t index,
                        struct gd_session **ret, struct gd_err *err)
{
    struct gd_catalog *catalog = gd_dump_at(group->dump, index);
    struct dump_target *target = calloc(1, sizeof(*target));
    struct gd_session_record record = {.stands = true, .why = "", .stop = {.node = GD_NO_NODE}};
    size_t steps;

    if (!target) {
        return gd_fail_nomem(err);
    }
    gd_catalog_steps(catalog, &steps);
    target->base.ops = &dump_ops;
    target->base.capabilities = GD_CAN_STEP | GD_CAN_NEXT | GD_CAN_INTERRUPT | GD_CAN_FETCH |
                                GD_CAN_STATS | GD_CAN_PREVIOUS | GD_CAN_WATCH | GD_CAN_GOTO |
                                (steps ? GD_CAN_EVENTS : 0);
    target->group = group;
    target->catalog = catalog;
    target->node = GD_NO_NODE;
    target->told = INT64_MIN;
    group->users++;
    group->member[index] = target;
    record.peer = gd_catalog_peer(catalog);
    record.graph = gd_catalog_graph(catalog);
    record.stop.step = steps ? dump_step_at(target, 0) : 0;
    record.stop.at_step_end = record.stop.recorded = steps > 0;
    record.stop.reason = GD_STOP_CONNECTED;
    int rc = gd_session_create_record(debugger, &target->base, &record, ret, err);
    if (rc == GD_OK) {
        gd_catalog_give_graph(catalog);
        (*ret)->times = gd_catalog_give_times(catalog);
        (*ret)->timeline = gd_catalog_give_timeline(catalog);
        dump_tell_scalars(target, 0);
    }
    return rc;
}

int gd_dump_sessions(struct gd_debugger *debugger, struct gd_dump *dump, const char *path,
                     struct gd_session **ret, struct gd_err *err)
{
    struct dump_group *group = calloc(1, sizeof(*group));
    struct gd_session *session, *first = NULL;
    int rc = GD_OK;

    if (group) {
        group->dump = dump;
        group->count = gd_dump_count(dump);
        group->walk = (struct dump_walk){.begin_of = GD_EVERY_STEP, .end_of = GD_EVERY_STEP};
        group->path = strdup(path);
        group->member = calloc(group->count + 1, sizeof(struct dump_target *));
        group->users = 1; /* reference of this function */
    }
    if (!group || !group->path || !group->member) {
        rc = gd_fail_nomem(err);
    }
    rc = rc != GD_OK ? rc : fill_peers(group, err);
    for (size_t i = 0; rc == GD_OK && i < group->count; i++) {
        rc = make_session(debugger, group, i, &session, err);
        first = first || rc != GD_OK ? first : session;
    }
    if (group && --group->users > 0) {
        if (first) { /* keep the sessions created so far; err says what failed */
            gd_debugger_select(debugger, first->number, NULL);
            *ret = first;
        }
        return first ? GD_OK : rc;
    }
    gd_dump_destroy(dump);
    if (group) {
        free(group->path);
        free(group->member);
        free(group);
    }
    return rc;
}
