// SPDX-License-Identifier: MIT
/* Counts of metrics: those of batches that the program counts itself, on the device of their
 * tensors, and those of a step, which the debugger adds up over the ranks of a job. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_metric.h"
#include "agent/agent_words.h"

#define TEXT 160
#define MOST ((size_t)1000000) /* bytes of counts in a message */

static int fail_request(const char *request, char text[TEXT])
{
    snprintf(text, TEXT, "'%.80s' is not a batch", request);
    return CODE(INVALID);
}

/* "train " or "eval "; NULL: neither. */
static const char *take_part(const char *at, bool *evaluation)
{
    *evaluation = strncmp(at, "eval ", 5) == 0;
    return *evaluation ? at + 5 : strncmp(at, "train ", 6) == 0 ? at + 6 : NULL;
}

/* "float32,8,3 " */
static const char *take_side(const char *at, struct gd_tensor *ret)
{
    char name[24];
    size_t len = strcspn(at, ", ");
    if (len >= sizeof(name)) {
        return NULL;
    }
    memcpy(name, at, len);
    name[len] = '\0';
    *ret = (struct gd_tensor){.dtype = gd_dtype_from_name(name), .refs = 1};
    for (at += len; *at == ',';) {
        char *end;
        if (ret->shape.rank == GD_MAX_RANK) {
            return NULL;
        }
        ret->shape.dim[ret->shape.rank++] = strtoll(at + 1, &end, 10);
        at = end;
    }
    bool ok = gd_dtype_size(ret->dtype) > 0 && gd_shape_count(&ret->shape) >= 0;
    if (ok) {
        gd_shape_strides(&ret->shape, gd_dtype_size(ret->dtype), ret->stride);
    }
    return ok ? at + (*at == ' ') : NULL;
}

/* "FORM IGNORE|- " */
static const char *take_pair(const char *at, struct gd_metric_pair *ret)
{
    char *end;
    *ret = (struct gd_metric_pair){.form = (enum gd_metric_form)strtol(at, &end, 10)};
    at = end + (*end == ' ');
    ret->has_ignore = *at != '-' || at[1] != ' ';
    ret->ignore = strtoll(at, &end, 10);
    at = ret->has_ignore ? end : at + 1;
    bool ok = ret->form >= GD_FORM_UNKNOWN && ret->form <= GD_FORM_VALUES && *at == ' ';
    return ok ? at + 1 : NULL;
}

int agent_metric_plan(struct agent *a, const char *request, struct gd_buf *out, char text[TEXT])
{
    struct gd_metric_pair pair;
    struct gd_tensor outputs, labels;
    bool evaluation, whole = true;
    const char *at = take_part(request, &evaluation), *comma = "";
    at = at ? take_pair(at, &pair) : NULL;
    at = at ? take_side(at, &outputs) : NULL;
    at = at ? take_side(at, &labels) : NULL;
    if (!at || *at) {
        return fail_request(request, text);
    }
    gd_buf_puts(out, "{\"plans\":[");
    for (struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        struct agent_metric_sums *sums = evaluation ? &m->eval : &m->train;
        struct gd_buf plan = GD_BUF_INIT(1 << 13);
        struct gd_err err = {0};
        if (m->outputs.node == 0 && (evaluation || m->spec.kind != GD_METRIC_LOSS)) {
            agent_metric_begin(a, m, sums);
            if (gd_metric_plan(sums->metric, &pair, &outputs, &labels, &plan, &err) == GD_OK) {
                gd_buf_printf(out, "%s{\"name\":\"%s\",%s}", comma, m->spec.name,
                              gd_buf_text(&plan));
                comma = ",";
            } else {
                agent_metric_refuse(a, m, sums, err.text);
                whole = false;
            }
        }
        gd_buf_deinit(&plan);
    }
    gd_buf_printf(out, "],\"whole\":%s,\"wanted\":%s}", whole ? "true" : "false",
                  a->metrics ? "true" : "false");
    return -1;
}

int agent_metric_counts(struct agent *a, const char *request, char text[TEXT])
{
    bool evaluation;
    const char *name = take_part(request, &evaluation);
    size_t len = name ? strcspn(name, " ") : 0;
    struct agent_metric *m = a->metrics ? a->metrics->first : NULL;
    struct gd_err err = {0};
    if (!name || name[len] != ' ') {
        return fail_request(request, text);
    }
    while (m && (strncmp(m->spec.name, name, len) != 0 || m->spec.name[len] != '\0')) {
        m = m->next;
    }
    if (m) { /* else deleted since */
        struct agent_metric_sums *sums = evaluation ? &m->eval : &m->train;
        agent_metric_begin(a, m, sums);
        if (gd_metric_merge(agent_metric_counting(sums), name + len + 1, &err) != GD_OK) {
            agent_metric_refuse(a, m, sums, err.text);
        }
    }
    return -1;
}

/* ---- over ranks ------------------------------------------------------------------------------ */

struct gd_metric *agent_metric_counting(const struct agent_metric_sums *sums)
{
    return sums->part ? sums->part : sums->metric;
}

/* What is wrong with the counts, which then are not sent. */
static void note_missing(struct agent_metric_sums *sums, int64_t step, const char *why)
{
    if (!sums->missing[0]) {
        snprintf(sums->missing, sizeof(sums->missing), "step %lld: %s", (long long)step, why);
    }
}

/* Adds what was counted to the metric and returns its text; "" where there is nothing to send. */
static const char *take_counts(struct agent *a, struct agent_metric *m,
                               struct agent_metric_sums *sums, struct gd_buf *out)
{
    struct gd_err err = {0};
    if (gd_metric_counts(sums->part)->batches == 0) {
        return "";
    }
    if (gd_metric_save(sums->part, out, &err) != GD_OK) {
        note_missing(sums, PEEK(a->step), "out of memory for its counts");
        return "";
    }
    if (gd_metric_merge(sums->metric, gd_buf_text(out), &err) != GD_OK) {
        agent_metric_refuse(a, m, sums, err.text);
        return "";
    }
    if (out->len > MOST) {
        note_missing(sums, PEEK(a->step), "its counts take more than 1 MB");
        return "";
    }
    return gd_buf_text(out);
}

void agent_metric_send(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums,
                       int64_t step)
{
    struct gd_buf text = GD_BUF_INIT(SIZE_MAX);
    Gradb__V1__MetricCounts message = GRADB__V1__METRIC_COUNTS__INIT;
    message.definition = m->definition;
    message.evaluation = sums == &m->eval;
    message.step = step;
    message.late = agent_is_late(a, step);
    message.epoch = sums->epoch;
    message.counts = (char *)take_counts(a, m, sums, &text);
    message.missing = sums->missing;
    if (!agent_queue(a, &message.base)) {
        note_missing(sums, PEEK(a->step), "the debugger is too slow");
    }
    gd_metric_clear(sums->part);
    gd_buf_deinit(&text);
}
