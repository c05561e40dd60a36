// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What is unusual where nothing is NaN: a batch, a weight that jumped, a learning rate that ran
 * away.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/history/history.h"
#include "engine/why/why_impl.h"

/* An update relative to the weight's size. The first applies to a measured update of the weight in
 * question; the second is for other weights, or an estimated update: a small matrix in a healthy
 * warm-up reaches 0.15. */
#define LARGE_UPDATE 0.1
#define RUNAWAY      0.25
/* Creates values from nothing: the initial state of a recurrence, a mask. */
#define FILLS        "zeros zeros_like ones ones_like full full_like eye arange Zeros ZerosLike Ones Fill"

/* ---- the batch ------------------------------------------------------------------------------ */

bool why_is_batch(const struct why_walk *walk, const struct why_tensor *leaf)
{
    struct gd_node_info info;

    return leaf->is_leaf && !leaf->is_constant &&
           gd_graph_node(walk->session->graph, leaf->node, &info) && info.kind != GD_NODE_WEIGHT &&
           !why_type_in(info.type, FILLS) && /* they contain what they were asked for */
           info.kind != GD_NODE_GRADIENT &&  /* where a backward pass begins */
           why_writer(walk->session->graph, leaf->node) == GD_NO_NODE;
}

/* Rows of the table that these indices select from; 0: not indices. */
static int64_t table_rows(const struct why_walk *walk, const struct why_tensor *ids)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(walk->session->graph, ids->node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        struct gd_output table;

        if (gd_graph_node(walk->session->graph, edges[i].node, &info) && info.input_count >= 2 &&
            /* PyTorch's takes an axis, and checks its indices */
            strcmp(info.type, "gather") != 0 &&
            why_type_in(info.type, "Gather GatherV2 GatherD Embedding* SparseGatherV2") &&
            info.inputs[0].node != ids->node &&
            gd_graph_output(walk->session->graph, info.inputs[0].node, info.inputs[0].slot,
                            &table) &&
            table.shape.rank > 0) {
            /* GatherD picks along the last axis, the others along the first */
            int axis = why_type_in(info.type, "GatherD") ? table.shape.rank - 1 : 0;
            return table.shape.dim[axis] > 0 ? table.shape.dim[axis] : 0;
        }
    }
    return 0;
}

/* Indices that are all the last row, or 0 and the last row: probably clamped. */
static bool is_clamped(const struct gd_stats *s, int64_t rows)
{
    uint64_t others = s->count - s->zero;

    return rows > 2 && s->count >= 8 && others * 2 >= s->count && s->max == (double)(rows - 1) &&
           s->negative == 0 && fabs(s->mean * (double)s->count - s->max * (double)others) <= 0.5;
}

/* A buffer holds module state: equal elements are normal there, except for the mean of a
 * normalization that has seen no batch. */
static bool odd_buffer(const struct why_walk *walk, const struct why_tensor *buffer,
                       struct gd_buf *say)
{
    const struct gd_stats *s = &buffer->stats;
    const char *name = why_name(walk, buffer);
    size_t len = strlen(name), end = strlen("running_mean");

    if (walk->step <= 1 || s->zero < s->count || len < end ||
        strcmp(name + len - end, "running_mean") != 0) {
        return false;
    }
    gd_buf_printf(
        say,
        "%s is still all 0, its initial value: its normalization has seen no batch yet and divides "
        "by its initial statistics. eval() makes it do so: call train() first.",
        name);
    return true;
}

static bool odd_by_itself(const struct why_walk *walk, const struct why_tensor *input,
                          struct gd_buf *say)
{
    const struct gd_stats *s = &input->stats;
    int64_t rows = gd_dtype_is_int(input->dtype) ? table_rows(walk, input) : 0;
    const char *name = why_name(walk, input);
    char share[64];

