// SPDX-License-Identifier: GPL-3.0-or-later
#include "watch_bench.h"
#include "engine/watch/watch_report.h"

#include <math.h>

static void observe_event(void *ctx, const struct gd_event *event)
{
    struct watch_bench *bench = ctx;
    if (event->type == GD_EV_HIT && bench->hit_count < BENCH_HITS) {
        bench->hits[bench->hit_count++] = *event->hit;
    }
    if (event->type == GD_EV_WARNING) {
        bench->warnings++;
        snprintf(bench->warning, sizeof(bench->warning), "%s", event->text);
    }
}

gd_node_id bench_add(struct gd_session *session, const char *name, const char *type, uint32_t order,
                     enum gd_dtype dtype, uint32_t slots)
{
    struct gd_output outputs[4] = {{dtype, {.rank = 1, .dim = {4}}},
                                   {GD_INT32, {.rank = 1, .dim = {4}}},
                                   {GD_INT32, {.rank = 0}},
                                   {GD_INT32, {.rank = 0}}};
    struct gd_node_desc desc = {
        .name = name, .type = type, .outputs = outputs, .output_count = slots, .order = order};
    gd_node_id id = GD_NO_NODE;
    assert_ok(gd_graph_add(session->graph, &desc, &id, NULL));
    return id;
}

void bench_graph(struct gd_session *session)
{
    bench_add(session, "w1.weight", "Parameter", GD_NO_ORDER, GD_FLOAT32, 1);
    bench_add(session, "net/Conv-op1", "Conv2D", 1, GD_FLOAT32, 1);
    bench_add(session, "net/ReLU-op2", "ReLU", 2, GD_FLOAT32, 1);
    bench_add(session, "net/Log-op3", "Log", 3, GD_FLOAT32, 2);
    bench_add(session, "gradients/Conv-op4", "Conv2DBackprop", 4, GD_BFLOAT16, 1);
    bench_add(session, "w2.bias", "Parameter", GD_NO_ORDER, GD_FLOAT32, 1);
    bench_add(session, "net/const", "Const", GD_NO_ORDER, GD_FLOAT32, 1);
    bench_add(session, "net/text", "Text", GD_NO_ORDER, GD_STRING, 1);
    bench_add(session, "deep/net/Odd-op5", "Odd", 5, GD_DT_NONE, 1);
    assert_ok(gd_graph_commit(session->graph, NULL));
    gd_session_on_graph(session);
}

struct gd_session *bench_connect(struct watch_bench *bench, unsigned capabilities,
                                 struct fake_target **ret)
{
    struct gd_session *session = NULL;
    *ret = fake_create(true, NULL);
    (*ret)->target.capabilities = capabilities;
    assert_ok(gd_session_create(bench->debugger, &(*ret)->target, NULL, &session, NULL));
    return session;
}

struct watch_bench *bench_make(unsigned capabilities)
{
    struct watch_bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    bench->debugger->settings.history_bytes = 0;
    assert_ok(gd_debugger_observe(bench->debugger, observe_event, bench));
    bench->session = bench_connect(bench, capabilities, &bench->fake);
    bench_graph(bench->session);
    return bench;
}

void bench_free(struct watch_bench *bench)
{
    gd_debugger_destroy(bench->debugger);
    free(bench);
}

int bench_set_up(void **state)
{
    *state = bench_make(BENCH_PLANS);
    return 0;
}

int bench_tear_down(void **state)
{
    bench_free(*state);
    return 0;
}

void bench_stop(struct watch_bench *bench, enum gd_stop_reason reason, int64_t step)
{
    struct gd_stop stop = {
        .reason = reason, .step = step, .node = GD_NO_NODE, .at_step_end = step > 0};
    gd_session_on_stopped(bench->session, &stop);
}

void bench_run(struct watch_bench *bench)
{
    gd_session_on_running(bench->session);
}

struct words {
    char text[512];
    char *next;
};

static char *next_word(struct words *words)
{
    char *at = words->next + strspn(words->next, " ");
    if (!*at) {
        return NULL;
    }
    char quote = *at == '\'' ? '\'' : ' ';
    at += quote == '\'';
    words->next = at + strcspn(at, quote == '\'' ? "'" : " ");
    if (*words->next) {
        *words->next++ = '\0';
    }
    return at;
}

static void take_options(struct words *words, struct gd_watch_spec *spec, char **word)
{
    *word = next_word(words);
    if (*word && (!strcmp(*word, "watch") || !strcmp(*word, "trace") || !strcmp(*word, "twatch"))) {
        spec->action = **word == 't' && (*word)[1] == 'r' ? GD_WATCH_TRACE : GD_WATCH_STOP;
        spec->temporary = (*word)[1] == 'w';
        *word = next_word(words);
    }
    while (*word && **word == '-') {
        spec->when = (*word)[1] == 'e' ? GD_WHEN_EXACT : GD_WHEN_STEP_END;
        *word = next_word(words);
    }
}

