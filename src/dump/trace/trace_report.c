// SPDX-License-Identifier: GPL-3.0-or-later
/* An analysed trace as nodes, steps and times of a catalog. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_nest.h"

#define MAX_SUFFIX 64

struct fill {
    struct trace_run *run;
    struct gd_catalog *catalog;
    struct gd_graph *graph;
    struct gd_time_report *report;
    bool *claimed; /* nodes of the graph that are nodes of this run */
    size_t limit;
    struct gd_buf name;
};

/* ---- names ----------------------------------------------------------------------------------- */

static const char *text_of(const struct fill *fill, uint32_t text)
{
    return fill->run->spans.text[text];
}

/* MindSpore's names have their scope and a number: "Default/fc1-Dense/MatMul-op0". */
static bool is_full_name(const char *name)
{
    const char *number = strstr(name, "-op");

    return number && number[3] && number[3 + strspn(number + 3, "0123456789")] == '\0';
}

static const char *type_of(const struct fill *fill, const char *name, uint32_t args, char *out,
                           size_t size)
{
    const char *base = gd_base_name(name);
    size_t len;
    const char *type = trace_arg(&fill->run->spans, args, TRACE_OP_TYPE, &len);

    if (len > 0) {
        snprintf(out, size, "%.*s", (int)len, type);
        return out;
    }
    if (!is_full_name(name)) {
        return name;
    }
    snprintf(out, size, "%.*s", (int)(strstr(base, "-op") - base), base);
    return out;
}

