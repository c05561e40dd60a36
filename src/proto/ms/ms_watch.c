// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watchpoints evaluated by a MindSpore process: SetCMDs out, hits in. One watchpoint may be several
 * for the process, because a reply must stay below 4 MiB; their hits are reported under our number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/watch/condition.h"
#include "engine/watch/watch_report.h"
#include "proto/ms/ms_target_impl.h"

#define MAX_NODES_PER_SET  30000
#define MAX_STRAY_WARNINGS 3
#define MAX_PENDING_HITS   1024
#define MISSING_STEPS      2

/* ---- commands ------------------------------------------------------------------------------ */

static int push_command(struct gd_ms_target *target, const struct gd_buf *bytes, struct gd_err *err)
{
    struct ms_command *command = malloc(sizeof(*command) + bytes->len);
    if (!command) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
    }
    command->next = NULL;
    command->len = bytes->len;
    if (bytes->len) {
        memcpy(command->data, bytes->data, bytes->len);
    }
    *target->commands_end = command;
    target->commands_end = &command->next;
    return GD_OK;
}

static int push_delete(struct gd_ms_target *target, int32_t client_id, struct gd_err *err)
{
    struct gd_buf bytes = GD_BUF_INIT(64);
    int rc = gd_ms_write_delete(&bytes, client_id);
    if (rc == GD_OK) {
        rc = push_command(target, &bytes, err);
    }
    gd_buf_deinit(&bytes);
    return rc;
}

/* The watchpoint's next client id; adds one if needed. */
static int client_id_at(struct gd_ms_target *target, struct ms_watch *watch, size_t index,
                        int32_t *ret, struct gd_err *err)
{
    if (index >= watch->client_count) {
        int32_t *ids =
            gd_grow(watch->client_ids, watch->client_count, &watch->client_capacity, sizeof(*ids));
        if (!ids) {
            return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
        }
        watch->client_ids = ids;
        if (target->next_client_id == INT32_MAX) {
            return gd_fail(err, GD_ELIMIT, "all watchpoint numbers of this process are used");
        }
        ids[watch->client_count++] = target->next_client_id++;
    }
    *ret = watch->client_ids[index];
    return GD_OK;
}

/* Up to 1.5, processes take the first parameter of "not changed" as atol and the second as rtol. */
static void order_params(const struct gd_ms_target *target, const struct ms_watch *watch,
                         struct gd_remote_param *out)
{
    memcpy(out, watch->params, watch->param_count * sizeof(*out));
    if (watch->condition != GD_WIRE_NOT_CHANGED || !target->version.swaps_tolerances ||
        watch->param_count < 2) {
        return;
    }
    struct gd_remote_param first = out[0];
    out[0] = out[1];
    out[1] = first;
}

/* Sends nodes [from, from + count) as the index-th client watchpoint, split in halves if too
 * large. */
static int push_set(struct gd_ms_target *target, struct ms_watch *watch,
                    const struct gd_ms_watch_node *nodes, size_t count, size_t *index,
                    struct gd_err *err)
{
    struct gd_remote_param params[GD_MAX_HIT_PARAMS];
    struct gd_buf bytes = GD_BUF_INIT(GD_MS_MAX_REPLY);
    int32_t id = 0;
    int rc = client_id_at(target, watch, *index, &id, err);
    if (rc != GD_OK) {
        return rc;
    }
    order_params(target, watch, params);
    rc = gd_ms_write_set(&bytes, id, watch->condition, params, watch->param_count, nodes, count);
    if (rc == GD_ELIMIT && count > 1) {
        rc = push_set(target, watch, nodes, count / 2, index, err);
        if (rc == GD_OK) {
            rc = push_set(target, watch, nodes + count / 2, count - count / 2, index, err);
        }
    } else if (rc != GD_OK) {
        gd_fail(err, rc, "a watchpoint's command does not fit into 4 MiB");
    } else {
        rc = push_command(target, &bytes, err);
        (*index)++;
    }
    gd_buf_deinit(&bytes);
    return rc;
}

static int push_all(struct gd_ms_target *target, struct ms_watch *watch,
                    const struct gd_ms_watch_node *nodes, size_t count, struct gd_err *err)
{
    size_t index = 0, at = 0;
    int rc = GD_OK;
    do {
        size_t part = count - at < MAX_NODES_PER_SET ? count - at : MAX_NODES_PER_SET;
        rc = push_set(target, watch, nodes + at, part, &index, err);
        at += part;
    } while (rc == GD_OK && at < count);
    while (rc == GD_OK && watch->client_count > index) {
        rc = push_delete(target, watch->client_ids[--watch->client_count], err);
    }
    return rc;
}