int bench_watch(struct watch_bench *bench, const char *line, struct gd_err *err)
{
    struct gd_watch_spec spec = {0};
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    struct words words;
    struct gd_watchpoint *watch = NULL;
    char *word, *guard, *where;
    snprintf(words.text, sizeof(words.text), "%s", line);
    words.next = words.text;
    bool expression = strchr(line, '\'') != NULL;
    char *tail = expression ? strrchr(words.text, '\'') : words.text;
    if ((guard = strstr(tail, " if "))) {
        *guard = '\0';
        spec.guard = guard + 4;
    }
    if ((where = strstr(tail, " on "))) {
        *where = '\0';
        spec.where = where + 4;
    }
    take_options(&words, &spec, &word);
    if (expression) {
        spec.expression = word;
    } else if (gd_condition_find(word, &spec.condition, err) != GD_OK) {
        return GD_ENOTFOUND;
    }
    spec.values = values;
    while ((word = next_word(&words))) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        values[spec.value_count++] =
            (struct gd_condition_value){word, GD_PARAM_FLOAT, strtod(equals + 1, NULL)};
    }
    int rc = gd_watchpoint_add(bench->debugger, &spec, &watch, err);
    return rc != GD_OK ? rc : watch->number;
}

int bench_must_watch(struct watch_bench *bench, const char *line)
{
    struct gd_err err = {0};
    int rc = bench_watch(bench, line, &err);
    if (rc < 1) {
        fail_msg("%s: %s", line, err.text);
    }
    return rc;
}

const struct fake_plan *bench_plan(const struct watch_bench *bench, gd_node_id node, uint32_t slot,
                                   bool exact, const struct gd_watch_item **item)
{
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        const struct fake_plan *plan = &bench->fake->plans[i];
        for (size_t k = 0; plan->exact == exact && k < plan->count; k++) {
            if (plan->items[k].scalar || plan->items[k].node != node ||
                plan->items[k].slot != slot) {
                continue;
            }
            if (item) {
                *item = &plan->items[k];
            }
            return plan;
        }
    }
    return NULL;
}

const struct fake_plan *bench_scalar_plan(const struct watch_bench *bench, const char *name,
                                          const struct gd_watch_item **item)
{
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        const struct fake_plan *plan = &bench->fake->plans[i];
        for (size_t k = 0; k < plan->count; k++) {
            if (!plan->items[k].scalar || strcmp(plan->items[k].scalar, name) != 0) {
                continue;
            }
            if (item) {
                *item = &plan->items[k];
            }
            return plan;
        }
    }
    return NULL;
}

int bench_items(const struct watch_bench *bench, gd_node_id node, uint32_t slot)
{
    int count = 0;
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        for (size_t k = 0; k < bench->fake->plans[i].count; k++) {
            count += !bench->fake->plans[i].items[k].scalar &&
                     bench->fake->plans[i].items[k].node == node &&
                     bench->fake->plans[i].items[k].slot == slot;
        }
    }
    return count;
}

struct gd_stats bench_stats(uint64_t count, double value)
{
    struct gd_stats stats = {.count = count, .min = INFINITY, .max = -INFINITY};
    if (isnan(value)) {
        stats.nan = count;
    } else if (isinf(value)) {
        *(value > 0 ? &stats.pos_inf : &stats.neg_inf) = count;
    }
    if (!isfinite(value) || !count) {
        return stats;
    }
    stats.zero = value == 0 ? count : 0;
    stats.positive = value > 0 ? count : 0;
    stats.negative = value < 0 ? count : 0;
    stats.min = stats.max = stats.mean = value;
    stats.abs_mean = fabs(value);
    stats.sum_sq = (double)count * value * value;
    return stats;
}

bool bench_report(struct watch_bench *bench, const struct fake_plan *plan, gd_node_id node,
                  uint32_t slot, int64_t step, const struct gd_stats *stats, unsigned error,
                  char *why, size_t size)
{
    struct gd_shape shape = {.rank = 1, .dim = {stats ? (int64_t)stats->count : 0}};
    assert_non_null(plan);
    struct gd_watch_value value = {.plan = plan->id,
                                   .node = node,
                                   .slot = slot,
                                   .dtype = GD_FLOAT32,
                                   .shape = &shape,
                                   .stats = stats,
                                   .error = error,
                                   .value_step = step};
    struct gd_watch_moment moment = {
        .step = step, .exact = plan->exact, .record = bench->record, .meant = &bench->meant};
    bench->meant = true;
    return gd_watch_on_values(bench->session, &moment, &value, 1, why, size);
}