static void put_name(struct fill *fill, const struct trace_node *node, int suffix)
{
    static const char *const before[GD_TIME_IN_COUNT] = {"", "", "backward/", "optimizer/"};
    const char *name = text_of(fill, node->name), *module = text_of(fill, node->module);

    gd_buf_clear(&fill->name);
    if (!is_full_name(name)) {
        gd_buf_printf(&fill->name, "%s%s%s", before[node->phase], module, *module ? "/" : "");
    }
    gd_buf_puts(&fill->name, name);
    if (suffix > 0) {
        gd_buf_printf(&fill->name, "_%d", suffix);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void fill_frame(const struct fill *fill, uint32_t text, struct gd_frame *ret, char *file,
                       size_t size)
{
    const char *name = text_of(fill, text);
    struct trace_place place;

    *ret = (struct gd_frame){.file = "", .function = name, .code = "", .told = true};
    if (trace_place_parse(name, strlen(name), &place)) {
        snprintf(file, size, "%.*s", (int)place.file_size, place.file);
        *ret = (struct gd_frame){.file = file,
                                 .line = place.line,
                                 .function = place.function,
                                 .code = "",
                                 .library = trace_place_is_library(&place),
                                 .told = true};
    }
}

static int add_node(struct fill *fill, struct trace_node *node, struct gd_err *err)
{
    char files[TRACE_FRAMES][256], type[256];
    struct gd_frame frames[TRACE_FRAMES];
    size_t dims, types;
    const char *dims_text = trace_arg(&fill->run->spans, node->args, TRACE_DIMS, &dims);
    const char *types_text = trace_arg(&fill->run->spans, node->args, TRACE_TYPES, &types);
    char shapes[512], kinds[512];
    struct gd_attr attr[3];
    struct gd_node_desc desc = {
        .name = gd_buf_text(&fill->name),
        .type = type_of(fill, text_of(fill, node->name), node->args, type, sizeof(type)),
        .frames = frames,
        .frame_count = node->frames,
        .attrs = attr,
        .order = GD_NO_ORDER};

    for (uint32_t i = 0; i < node->frames; i++) {
        fill_frame(fill, fill->run->frame[node->first_frame + i], &frames[i], files[i],
                   sizeof(files[i]));
    }
    snprintf(shapes, sizeof(shapes), "%.*s", (int)dims, dims_text);
    snprintf(kinds, sizeof(kinds), "%.*s", (int)types, types_text);
    if (dims > 0) {
        attr[desc.attr_count++] = (struct gd_attr){"input shapes", shapes};
    }
    if (types > 0) {
        attr[desc.attr_count++] = (struct gd_attr){"input types", kinds};
    }
    attr[desc.attr_count++] = (struct gd_attr){"runs on", gd_time_lane_name(node->lane)};
    return gd_graph_add(fill->graph, &desc, &node->id, err);
}

static bool is_same_place(const struct fill *fill, gd_node_id id, const struct trace_node *node)
{
    const struct gd_frame *frame = gd_graph_place(fill->graph, id);
    char text[TRACE_MAX_NAME + 16] = "";

    if (frame && frame->line > 0 && !gd_frame_is_library(frame)) {
        snprintf(text, sizeof(text), "%.1000s:%u", frame->file, frame->line);
    }
    return strcmp(text, text_of(fill, node->place)) == 0;
}

static bool claim_node(struct fill *fill, gd_node_id id)
{
    if (id >= fill->limit) {
        size_t limit = (size_t)id * 2 + 64;
        bool *grown = realloc(fill->claimed, limit);

        if (!grown) {
            return false;
        }
        memset(grown + fill->limit, 0, limit - fill->limit);
        fill->claimed = grown;
        fill->limit = limit;
    }
    fill->claimed[id] = true;
    return true;
}

/* The node of an earlier trace of the same training, or a new one. */
static int find_node(struct fill *fill, struct trace_node *node, struct gd_err *err)
{
    int rc = GD_OK;

    for (int suffix = 0; suffix < MAX_SUFFIX; suffix++) {
        gd_node_id found;

        put_name(fill, node, suffix);
        found = gd_graph_lookup(fill->graph, gd_buf_text(&fill->name), fill->name.len);
        if (found == GD_NO_NODE) {
            rc = add_node(fill, node, err);
            break;
        }
        if ((found >= fill->limit || !fill->claimed[found]) && is_same_place(fill, found, node)) {
            node->id = found;
            break;
        }
        node->id = found; /* one of very many: shared */
    }
    if (rc == GD_EINVAL) { /* not a name for a node */
        node->id = GD_NO_NODE;
        return GD_OK;
    }
    return rc != GD_OK || claim_node(fill, node->id) ? rc : gd_fail_nomem(err);
}

/* Adds to a number that several traces may add to. */
static int add_to_attr(struct fill *fill, gd_node_id id, const char *name, double value,
                       int decimals, struct gd_err *err)
{
    struct gd_node_info info;
    char text[64];
    const char *before = gd_graph_node(fill->graph, id, &info) ? gd_node_attr(&info, name) : NULL;

    snprintf(text, sizeof(text), "%.*f", decimals, value + (before ? strtod(before, NULL) : 0));
    return gd_graph_set_attr(fill->graph, id, &(struct gd_attr){name, text}, err);
}

static int add_totals(struct fill *fill, const struct trace_node *node, struct gd_err *err)
{
    int rc = add_to_attr(fill, node->id, "calls", (double)node->calls, 0, err);

    rc = rc != GD_OK ? rc : add_to_attr(fill, node->id, "total us", node->total / 1e3, 3, err);
    rc = rc != GD_OK ? rc : add_to_attr(fill, node->id, "self us", node->self / 1e3, 3, err);
    return rc != GD_OK || !(node->device > 0)
               ? rc
               : add_to_attr(fill, node->id, "device us", node->device / 1e3, 3, err);
}

static int add_nodes(struct fill *fill, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < fill->run->nodes; i++) {
        struct trace_node *node = &fill->run->node[i];

        if (node->calls > 0) {
            rc = find_node(fill, node, err);
            rc = rc != GD_OK || node->id == GD_NO_NODE ? rc : add_totals(fill, node, err);
        }
    }
    return rc;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static enum gd_dtype dtype_of(const char *name, size_t size)
{
    static const struct {
        const char *name;
        enum gd_dtype dtype;
    } own[] = {{"float", GD_FLOAT32},
               {"double", GD_FLOAT64},
               {"c10::Half", GD_FLOAT16},
               {"c10::BFloat16", GD_BFLOAT16},
               {"long int", GD_INT64},
               {"long", GD_INT64},
               {"int", GD_INT32},
               {"short int", GD_INT16},
               {"signed char", GD_INT8},
               {"unsigned char", GD_UINT8},
               {"bool", GD_BOOL},
               {"c10::complex<float>", GD_COMPLEX64},
               {"c10::complex<double>", GD_COMPLEX128}};
    char text[32];

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strlen(own[i].name) == size && strncmp(own[i].name, name, size) == 0) {
            return own[i].dtype;
        }
    }
    if (size >= sizeof(text)) {
        return GD_DT_NONE;
    }
    for (size_t i = 0; i <= size; i++) {
        text[i] = i == size                          ? '\0'
                  : name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 32)
                                                     : name[i];
    }
    return strcmp(text, "dt_bf16") == 0 ? GD_BFLOAT16 : gd_dtype_from_name(text);
}

