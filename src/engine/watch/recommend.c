// SPDX-License-Identifier: GPL-3.0-or-later
/* The starter set: what is worth watching in any training. */
#include <stdlib.h>
#include <string.h>

#include "engine/expected.h"
#include "engine/graph/selector.h"
#include "engine/watch/watch_impl.h"

/* Where tanh and sigmoid have reached their end values in float32. */
#define TANH_END      0.9999999545590812
#define SIGMOID_START 9.21359998566181e-08
#define SIGMOID_END   0.9999999078640001

struct entry {
    const char *name, *condition, *where;
    struct gd_condition_value value[3];
    size_t value_count;
};

/* A bias begins at 0, and so any update changes it by much of its size. */
#define MATRICES       "weights except *bias*, *beta"
/* In a program that runs as it goes what makes zeros on purpose is an operator as any other: a
 * first hidden state, the targets of a critic. */
#define ALL_BUT_FILLED "all except type:*zeros*, type:*full*, type:to"

static const struct entry entries[] = {
    {"recommend_weight_initialization_watchpoint",
     "WI",
     MATRICES,
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}},
     1},
    {"recommend_weight_change_too_large_watchpoint",
     "WCL",
     MATRICES,
     {{"abs_mean_update_ratio_gt", GD_PARAM_FLOAT, 1}},
     1},
    {"recommend_gradient_vanishing_watchpoint",
     "GV",
     "gradients",
     {{"abs_mean_lt", GD_PARAM_FLOAT, 1e-9}},
     1},
    {"recommend_operator_overflow_watchpoint", "OO", "all", {{NULL, GD_PARAM_FLOAT, 0}}, 0},
    {"recommend_tensor_overflow_watchpoint", "TO", "all", {{NULL, GD_PARAM_FLOAT, 0}}, 0},
    {"recommend_tensor_all_zero_watchpoint",
     "TZ",
     "all",
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}},
     1},
    {"recommend_tanh_activation_range_watchpoint",
     "AR",
     "type:tanh",
     {{"range_percentage_lt", GD_PARAM_FLOAT, 0.1},
      {"range_start_inclusive", GD_PARAM_FLOAT, -TANH_END},
      {"range_end_inclusive", GD_PARAM_FLOAT, TANH_END}},
     3},
    {"recommend_sigmoid_activation_range_watchpoint",
     "AR",
     "type:sigmoid",
     {{"range_percentage_lt", GD_PARAM_FLOAT, 0.1},
      {"range_start_inclusive", GD_PARAM_FLOAT, SIGMOID_START},
      {"range_end_inclusive", GD_PARAM_FLOAT, SIGMOID_END}},
     3},
    {"recommend_relu_activation_range_watchpoint",
     "AR",
     "type:relu, type:reluv2",
     {{"range_percentage_gt", GD_PARAM_FLOAT, 99.9},
      {"range_start_inclusive", GD_PARAM_FLOAT, -1},
      {"range_end_inclusive", GD_PARAM_FLOAT, 0}},
     3},
};

bool gd_watch_can(struct gd_session *session, const struct gd_condition *condition)
{
    struct gd_watchpoint watch = {.condition = condition, .enabled = true};
    struct gd_watching *w = watching_of(session);
    struct watch_cover cover = {.watch = &watch};
    enum watch_mode mode;
    struct gd_err err;
    return w && session->target && watching_mode(w, &cover, &mode, &err) == GD_OK;
}

/* Nodes that it would cover: as a watchpoint, without constants. */
static size_t count_nodes(struct gd_session *session, const char *where)
{
    struct gd_watchpoint watch = {.enabled = true};
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (gd_selector_parse(where, &watch.selector, NULL))
        return 0;
    if (gd_watchpoint_nodes(&watch, session, &nodes, &count, NULL))
        count = 0;
    free(nodes);
    gd_selector_destroy(watch.selector);
    return count;
}

/* A program that runs as it goes has shown nothing before its first step: what waits finds its
 * nodes when they come. */
static bool is_to_come(const struct gd_session *session)
{
    return gd_session_grows(session) && gd_stop_is_before_first(&session->stop) &&
           session->state == GD_STOPPED;
}

bool gd_recommendation_at(struct gd_session *session, size_t index, struct gd_recommendation *ret)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *entry = &entries[i];
        bool filled = strcmp(entry->condition, "TZ") == 0 && gd_session_grows(session);
        struct gd_recommendation it = {.name = entry->name,
                                       .where = filled ? ALL_BUT_FILLED : entry->where,
                                       .value_count = entry->value_count};
        memcpy(it.values, entry->value, sizeof entry->value);
        if (gd_condition_find(entry->condition, &it.condition, NULL) ||
            !gd_watch_can(session, it.condition))
            continue;
        it.nodes = count_nodes(session, it.where);
        if ((!it.nodes && !is_to_come(session)) || index-- > 0)
            continue;
        *ret = it;
        return true;
    }
    return false;
}