/* ---- the list ------------------------------------------------------------------------------ */

static struct ms_watch *find_watch(const struct gd_ms_target *target, int32_t id)
{
    struct ms_watch *watch = target->watches;
    while (watch && watch->id != id) {
        watch = watch->next;
    }
    return watch;
}

static void free_watch(struct ms_watch *watch)
{
    free(watch->nodes);
    free(watch->client_ids);
    free(watch);
}

void ms_watch_free(struct gd_ms_target *target)
{
    while (target->watches) {
        struct ms_watch *next = target->watches->next;
        free_watch(target->watches);
        target->watches = next;
    }
}

/* Processes index the parameters by position without checking their number. */
static size_t least_params(int condition)
{
    switch (condition) {
    case GD_WIRE_TOO_LARGE:
    case GD_WIRE_TOO_SMALL: return 4;
    case GD_WIRE_NOT_CHANGED:
    case GD_WIRE_RANGE: return 2;
    case GD_WIRE_CHANGE_TOO_LARGE:
    case GD_WIRE_CHANGE_TOO_SMALL: return 1;
    default: return 0;
    }
}

static int check_watch(const struct gd_ms_target *target, const struct gd_remote_watch *watch,
                       struct gd_err *err)
{
    if (watch->id < 1) {
        return gd_fail(err, GD_EINVAL, "a watchpoint's number must be 1 or more");
    }
    if (watch->condition < 0 || watch->condition > GD_WIRE_RANGE) {
        return gd_fail(err, GD_EINVAL, "unknown condition number %d", watch->condition);
    }
    if (watch->param_count > GD_MAX_HIT_PARAMS ||
        watch->param_count < least_params(watch->condition)) {
        return gd_fail(err, GD_EINVAL, "condition number %d with %zu parameters: too few",
                       watch->condition, watch->param_count);
    }
    if (watch->condition == GD_WIRE_OVERFLOW_FLAG && target->is_gpu) {
        return gd_fail(err, GD_EUNSUPPORTED, "operator_overflow needs an Ascend device");
    }
    if (watch->condition == GD_WIRE_INITIALIZATION &&
        (target->at.step > 0 || target->phase == MS_RUNNING)) {
        return gd_fail(err, GD_ESTATE,
                       "weight_initialization can be checked only before the first step, which is "
                       "over");
    }
    return GD_OK;
}

static int fill_watch(struct ms_watch *mine, const struct gd_remote_watch *watch,
                      struct gd_err *err)
{
    gd_node_id *nodes = malloc((watch->node_count + 1) * sizeof(*nodes));
    if (!nodes) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", watch->node_count);
    }
    if (watch->node_count) {
        memcpy(nodes, watch->nodes, watch->node_count * sizeof(*nodes));
    }
    free(mine->nodes);
    mine->nodes = nodes;
    mine->node_count = watch->node_count;
    mine->condition = watch->condition;
    mine->param_count = watch->param_count;
    mine->missing_steps = 0;
    for (size_t i = 0; i < watch->param_count; i++) {
        snprintf(mine->param_name[i], sizeof(mine->param_name[i]), "%s", watch->params[i].name);
        mine->params[i] = watch->params[i];
        mine->params[i].name = mine->param_name[i];
    }
    return GD_OK;
}

/* a text, and the key that a process derives from it: parameters are identified by their last
 * component */
struct named {
    const char *key;
    size_t at;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* Keeps the first of those that a process would treat as one: several graphs may have them. */
static int drop_same(struct gd_ms_watch_node *nodes, char **texts, const bool *stored,
                     size_t *count, struct gd_err *err)
{
    struct named *named = malloc((*count + 1) * sizeof(*named));
    size_t kept = 0;
    if (!named) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", *count);
    }
    for (size_t i = 0; i < *count; i++) {
        const char *slash = stored[i] ? strrchr(texts[i], '/') : NULL;
        named[i] = (struct named){slash ? slash + 1 : texts[i], i};
    }
    qsort(named, *count, sizeof(*named), compare_named);
    for (size_t i = 1; i < *count; i++) {
        if (strcmp(named[i].key, named[i - 1].key) == 0) {
            nodes[named[i].at].name = NULL;
        }
    }
    free(named);
    for (size_t i = 0; i < *count; i++) {
        if (!nodes[i].name) {
            free(texts[i]);
            continue;
        }
        nodes[kept] = nodes[i];
        texts[kept++] = texts[i];
    }
    *count = kept;
    return GD_OK;
}