/* The next element of "[ELEMENT,ELEMENT]", from *at: lists and texts are not looked into. */
static size_t next_element(const char **at, const char *end)
{
    const char *start = *at + (*at < end && (**at == '[' || **at == ',')), *p;
    int depth = 0;
    bool quoted = false;

    for (p = start; p < end; p++) {
        quoted ^= *p == '"';
        if (!quoted && depth == 0 && (*p == ',' || *p == ']')) {
            break;
        }
        depth += quoted ? 0 : *p == '[' ? 1 : *p == ']' ? -1 : 0;
    }
    *at = start;
    return (size_t)(p - start);
}

/* "[16,1,8,8]"; false: a list of tensors, or too many dimensions. */
static bool parse_dims(const char *text, size_t size, struct gd_time_tensor *ret)
{
    const char *end = text + size;

    ret->rank = 0;
    if (size < 2 || *text != '[' || memchr(text + 1, '[', size - 1)) {
        return false;
    }
    for (const char *at = text + 1; at < end && *at != ']'; at += *at == ',') {
        char *stop;
        long long dim = strtoll(at, &stop, 10);

        if (stop == at || stop > end || dim < 0 || ret->rank == GD_TIME_DIMS) {
            return false;
        }
        ret->dim[ret->rank++] = dim;
        at = stop;
        if (*at != ',') {
            break;
        }
    }
    return true;
}

void trace_inputs(const struct trace_spans *spans, uint32_t args, struct gd_time_record *record)
{
    size_t dims_size, types_size;
    const char *dims = trace_arg(spans, args, TRACE_DIMS, &dims_size);
    const char *types = trace_arg(spans, args, TRACE_TYPES, &types_size);
    const char *dims_end = dims + dims_size, *types_end = types + types_size;

    record->out.rank = -1;
    while (dims < dims_end && record->in_count < GD_TIME_INPUTS) {
        struct gd_time_tensor tensor = {.dtype = GD_DT_NONE};
        size_t len = next_element(&dims, dims_end), size = next_element(&types, types_end);
        bool is_shape = parse_dims(dims, len, &tensor);

        if (types < types_end) {
            tensor.dtype = size > 2 && *types == '"' ? dtype_of(types + 1, size - 2) : GD_DT_NONE;
        }
        if (is_shape && (tensor.dtype != GD_DT_NONE || (types_size == 0 && tensor.rank > 0))) {
            record->in[record->in_count++] = tensor;
        }
        dims += len + (dims + len < dims_end && dims[len] == ']');
        types += size;
    }
}

/* ---- times ----------------------------------------------------------------------------------- */

