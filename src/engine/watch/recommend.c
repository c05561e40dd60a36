// SPDX-License-Identifier: GPL-3.0-or-later
/* The starter set: what is worth watching in any training. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/expected.h"
#include "engine/watch/watch_impl.h"

/* Where tanh and sigmoid reach their limits in float32. */
#define TANH_END      0.9999999545590812
#define SIGMOID_START 9.21359998566181e-08
#define SIGMOID_END   0.9999999078640001

#define ENTRY_VALUES 3

struct entry {
    const char *name, *condition, *where;
    struct gd_condition_value value[ENTRY_VALUES]; /* as many as have a name */
    const char *guard;                             /* NULL: none */
    uint32_t steps;                                /* in a row */
};

#define LOSS     "loss" /* the metric */
/* A bias starts at 0, so any update changes it by a large part of its size. */
#define MATRICES "weights except *bias*, *beta"

/* MindInsight's set, for a process that evaluates watchpoints itself. */
static const struct entry mindinsight[] = {
    {"recommend_weight_initialization_watchpoint",
     "WI",
     MATRICES,
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}}},
    {"recommend_weight_change_too_large_watchpoint",
     "WCL",
     MATRICES,
     {{"abs_mean_update_ratio_gt", GD_PARAM_FLOAT, 1}}},
    {"recommend_gradient_vanishing_watchpoint",
     "GV",
     "gradients",
     {{"abs_mean_lt", GD_PARAM_FLOAT, 1e-9}}},
    {"recommend_operator_overflow_watchpoint", "OO", "all"},
    {"recommend_tensor_overflow_watchpoint", "TO", "all"},
    {"recommend_tensor_all_zero_watchpoint",
     "TZ",
     "all",
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}}},
    {"recommend_tanh_activation_range_watchpoint",
     "AR",
     "type:tanh",
     {{"range_percentage_lt", GD_PARAM_FLOAT, 0.1},
      {"range_start_inclusive", GD_PARAM_FLOAT, -TANH_END},
      {"range_end_inclusive", GD_PARAM_FLOAT, TANH_END}}},
    {"recommend_sigmoid_activation_range_watchpoint",
     "AR",
     "type:sigmoid",
     {{"range_percentage_lt", GD_PARAM_FLOAT, 0.1},
      {"range_start_inclusive", GD_PARAM_FLOAT, SIGMOID_START},
      {"range_end_inclusive", GD_PARAM_FLOAT, SIGMOID_END}}},
    {"recommend_relu_activation_range_watchpoint",
     "AR",
     "type:relu, type:reluv2",
     {{"range_percentage_gt", GD_PARAM_FLOAT, 99.9},
      {"range_start_inclusive", GD_PARAM_FLOAT, -1},
      {"range_end_inclusive", GD_PARAM_FLOAT, 0}}},
};

/* A tensor of zeros in one step proves nothing: an initial hidden state, a layer that starts at 0,
 * a batch without a hard example. One that training should change and that does not for many steps
 * does. A value computed outside all modules is a loss or a mask, not a layer. */
#define LASTS       10 /* steps in a row */
#define LEAPS       5  /* the same, for a change: momentum and warm-up need fewer */
#define NOT_A_LAYER "backward/*, eval/*, outside"
#define LAYERS                                                                                     \
    "type:linear, type:conv?d, type:relu, type:relu_, type:reluv2, type:relu6, type:leaky_relu, "  \
    "type:gelu, type:silu except " NOT_A_LAYER
/* A bias before a normalization has a gradient of 0 by algebra, and so has the bias of attention
 * keys. */
#define OF_MATRICES "gradients except *bias*, *beta, backward/*, type:InputGradient"
/* Where the loss is 0, nothing is left to learn. */
#define LEARNS      LOSS " != 0"