/* The process's names, without constants: it would match those, but cannot watch them. */
static int name_nodes(struct gd_ms_target *target, const struct ms_watch *watch,
                      struct gd_ms_watch_node **ret, char ***texts, size_t *count,
                      struct gd_err *err)
{
    *count = 0;
    *ret = calloc(watch->node_count + 1, sizeof(**ret));
    *texts = calloc(watch->node_count + 1, sizeof(**texts));
    bool *stored = calloc(watch->node_count + 1, sizeof(*stored));
    int rc = *ret && *texts && stored ? GD_OK : GD_ENOMEM;
    for (size_t i = 0; rc == GD_OK && i < watch->node_count; i++) {
        struct gd_node_info info;
        char name[600];
        if (!gd_graph_node(target->base.session->graph, watch->nodes[i], &info) ||
            info.kind == GD_NODE_CONSTANT) {
            continue;
        }
        ms_view_name(&info, name, sizeof(name));
        char *copy = strdup(name);
        if (!copy) {
            rc = GD_ENOMEM;
            break;
        }
        stored[*count] = strcmp(info.type, "Parameter") == 0;
        (*texts)[*count] = copy;
        /* A type with this name would make the process match by prefix and lose the node's name. */
        bool scope = strcmp(info.type, "scope") == 0;
        (*ret)[*count] = (struct gd_ms_watch_node){copy, scope ? "" : info.type};
        (*count)++;
    }
    rc = rc != GD_OK ? gd_fail(err, rc, "out of memory for %zu watched nodes", watch->node_count)
                     : drop_same(*ret, *texts, stored, count, err);
    free(stored);
    return rc;
}

int ms_watch_set(struct gd_target *base, const struct gd_remote_watch *watch, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    int rc = check_watch(target, watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct ms_watch *mine = find_watch(target, watch->id);
    if (!mine) {
        mine = calloc(1, sizeof(*mine));
        if (!mine) {
            return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
        }
        mine->id = watch->id;
        mine->set_after = ms_steps_done(target);
        mine->next = target->watches;
        target->watches = mine;
    }
    struct gd_ms_watch_node *nodes = NULL;
    char **texts = NULL;
    size_t count = 0;
    rc = fill_watch(mine, watch, err);
    if (rc == GD_OK) {
        rc = name_nodes(target, mine, &nodes, &texts, &count, err);
    }
    if (rc == GD_OK) {
        rc = push_all(target, mine, nodes, count, err);
    }
    for (size_t i = 0; texts && i < count; i++) {
        free(texts[i]);
    }
    free(texts);
    free(nodes);
    if (rc != GD_OK) {
        ms_watch_unset(base, watch->id, NULL);
        return rc;
    }
    if (mine->condition == GD_WIRE_INITIALIZATION) {
        target->init_watch = true;
    }
    ms_pump(target);
    return GD_OK;
}

int ms_watch_unset(struct gd_target *base, int32_t id, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    struct ms_watch **link = &target->watches;
    while (*link && (*link)->id != id) {
        link = &(*link)->next;
    }
    struct ms_watch *watch = *link;
    if (!watch) {
        return gd_fail(err, GD_ENOTFOUND, "the process has no watchpoint %" PRId32, id);
    }
    *link = watch->next;
    bool initial = false;
    for (const struct ms_watch *other = target->watches; other; other = other->next) {
        initial = initial || other->condition == GD_WIRE_INITIALIZATION;
    }
    target->init_watch = target->init_watch && initial;
    int rc = GD_OK;
    for (size_t i = 0; i < watch->client_count && rc == GD_OK; i++) {
        rc = push_delete(target, watch->client_ids[i], err);
    }
    free_watch(watch);
    ms_pump(target);
    return rc;
}

/* ---- values kept for our own evaluation ----------------------------------------------------- */

/* A check of initial weights is never evaluated after the first step has begun, but the process
 * keeps what it covers. */
static struct ms_watch *make_capture(void)
{
    static const char *const name[] = {"zero_percentage_ge", "max_gt", "min_lt"};
    struct ms_watch *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        return NULL;
    }
    watch->condition = GD_WIRE_INITIALIZATION;
    watch->param_count = sizeof(name) / sizeof(*name);
    for (size_t i = 0; i < watch->param_count; i++) {
        watch->params[i] = (struct gd_remote_param){.name = name[i], .disabled = true};
    }
    return watch;
}