static int push_op(struct fill *fill, struct trace_op *op, int64_t step, struct gd_err *err)
{
    const struct trace_node *node = &fill->run->node[op->node];
    char type[256];
    const char *name = text_of(fill, node->name);
    struct gd_time_record record = {
        .type = type_of(fill, name, op->args, type, sizeof(type)),
        .name = node->id == GD_NO_NODE ? name : gd_graph_name(fill->graph, node->id),
        .module = text_of(fill, node->module),
        .place = text_of(fill, node->place),
        .phase = node->phase,
        .lane = node->lane,
        .step = step,
        .calls = op->calls,
        .seconds = op->seconds};
    char module[TRACE_MAX_NAME];

    if (is_full_name(name)) {
        gd_folder_of(name, module, sizeof(module));
        record.module = strcmp(module, ".") == 0 ? "" : module;
    }
    trace_inputs(&fill->run->spans, op->args, &record);
    op->seconds = 0;
    op->calls = 0;
    return gd_time_add_operator(fill->report, &record, err);
}

static int push_ops(struct fill *fill, const uint32_t *touched, size_t count, int64_t step,
                    struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = push_op(fill, &fill->run->op[touched[i]], step, err);
    }
    return rc;
}

/* Adds up each step's operators, then passes them on. Spans are in the order of time. */
static int push_all_ops(struct fill *fill, struct gd_err *err)
{
    struct trace_run *run = fill->run;
    GD_CLEANUP(gd_cleanup_free) uint32_t *touched = malloc((run->ops + 1) * sizeof(*touched));
    size_t count = 0, step = 0;
    int64_t current = 0;
    int rc = touched ? GD_OK : gd_fail_nomem(err);

    for (size_t i = 0; rc == GD_OK && i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];
        struct trace_op *op = span->op == TRACE_NONE ? NULL : &run->op[span->op];
        int64_t of;

        while (step < run->steps && run->step[step].end <= span->start) {
            step++;
        }
        of = step < run->steps && run->step[step].start <= span->start ? run->step[step].number : 0;
        if (of != current) {
            rc = push_ops(fill, touched, count, current, err);
            count = 0;
            current = of;
        }
        if (op) {
            touched[count] = span->op;
            count += op->calls == 0;
            op->calls++;
            op->seconds += (double)span->self / 1e9;
        }
    }
    return rc != GD_OK ? rc : push_ops(fill, touched, count, current, err);
}

static int push_step(struct fill *fill, const struct gd_time_step *step, struct gd_err *err)
{
    int rc = gd_catalog_add_step(fill->catalog, step->step, err);

    if (rc == GD_OK) {
        gd_time_add_step(fill->report, step);
    }
    return rc;
}

/* What a table says about a step, beside its parts in the trace. */
static void join_told(struct gd_time_step *step, struct gd_time_step *told)
{
    double total = told->part[GD_TIME_TOTAL];

    if (total >= 0) {
        step->part[GD_TIME_REST] = -1; /* of another total */
    }
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        step->part[part] = told->part[part] >= 0 ? told->part[part] : step->part[part];
    }
    step->tail = told->tail >= 0 ? told->tail : step->tail;
    step->communication = told->communication >= 0 ? told->communication : step->communication;
    step->exposed = told->exposed >= 0 ? told->exposed : step->exposed;
    told->timed = false; /* done */
}

/* The steps in which operators were recorded: a trace can have times of the others, too. */
static void mark_timed(const struct trace_run *run, struct gd_time_step *steps)
{
    size_t step = 0;

    for (size_t i = 0; i < run->spans.count && step < run->steps; i++) {
        const struct trace_span *span = &run->spans.span[i];

        while (step < run->steps && run->step[step].end <= span->start) {
            step++;
        }
        if (step < run->steps && run->step[step].start <= span->start && span->op != TRACE_NONE) {
            steps[step].timed = true;
        }
    }
}