    if (s->count < 2) {
        return false;
    }
    if (s->nan + s->pos_inf > 0) { /* -Inf alone is a mask */
        gd_buf_printf(say, "%s%s is not finite: %s.",
                      why_is_buffer(walk, input) ? "" : "The batch ", name, input->note);
        return true;
    }
    if (why_is_buffer(walk, input)) {
        return odd_buffer(walk, input, say);
    }
    if (rows > 0 && (s->max >= (double)rows || s->min < 0)) {
        gd_buf_printf(say,
                      "The batch %s has indices from %.6g to %.6g, but the table has %lld rows.",
                      name, s->min, s->max, (long long)rows);
        return true;
    }
    if (is_clamped(s, rows)) {
        gd_buf_printf(say,
                      "The batch %s is unusual: %s of its ids are %.6g, the last of %lld%s. "
                      "Out-of-range ids that were clamped look like this.",
                      name, why_share(s->count - s->zero, s->count, share, sizeof(share)), s->max,
                      (long long)rows, s->zero > 0 ? ", and the others are 0" : "");
        return true;
    }
    return false;
}

bool why_odd_input(const struct why_walk *walk, const struct why_tensor *input, struct gd_buf *say)
{
    const struct gd_stats *s = &input->stats;

    if (!input->has_stats || !why_is_batch(walk, input)) {
        return false;
    }
    if (odd_by_itself(walk, input, say)) {
        if (s->has_prev && s->count > 0) {
            gd_buf_printf(say, " Its mean is %.4g; in the step before it was %.4g.", s->mean,
                          s->mean - s->mean_delta);
        }
        return true;
    }
    if (gd_dtype_is_float(input->dtype) && input->before > 0 && !why_is_buffer(walk, input) &&
        (s->abs_mean > WHY_JUMP * input->before || s->abs_mean < input->before / WHY_JUMP)) {
        gd_buf_printf(say,
                      "The batch %s differs from earlier ones: its mean magnitude is %.4g; in "
                      "previous steps it was %.4g.",
                      why_name(walk, input), s->abs_mean, input->before);
        return true;
    }
    return false;
}

/* ---- weights and the learning rate ----------------------------------------------------------- */

static const struct gd_scalar *scalar_of(const struct why_walk *walk, const char *const *names)
{
    const struct gd_session *session = walk->session;

    for (; *names; names++) {
        for (int i = 0; i < session->scalar_count; i++) {
            if (strcasecmp(session->scalar[i].name, *names) == 0) {
                return &session->scalar[i];
            }
        }
    }
    return NULL;
}

/* "lr", "lr_1", "lr_Adam": of the main optimizer, of another group, of another optimizer. */
static bool is_rate(const struct gd_scalar *scalar)
{
    return strcmp(scalar->name, "lr") == 0 || strncmp(scalar->name, "lr_", 3) == 0;
}

/* NULL: the program reports no such rate. */
static const struct gd_scalar *rate_of_value(const struct gd_session *session, double value)
{
    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];

        if (is_rate(scalar) && fabs(scalar->value - value) <= 1e-6 * fabs(value)) {
            return scalar;
        }
    }
    return NULL;
}

static bool are_rates_equal(const struct gd_session *session, double value)
{
    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];

        if (is_rate(scalar) && scalar->value != value) {
            return false;
        }
    }
    return true;
}

const struct gd_scalar *why_learning_rate(const struct why_walk *walk,
                                          const struct why_tensor *weight)
{
    static const char *const names[] = {
        "lr",   "learning_rate", "learning-rate", "learningrate",
        "lr-0", "train/lr",      "lr/0",          "train/learning_rate",
        NULL};
    const struct gd_why_facts *facts = &walk->facts;
    const struct gd_scalar *rate = scalar_of(walk, names);

    if (rate && weight && facts->has_rate &&
        strcmp(facts->parameter, gd_graph_name(walk->session->graph, weight->node)) == 0) {
        return rate_of_value(walk->session, facts->rate);
    }
    return rate && are_rates_equal(walk->session, rate->value) ? rate : NULL;
}

/* An optimizer that moves every element by about the learning rate, whatever the gradient's
 * size. */
static bool is_adaptive(const struct why_walk *walk, gd_node_id parameter, const char **type)
{
    struct gd_node_info info;
    gd_node_id writer = why_writer(walk->session->graph, parameter);

    if (writer == GD_NO_NODE || !gd_graph_node(walk->session->graph, writer, &info)) {
        return false;
    }
    *type = info.type;
    return why_type_in(info.type, WHY_ADAPTIVE);
}