static int push_capture(struct gd_ms_target *target, struct ms_watch *watch, struct gd_err *err)
{
    struct gd_ms_watch_node *named = NULL;
    char **texts = NULL;
    size_t count = 0;
    int rc = name_nodes(target, watch, &named, &texts, &count, err);
    if (rc == GD_OK && count) {
        rc = push_all(target, watch, named, count, err);
    }
    while (rc == GD_OK && !count && watch->client_count) {
        rc = push_delete(target, watch->client_ids[--watch->client_count], err);
    }
    for (size_t i = 0; texts && i < count; i++) {
        free(texts[i]);
    }
    free(texts);
    free(named);
    return rc;
}

int ms_watch_capture(struct gd_ms_target *target, struct ms_watch **capture,
                     const gd_node_id *nodes, size_t count, struct gd_err *err)
{
    if (!*capture) {
        *capture = make_capture();
    }
    struct ms_watch *watch = *capture;
    gd_node_id *copy = malloc((count + 1) * sizeof(*copy));
    if (!watch || !copy) {
        free(copy);
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", count);
    }
    if (count) {
        memcpy(copy, nodes, count * sizeof(*copy));
    }
    bool same = watch->node_count == count &&
                (!count || memcmp(watch->nodes, copy, count * sizeof(*copy)) == 0);
    free(watch->nodes);
    watch->nodes = copy;
    watch->node_count = count;
    return same ? GD_OK : push_capture(target, watch, err);
}

void ms_watch_capture_free(struct ms_watch *capture)
{
    if (capture) {
        free_watch(capture);
    }
}

/* ---- hits ---------------------------------------------------------------------------------- */

static struct ms_watch *find_client_watch(const struct gd_ms_target *target, int32_t client_id)
{
    for (struct ms_watch *watch = target->watches; watch; watch = watch->next) {
        for (size_t i = 0; i < watch->client_count; i++) {
            if (watch->client_ids[i] == client_id) {
                return watch;
            }
        }
    }
    return NULL;
}

static bool is_change(int condition)
{
    return condition >= GD_WIRE_CHANGE_TOO_LARGE && condition <= GD_WIRE_NOT_CHANGED;
}

/* A tensor that cannot be checked is reported at every step: once per reason is enough. */
static bool told_already(struct gd_ms_target *target, const struct gd_hit *hit)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ ((uint64_t)hit->watchpoint << 32) ^
                    ((uint64_t)hit->slot << 8) ^ hit->error;
    for (const char *c = hit->node_name; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    }
    hash |= 1;
    uint64_t *seen = &target->error_seen[(hash >> 20) % (sizeof(target->error_seen) /
                                                         sizeof(*target->error_seen))];
    bool told = *seen == hash;
    *seen = hash;
    return told;
}

/* Two consecutive steps without a previous value: there will never be one. */
static void note_missing(struct ms_watch *watch, int64_t step)
{
    if (step == watch->missing_at && watch->missing_steps) {
        return;
    }
    watch->missing_steps = step == watch->missing_at + 1 ? watch->missing_steps + 1 : 1;
    watch->missing_at = step;
}

/* The watchpoint is removed from the list while the engine is notified. */
static void tell_unable(struct gd_ms_target *target)
{
    struct ms_watch *watch = target->watches;
    while (watch) {
        if (watch->missing_steps < MISSING_STEPS) {
            watch = watch->next;
            continue;
        }
        watch->missing_steps = 0;
        gd_watch_on_unable(target->base.session, watch->id);
        watch = target->watches;
    }
}

/* ---- whether it has previous values --------------------------------------------------------- */

static bool has_previous_by_now(const struct gd_ms_target *target, const struct ms_watch *watch)
{
    return is_change(watch->condition) && ms_steps_done(target) >= watch->set_after + 2;
}

static void previous_came(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                          const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct gd_ms_target *target = ctx;
    (void)dtype, (void)shape, (void)stats, (void)step;
    if (target->ending) {
        return;
    }
    target->previous = err ? PREVIOUS_MISSING : PREVIOUS_THERE;
    ms_watch_check_previous(target);
}

static void tensor_came(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    (void)tensor;
    previous_came(ctx, GD_DT_NONE, NULL, NULL, step, err);
}

