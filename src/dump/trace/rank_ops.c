// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Operators on the device, of one rank:
 *
 * - framework_raw_R.csv: type, and shapes as JSON ("op_info"), by full name;
 * - output_timeline_data_R.txt: full name, stream, start, duration of each execution on AI cores;
 * - aicore_intermediate_R_detail.csv: full name, mean time, executions (not before 1.8); since 2.1
 *   also of operators that do not run on AI cores, with a column that says where;
 * - aicore_intermediate_R_type.csv: type, time, executions or, before 2.1, different operators;
 *   since 2.1 of all operators, and its shares are not in percent;
 * - aicpu_intermediate_R.csv: one execution on the device's processors;
 * - flops_R.txt, flops_summary_R.json: floating-point operations.
 *
 * Times are in milliseconds. So are the starts that a column calls microseconds: 2.1 and 2.2 divide
 * them by 1000 before they write them (ascend_msprof_generator). Names of columns differ between
 * releases ("full_op_name", "full_kernel_name"); their order does not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"

#define MILLISECOND 1e6 /* nanoseconds */

/* ---- types and shapes ------------------------------------------------------------------------ */

struct framework { /* by the number of a name's text: args of the operator; 0: none */
    uint32_t *args;
    size_t cap;
};

/* "1,512" or [1, 512], "NUMBER_TYPE_FLOAT16". */
static void put_tensor(struct gd_buf *dims, struct gd_buf *types, const cJSON *tensor)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(tensor, "shape"), *dim;
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "data_type"));
    const char *text = cJSON_GetStringValue(shape), *prefix = "NUMBER_TYPE_";

    type = type ? type : "";
    type += gd_starts_with(type, prefix) ? strlen(prefix) : 0;
    gd_buf_printf(dims, "%s[", dims->len > 1 ? "," : "");
    for (; text && *text && dims->len < TRACE_MAX_ARGS; text++) {
        if ((*text >= '0' && *text <= '9') || *text == ',') {
            gd_buf_putc(dims, *text);
        }
    }
    cJSON_ArrayForEach(dim, shape)
    {
        bool known = cJSON_IsNumber(dim) && fabs(dim->valuedouble) < 1e15;
        gd_buf_printf(dims, "%s%lld", dim != shape->child ? "," : "",
                      known ? (long long)dim->valuedouble : -1);
    }
    gd_buf_putc(dims, ']');
    gd_buf_printf(types, "%s\"", types->len > 1 ? "," : "");
    for (; *type && types->len < TRACE_MAX_ARGS; type++) {
        if (*type != '"' && (unsigned char)*type >= ' ') {
            gd_buf_putc(types, *type);
        }
    }
    gd_buf_putc(types, '"');
}

static void put_inputs(struct gd_buf *dims, struct gd_buf *types, const char *info)
{
    struct gd_json_options options = {.max_bytes = 1 << 20, .what = "op_info"};
    cJSON *tree = NULL;
    const cJSON *tensor;

    if (!*info || gd_json_parse(info, strlen(info), &options, &tree, NULL) != GD_OK) {
        return; /* the operator has no shapes */
    }
    cJSON_ArrayForEach(tensor, tree)
    {
        if (tensor->string && (gd_starts_with(tensor->string, "input_") ||
                               gd_starts_with(tensor->string, "Input_"))) {
            put_tensor(dims, types, tensor);
        }
    }
    cJSON_Delete(tree);
}

static int intern_args(struct trace_spans *spans, const char *type, const char *info, uint32_t *ret,
                       struct gd_err *err)
{
    struct gd_buf dims = GD_BUF_INIT(SIZE_MAX), types = GD_BUF_INIT(SIZE_MAX);
    struct gd_buf *out = &spans->scratch;
    int rc;

    out->max = SIZE_MAX;
    gd_buf_clear(out);
    gd_buf_putc(&dims, '[');
    gd_buf_putc(&types, '[');
    put_inputs(&dims, &types, info);
    if (dims.len > 1) {
        gd_buf_printf(out, "%s]\x1f%s]", gd_buf_text(&dims), gd_buf_text(&types));
    } else {
        gd_buf_putc(out, '\x1f');
    }
    gd_buf_printf(out, "\x1f\x1f\x1f%.256s", strchr(type, '\x1f') ? "" : type);
    rc = out->failed || dims.failed || types.failed
             ? gd_fail_nomem(err)
             : trace_text(spans, gd_buf_text(out), out->len, ret, err);
    gd_buf_deinit(&dims);
    gd_buf_deinit(&types);
    return rc;
}

