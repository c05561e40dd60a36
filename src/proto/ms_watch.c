// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watchpoints that a MindSpore process evaluates: SetCMDs out, hits in. One watchpoint may be
 * several for the process, because a reply must stay under 4 MiB; their hits are reported under our
 * number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/condition.h"
#include "proto/ms_target_impl.h"

#define MAX_NODES_PER_SET  30000
#define MAX_STRAY_WARNINGS 3

/* ---- commands ------------------------------------------------------------------------------ */

static int push_command(struct gd_ms_target *target, const struct gd_buf *bytes, struct gd_err *err)
{
    struct ms_command *command = malloc(sizeof *command + bytes->len);
    if (!command)
        return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
    command->next = NULL;
    command->len = bytes->len;
    if (bytes->len)
        memcpy(command->data, bytes->data, bytes->len);
    *target->commands_end = command;
    target->commands_end = &command->next;
    return GD_OK;
}

static int push_delete(struct gd_ms_target *target, int32_t client_id, struct gd_err *err)
{
    struct gd_buf bytes = GD_BUF_INIT(64);
    int rc = gd_ms_write_delete(&bytes, client_id);
    if (rc == GD_OK)
        rc = push_command(target, &bytes, err);
    gd_buf_deinit(&bytes);
    return rc;
}

/* The next of the watchpoint's client ids, made when there are not enough. */
static int client_id_at(struct gd_ms_target *target, struct ms_watch *watch, size_t index,
                        int32_t *ret, struct gd_err *err)
{
    if (index >= watch->client_count) {
        int32_t *ids = realloc(watch->client_ids, (index + 1) * sizeof *ids);
        if (!ids)
            return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
        watch->client_ids = ids;
        if (target->next_client_id == INT32_MAX)
            return gd_fail(err, GD_ELIMIT, "all watchpoint numbers of this process are used");
        ids[watch->client_count++] = target->next_client_id++;
    }
    *ret = watch->client_ids[index];
    return GD_OK;
}

/* Up to 1.5 processes take the first parameter of "not changed" for atol and the second for rtol.
 */
static void order_params(const struct gd_ms_target *target, const struct ms_watch *watch,
                         struct gd_remote_param *out)
{
    memcpy(out, watch->params, watch->param_count * sizeof *out);
    if (watch->condition != GD_WIRE_NOT_CHANGED || !target->version.swaps_tolerances ||
        watch->param_count < 2)
        return;
    struct gd_remote_param first = out[0];
    out[0] = out[1];
    out[1] = first;
}

/* Sends nodes [from, from + count) as the index-th client watchpoint, in halves when too large. */
static int push_set(struct gd_ms_target *target, struct ms_watch *watch,
                    const struct gd_ms_watch_node *nodes, size_t count, size_t *index,
                    struct gd_err *err)
{
    struct gd_remote_param params[GD_MAX_HIT_PARAMS];
    struct gd_buf bytes = GD_BUF_INIT(GD_MS_MAX_REPLY);
    int32_t id = 0;
    int rc = client_id_at(target, watch, *index, &id, err);
    if (rc)
        return rc;
    order_params(target, watch, params);
    rc = gd_ms_write_set(&bytes, id, watch->condition, params, watch->param_count, nodes, count);
    if (rc == GD_ELIMIT && count > 1) {
        rc = push_set(target, watch, nodes, count / 2, index, err);
        if (!rc)
            rc = push_set(target, watch, nodes + count / 2, count - count / 2, index, err);
    } else if (rc) {
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
    } while (!rc && at < count);
    while (!rc && watch->client_count > index)
        rc = push_delete(target, watch->client_ids[--watch->client_count], err);
    return rc;
}

/* ---- the list ------------------------------------------------------------------------------ */

