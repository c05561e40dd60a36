// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What is unusual where nothing is NaN: a batch, a weight that jumped, a learning rate that ran
 * away.
 */
#include <math.h>
#include <stdio.h>
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
#define LEAST_START  0.1 /* over the square root of a row's length: smaller weights started at 0 */
#define RATE_GROWN   4.0 /* times the first learning rate, to be mentioned by itself */
/* Creates values from nothing: the initial state of a recurrence, a mask. */
#define FILLS        "zeros zeros_like ones ones_like full full_like eye arange Zeros ZerosLike Ones Fill"

/* ---- the batch ------------------------------------------------------------------------------ */

static bool is_batch(const struct why_walk *walk, const struct why_tensor *leaf)
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

    if (!input->has_stats || !is_batch(walk, input)) {
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

static const struct gd_scalar *learning_rate(const struct why_walk *walk)
{
    static const char *const names[] = {
        "lr",   "learning_rate", "learning-rate", "learningrate",
        "lr-0", "train/lr",      "lr/0",          "train/learning_rate",
        NULL};

    return scalar_of(walk, names);
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

/* Updated by an optimizer; not one of its moments. */
static bool is_trained(const struct why_walk *walk, const struct why_tensor *leaf)
{
    gd_node_id writer = leaf->is_leaf ? why_writer(walk->session->graph, leaf->node) : GD_NO_NODE;
    struct gd_node_info info;

    return writer != GD_NO_NODE && gd_graph_node(walk->session->graph, writer, &info) &&
           info.inputs[0].node == leaf->node;
}

bool why_odd_weight(const struct why_walk *walk, const struct why_tensor *weight, double *ratio)
{
    const struct gd_stats *s = &weight->stats;
    const struct gd_scalar *rate = learning_rate(walk);
    const char *type = "";

    *ratio = 0;
    if (!weight->has_stats || !is_trained(walk, weight)) {
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
    const struct gd_scalar *rate = learning_rate(walk);
    double ratio = 0, grown;
    bool odd = weight && why_odd_weight(walk, weight, &ratio);
    const char *type = "";

    if (!rate || !isfinite(rate->value) || rate->value <= 0) {
        return false;
    }
    grown = rate->first > 0 ? rate->value / rate->first : 0;
    if (weight ? !odd : grown < RATE_GROWN || (rate->value < 0.1 && grown < 1000)) {
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
    struct gd_history_record *records;
    uint32_t index;

    *count = 0;
    if (!history || !gd_history_find(history, gd_graph_name(walk->session->graph, tensor->node),
                                     tensor->slot, &index)) {
        return NULL;
    }
    records = malloc(RECORDS * sizeof(*records));
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

/* ---- the conclusion -------------------------------------------------------------------------- */

enum smallness { NOT_SMALL, SMALL, SMALL_ALONE };

/* More than one axis is longer than 1: (1, 1, 32) is a vector. */
static bool is_matrix(const struct why_tensor *weight)
{
    int axes = 0;

    for (int i = 0; i < weight->shape.rank; i++) {
        axes += weight->shape.dim[i] > 1;
    }
    return axes > 1;
}

/* A vector near 0 while no matrix changes much; SMALL_ALONE: no matrix was examined. */
static enum smallness is_small(const struct why_walk *walk, const struct why_tensor *weight)
{
    double ratio;
    bool any = false;

    if (is_matrix(weight) || weight->stats.abs_mean > 0.01) {
        return NOT_SMALL;
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (is_matrix(tensor) && tensor->has_stats && is_trained(walk, tensor)) {
            any = true;
            if (why_odd_weight(walk, tensor, &ratio)) {
                return NOT_SMALL;
            }
        }
    }
    return any ? SMALL : SMALL_ALONE;
}

static void say_small(const struct why_walk *walk, const struct why_tensor *weight,
                      enum smallness small, struct why_finding *ret)
{
    const struct gd_stats *s = &weight->stats;

    snprintf(ret->rule, sizeof(ret->rule), "small-weight");
    gd_buf_printf(&ret->text,
                  "%s is small, so any update is large relative to it: its mean magnitude is %.4g",
                  why_name(walk, weight), s->abs_mean);
    if (s->has_prev) {
        gd_buf_printf(&ret->text, "; in the previous step it was %.4g", s->mean_abs_prev);
    }
    gd_buf_puts(&ret->text, small == SMALL
                                ? ". No matrix changes by that large a fraction of its size: this "
                                  "is normal for a parameter that starts at 0."
                                : ". This is normal for a parameter that starts at 0, such as a "
                                  "bias; how much the matrices change says more.");
}

/* A matrix that is much smaller than any usual initialization: it started at 0, and an update is
 * large relative to that in any training. */
static bool began_at_zero(const struct why_tensor *weight)
{
    double rows = weight->shape.rank > 0 ? (double)weight->shape.dim[0] : 1;
    double inner = rows > 0 ? (double)weight->stats.count / rows : 1;

    return weight->stats.abs_mean < LEAST_START / sqrt(inner > 1 ? inner : 1);
}

/* The weight in question, else the matrix that changes most. Vectors near 0 change by a large part
 * of their size in any training; they count only if there is no matrix. By the learning rate alone,
 * most matrices must change: a single one may have started at 0, like the second of a low-rank
 * pair. */
static const struct why_tensor *most_changed(const struct why_walk *walk)
{
    const struct why_tensor *found[2] = {NULL, NULL}; /* vectors, matrices */
    double most[2] = {0, 0}, ratio;
    size_t matrices = 0, odd = 0;

    if (why_odd_weight(walk, &walk->tensors[0], &ratio)) {
        return &walk->tensors[0];
    }
    for (size_t i = 1; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];
        int matrix = is_matrix(tensor);
        bool is_odd = why_odd_weight(walk, tensor, &ratio);

        is_odd = is_odd && (!matrix || !began_at_zero(tensor));
        matrices += matrix && tensor->has_stats && is_trained(walk, tensor);
        odd += matrix && is_odd;
        if (is_odd && ratio > most[matrix]) {
            found[matrix] = tensor;
            most[matrix] = ratio;
        }
    }
    if (found[1] && !found[1]->stats.has_prev && 2 * odd <= matrices) {
        return NULL;
    }
    return found[1]; /* vectors alone prove nothing */
}

/* When the first of the nodes that read it runs. */
static uint32_t first_use(const struct why_walk *walk, const struct why_tensor *leaf)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(walk->session->graph, leaf->node, &edges);
    uint32_t first = GD_NO_ORDER;
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(walk->session->graph, edges[i].node, &info) && info.order < first) {
            first = info.order;
        }
    }
    return first;
}

/* The unusual input that is used first, with its sentence; the others are named. */
static const struct why_tensor *blame_batch(struct why_walk *walk, struct why_finding *ret)
{
    const struct why_tensor *found = NULL;
    struct gd_buf say = GD_BUF_INIT(1000);

    for (size_t i = 0; i < walk->count; i++) {
        struct why_tensor *tensor = &walk->tensors[i];
        struct gd_buf one = GD_BUF_INIT(1000);

        if (why_odd_input(walk, tensor, &one)) {
            tensor->verdict = GD_WHY_BAD;
            if (!found || first_use(walk, tensor) < first_use(walk, found)) {
                found = tensor;
                gd_buf_clear(&say);
                gd_buf_puts(&say, gd_buf_text(&one));
            }
        } else if (tensor->has_stats && is_batch(walk, tensor) &&
                   tensor->verdict == GD_WHY_UNKNOWN) {
            tensor->verdict = GD_WHY_GOOD;
        }
        gd_buf_deinit(&one);
    }
    if (found) {
        snprintf(ret->rule, sizeof(ret->rule), "bad-batch");
        gd_buf_puts(&ret->text, gd_buf_text(&say));
    }
    for (size_t i = 0; found && i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (tensor != found && tensor->verdict == GD_WHY_BAD && is_batch(walk, tensor)) {
            gd_buf_printf(&ret->text, " %s is also unusual (%s).", why_name(walk, tensor),
                          tensor->note);
        }
    }
    gd_buf_deinit(&say);
    return found;
}

/* What graph and program show by themselves, whatever the values are. */
static const struct why_tensor *known_mistake(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t (*const tests[])(struct why_walk *, struct why_finding *) = {
        why_apart,      why_lost,    why_piled_up, why_broadcast,
        why_made_wrong, why_cut_off, why_growing,  why_all_zero};

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        uint32_t number = tests[i](walk, ret);

        if (number != WHY_NONE) {
            /* for gradients, no value in the tree is to blame */
            bool blamed = tests[i] != why_lost && tests[i] != why_all_zero;
            walk->tensors[number].verdict = blamed ? GD_WHY_BAD : walk->tensors[number].verdict;
            return blamed ? &walk->tensors[number] : NULL;
        }
    }
    return NULL;
}