static void ask_for_previous(struct gd_ms_target *target, const struct ms_watch *watch)
{
    struct gd_tensor_ref ref = {.node = GD_NO_NODE, .iter = GD_PREVIOUS};
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < watch->node_count; i++) {
        const struct gd_graph *graph = target->base.session->graph;
        struct gd_node_info info;
        struct gd_output output;
        size_t bytes;
        if (gd_graph_node(graph, watch->nodes[i], &info) && strcmp(info.type, "Parameter") == 0 &&
            gd_graph_output(graph, watch->nodes[i], 0, &output) &&
            gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK && bytes < least) {
            least = bytes;
            ref.node = watch->nodes[i];
        }
    }
    if (ref.node == GD_NO_NODE) {
        return;
    }
    target->previous = PREVIOUS_ASKED;
    if (target->version.has_levels
            ? ms_view_summary(target, &ref, previous_came, target, NULL)
            : ms_view_value(target, &ref, least, tensor_came, target, NULL)) {
        target->previous = PREVIOUS_UNKNOWN;
    }
}

void ms_watch_check_previous(struct gd_ms_target *target)
{
    for (struct ms_watch *watch = target->watches; watch; watch = watch->next) {
        if (!has_previous_by_now(target, watch)) {
            continue;
        }
        if (target->previous == PREVIOUS_UNKNOWN) {
            ask_for_previous(target, watch);
        } else if (target->previous == PREVIOUS_MISSING) {
            watch->missing_steps = MISSING_STEPS;
        }
    }
    if (target->previous == PREVIOUS_MISSING) {
        tell_unable(target);
    }
}

/* ---- their order ---------------------------------------------------------------------------- */