static int keep_args(struct framework *framework, uint32_t name, uint32_t args, struct gd_err *err)
{
    if (name >= framework->cap) {
        size_t cap = (size_t)name * 2 + 256;
        uint32_t *grown = realloc(framework->args, cap * sizeof(*grown));

        if (!grown) {
            return gd_fail_nomem(err);
        }
        memset(grown + framework->cap, 0, (cap - framework->cap) * sizeof(*grown));
        framework->args = grown;
        framework->cap = cap;
    }
    framework->args[name] = args;
    return GD_OK;
}

/* The first that is there: names of columns by release. */
static const char *one_of(const struct profile_row *row, const char *first, const char *second)
{
    const char *cell = profile_cell(row, first);

    return *cell ? cell : profile_cell(row, second);
}

static int take_framework(struct profile *profile, const struct profile_row *row, void *ctx,
                          struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    const char *name = one_of(row, "full_op_name", "full_kernel_name");
    uint32_t text, args;
    int rc;

    if (!*name) {
        return GD_OK;
    }
    rc = trace_text(spans, name, strnlen(name, TRACE_MAX_NAME), &text, err);
    /* since 2.1 kernel_type is where it runs, and op_type its type */
    rc = rc != GD_OK ? rc
                     : intern_args(spans, one_of(row, "op_type", "kernel_type"),
                                   profile_cell(row, "op_info"), &args, err);
    return rc != GD_OK ? rc : keep_args(ctx, text, args, err);
}

static int read_framework(struct profile *profile, struct framework *ret, struct gd_err *err)
{
    return profile_each_rank_row(profile, "framework_raw_", ".csv", take_framework, ret, err);
}

static int name_and_args(struct profile *profile, const struct framework *framework,
                         const char *name, uint32_t *text, uint32_t *args, struct gd_err *err)
{
    int rc = trace_text(&profile->run.spans, name, strnlen(name, TRACE_MAX_NAME), text, err);

    if (rc == GD_OK && *text < framework->cap && framework->args[*text]) {
        *args = framework->args[*text];
        return GD_OK;
    }
    return rc != GD_OK ? rc : trace_text(&profile->run.spans, "", 0, args, err);
}

/* ---- single executions ----------------------------------------------------------------------- */

/* Nanoseconds of a cell in milliseconds; false: not a possible time. */
static bool read_time(const char *text, int64_t *ret)
{
    char *end;
    double value = strtod(text, &end) * MILLISECOND;

    if (end == text || !(value >= 0 && value < (double)TRACE_MAX_TIME / 2)) {
        return false;
    }
    *ret = llround(value);
    return true;
}

static int take_execution(struct profile *profile, const struct profile_row *row, void *ctx,
                          struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    struct trace_span span = {.op = TRACE_NONE, .kind = TRACE_KERNEL};
    const char *name = profile_cell_at(row, 0);
    int rc;

    if (!*name || !read_time(profile_cell_at(row, 2), &span.start) ||
        !read_time(profile_cell_at(row, 3), &span.duration)) {
        spans->bad_times++;
        return GD_OK;
    }
    profile->has_kernels = true;
    spans->has_parts = true;
    rc = trace_lane_of(spans, "output_timeline_data", profile_cell_at(row, 1), &span.lane, err);
    rc = rc != GD_OK ? rc : name_and_args(profile, ctx, name, &span.name, &span.args, err);
    return rc != GD_OK ? rc : trace_add_span(spans, &span, err);
}