/* Says how to learn more: most values of a finished step are gone. */
static void say_how_to_know_more(const struct why_walk *walk, struct gd_buf *say)
{
    const struct why_tensor *asked = &walk->tensors[0];
    size_t gone = 0, all = 0;

    for (size_t i = 0; i < walk->count; i++) {
        all += !walk->tensors[i].is_leaf;
        gone += !walk->tensors[i].is_leaf && !walk->tensors[i].has_stats;
    }
    if (walk->session->state != GD_STOPPED) {
        return; /* nothing more can be known */
    }
    if (walk->session->stop.at_step_end && asked->order > 0 && gone > all / 2) {
        gd_buf_printf(say,
                      " The step is over, and %zu of %zu value%s on the way %s gone: use `run-to "
                      "%.160s` and `why` to see them as they are computed.",
                      gone, all, all == 1 ? "" : "s", gone == 1 ? "is" : "are",
                      gd_graph_name(walk->session->graph, asked->node));
    } else if (asked->before < 0) {
        gd_buf_puts(
            say,
            " With `set keep-previous all`, values are compared with those of the previous step.");
    }
}

/* How many upstream values are known, and that none of them stands out. */
static void say_nothing_found(const struct why_walk *walk, struct gd_buf *say)
{
    size_t known = 0;

    for (size_t i = 1; i < walk->count; i++) {
        known += walk->tensors[i].has_stats;
    }
    if (known == 0) {
        gd_buf_printf(say, "Nothing upstream could be examined: 0 of %zu values are known.",
                      walk->count - 1);
        return;
    }
    gd_buf_printf(say, "Nothing upstream stands out: %zu of %zu values were examined.", known,
                  walk->count - 1);
}