static int push_steps(struct fill *fill, struct gd_err *err)
{
    const struct trace_run *run = fill->run;
    bool unknown = run->steps_by == TRACE_BY_WHOLE;
    GD_CLEANUP(gd_cleanup_free)
    struct gd_time_step *steps = calloc(run->steps + 1, sizeof(*steps));
    int rc = steps ? GD_OK : gd_fail_nomem(err);

    for (size_t i = 0; rc == GD_OK && i < run->steps; i++) {
        steps[i] = gd_time_unknown_step(run->step[i].number);
        trace_step_parts(run, i, &steps[i]);
    }
    if (rc == GD_OK) {
        mark_timed(run, steps);
    }
    rc = rc != GD_OK ? rc : trace_communication(run, steps, err);
    for (size_t i = 0, at = 0; rc == GD_OK && !unknown && i < run->steps; i++) {
        for (size_t k = 0; k < run->tolds; k++, at = (at + 1) % run->tolds) {
            if (run->told[at].step == steps[i].step) {
                join_told(&steps[i], &run->told[at]);
                break;
            }
        }
        rc = push_step(fill, &steps[i], err);
    }
    for (size_t i = 0; rc == GD_OK && i < run->tolds; i++) {
        struct gd_time_step step = run->told[i];

        step.timed = false; /* no operator is known to be of it */
        rc = run->told[i].timed ? push_step(fill, &step, err) : GD_OK;
    }
    return rc != GD_OK || !unknown || run->tolds > 0 || run->steps == 0
               ? rc
               : gd_catalog_add_step(fill->catalog, run->step[0].number, err);
}

/* The step of a moment; NULL: none. */
static const struct trace_step *step_at(const struct trace_run *run, int64_t at)
{
    size_t low = 0, high = run->steps;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (run->step[middle].end < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->steps && run->step[low].start <= at ? &run->step[low] : NULL;
}

/* A number that the trace has over time belongs to the step in which it was written. */
static int add_counters(struct fill *fill, struct gd_err *err)
{
    const struct trace_run *run = fill->run;
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < run->spans.counters; i++) {
        const struct trace_counter *counter = &run->spans.counter[i];
        const struct trace_step *step = step_at(run, counter->at);

        if (step) {
            rc = gd_catalog_add_scalar(fill->catalog, step->number, text_of(fill, counter->name),
                                       counter->value, err);
        }
    }
    return rc;
}

/* ---- the timeline ---------------------------------------------------------------------------- */

static uint16_t lane_of(const struct fill *fill, struct gd_timeline *timeline, uint16_t number)
{
    const struct trace_lane *lane = &fill->run->spans.lane[number];
    char name[300];

    snprintf(name, sizeof(name), "%.140s %.140s", text_of(fill, lane->process),
             text_of(fill, lane->thread_label ? lane->thread_label : lane->thread));
    return gd_timeline_lane(timeline, name);
}

static void put_spans(const struct fill *fill, struct gd_timeline *timeline, int64_t shift)
{
    const struct trace_run *run = fill->run;
    GD_CLEANUP(gd_cleanup_free)
    uint16_t *lane = calloc(run->spans.lanes + 1, sizeof(*lane));
    size_t step = 0;

    for (size_t i = 0; lane && i < run->spans.lanes; i++) {
        lane[i] = lane_of(fill, timeline, (uint16_t)i);
    }
    for (size_t i = 0; lane && i < run->spans.count; i++) {
        const struct trace_span *span = &run->spans.span[i];
        gd_node_id node =
            span->op == TRACE_NONE ? GD_NO_NODE : run->node[run->op[span->op].node].id;

        while (step < run->steps && run->step[step].end <= span->start) {
            step++;
        }
        if (node != GD_NO_NODE) {
            gd_timeline_add(timeline, &(struct gd_timeline_span){
                                          .start = gd_time_add(span->start, shift),
                                          .duration = span->duration,
                                          .step = step < run->steps ? run->step[step].number : -1,
                                          .what = node,
                                          .lane = lane[span->lane],
                                          .kind = GD_ON_OPERATOR});
        }
    }
}