static struct ms_watch *find_watch(const struct gd_ms_target *target, int32_t id)
{
    struct ms_watch *watch = target->watches;
    while (watch && watch->id != id)
        watch = watch->next;
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

/* Processes index the parameters by position, without looking how many there are. */
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
    if (watch->id < 1)
        return gd_fail(err, GD_EINVAL, "a watchpoint's number must be 1 or more");
    if (watch->condition < 0 || watch->condition > GD_WIRE_RANGE)
        return gd_fail(err, GD_EINVAL, "there is no condition number %d", watch->condition);
    if (watch->param_count > GD_MAX_HIT_PARAMS ||
        watch->param_count < least_params(watch->condition))
        return gd_fail(err, GD_EINVAL, "condition number %d came with %zu parameters",
                       watch->condition, watch->param_count);
    if (watch->condition == GD_WIRE_OVERFLOW_FLAG && target->is_gpu)
        return gd_fail(err, GD_EUNSUPPORTED, "operator_overflow needs an Ascend device");
    if (watch->condition == GD_WIRE_INITIALIZATION &&
        (target->at.step > 0 || target->phase == MS_RUNNING))
        return gd_fail(err, GD_ESTATE,
                       "weight_initialization can be checked only before the first step, which is "
                       "over");
    return GD_OK;
}

static int fill_watch(struct ms_watch *mine, const struct gd_remote_watch *watch,
                      struct gd_err *err)
{
    gd_node_id *nodes = malloc((watch->node_count + 1) * sizeof *nodes);
    if (!nodes)
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", watch->node_count);
    if (watch->node_count)
        memcpy(nodes, watch->nodes, watch->node_count * sizeof *nodes);
    free(mine->nodes);
    mine->nodes = nodes;
    mine->node_count = watch->node_count;
    mine->condition = watch->condition;
    mine->param_count = watch->param_count;
    mine->missing_steps = 0;
    mine->local = false;
    for (size_t i = 0; i < watch->param_count; i++) {
        snprintf(mine->param_name[i], sizeof mine->param_name[i], "%s", watch->params[i].name);
        mine->params[i] = watch->params[i];
        mine->params[i].name = mine->param_name[i];
    }
    return GD_OK;
}

/* Names as the process has them, constants left out: it would match them, and cannot watch them. */
static int name_nodes(struct gd_ms_target *target, const struct ms_watch *watch,
                      struct gd_ms_watch_node **ret, char ***texts, size_t *count,
                      struct gd_err *err)
{
    *count = 0;
    *ret = calloc(watch->node_count + 1, sizeof **ret);
    *texts = calloc(watch->node_count + 1, sizeof **texts);
    if (!*ret || !*texts)
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", watch->node_count);
    for (size_t i = 0; i < watch->node_count; i++) {
        struct gd_node_info info;
        char name[600];
        if (!gd_graph_node(target->base.session->graph, watch->nodes[i], &info) ||
            info.kind == GD_NODE_CONSTANT)
            continue;
        ms_view_name(&info, name, sizeof name);
        char *copy = strdup(name);
        if (!copy)
            return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes",
                           watch->node_count);
        (*texts)[*count] = copy;
        /* A type of that name would make the process match by prefix and lose the node's name. */
        bool scope = strcmp(info.type, "scope") == 0;
        (*ret)[*count] = (struct gd_ms_watch_node){copy, scope ? "" : info.type};
        (*count)++;
    }
    return GD_OK;
}

int ms_watch_set(struct gd_target *base, const struct gd_remote_watch *watch, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    int rc = check_watch(target, watch, err);
    if (rc)
        return rc;
    struct ms_watch *mine = find_watch(target, watch->id);
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        if (!mine)
            return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
        mine->id = watch->id;
        mine->next = target->watches;
        target->watches = mine;
    }
    struct gd_ms_watch_node *nodes = NULL;
    char **texts = NULL;
    size_t count = 0;
    rc = fill_watch(mine, watch, err);
    if (!rc)
        rc = name_nodes(target, mine, &nodes, &texts, &count, err);
    if (!rc)
        rc = push_all(target, mine, nodes, count, err);
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
    free(nodes);
    if (rc) {
        ms_watch_unset(base, watch->id, NULL);
        return rc;
    }
    if (mine->condition == GD_WIRE_INITIALIZATION)
        target->init_watch = true;
    ms_pump(target);
    return GD_OK;
}

int ms_watch_unset(struct gd_target *base, int32_t id, struct gd_err *err)
{
    struct gd_ms_target *target = (struct gd_ms_target *)base;
    struct ms_watch **link = &target->watches;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    struct ms_watch *watch = *link;
    if (!watch)
        return gd_fail(err, GD_ENOTFOUND, "the process has no watchpoint %" PRId32, id);
    *link = watch->next;
    int rc = GD_OK;
    for (size_t i = 0; i < watch->client_count && !rc; i++)
        rc = push_delete(target, watch->client_ids[i], err);
    free_watch(watch);
    ms_pump(target);
    return rc;
}