/* For targets where gradb evaluates: nothing in a healthy training fires any of these. */
static const struct entry own[] = {
    {"recommend_tensor_overflow_watchpoint", "TO", "all"},
    {"recommend_weight_change_too_large_watchpoint",
     "WCL",
     MATRICES,
     {{"abs_mean_update_ratio_gt", GD_PARAM_FLOAT, 1}},
     .steps = LEAPS},
    {"recommend_weight_all_zero_watchpoint",
     "TZ",
     MATRICES,
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}},
     .guard = LEARNS,
     .steps = LASTS},
    {"recommend_gradient_vanishing_watchpoint",
     "GV",
     OF_MATRICES,
     {{"abs_mean_lt", GD_PARAM_FLOAT, 1e-12}},
     .guard = LEARNS,
     .steps = LASTS},
    {"recommend_layer_all_zero_watchpoint",
     "TZ",
     LAYERS,
     {{"zero_percentage_ge", GD_PARAM_FLOAT, 100}},
     .guard = LEARNS,
     .steps = LASTS},
    {"recommend_tanh_activation_range_watchpoint",
     "AR",
     "type:tanh except " NOT_A_LAYER,
     {{"range_percentage_lt", GD_PARAM_FLOAT, 5},
      {"range_start_inclusive", GD_PARAM_FLOAT, -TANH_END},
      {"range_end_inclusive", GD_PARAM_FLOAT, TANH_END}},
     .steps = LASTS},
    {"recommend_sigmoid_activation_range_watchpoint",
     "AR",
     "type:sigmoid except " NOT_A_LAYER,
     {{"range_percentage_lt", GD_PARAM_FLOAT, 5},
      {"range_start_inclusive", GD_PARAM_FLOAT, SIGMOID_START},
      {"range_end_inclusive", GD_PARAM_FLOAT, SIGMOID_END}},
     .steps = LASTS},
    {"recommend_loss_rise_watchpoint", "LS", LOSS, {{"rise_gt", GD_PARAM_FLOAT, 10}}},
};

static const struct entry *entry_at(const struct gd_session *session, size_t index)
{
    if (session->target && (session->target->capabilities & GD_CAN_WATCH_REMOTE)) {
        return index < sizeof(mindinsight) / sizeof(*mindinsight) ? &mindinsight[index] : NULL;
    }
    return index < sizeof(own) / sizeof(*own) ? &own[index] : NULL;
}

bool gd_watch_can(struct gd_session *session, const struct gd_condition *condition)
{
    struct gd_watchpoint watch = {.condition = condition, .enabled = true};
    struct gd_watching *w = watching_of(session);
    struct watch_cover cover = {.watch = &watch};
    enum watch_mode mode;
    struct gd_err err;
    return w && session->target && watching_mode(w, &cover, &mode, &err) == GD_OK;
}

/* The number of nodes it would cover: as a watchpoint, without constants. */
static size_t count_nodes(struct gd_session *session, const char *where)
{
    struct gd_watchpoint watch = {.enabled = true};
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (strcmp(where, LOSS) == 0) {
        return 1;
    }
    if (gd_selector_parse(where, &watch.selector, NULL) != GD_OK) {
        return 0;
    }
    if (gd_watchpoint_nodes(&watch, session, &nodes, &count, NULL) != GD_OK) {
        count = 0;
    }
    free(nodes);
    gd_selector_destroy(watch.selector);
    return count;
}

/* An eager program has shown nothing before its first step: pending watchpoints find their nodes
 * when they come. */
static bool is_to_come(const struct gd_session *session)
{
    return gd_session_grows(session) && gd_stop_is_before_first(&session->stop) &&
           session->state == GD_STOPPED;
}

bool gd_recommendation_at(struct gd_session *session, size_t index, struct gd_recommendation *ret)
{
    const struct entry *entry;
    for (size_t i = 0; (entry = entry_at(session, i)); i++) {
        struct gd_recommendation it = {.name = entry->name,
                                       .where = entry->where,
                                       .guard = entry->guard,
                                       .steps = entry->steps};
        while (it.value_count < ENTRY_VALUES && entry->value[it.value_count].name) {
            it.values[it.value_count] = entry->value[it.value_count];
            it.value_count++;
        }
        if (gd_condition_find(entry->condition, &it.condition, NULL) != GD_OK ||
            !gd_watch_can(session, it.condition)) {
            continue;
        }
        it.nodes = count_nodes(session, it.where);
        if ((!it.nodes && !is_to_come(session)) || index-- > 0) {
            continue;
        }
        *ret = it;
        return true;
    }
    return false;
}

size_t gd_recommendation_count(struct gd_session *session)
{
    struct gd_recommendation ignored;
    size_t count = 0;

    while (gd_recommendation_at(session, count, &ignored)) {
        count++;
    }
    return count;
}