static int compare_hits(const void *a, const void *b)
{
    const struct ms_pending_hit *x = a, *y = b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    if (x->hit.node != y->hit.node) {
        return x->hit.node < y->hit.node ? -1 : 1;
    }
    if (x->hit.slot != y->hit.slot) {
        return x->hit.slot < y->hit.slot ? -1 : 1;
    }
    if (x->hit.watchpoint != y->hit.watchpoint) {
        return x->hit.watchpoint < y->hit.watchpoint ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

static void report_one(struct gd_ms_target *target, const struct gd_hit *hit)
{
    if (hit->error && told_already(target, hit)) {
        return;
    }
    if (!hit->error) {
        target->run.hit = true;
        target->recheck_hit = true;
    }
    gd_session_on_hit(target->base.session, hit);
}

void ms_watch_report(struct gd_ms_target *target)
{
    struct ms_hits hits = target->hits;
    target->hits = (struct ms_hits){0};
    if (hits.count) {
        qsort(hits.item, hits.count, sizeof(*hits.item), compare_hits);
    }
    for (size_t i = 0; i < hits.count; i++) {
        report_one(target, &hits.item[i].hit);
    }
    free(hits.item);
    if (!target->ending) {
        tell_unable(target);
    }
}

/* The engine's own order. The order of arrival is not reliable: releases before 1.3 have none, and
 * later ones evaluate in several threads. */
static uint32_t rank_of(const struct gd_ms_target *target, gd_node_id node)
{
    return gd_graph_order(target->base.session->graph, node) + 1; /* 0 for GD_NO_ORDER */
}

static void add_hit(struct gd_ms_target *target, const struct gd_hit *hit)
{
    struct ms_hits *hits = &target->hits;
    if (hits->count == MAX_PENDING_HITS) {
        ms_watch_report(target);
    }
    struct ms_pending_hit *item = gd_grow(hits->item, hits->count, &hits->cap, sizeof(*item));
    if (!item) {
        report_one(target, hit);
        return;
    }
    hits->item = item;
    item[hits->count] = (struct ms_pending_hit){
        .hit = *hit, .rank = rank_of(target, hit->node), .at = (uint32_t)hits->count};
    hits->count++;
}

static int64_t step_of_hits(const struct gd_ms_target *target)
{
    return target->phase == MS_RUNNING && target->at.at_end ? target->at.step + 1 : target->at.step;
}

/* In the order of the condition, which differs from that of the message when tolerances are
 * swapped. */
static void name_params(const struct ms_watch *watch, struct gd_hit *hit)
{
    struct gd_hit_param sorted[GD_MAX_HIT_PARAMS];
    int count = 0;
    if ((size_t)hit->param_count != watch->param_count) {
        return;
    }
    for (size_t i = 0; i < watch->param_count; i++) {
        for (int k = 0; k < hit->param_count && count == (int)i; k++) {
            if (strcmp(hit->param[k].name, watch->params[i].name) == 0) {
                sorted[count++] = hit->param[k];
            }
        }
    }
    if (count == hit->param_count) {
        memcpy(hit->param, sorted, sizeof(sorted));
    }
}

static void fill_hit(const struct gd_ms_target *target, const struct ms_watch *watch,
                     const struct gd_ms_hit *hit, gd_node_id node, struct gd_hit *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->watchpoint = watch->id;
    ret->condition = watch->condition; /* a hit may omit it */
    ret->step = step_of_hits(target);
    ret->stop_sequence = target->base.session->stop.sequence + (target->phase != MS_SUSPENDED);
    ret->node = node;
    snprintf(ret->node_name, sizeof(ret->node_name), "%s",
             ret->node == GD_NO_NODE ? hit->node_name
                                     : gd_graph_name(target->base.session->graph, ret->node));
    ret->slot = (uint32_t)strtoul(hit->slot, NULL, 10);
    ret->error = (unsigned)hit->error_code;
    if (watch->condition == GD_WIRE_NOT_FINITE) { /* this condition looks for NaN and Inf */
        ret->error &= ~(unsigned)(GD_HIT_NAN | GD_HIT_INF);
    }
    ret->param_count = hit->param_count;
    memcpy(ret->param, hit->param, sizeof(ret->param));
    name_params(watch, ret);
}

/* A hit of a watchpoint deleted in the meantime, of the one that makes the process keep values, or
 * of an earlier debugger: only the last is reported, a few times. */
static void stray_hit(struct gd_ms_target *target, const struct gd_ms_hit *hit)
{
    bool ours = hit->id >= 1 && hit->id < target->next_client_id;
    if (!ours && target->stray_hits++ < MAX_STRAY_WARNINGS) {
        ms_warn(target, "ignored a hit on %s: its watchpoint %" PRId32 " was never set",
                hit->node_name, hit->id);
    }
}

static bool plan_covers(const struct ms_watch *watch, gd_node_id node)
{
    for (size_t i = 0; i < watch->node_count; i++) {
        if (watch->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static void take_hit_on(struct gd_ms_target *target, struct ms_watch *watch,
                        const struct gd_ms_hit *hit, gd_node_id node)
{
    struct gd_hit mine;
    fill_hit(target, watch, hit, node, &mine);
    if (mine.error & GD_HIT_NO_PREVIOUS) {
        note_missing(watch, mine.step);
    } else if (is_change(watch->condition)) {
        target->previous = PREVIOUS_THERE;
    }
    add_hit(target, &mine);
}

/* A name that several graphs have: the hit applies to those that the watchpoint covers. */
static bool take_shared_hit(struct gd_ms_target *target, struct ms_watch *watch,
                            const struct gd_ms_hit *hit, bool covered)
{
    const struct gd_graph *graph = target->base.session->graph;
    struct gd_graph_counts counts;
    size_t len = strlen(hit->node_name), taken = 0;
    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; i < counts.subgraphs; i++) {
        gd_node_id node = gd_graph_lookup_in(graph, i, hit->node_name, len);
        if (node == GD_NO_NODE || (covered && !plan_covers(watch, node))) {
            continue;
        }
        if (++taken == 2) {
            ms_tell_shared(target, hit->node_name);
        }
        take_hit_on(target, watch, hit, node);
    }
    return taken > 0;
}

static void take_hit(struct gd_ms_target *target, struct ms_watch *watch,
                     const struct gd_ms_hit *hit)
{
    gd_node_id node = ms_find_node(target, hit->node_name);
    if (node == GD_NO_NODE &&
        (take_shared_hit(target, watch, hit, true) || take_shared_hit(target, watch, hit, false))) {
        return;
    }
    take_hit_on(target, watch, hit, node);
}

void gd_ms_target_on_hit(struct gd_ms_target *target, const struct gd_ms_hit *hit)
{
    struct ms_watch *watch = find_client_watch(target, hit->id);
    target->hits_seen++;
    if (!target->run.any_hits) {
        snprintf(target->run.hit_name, sizeof(target->run.hit_name), "%s", hit->node_name);
    } else if (strcmp(target->run.hit_name, hit->node_name) != 0) {
        target->run.other_hits = true;
    }
    target->run.any_hits = true;
    /* Changes are evaluated only at the end of a step. */
    if (is_change(watch ? watch->condition : hit->condition)) {
        target->run.end_hits = true;
    }
    if (!watch) {
        stray_hit(target, hit);
        return;
    }
    take_hit(target, watch, hit);
}

void gd_ms_target_on_hits_end(struct gd_ms_target *target)
{
    ms_watch_report(target);
}
