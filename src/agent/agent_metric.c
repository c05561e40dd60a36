// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_mark.h"
#include "agent/agent_metric.h"
#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_words.h"

#define TEXT        160
#define MAX_METRICS 64
#define EVALUATION  "eval/" /* scope of what runs in an evaluation */
#define MAX_REPLY   ((size_t)1 << 20)

/* ---- the set --------------------------------------------------------------------------------- */

static struct agent_metric *find_metric(const struct agent *a, const char *name)
{
    struct agent_metric *m = a->metrics ? a->metrics->first : NULL;
    while (m && strcmp(m->spec.name, name) != 0) {
        m = m->next;
    }
    return m;
}

static void free_metric(struct agent_metric *m)
{
    gd_metric_destroy(m->train.metric);
    gd_metric_destroy(m->train.part);
    gd_metric_destroy(m->eval.metric);
    gd_metric_destroy(m->eval.part);
    free(m->definition);
    agent_copy_free(m->outputs.copy);
    agent_copy_free(m->labels.copy);
    free(m);
}

static bool is_side(const struct agent *a, const struct agent_metric_side *side, gradb_node id)
{
    return side->node && (side->node == id || side->node == a->nodes[id].twin_of);
}

/* Which nodes are copied when they have run. */
static void flag_nodes(struct agent *a)
{
    bool any = false;
    for (uint32_t id = 1; id < a->node_count; id++) {
        a->nodes[id].flags &= (uint16_t)~NODE_METRIC;
    }
    for (const struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        for (uint32_t id = 1; id < a->node_count && m->outputs.node; id++) {
            if (is_side(a, &m->outputs, id) || is_side(a, &m->labels, id)) {
                a->nodes[id].flags |= NODE_METRIC;
                any = true;
            }
        }
    }
    a->metric_nodes = any;
    agent_mark_nodes(a, 1);
    agent_arm(a);
}

static void drop_metric(struct agent *a, struct agent_metric *m)
{
    struct agent_metric **at = &a->metrics->first;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    free_metric(m);
}