/* ---- hits ---------------------------------------------------------------------------------- */

static struct ms_watch *find_client_watch(const struct gd_ms_target *target, int32_t client_id)
{
    for (struct ms_watch *watch = target->watches; watch; watch = watch->next)
        for (size_t i = 0; i < watch->client_count; i++)
            if (watch->client_ids[i] == client_id)
                return watch;
    return NULL;
}

/* A tensor that cannot be checked says so at every step: once for each reason is enough. */
static bool told_already(struct gd_ms_target *target, const struct gd_hit *hit)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ ((uint64_t)hit->watchpoint << 32) ^
                    ((uint64_t)hit->slot << 8) ^ hit->error;
    for (const char *c = hit->node_name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    hash |= 1;
    uint64_t *seen =
        &target
             ->error_seen[(hash >> 20) % (sizeof target->error_seen / sizeof *target->error_seen)];
    bool told = *seen == hash;
    *seen = hash;
    return told;
}

/* Two steps in a row without a previous value: there will never be one. */
static void note_missing(struct gd_ms_target *target, struct ms_watch *watch, int64_t step)
{
    if (step == watch->missing_at && watch->missing_steps)
        return;
    watch->missing_steps = step == watch->missing_at + 1 ? watch->missing_steps + 1 : 1;
    watch->missing_at = step;
    if (watch->missing_steps < 2 || watch->local || !target->is_gpu)
        return;
    watch->local = true;
    ms_warn(target,
            "the process keeps no previous values, so gradb evaluates watchpoint %" PRId32
            " itself, from values that it fetches at each step",
            watch->id);
}

void ms_watch_report(struct gd_ms_target *target, const struct gd_hit *hit)
{
    if (hit->error && told_already(target, hit))
        return;
    if (!hit->error) {
        target->run.hit = true;
        target->recheck_hit = true;
    }
    gd_session_on_hit(target->base.session, hit);
}

static int64_t step_of_hits(const struct gd_ms_target *target)
{
    return target->phase == MS_RUNNING && target->at.at_end ? target->at.step + 1 : target->at.step;
}

void gd_ms_target_on_hit(struct gd_ms_target *target, const struct gd_ms_hit *hit)
{
    struct ms_watch *watch = find_client_watch(target, hit->id);
    target->hits_seen++;
    target->run.any_hits = true;
    /* Changes are looked at nowhere but at the end of a step. */
    if (hit->condition >= GD_WIRE_CHANGE_TOO_LARGE && hit->condition <= GD_WIRE_NOT_CHANGED)
        target->run.end_hits = true;
    if (!watch) {
        /* Deleted meanwhile, or set by a debugger before us: said a few times, not at each step. */
        bool ours = hit->id >= 1 && hit->id < target->next_client_id;
        if (!ours && target->stray_hits++ < MAX_STRAY_WARNINGS)
            ms_warn(target,
                    "a hit on %s names watchpoint %" PRId32 ", which was never set: ignored",
                    hit->node_name, hit->id);
        return;
    }
    struct gd_hit mine;
    memset(&mine, 0, sizeof mine);
    mine.watchpoint = watch->id;
    mine.condition = hit->condition;
    mine.step = step_of_hits(target);
    mine.stop_sequence = target->base.session->stop.sequence + (target->phase != MS_SUSPENDED);
    mine.node = ms_find_node(target, hit->node_name);
    snprintf(mine.node_name, sizeof mine.node_name, "%s",
             mine.node == GD_NO_NODE ? hit->node_name
                                     : gd_graph_name(target->base.session->graph, mine.node));
    mine.slot = (uint32_t)strtoul(hit->slot, NULL, 10);
    mine.error = (unsigned)hit->error_code;
    mine.param_count = hit->param_count;
    memcpy(mine.param, hit->param, sizeof mine.param);
    if (mine.error & GD_HIT_NO_PREVIOUS) {
        note_missing(target, watch, mine.step);
        if (watch->local)
            return;
    }
    ms_watch_report(target, &mine);
}