/* What can be said if no value stands out. */
static const struct why_tensor *conclude_rest(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t untrained = why_untrained(walk, ret);
    if (untrained != WHY_NONE) {
        return &walk->tensors[untrained];
    }
    if (why_is_gradient(walk->session->graph, walk->tensors[0].node) &&
        why_shifted(walk, ret) != WHY_NONE) {
        return NULL;
    }
    uint32_t chain = why_lengthening(walk, ret);
    if (chain != WHY_NONE) {
        return &walk->tensors[chain];
    }
    walk->tensors[0].verdict =
        walk->tensors[0].has_stats && walk->tensors[0].before >= 0 ? GD_WHY_GOOD : GD_WHY_UNKNOWN;
    say_nothing_found(walk, &ret->text);
    if (why_is_loss(walk)) {
        why_add_past(walk, &ret->text);
    }
    say_how_to_know_more(walk, &ret->text);
    why_add_gradients(walk, &ret->text);
    why_add_unreached(walk, &ret->text);
    why_add_recurrence(walk, &ret->text);
    return NULL;
}

/* The loss grew out of all proportion, and no value shows why. */
static bool blame_growth(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_scalar *rate = learning_rate(walk);

    if (!why_is_loss(walk) || !why_add_growth(walk, &ret->text)) {
        return false;
    }
    snprintf(ret->rule, sizeof(ret->rule), "diverging");
    why_add_huge(walk, &ret->text);
    if (rate) {
        gd_buf_printf(&ret->text, " The learning rate is %.4g.", rate->value);
    }
    why_add_sum(walk, &ret->text);
    gd_buf_puts(&ret->text,
                " These values do not show what started it. Updates that overshoot look like this. "
                "To check, lower the learning rate or clip the gradients; to measure an update: "
                "`trace WCL on weights`, `step`, `why`.");
    why_add_gradients(walk, &ret->text);
    return true;
}

/* Something is known to be wrong, by a hit or by the loss. Without that, a large update proves
 * nothing. */
static bool is_wrong(const struct why_walk *walk)
{
    const struct why_tensor *root = &walk->tensors[0];

    return walk->facts.fired || walk->facts.told || why_diverges(walk) ||
           (root->has_stats && root->before > 0 && root->stats.abs_mean > WHY_JUMP * root->before);
}