static int add_timeline(struct fill *fill, struct gd_err *err)
{
    const struct trace_run *run = fill->run;
    struct gd_timeline *timeline;
    int rc = gd_catalog_timeline(fill->catalog, &timeline, err);
    int64_t shift;

    if (rc != GD_OK || run->spans.count == 0) {
        return rc;
    }
    timeline->base = timeline->count ? timeline->base : run->spans.base;
    shift = run->spans.base && timeline->base ? gd_time_sub(run->spans.base, timeline->base) : 0;
    timeline->is_measured = true;
    for (size_t i = 0; i < run->steps && run->steps_by != TRACE_BY_WHOLE; i++) {
        const struct trace_step *step = &run->step[i];
        gd_timeline_add(timeline,
                        &(struct gd_timeline_span){.start = gd_time_add(step->start, shift),
                                                   .duration = step->end - step->start,
                                                   .step = step->number,
                                                   .kind = GD_ON_STEP});
    }
    for (size_t i = 0; i < run->phases; i++) {
        const struct trace_phase *phase = &run->phase[i];
        gd_timeline_add(timeline,
                        &(struct gd_timeline_span){.start = gd_time_add(phase->start, shift),
                                                   .duration = phase->end - phase->start,
                                                   .step = -1,
                                                   .what = phase->part,
                                                   .kind = GD_ON_PART});
    }
    put_spans(fill, timeline, shift);
    for (size_t i = 0; i < run->spans.counters; i++) {
        const struct trace_counter *counter = &run->spans.counter[i];
        gd_timeline_add(timeline,
                        &(struct gd_timeline_span){
                            .start = gd_time_add(counter->at, shift),
                            .value = counter->value,
                            .step = -1,
                            .what = gd_timeline_metric(timeline, text_of(fill, counter->name)),
                            .kind = GD_ON_METRIC});
    }
    return GD_OK;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static int add_facts(struct fill *fill, struct gd_err *err)
{
    static const char *const by[] = {
        "marked by the profiler",
        "numbered by kernel_details.csv, each from its first to its last kernel",
        "those of step_trace_raw",
        "each ends with Optimizer.step: the trace has no marks of the profiler",
        "unknown, counted as step 1: no marks of the profiler, no optimizer's step",
    };
    const struct trace_run *run = fill->run;
    struct gd_peer *peer = gd_catalog_peer(fill->catalog);
    char text[128];
    int rc = run->spans.count == 0
                 ? GD_OK
                 : gd_catalog_add_fact(fill->catalog, "steps of the trace", by[run->steps_by], err);

    snprintf(text, sizeof(text), "%zu events, %.6g s", run->spans.count,
             (double)gd_time_sub(run->end, run->start) / 1e9);
    rc = rc != GD_OK || run->spans.count == 0
             ? rc
             : gd_catalog_add_fact(fill->catalog, "trace", text, err);
    if (rc == GD_OK && run->spans.bad_times + run->spans.unpaired + run->spans.dropped > 0) {
        snprintf(text, sizeof(text),
                 "%llu with an impossible time, %llu without an end, %llu too many",
                 (unsigned long long)run->spans.bad_times, (unsigned long long)run->spans.unpaired,
                 (unsigned long long)run->spans.dropped);
        rc = gd_catalog_add_fact(fill->catalog, "events left out", text, err);
    }
    if (!peer->framework[0]) {
        snprintf(peer->framework, sizeof(peer->framework), "%s",
                 run->spans.is_kineto ? "PyTorch" : run->spans.framework);
    }
    if (run->spans.host[0]) {
        snprintf(peer->host, sizeof(peer->host), "%s", run->spans.host);
    }
    return rc;
}

int trace_fill(struct trace_run *run, struct gd_catalog *catalog, struct gd_err *err)
{
    struct fill fill = {.run = run,
                        .catalog = catalog,
                        .graph = gd_catalog_graph(catalog),
                        .name = GD_BUF_INIT(SIZE_MAX)};
    int rc = gd_catalog_times(catalog, &fill.report, err);

    rc = rc != GD_OK ? rc : add_nodes(&fill, err);
    rc = rc != GD_OK ? rc : push_steps(&fill, err);
    rc = rc != GD_OK ? rc : push_all_ops(&fill, err);
    rc = rc != GD_OK ? rc : add_counters(&fill, err);
    rc = rc != GD_OK ? rc : add_timeline(&fill, err);
    rc = rc != GD_OK ? rc : add_facts(&fill, err);
    gd_buf_deinit(&fill.name);
    free(fill.claimed);
    return rc;
}