bool why_odd_weight(const struct why_walk *walk, const struct why_tensor *weight, double *ratio)
{
    const struct gd_stats *s = &weight->stats;
    const struct gd_scalar *rate = why_learning_rate(walk, weight);
    const char *type = "";

    *ratio = 0;
    if (!weight->has_stats || !why_is_trained(walk, weight)) {
        return false;
    }
    if (s->has_prev && s->mean_abs_prev > 0) {
        *ratio = s->mean_abs_delta / s->mean_abs_prev;
    } else if (rate && s->abs_mean > 0 && is_adaptive(walk, weight->node, &type)) {
        *ratio = fabs(rate->value) / s->abs_mean;
    }
    return *ratio >= (s->has_prev && weight == walk->tensors ? LARGE_UPDATE : RUNAWAY);
}

/* The gradients were clipped on their way to the optimizer: then they are not to blame. */
static void say_clipping(const struct why_walk *walk, gd_node_id writer, struct gd_buf *say)
{
    static const char *const names[] = {"grad_norm", "gradient_norm", "global_norm", NULL};
    const struct gd_scalar *norm = scalar_of(walk, names);
    struct gd_node_info info, from;

    if (!gd_graph_node(walk->session->graph, writer, &info)) {
        return;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        if (gd_graph_node(walk->session->graph, info.inputs[i].node, &from) &&
            why_type_in(from.type, "Clip*")) {
            for (uint32_t k = 0; k < from.attr_count; k++) {
                if (why_type_in(from.attrs[k].name, "clip_norm max_norm clip_value")) {
                    gd_buf_printf(say, " The gradients are clipped (%s = %s)", from.attrs[k].name,
                                  from.attrs[k].value);
                    gd_buf_puts(say, ", which limits their effect.");
                    return;
                }
            }
        }
    }
    if (norm) {
        gd_buf_printf(say, " The gradient norm is %.4g (at step %lld it was %.4g).", norm->value,
                      (long long)norm->first_step, norm->first);
    }
}

bool why_odd_rate(const struct why_walk *walk, const struct why_tensor *weight, struct gd_buf *say)
{
    const struct gd_scalar *rate = why_learning_rate(walk, weight);
    double ratio = 0, grown;
    bool odd = weight && why_odd_weight(walk, weight, &ratio);
    const char *type = "";

    if (!rate || !isfinite(rate->value) || rate->value <= 0) {
        return false;
    }
    grown = rate->first > 0 ? rate->value / rate->first : 0;
    if (weight ? !odd : grown < WHY_RATE_GROWN || (rate->value < 0.1 && grown < 1000)) {
        return false;
    }
    gd_buf_printf(say, "The learning rate is %.4g", rate->value);
    if (grown >= 2) {
        gd_buf_printf(say, ", %.4g times its value at step %lld (%.4g)", grown,
                      (long long)rate->first_step, rate->first);
    }
    if (rate->has_before && rate->before > 0 && rate->value > 1.001 * rate->before) {
        gd_buf_printf(say, ", and still growing: %.4g times in the last step",
                      rate->value / rate->before);
    }
    if (!weight) {
        gd_buf_puts(say, ".");
        return true;
    }
    if (weight->stats.has_prev) {
        gd_buf_printf(say, ". The last update changed %s by %.3g %% of its size.",
                      why_name(walk, weight), 100 * ratio);
    } else if (is_adaptive(walk, weight->node, &type)) {
        gd_buf_printf(say,
                      ". Each update of %s moves every element by about that much, %.3g %% of the "
                      "mean magnitude of %s.",
                      type, 100 * ratio, why_name(walk, weight));
    } else {
        gd_buf_puts(say, ".");
    }
    say_clipping(walk, why_writer(walk->session->graph, weight->node), say);
    return true;
}

#define MIDDLE_OF 9   /* of the last records */
#define RECORDS   512 /* past records that are examined */