/* An unusual learning rate, with the weight that it changed most. NULL: it is normal. */
static const struct why_tensor *blame_rate(struct why_walk *walk, const struct why_tensor *weight,
                                           struct why_finding *ret, int64_t *since)
{
    const struct gd_scalar *rate = learning_rate(walk);
    bool grown = rate && rate->first > 0 && rate->value >= RATE_GROWN * rate->first;

    bool asked = weight == walk->tensors && (weight->stats.has_prev || is_matrix(weight));

    if (!weight || (!asked && !grown && !is_wrong(walk)) ||
        (!is_matrix(weight) && !weight->stats.has_prev && !is_wrong(walk)) ||
        !why_odd_rate(walk, weight, &ret->text)) {
        return NULL;
    }
    if (why_is_loss(walk) && why_diverges(walk)) {
        why_add_growth(walk, &ret->text);
    }
    if (why_add_sum(walk, &ret->text)) {
        snprintf(ret->rule, sizeof(ret->rule), "sum-reduction");
        return &walk->tensors[why_also(walk, gd_why_loss(walk->session->graph, &walk->facts), 0)];
    }
    snprintf(ret->rule, sizeof(ret->rule), "learning-rate");
    walk->tensors[weight - walk->tensors].verdict = GD_WHY_BAD;
    *since = why_since(walk, weight);
    if (weight->writer != WHY_NONE) { /* its writer is in the tree as well */
        walk->tensors[weight->writer].verdict = GD_WHY_BAD;
        return &walk->tensors[weight->writer];
    }
    return weight;
}

/* The first value on the way that stands out. NULL: none does. */
static const struct why_tensor *blame_first(struct why_walk *walk, struct why_finding *ret,
                                            int64_t since)
{
    const struct why_tensor *found = why_first_bad(walk);

    if (found && found->is_leaf && why_is_loss(walk) && why_diverges(walk)) {
        return NULL; /* the weights are as the updates left them */
    }
    if (found && found->is_leaf && found != &walk->tensors[0]) {
        why_say_leaf(walk, found, since, ret);
        return found;
    }
    if (found && found->has_stats && found->before > 0 &&
        found->stats.abs_mean > WHY_JUMP * found->before) {
        snprintf(ret->rule, sizeof(ret->rule), "jump");
        gd_buf_printf(&ret->text,
                      "%s is the first %svalue that is far larger than in previous steps: its mean "
                      "magnitude is %.4g; before, it was %.4g.",
                      why_name(walk, found), why_knows_inputs(walk, found) ? "" : "known ",
                      found->stats.abs_mean, found->before);
        return found;
    }
    if (found && found->has_stats && why_is_bad(GD_BAD_NONFINITE, &found->stats)) {
        gd_buf_printf(&ret->text, "%s is not finite any more (%s).", why_name(walk, found),
                      found->note);
        return found;
    }
    return NULL;
}

static const struct why_tensor *conclude_large(struct why_walk *walk, struct why_finding *ret,
                                               int64_t *since)
{
    const struct why_tensor *found = known_mistake(walk, ret);

    why_settle_masks(walk);
    if (!found && ret->rule[0]) {
        return NULL;
    }
    found = found ? found : blame_batch(walk, ret);
    if (found) {
        return found;
    }
    const struct why_tensor *weight = most_changed(walk);
    enum smallness small = weight == walk->tensors ? is_small(walk, weight) : NOT_SMALL;
    if (small != NOT_SMALL) {
        say_small(walk, weight, small, ret);
        return weight;
    }
    found = blame_rate(walk, weight, ret, since);
    found = found ? found : blame_first(walk, ret, *since);
    if (!found && (why_skipped(walk, ret) || blame_growth(walk, ret))) {
        return NULL;
    }
    return found ? found : conclude_rest(walk, ret);
}

const struct why_tensor *why_conclude_large(struct why_walk *walk, struct why_finding *ret,
                                            int64_t *since)
{
    const struct why_tensor *found = conclude_large(walk, ret, since);
    struct why_tensor *root = &walk->tensors[0];
    bool fault = ret->rule[0] && !strstr("small-weight zero-by-algebra", ret->rule);
    bool wrong = fault || walk->facts.fired;

    if (strcmp(ret->rule, "small-weight") == 0) {
        root->verdict = GD_WHY_GOOD;
    } else if (wrong && root->has_stats) { /* what has no value is not known to be bad */
        root->verdict = GD_WHY_BAD;
    }
    return found;
}