int profile_read_timeline(struct profile *profile, struct gd_err *err)
{
    struct framework framework = {.cap = 0};
    int rc = GD_OK;

    if (profile_rank_file(profile, "output_timeline_data_", ".txt") != GD_NO_ENTRY) {
        rc = read_framework(profile, &framework, err);
        rc = rc != GD_OK ? rc
                         : profile_each_rank_row(profile, "output_timeline_data_", ".txt",
                                                 take_execution, &framework, err);
    }
    free(framework.args);
    return rc;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static uint32_t calls_of(const char *text)
{
    uint64_t calls;

    return gd_json_unsigned(text, &calls) && calls > 0 && calls <= UINT32_MAX ? (uint32_t)calls : 1;
}

static int add_total(struct profile *profile, struct gd_time_record *record, struct gd_err *err)
{
    struct gd_time_report *report;
    int rc = gd_catalog_times(profile->catalog, &report, err);

    record->out.rank = -1;
    return rc != GD_OK ? rc : gd_time_add_operator(report, record, err);
}

/* "Default/fc1-Dense/MatMul-op3": the type, where no table says it. */
static void type_in_name(const char *name, char *out, size_t size)
{
    const char *base = gd_base_name(name), *number = strstr(base, "-op");

    snprintf(out, size, "%.*s", number ? (int)(number - base) : (int)strlen(base), base);
}

/* Whether an operator is in no other table; since 2.1 a column says where it runs. */
static bool is_only_here(const struct profile *profile, const char *where, bool collective)
{
    if (strcmp(where, "AI_CPU") == 0) {
        return profile_rank_file(profile, "aicpu_intermediate_", ".csv") == GD_NO_ENTRY;
    }
    return collective ? !profile->has_collectives
                      : !profile->has_kernels || (*where && strcmp(where, "AI_CORE") != 0);
}

static int take_detail(struct profile *profile, const struct profile_row *row, void *ctx,
                       struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    const char *name = profile_cell_at(row, 0), *where = profile_cell(row, "task_type"), *type;
    bool collective = strcmp(where, "HCCL") == 0 || strcmp(where, "COMMUNICATION") == 0;
    struct gd_time_record record = {.name = name,
                                    .lane = collective ? GD_LANE_COMMUNICATION : GD_LANE_DEVICE,
                                    .calls = calls_of(profile_cell(row, "execution_frequency"))};
    char type_text[256], module[TRACE_MAX_NAME];
    uint32_t text, args;
    int64_t each;
    size_t len;
    int rc;

    if (!*name || !is_only_here(profile, where, collective) ||
        !read_time(profile_cell_at(row, 1), &each)) {
        return GD_OK;
    }
    rc = name_and_args(profile, ctx, name, &text, &args, err);
    if (rc != GD_OK) {
        return rc;
    }
    type = trace_arg(spans, args, TRACE_OP_TYPE, &len);
    type_in_name(name, type_text, sizeof(type_text));
    if (len > 0) {
        snprintf(type_text, sizeof(type_text), "%.*s", (int)len, type);
    }
    gd_folder_of(name, module, sizeof(module));
    record.type = type_text;
    record.module = strcmp(module, ".") == 0 ? "" : module;
    record.seconds = (double)each / 1e9 * record.calls;
    trace_inputs(spans, args, &record);
    profile->has_operators = true;
    return add_total(profile, &record, err);
}

static int take_type(struct profile *profile, const struct profile_row *row, void *ctx,
                     struct gd_err *err)
{
    const char *type = profile_cell_at(row, 0);
    struct gd_time_record record = {.type = type,
                                    .name = type,
                                    .lane = GD_LANE_DEVICE,
                                    .calls = calls_of(profile_cell(row, "execution_frequency"))};
    double *shares = ctx;
    int64_t all;

    *shares += strtod(profile_cell(row, "percent"), NULL);
    if (!*type || !read_time(profile_cell_at(row, 1), &all)) {
        return GD_OK;
    }
    record.seconds = (double)all / 1e9;
    return add_total(profile, &record, err);
}

static int take_aicpu(struct profile *profile, const struct profile_row *row, void *ctx,
                      struct gd_err *err)
{
    const char *type = profile_cell_at(row, 1);
    struct gd_time_record record = {
        .type = type, .name = type, .module = "AI CPU", .lane = GD_LANE_DEVICE, .calls = 1};
    int64_t each;

    (void)ctx;
    if (!*type || !read_time(profile_cell(row, "execution_time"), &each)) {
        return GD_OK; /* a summary, or a release without it */
    }
    record.seconds = (double)each / 1e9;
    return add_total(profile, &record, err);
}

int profile_add_rank_totals(struct profile *profile, struct gd_err *err)
{
    struct framework framework = {.cap = 0};
    double shares = INFINITY; /* their sum, where the types are all that is known */
    int rc;

    if (profile->has_operators) {
        return GD_OK; /* a timeline made for display has all of them, the one of AI cores has not */
    }
    rc = read_framework(profile, &framework, err);
    rc = rc != GD_OK ? rc
                     : profile_each_rank_row(profile, "aicore_intermediate_", "_detail.csv",
                                             take_detail, &framework, err);
    if (rc == GD_OK && !profile->has_kernels && !profile->has_operators) {
        shares = 0;
        rc = profile_each_rank_row(profile, "aicore_intermediate_", "_type.csv", take_type, &shares,
                                   err);
    }
    free(framework.args);
    /* types with shares of 1 are those of all operators */
    return rc != GD_OK || (shares > 0.5 && shares < 1.5)
               ? rc
               : profile_each_rank_row(profile, "aicpu_intermediate_", ".csv", take_aicpu, NULL,
                                       err);
}

/* ---- floating-point operations --------------------------------------------------------------- */

/* "MFLOPs(10^6 cube)"; older releases write "FLOPs" for millions, too. */
static int take_flops(struct profile *profile, const struct profile_row *row, void *ctx,
                      struct gd_err *err)
{
    static const char *const plain[] = {"MFLOPs", "GFLOPS", "FLOPS utilization %"};
    static const char *const split[] = {"MFLOPs (cube)", "GFLOPS (cube)", "MFLOPs (vector)",
                                        "GFLOPS (vector)"};
    bool is_split = strstr(profile_column(row, 1), "cube") != NULL;
    const char *const *names = is_split ? split : plain;
    struct gd_graph *graph = gd_catalog_graph(profile->catalog);
    const char *name = profile_cell_at(row, 0);
    gd_node_id node = gd_graph_lookup(graph, name, strlen(name));
    int rc = GD_OK;

    (void)ctx;
    for (size_t i = 0; node != GD_NO_NODE && rc == GD_OK && i < (is_split ? 4 : 3); i++) {
        const char *text = profile_cell_at(row, i + 1);
        char *end;

        strtod(text, &end);
        if (end != text) {
            rc = gd_graph_set_attr(graph, node, &(struct gd_attr){names[i], text}, err);
        }
    }
    return rc;
}

static double number_in(const cJSON *tree, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);

    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

/* Since 2.1 its rates (cube_FLOPS, vec_FLOPS) are divided by the time twice, and are left out. */
static int add_summary(struct profile *profile, struct gd_err *err)
{
    char text[200] = "";
    cJSON *tree;
    double flops, rate, used, cube, vector;
    int rc = profile_read_tree(profile, profile_rank_file(profile, "flops_summary_", ".json"),
                               &tree, err);

    if (rc != GD_OK || !tree) {
        return rc;
    }
    flops = number_in(tree, "FLOPs");
    rate = number_in(tree, "FLOPS");
    used = number_in(tree, "FLOPS_Utilization");
    cube = number_in(tree, "cube_FLOPs");
    vector = number_in(tree, "vec_FLOPs");
    if (flops >= 0 && rate >= 0 && used >= 0) {
        snprintf(
            text, sizeof(text),
            "%.10g MFLOPs in one execution of each operator; operators compute %.10g GFLOPS on "
            "average, steps use %.4g %% of the AI cores",
            flops, rate, used);
    } else if (cube >= 0 && vector >= 0) {
        snprintf(text, sizeof(text), "%.10g MFLOPs by matrix units, %.10g by vector units", cube,
                 vector);
    }
    cJSON_Delete(tree);
    return *text ? gd_catalog_add_fact(profile->catalog, "floating-point operations", text, err)
                 : GD_OK;
}

int profile_add_flops(struct profile *profile, struct gd_err *err)
{
    int rc = profile_each_rank_row(profile, "flops_", ".txt", take_flops, NULL, err);

    return rc != GD_OK ? rc : add_summary(profile, err);
}