void agent_metric_clear(struct agent *a)
{
    if (!a->metrics) {
        return;
    }
    while (a->metrics->first) {
        drop_metric(a, a->metrics->first);
    }
    gd_metric_samples_destroy(a->metrics->samples);
    free(a->metrics);
    a->metrics = NULL;
    POKE(a->has_metrics, 0);
    flag_nodes(a);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void clear_sums(struct agent_metric_sums *sums)
{
    gd_metric_clear(sums->metric);
    if (sums->part) {
        gd_metric_clear(sums->part);
    }
    *sums = (struct agent_metric_sums){
        .metric = sums->metric, .part = sums->part, .epoch = sums->epoch + 1};
}

/* Another epoch has begun. */
static void clear_epoch(struct agent *a)
{
    for (struct agent_metric *m = a->metrics->first; m; m = m->next) {
        if (!m->spec.by_step) {
            clear_sums(&m->train);
        }
    }
}

/* The scalar "epoch". */
static void turn_epoch(struct agent *a, int64_t epoch)
{
    struct agent_metrics *all = a->metrics;
    if (!all->told && all->epoch != INT64_MIN && all->epoch != epoch) {
        clear_epoch(a);
    }
    all->epoch = epoch;
}

static void tell_refused(struct agent *a, struct agent_metric *m, int64_t step, const char *why)
{
    if (m->told) {
        return;
    }
    char text[GD_ERR_TEXT_MAX + 64];
    m->told = true;
    snprintf(text, sizeof(text), "metric %s: a batch of step %lld was not counted: %.400s",
             m->spec.name, (long long)step, why);
    Gradb__V1__Event event = GRADB__V1__EVENT__INIT;
    event.kind = (char[]){"unseen"};
    event.text = text;
    event.step = step;
    agent_queue(a, &event.base);
    agent_wake(a);
}

void agent_metric_refuse(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums,
                         const char *why)
{
    sums->refused++;
    snprintf(sums->why, sizeof(sums->why), "%s", why);
    tell_refused(a, m, sums->last, why);
}

static void begin_at(const struct agent_metric *m, struct agent_metric_sums *sums, int64_t step)
{
    bool old = m->spec.by_step && sums->last > 0 && sums->last != step && sums == &m->train;
    if (old || sums->ended) {
        clear_sums(sums);
    }
    sums->since = sums->since ? sums->since : step;
    sums->last = step;
    sums->due = true;
}

void agent_metric_begin(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums)
{
    begin_at(m, sums, sums == &m->eval ? agent_number_step(a) : PEEK(a->step));
}

/* A part of the sums does not know how many classes there were before. */
static int check_batch(const struct agent_metric_sums *sums, const struct gd_metric_pair *pair,
                       const struct gd_tensor *outputs, const struct gd_tensor *labels,
                       struct gd_err *err)
{
    struct gd_buf plan = GD_BUF_INIT(1 << 13);
    bool known = sums->part && gd_metric_counts(sums->metric)->batches > 0;
    int rc = known ? gd_metric_plan(sums->metric, pair, outputs, labels, &plan, err) : GD_OK;
    gd_buf_deinit(&plan);
    return rc;
}

static void count_batch(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums,
                        const struct gd_metric_pair *pair, const struct gd_tensor *outputs,
                        const struct gd_tensor *labels)
{
    struct gd_err err = {0};
    agent_metric_begin(a, m, sums);
    if (check_batch(sums, pair, outputs, labels, &err) != GD_OK ||
        gd_metric_update(agent_metric_counting(sums), pair, outputs, labels, &err) != GD_OK) {
        agent_metric_refuse(a, m, sums, err.text);
    }
}

static void report_sums(struct agent *a, struct agent_metric *m, bool evaluation)
{
    struct agent_metric_sums *sums = evaluation ? &m->eval : &m->train;
    struct gd_metric_number number[GD_METRIC_SHOWN];
    const char *prefix = evaluation ? "eval_" : "";
    bool due = sums->due;
    sums->due = false;
    if (sums->part) { /* a loss may come when the step has ended */
        if (due || (!evaluation && m->spec.kind != GD_METRIC_LOSS)) {
            agent_metric_send(a, m, sums, due ? sums->last : PEEK(a->step));
        }
        return;
    }
    size_t count = due ? gd_metric_numbers(sums->metric, number, GD_METRIC_SHOWN) : 0;
    for (size_t i = 0; i < count && i < GD_METRIC_SHOWN; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%.71s", prefix, number[i].name);
        agent_scalar(a, name, number[i].value, sums->last);
    }
}

/* ---- values of nodes ------------------------------------------------------------------------- */

static bool is_of_this_step(const struct agent *a, const struct agent_metric_side *side)
{
    return side->copy && side->copy->valid && side->copy->step == PEEK(a->step);
}

/* Copies what the slot of the node, the side's or its twin, has now. The table may move while the
 * source is asked. */
static bool take_side(struct agent *a, struct agent_metric_side *side, gradb_node node)
{
    struct agent_value value;
    char text[TEXT];
    side->evaluation = PEEK(a->evaluates) || node != side->node;
    side->at = ++a->metrics->moments;
    if (side->copy) {
        side->copy->valid = false;
    }
    if (agent_find(a, node, side->slot, GRADB__V1__ITERATION__CURRENT, &value, text) != -1) {
        return false;
    }
    value.step = PEEK(a->step);
    bool ok = agent_copy_take(&side->copy, &value);
    agent_source_release(a);
    return ok;
}

static void view_of(const struct agent_copy *copy, struct gd_tensor *ret)
{
    *ret = (struct gd_tensor){
        .dtype = copy->dtype, .shape = copy->shape, .data = copy->data, .refs = 1};
    gd_shape_strides(&ret->shape, gd_dtype_size(ret->dtype), ret->stride);
}

static void drop_copies(struct agent_metric *m)
{
    if (m->outputs.copy) {
        m->outputs.copy->valid = false;
    }
    if (m->labels.copy) {
        m->labels.copy->valid = false;
    }
}

/* Counts a pair that is complete. */
static void count_pair(struct agent *a, struct agent_metric *m)
{
    static const struct gd_metric_pair unknown = {.form = GD_FORM_UNKNOWN};
    struct gd_tensor outputs, labels;
    if (!is_of_this_step(a, &m->outputs) ||
        (m->labels.node &&
         (!is_of_this_step(a, &m->labels) || m->labels.evaluation != m->outputs.evaluation))) {
        return;
    }
    view_of(m->outputs.copy, &outputs);
    view_of(m->labels.node ? m->labels.copy : m->outputs.copy, &labels);
    if (!m->outputs.evaluation && m->labels.node) {
        m->first = m->outputs.at < m->labels.at ? FIRST_OUTPUTS : FIRST_LABELS;
    }
    count_batch(a, m, m->outputs.evaluation ? &m->eval : &m->train, &unknown, &outputs, &labels);
    drop_copies(m);
}

/* Labels that no operator makes are there before the outputs. In an evaluation of several batches
 * the source would still have those of the previous one. */
static bool is_given(const struct agent *a, const struct agent_metric *m)
{
    const struct agent_node *node = agent_node_at(a, m->labels.node);
    return node && (node->phase == 0 || node->kind == GRADB_PARAMETER) &&
           !(m->outputs.evaluation && a->source.locate);
}

/* An evaluation has many batches in one step: what comes second must not meet the first of another
 * batch, whose own second was not seen. */
static void drop_orphan(const struct agent *a, const struct agent_metric *m,
                        const struct agent_metric_side *side)
{
    const struct agent_metric_side *first = m->first == FIRST_OUTPUTS  ? &m->outputs
                                            : m->first == FIRST_LABELS ? &m->labels
                                                                       : side;
    if (side->evaluation && side != first && side->copy && !is_of_this_step(a, first)) {
        side->copy->valid = false;
    }
}

void agent_metric_node(struct agent *a, gradb_node id)
{
    const struct agent_node *node = agent_node_at(a, id);
    if (!a->metrics || !node || !(node->flags & NODE_METRIC) || a->link != LINK_UP) {
        return;
    }
    agent_pass_begin(a); /* the source may be asked: the set must stay */
    for (struct agent_metric *m = a->metrics->first; m; m = m->next) {
        struct agent_metric_side *side = is_side(a, &m->outputs, id)  ? &m->outputs
                                         : is_side(a, &m->labels, id) ? &m->labels
                                                                      : NULL;
        if (!side) {
            continue;
        }
        if (is_of_this_step(a, side)) {
            count_pair(a, m);
        }
        take_side(a, side, id);
        drop_orphan(a, m, side);
        if (side == &m->outputs && m->labels.node && is_given(a, m) &&
            !is_of_this_step(a, &m->labels)) {
            take_side(a, &m->labels, m->labels.node);
        }
    }
    agent_pass_end(a);
}

/* ---- the end of the step --------------------------------------------------------------------- */

/* The step that it belongs to has ended: it must not wait for the next end, with which another
 * epoch may begin. */
static void add_late_loss(struct agent *a, double value, int64_t step)
{
    for (struct agent_metric *m = a->metrics->first; m; m = m->next) {
        if (m->spec.kind == GD_METRIC_LOSS) {
            begin_at(m, &m->train, step);
            gd_metric_add(agent_metric_counting(&m->train), value);
            report_sums(a, m, false);
        }
    }
}

void agent_metric_scalar(struct agent *a, const char *name, double value, int64_t step)
{
    if (!a->metrics) {
        return;
    }
    if (strcmp(name, "epoch") == 0 && fabs(value) < 1e15) {
        turn_epoch(a, (int64_t)value);
    }
    if (strcmp(name, "loss") == 0 && (step != PEEK(a->step) || !PEEK(a->in_step))) {
        add_late_loss(a, value, step);
    } else if (strcmp(name, "loss") == 0) {
        a->metrics->loss = value;
        a->metrics->has_loss = true;
    }
}

void agent_metric_step_end(struct agent *a)
{
    if (!a->metrics || a->link != LINK_UP) {
        return;
    }
    for (struct agent_metric *m = a->metrics->first; m; m = m->next) {
        if (m->outputs.node) {
            count_pair(a, m);
        } else if (m->spec.kind == GD_METRIC_LOSS && a->metrics->has_loss) {
            agent_metric_begin(a, m, &m->train);
            gd_metric_add(agent_metric_counting(&m->train), a->metrics->loss);
        }
        m->eval.ended = m->eval.ended || m->eval.due;
        report_sums(a, m, true);
        report_sums(a, m, false);
    }
    a->metrics->has_loss = false;
}

static void feed_metric(struct agent *a, struct agent_metric *m, const gradb_batch *batch,
                        const struct gd_metric_pair *pair, const struct gd_tensor *outputs,
                        const struct gd_tensor *labels)
{
    struct agent_metric_sums *sums = batch->evaluation ? &m->eval : &m->train;
    if (!batch->evaluation && m->eval.due) { /* the evaluation is over */
        m->eval.ended = true;
        report_sums(a, m, true);
    }
    if (m->spec.kind != GD_METRIC_LOSS) {
        count_batch(a, m, sums, pair, outputs, labels);
    } else if (batch->evaluation && batch->loss) {
        agent_metric_begin(a, m, sums);
        gd_metric_add(agent_metric_counting(sums), *batch->loss);
    }
}

/* The program's tensor as ours; false: nothing can be read there. */
static bool view_given(const gradb_tensor *from, struct gd_tensor *ret)
{
    char text[TEXT];
    return from && agent_take_tensor(from, ret, true, text) == -1;
}

bool gradb_metric_batch(gradb *g, const char *name, const gradb_batch *batch)
{
    struct agent *a = agent_of(g);
    struct gd_tensor outputs, labels;
    bool found = false;
    if (!a || !batch || !PEEK(a->connected) || !agent_usable(a)) {
        return false;
    }
    struct gd_metric_pair pair = {.form = (enum gd_metric_form)batch->pair,
                                  .has_ignore = batch->has_ignore,
                                  .ignore = batch->ignore};
    bool ok = view_given(batch->outputs, &outputs) && view_given(batch->labels, &labels);
    pthread_mutex_lock(&a->lock);
    if (a->metrics) {
        pair.samples = a->metrics->samples;
        gd_metric_samples_clear(pair.samples);
    }
    for (struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        if (m->outputs.node == 0 && (!name || strcmp(name, m->spec.name) == 0)) {
            found = true;
            if (ok) {
                feed_metric(a, m, batch, &pair, &outputs, &labels);
            }
        }
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

void agent_metric_evaluation(struct agent *a, bool begins)
{
    for (struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        if (m->outputs.node) {
            count_pair(a, m);
        }
        if (!begins || !m->labels.evaluation) {
            drop_copies(m); /* of what begins, only labels may be there */
        }
        if (!begins) {
            m->eval.ended = m->eval.ended || m->eval.due;
            report_sums(a, m, true);
        }
    }
}

void gradb_metric_evaluated(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!a || !PEEK(a->connected) || !agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    agent_metric_evaluation(a, false);
    pthread_mutex_unlock(&a->lock);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* NODE[:SLOT]; the longest existing name wins. */
static bool find_side(const struct agent *a, const char *text, struct agent_metric_side *ret)
{
    const char *colon = strrchr(text, ':');
    size_t len = strlen(text), head = colon ? (size_t)(colon - text) : len;
    for (uint32_t id = 1; id < a->node_count; id++) {
        const struct agent_node *node = &a->nodes[id];
        bool whole = strcmp(node->name, text) == 0;
        bool part = colon && strlen(node->name) == head && memcmp(node->name, text, head) == 0;
        if (whole || (part && !ret->node)) {
            ret->node = id;
            ret->slot = whole ? 0 : (uint32_t)strtoul(colon + 1, NULL, 10);
        }
    }
    return ret->node != 0;
}

/* Whether a node of that name exists, other than in evaluations. */
static bool is_named(const struct agent *a, const char *name)
{
    uint32_t id = 1;
    while (id < a->node_count && strcmp(a->nodes[id].name, name) != 0) {
        id++;
    }
    return id < a->node_count;
}

/* Whether a node is what that one is in an evaluation: "eval/" and its name. Another place in the
 * program that evaluates has names with a number, "eval/net/fc_1". */
static bool is_twin(const struct agent *a, gradb_node id, const char *name)
{
    const char *own = id ? a->nodes[id].name : "";
    size_t len = strlen(own), prefix = strlen(EVALUATION);
    if (!id || strncmp(name, EVALUATION, prefix) != 0 || strncmp(name + prefix, own, len) != 0) {
        return false;
    }
    const char *rest = name + prefix + len;
    bool numbered = rest[0] == '_' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1);
    return !*rest || (numbered && !is_named(a, name + prefix));
}

/* Makes it the twin of a side of the metric, if it is one. */
static bool take_twin(const struct agent *a, const struct agent_metric *m, gradb_node id)
{
    gradb_node side = is_twin(a, m->outputs.node, a->nodes[id].name)  ? m->outputs.node
                      : is_twin(a, m->labels.node, a->nodes[id].name) ? m->labels.node
                                                                      : 0;
    if (side) {
        a->nodes[id].twin_of = side;
    }
    return side != 0;
}

void agent_metric_added(struct agent *a, gradb_node id)
{
    bool found = false;
    for (struct agent_metric *m = id && a->metric_nodes ? a->metrics->first : NULL; m;
         m = m->next) {
        found = take_twin(a, m, id) || found;
    }
    if (found) {
        a->nodes[id].flags |= NODE_METRIC;
        agent_mark_nodes(a, id);
    }
}

static int find_sides(const struct agent *a, struct agent_metric *m, char text[TEXT])
{
    const char *missing = !find_side(a, m->spec.outputs, &m->outputs) ? m->spec.outputs
                          : m->spec.labels[0] && !find_side(a, m->spec.labels, &m->labels)
                              ? m->spec.labels
                              : NULL;
    if (missing) {
        snprintf(text, TEXT, "there is no node '%.100s'", missing);
        return CODE(NOT_FOUND);
    }
    for (uint32_t id = 1; id < a->node_count; id++) {
        take_twin(a, m, id);
    }
    return -1;
}

/* Of a metric over ranks. */
static bool need_parts(struct agent_metric *m)
{
    struct gd_buf text = GD_BUF_INIT(1 << 14);
    gd_metric_text(&m->spec, &text);
    m->definition = strdup(gd_buf_text(&text));
    gd_buf_deinit(&text);
    return m->definition && gd_metric_create(&m->spec, &m->train.part, NULL) == GD_OK &&
           gd_metric_create(&m->spec, &m->eval.part, NULL) == GD_OK;
}

static int add_metric(struct agent *a, const char *words, bool on_nodes, char text[TEXT])
{
    struct gd_err err = {0};
    struct agent_metric *m = calloc(1, sizeof(*m)), **end;
    int count = 0, code = m ? -1 : CODE(NO_MEMORY);
    if (m && (gd_metric_parse(words, &m->spec, &err) != GD_OK ||
              gd_metric_create(&m->spec, &m->train.metric, &err) != GD_OK ||
              gd_metric_create(&m->spec, &m->eval.metric, &err) != GD_OK)) {
        code = CODE(INVALID);
        snprintf(text, TEXT, "%.*s", TEXT - 1, err.text);
    }
    if (code == -1 && m->spec.ranks && a->world_size > 1 && a->job[0]) {
        code = need_parts(m) ? -1 : CODE(NO_MEMORY);
    }
    if (code == -1 && on_nodes && m->spec.outputs[0]) {
        code = find_sides(a, m, text);
    }
    if (code == -1 && !a->metrics) {
        a->metrics = calloc(1, sizeof(*a->metrics));
        code = a->metrics ? -1 : CODE(NO_MEMORY);
    }
    if (code == -1 && !a->metrics->samples) {
        a->metrics->samples = gd_metric_samples_create();
    }
    if (code != -1) {
        if (m) {
            free_metric(m);
        }
        return code;
    }
    a->metrics->epoch = a->metrics->first ? a->metrics->epoch : INT64_MIN;
    struct agent_metric *old = find_metric(a, m->spec.name);
    if (old) {
        drop_metric(a, old);
    }
    for (end = &a->metrics->first; *end; end = &(*end)->next) {
        count++;
    }
    if (count == MAX_METRICS) {
        free_metric(m);
        snprintf(text, TEXT, "there are %d metrics: delete one first", MAX_METRICS);
        return CODE(TOO_LARGE);
    }
    *end = m;
    POKE(a->has_metrics, 1);
    flag_nodes(a);
    return -1;
}

static int delete_metric(struct agent *a, const char *name, char text[TEXT])
{
    struct agent_metric *m = find_metric(a, name);
    if (!m && name[0]) {
        snprintf(text, TEXT, "there is no metric '%.60s'", name);
        return CODE(NOT_FOUND);
    }
    if (m) {
        drop_metric(a, m);
    }
    if (!name[0] || !a->metrics->first) {
        agent_metric_clear(a);
    } else {
        flag_nodes(a);
    }
    return -1;
}

static void clear_all(struct agent *a)
{
    for (struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        clear_sums(&m->train);
        clear_sums(&m->eval);
    }
}

/* The answer has the number of metrics: with none, the program need not say it again. */
static void tell_epoch(struct agent *a, struct gd_buf *out)
{
    int count = 0;
    if (a->metrics) {
        a->metrics->told = true;
        clear_epoch(a);
    }
    for (struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        count++;
    }
    gd_buf_printf(out, "{\"metrics\":%d}", count);
}

int agent_metric_request(struct agent *a, const char *request, char **reply, char text[TEXT])
{
    size_t len = strcspn(request, " ");
    const char *rest = request + len + (request[len] == ' ');
    struct gd_buf out = GD_BUF_INIT(MAX_REPLY);
    int code = -1;
    if (strncmp(request, "add ", 4) == 0 || strncmp(request, "found ", 6) == 0) {
        code = add_metric(a, rest, true, text);
    } else if (strncmp(request, "feed ", 5) == 0) {
        code = add_metric(a, rest, false, text);
    } else if (len == 6 && strncmp(request, "delete", 6) == 0) {
        code = delete_metric(a, rest, text);
    } else if (strcmp(request, "clear") == 0) {
        clear_all(a);
    } else if (strcmp(request, "epoch") == 0) {
        tell_epoch(a, &out);
    } else if (strcmp(request, "list") == 0) {
        agent_metric_list(a, &out);
    } else if (strncmp(request, "plan ", 5) == 0) {
        code = agent_metric_plan(a, rest, &out, text);
    } else if (strncmp(request, "counts ", 7) == 0) {
        code = agent_metric_counts(a, rest, text);
    } else {
        snprintf(text, TEXT, "'%.60s' is not a request about metrics", request);
        code = CODE(INVALID);
    }
    gd_buf_puts(&out, "");
    *reply = code == -1 ? (out.len ? gd_buf_take(&out) : strdup("{}")) : NULL;
    gd_buf_deinit(&out);
    if (code == -1 && !*reply) {
        snprintf(text, TEXT, "the answer does not fit: delete some metrics");
        code = CODE(TOO_LARGE);
    }
    return code;
}

gradb_answer gradb_metric(gradb *g, const char *request, char *reply, size_t size,
                          char why[GRADB_WHY])
{
    struct agent *a = agent_of(g);
    char *text = NULL, reason[TEXT] = "nothing is connected";
    int code = CODE(FAILED);
    if (a && request && PEEK(a->connected) && agent_usable(a)) {
        pthread_mutex_lock(&a->lock);
        code = agent_metric_request(a, request, &text, reason);
        pthread_mutex_unlock(&a->lock);
    }
    if (code == -1 && size > 0 && strlen(text) >= size) {
        snprintf(reason, sizeof(reason), "the answer has %zu bytes", strlen(text) + 1);
        code = CODE(TOO_LARGE);
    } else if (code == -1 && size > 0) {
        memcpy(reply, text, strlen(text) + 1);
    }
    free(text);
    if (code != -1) {
        snprintf(why, GRADB_WHY, "%.*s", GRADB_WHY - 1, reason);
    }
    return code == -1 ? GRADB_OK : GRADB_FAILED;
}