/* The records of a value, oldest first; malloc'd, NULL if there is none. */
static struct gd_history_record *records_of(const struct why_walk *walk,
                                            const struct why_tensor *tensor, size_t *count)
{
    const struct gd_history *history = walk->session->history;
    uint32_t index;

    *count = 0;
    if (!history || !gd_history_find(history, gd_graph_name(walk->session->graph, tensor->node),
                                     tensor->slot, &index)) {
        return NULL;
    }
    struct gd_history_record *records = malloc(RECORDS * sizeof(*records));
    if (records) {
        *count = gd_history_read(history, index, records, RECORDS);
    }
    return records;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The previous step alone if its value was kept; otherwise the median of the last records, so that
 * one odd step does not hide another. */
double why_before(const struct why_walk *walk, const struct why_tensor *tensor)
{
    const struct gd_stats *s = &tensor->stats;
    double sizes[MIDDLE_OF], before = -1;
    size_t count, found = 0;

    if (tensor->has_stats && s->has_prev) {
        return s->mean_abs_prev;
    }
    struct gd_history_record *records = records_of(walk, tensor, &count);
    while (count-- > 0 && found < MIDDLE_OF) {
        if (records[count].has_stats && tensor->value_step >= 0 &&
            records[count].step < tensor->value_step &&
            !why_is_bad(GD_BAD_NONFINITE, &records[count].stats)) {
            sizes[found++] = records[count].stats.abs_mean;
        }
    }
    free(records);
    if (found > 0) {
        qsort(sizes, found, sizeof(sizes[0]), by_size);
        before = sizes[found / 2];
    }
    return before;
}

int64_t why_since(const struct why_walk *walk, const struct why_tensor *tensor)
{
    size_t count;
    struct gd_history_record *records = records_of(walk, tensor, &count);
    int64_t since = -1;

    while (walk->bad != GD_BAD_LARGE && count > 0 &&
           (!records[count - 1].has_stats || why_is_bad(walk->bad, &records[count - 1].stats))) {
        since = records[count - 1].has_stats ? records[count - 1].step : since;
        count--;
    }
    free(records);
    return since;
}

/* ---- a leaf that is bad itself --------------------------------------------------------------- */

void why_say_leaf(const struct why_walk *walk, const struct why_tensor *leaf, int64_t since,
                  struct why_finding *ret)
{
    struct gd_node_info info = {0};
    bool known = gd_graph_node(walk->session->graph, leaf->node, &info);
    bool written = why_writer(walk->session->graph, leaf->node) != GD_NO_NODE;
    bool weight =
        written ||
        (known && (info.kind == GD_NODE_WEIGHT || why_type_in(info.type, "Parameter State")));

    if (known && why_type_in(info.type, "Buffer")) {
        why_say(ret, "bad-buffer",
                "%s is %s (%s). It is a buffer, which operators and the script can write at any "
                "time; gradb does not know when this was written.",
                why_name(walk, leaf), why_bad_word(walk->bad), leaf->note);
        return;
    }
    if (!weight && !leaf->is_constant) {
        why_say(ret, "bad-batch",
                known && why_type_in(info.type, "Input")
                    ? "%s is %s where it enters the graph: %s. It is data, or was left by an "
                      "earlier step that gradb did not examine."
                    : "%s enters the graph from outside and is %s: %s.",
                why_name(walk, leaf), why_bad_word(walk->bad), leaf->note);
        return;
    }
    ret->rule = leaf->is_constant ? "bad-constant" : "bad-weight";
    if (leaf->late_bad) {
        gd_buf_printf(&ret->text, "%s is %s after the update; its earlier value was not kept.",
                      why_name(walk, leaf), why_bad_word(walk->bad));
    } else {
        gd_buf_printf(&ret->text, "%s is %s itself (%s)%s.", why_name(walk, leaf),
                      why_bad_word(walk->bad), leaf->note,
                      leaf->too_new ? "" : ", before any operator of the step ran");
    }
    if (since >= 0) {
        gd_buf_printf(&ret->text, " It has been so since step %lld.", (long long)since);
    } else if (leaf->value_step <= 0 && walk->step <= 1 && !leaf->is_constant) {
        gd_buf_puts(&ret->text, " Nothing has updated it yet: it was created like this.");
    } else if (!leaf->is_constant) {
        gd_buf_puts(&ret->text, " When this began was not recorded: watch it from the first step "
                                "to see the step and the gradient.");
    }
}
