// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_dump_writer.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dump/io/folder.h"
#include "dump/mindspore/ms_file_name.h"
#include "dump/mindspore/ms_graph_writer.h"

#define MAX_NAME  8192
#define MAX_GRAPH ((size_t)1 << 31) /* protobuf's own limit */
#define MAX_TEXT  ((size_t)1 << 31)
#define PIECE     ((size_t)1 << 20) /* bytes written between calls of go_on */
#define MAX_ALIKE 4096              /* limit of subgraphs in a graph */

struct graph_dir { /* NET/G of one subgraph */
    struct gd_folder *folder, *step, *constants;
    struct gd_buf rows;  /* of statistic.csv */
    bool constants_done; /* exist from an earlier dump */
};

struct gd_ms_writer {
    struct gd_folder *rank, *net, *order, *graphs, *metadata;
    struct graph_dir *dir; /* per subgraph; created on demand */
    uint32_t dirs;
    int64_t step;
    uint64_t last_time; /* microseconds; unique and increasing, so that files keep their order */
    uint64_t bytes;
    int column[GD_MS_CATEGORIES], columns;
};

/* ---- the directories ------------------------------------------------------------------------- */

static int put_file(struct gd_ms_writer *w, struct gd_folder *folder, const char *name,
                    const void *data, size_t size, struct gd_err *err)
{
    int rc = gd_folder_put(folder, name, data, size, err);

    w->bytes += rc == GD_OK ? size : 0;
    return rc;
}

static int put_metadata(struct gd_ms_writer *w, const struct gd_ms_writer_options *options,
                        struct gd_err *err)
{
    char text[512];
    int rc = gd_folder_child(w->rank, ".dump_metadata", &w->metadata, err);

    snprintf(text, sizeof(text), "{\"device_target\": \"%.100s\", \"ms_version\": \"%.100s\"}\n",
             options->device, options->version);
    rc = rc != GD_OK ? rc : put_file(w, w->metadata, "config.json", text, strlen(text), err);
    return rc != GD_OK ? rc
                       : put_file(w, w->metadata, "data_dump.json", options->config,
                                  options->config_size, err);
}

int gd_ms_writer_open(const struct gd_ms_writer_options *options, struct gd_ms_writer **ret,
                      struct gd_err *err)
{
    struct gd_ms_writer *w = calloc(1, sizeof(*w));
    struct gd_folder *root = NULL;
    char name[32];

    if (!w) {
        return gd_fail_nomem(err);
    }
    snprintf(name, sizeof(name), "rank_%d", options->rank);
    int rc = gd_folder_open(options->root, &root, err);
    rc = rc != GD_OK ? rc : gd_folder_child(root, name, &w->rank, err);
    rc = rc != GD_OK ? rc : gd_folder_child(w->rank, options->net, &w->net, err);
    rc = rc != GD_OK ? rc : gd_folder_child(w->rank, "execution_order", &w->order, err);
    rc = rc != GD_OK ? rc : gd_folder_child(w->rank, "graphs", &w->graphs, err);
    rc = rc != GD_OK ? rc : put_metadata(w, options, err);
    gd_folder_close(root);
    if (rc != GD_OK) {
        gd_ms_writer_close(w);
        return rc;
    }
    for (int i = 0; i < GD_MS_MD5; i++) {
        w->column[w->columns++] = i;
    }
    *ret = w;
    return GD_OK;
}

void gd_ms_writer_close(struct gd_ms_writer *w)
{
    if (!w) {
        return;
    }
    for (uint32_t i = 0; i < w->dirs; i++) {
        gd_folder_close(w->dir[i].step);
        gd_folder_close(w->dir[i].constants);
        gd_folder_close(w->dir[i].folder);
        gd_buf_deinit(&w->dir[i].rows);
    }
    free(w->dir);
    gd_folder_close(w->metadata);
    gd_folder_close(w->graphs);
    gd_folder_close(w->order);
    gd_folder_close(w->net);
    gd_folder_close(w->rank);
    free(w);
}

uint64_t gd_ms_writer_bytes(const struct gd_ms_writer *w)
{
    return w->bytes;
}

static int dir_of(struct gd_ms_writer *w, uint32_t subgraph, struct graph_dir **ret,
                  struct gd_err *err)
{
    char name[32];
    int rc = GD_OK;

    if (subgraph >= w->dirs) {
        struct graph_dir *grown = realloc(w->dir, ((size_t)subgraph + 1) * sizeof(*grown));
        if (!grown) {
            return gd_fail_nomem(err);
        }
        w->dir = grown;
        for (; w->dirs <= subgraph; w->dirs++) {
            grown[w->dirs] = (struct graph_dir){.folder = NULL};
            gd_buf_init(&grown[w->dirs].rows, MAX_TEXT);
        }
    }
    *ret = &w->dir[subgraph];
    if (!(*ret)->folder) {
        snprintf(name, sizeof(name), "%" PRIu32, subgraph);
        rc = gd_folder_child(w->net, name, &(*ret)->folder, err);
    }
    return rc;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static bool is_parameter(const struct gd_node_info *info)
{
    return strcmp(info->type, "Parameter") == 0;
}

static bool is_constant(const struct gd_node_info *info)
{
    return strcmp(info->type, "Const") == 0;
}

/* An item of a list must be on one line. */
static void put_line(struct gd_buf *out, const char *name)
{
    for (; *name; name++) {
        gd_buf_putc(out, *name == '\n' || *name == '\r' ? '_' : *name);
    }
    gd_buf_putc(out, '\n');
}

static int put_order(struct gd_ms_writer *w, const struct gd_graph *graph, uint32_t subgraph,
                     struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(MAX_TEXT);
    struct gd_node_info info;
    char name[80];
    uint32_t count = 0;
    const gd_node_id *node = gd_graph_execution(graph, &count);

    gd_buf_puts(&text, "NodeExecutionOrder-FullNameWithScope\n");
    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, node[i], &info) && info.subgraph == subgraph &&
            info.order != GD_NO_ORDER && !is_parameter(&info) && !is_constant(&info)) {
            put_line(&text, info.own_name);
        }
    }
    snprintf(name, sizeof(name), "ms_execution_order_graph_%" PRIu32 ".csv", subgraph);
    int rc = text.failed ? gd_fail_nomem(err)
                         : put_file(w, w->order, name, gd_buf_text(&text), text.len, err);
    gd_buf_deinit(&text);
    return rc;
}

static int put_graph(struct gd_ms_writer *w, struct gd_graph *graph, uint32_t subgraph,
                     struct gd_err *err)
{
    struct gd_buf model = GD_BUF_INIT(MAX_GRAPH);
    char name[80];

    gd_ms_graph_write(graph, subgraph, &model);
    snprintf(name, sizeof(name), "ms_output_trace_code_graph_%" PRIu32 ".pb", subgraph);
    int rc = model.failed ? gd_fail_nomem(err)
                          : put_file(w, w->graphs, name, gd_buf_text(&model), model.len, err);
    gd_buf_deinit(&model);
    return rc;
}

int gd_ms_writer_graph(struct gd_ms_writer *w, struct gd_graph *graph, struct gd_err *err)
{
    struct gd_graph_counts counts;
    int rc = GD_OK;

    gd_graph_counts(graph, &counts);
    for (uint32_t i = 0; rc == GD_OK && i < counts.subgraphs && i < MAX_ALIKE; i++) {
        rc = put_graph(w, graph, i, err);
        rc = rc != GD_OK ? rc : put_order(w, graph, i, err);
    }
    return rc;
}

/* ---- a step ---------------------------------------------------------------------------------- */

void gd_ms_writer_begin(struct gd_ms_writer *w, int64_t step)
{
    w->step = step;
}

static int step_folder(struct gd_ms_writer *w, struct graph_dir *dir, struct gd_folder **ret,
                       struct gd_err *err)
{
    char name[32];
    int rc = GD_OK;

    if (!dir->step) {
        snprintf(name, sizeof(name), "%" PRId64, w->step);
        rc = gd_folder_child(dir->folder, name, &dir->step, err);
        if (rc == GD_OK && !gd_folder_is_empty(dir->step)) {
            gd_folder_close(dir->step);
            dir->step = NULL;
            rc = gd_fail(err, GD_EINVAL,
                         "a dump of step %" PRId64 " already exists: choose another directory",
                         w->step);
        }
    }
    *ret = dir->step;
    return rc;
}

/* *ret is NULL if the constants exist from an earlier dump. */
static int constants_folder(struct graph_dir *dir, struct gd_folder **ret, struct gd_err *err)
{
    int rc = GD_OK;

    if (!dir->constants && !dir->constants_done) {
        rc = gd_folder_child(dir->folder, "constants", &dir->constants, err);
        dir->constants_done = rc == GD_OK && !gd_folder_is_empty(dir->constants);
    }
    *ret = dir->constants_done ? NULL : dir->constants;
    return rc;
}

static uint64_t next_timestamp(struct gd_ms_writer *w)
{
    struct timespec now;
    uint64_t time;

    clock_gettime(CLOCK_REALTIME, &now);
    time = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    w->last_time = time > w->last_time ? time : w->last_time + 1;
    return w->last_time;
}

/* Writes a part of a file name. */
static void spell_part(const char *text, const char *otherwise, char *out, size_t size)
{
    gd_ms_escape(text[0] ? text : otherwise, out, size);
    for (; *out; out++) {
        *out = (unsigned char)*out < 0x20 || *out == 0x7f || *out == ',' ? '_' : *out;
    }
}

static const char *type_of(const struct gd_node_info *node)
{
    return is_constant(node) ? "Parameter" : gd_ms_dumped_type(node);
}

/* Makes the file name; one too long becomes a number and a line in mapping.csv. */
static int name_file(struct gd_ms_writer *w, struct gd_folder *folder,
                     const struct gd_ms_item *item, enum gd_dtype dtype, char ret[256],
                     struct gd_err *err)
{
    char type[256], name[MAX_NAME], line[MAX_NAME + 1024];
    uint64_t time = next_timestamp(w);

    spell_part(type_of(item->node), "Op", type, sizeof(type));
    spell_part(item->node->own_name, "node", name, sizeof(name));
    int len = snprintf(
        line, sizeof(line),
        "%" PRIu64 ".npy,%s.%s.0.0.%" PRIu64 ".%s.%" PRIu32 ".DefaultFormat.%s.npy\n", time, type,
        name, time, item->is_input ? "input" : "output", item->slot, gd_dtype_name(dtype));
    char *comma = strchr(line, ',');
    if (strlen(comma + 1) - 1 <= 255) {
        snprintf(ret, 256, "%.*s", (int)strlen(comma + 1) - 1, comma + 1);
        return GD_OK;
    }
    snprintf(ret, 256, "%" PRIu64 ".npy", time);
    w->bytes += (uint64_t)len;
    return gd_folder_append(folder, "mapping.csv", line, (size_t)len, err);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* As MindSpore writes it: no blanks in the shape, a comma after every dimension. */
static size_t npy_header(enum gd_dtype dtype, const struct gd_shape *shape, char ret[2048])
{
    static const char magic[8] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    int len = 10;

    memcpy(ret, magic, sizeof(magic));
    len += snprintf(ret + len, 128, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                    gd_dtype_descr(dtype));
    for (int i = 0; i < shape->rank; i++) {
        len += snprintf(ret + len, 32, "%" PRId64 ",", shape->dim[i]);
    }
    len += snprintf(ret + len, 16, "), }");
    while ((len + 1) % 64 != 0) {
        ret[len++] = ' ';
    }
    ret[len++] = '\n';
    ret[8] = (char)((len - 10) & 0xff);
    ret[9] = (char)((len - 10) >> 8);
    return (size_t)len;
}

static enum gd_dtype written_dtype(enum gd_dtype dtype)
{
    return dtype == GD_BFLOAT16 ? GD_FLOAT32 : dtype;
}

uint64_t gd_ms_writer_size(enum gd_dtype dtype, const struct gd_shape *shape)
{
    char header[2048];
    size_t bytes = 0;

    if (gd_shape_bytes(shape, written_dtype(dtype), &bytes, NULL) != GD_OK) {
        return 0;
    }
    return bytes + npy_header(written_dtype(dtype), shape, header);
}

static int put_widened(struct gd_folder_file *file, const unsigned char *data, size_t size,
                       struct gd_err *err)
{
    float out[1024];
    int rc = GD_OK;

    for (size_t at = 0, n; rc == GD_OK && at < size; at += n * 2) {
        n = (size - at) / 2 < 1024 ? (size - at) / 2 : 1024;
        for (size_t i = 0; i < n; i++) {
            uint16_t bits;
            memcpy(&bits, data + at + i * 2, sizeof(bits));
            out[i] = gd_bfloat16_to_float(bits);
        }
        rc = gd_folder_write(file, out, n * sizeof(out[0]), err);
    }
    return rc;
}

static int put_elements(struct gd_folder_file *file, const struct gd_tensor *tensor,
                        bool (*go_on)(void *ctx, uint64_t done), void *ctx, struct gd_err *err)
{
    size_t bytes = gd_tensor_bytes(tensor);
    int rc = GD_OK;

    for (size_t at = 0, n; rc == GD_OK && at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        rc = tensor->dtype == GD_BFLOAT16 ? put_widened(file, tensor->data + at, n, err)
                                          : gd_folder_write(file, tensor->data + at, n, err);
        if (rc == GD_OK && go_on && !go_on(ctx, at + n)) {
            rc = gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    return rc;
}

int gd_ms_writer_tensor(struct gd_ms_writer *w, const struct gd_ms_item *item,
                        const struct gd_tensor *tensor, bool (*go_on)(void *ctx, uint64_t done),
                        void *ctx, struct gd_err *err)
{
    struct graph_dir *dir = NULL;
    struct gd_folder *folder = NULL;
    struct gd_folder_file *file = NULL;
    char name[256], header[2048];
    enum gd_dtype dtype = written_dtype(tensor->dtype);

    if (gd_dtype_size(dtype) == 0) {
        return gd_fail(err, GD_EUNSUPPORTED, "%s has no elements to write to a file",
                       gd_dtype_name(tensor->dtype));
    }
    int rc = dir_of(w, item->node->subgraph, &dir, err);
    rc = rc != GD_OK ? rc
                     : (is_constant(item->node) ? constants_folder(dir, &folder, err)
                                                : step_folder(w, dir, &folder, err));
    if (rc != GD_OK || !folder) {
        return rc;
    }
    rc = name_file(w, folder, item, tensor->dtype, name, err);
    rc = rc != GD_OK ? rc : gd_folder_begin(folder, name, &file, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_folder_write(file, header, npy_header(dtype, &tensor->shape, header), err);
    rc = rc != GD_OK ? rc : put_elements(file, tensor, go_on, ctx, err);
    int end = gd_folder_end(file, rc == GD_OK, rc == GD_OK ? err : NULL);
    rc = rc != GD_OK ? rc : end;
    w->bytes += rc == GD_OK ? gd_ms_writer_size(tensor->dtype, &tensor->shape) : 0;
    return rc;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static const char *const category_name[GD_MS_CATEGORIES + 1] = {"max",
                                                                "min",
                                                                "avg",
                                                                "count",
                                                                "negative zero count",
                                                                "positive zero count",
                                                                "nan count",
                                                                "negative inf count",
                                                                "positive inf count",
                                                                "zero count",
                                                                "l2norm",
                                                                "md5",
                                                                NULL};
static const char *const category_title[GD_MS_CATEGORIES] = {
    "Max Value",           "Min Value",           "Avg Value",    "Count",
    "Negative Zero Count", "Positive Zero Count", "NaN Count",    "Negative Inf Count",
    "Positive Inf Count",  "Zero Count",          "L2Norm Value", "MD5"};

const char *gd_ms_category_name(int category)
{
    return category >= 0 && category < GD_MS_CATEGORIES ? category_name[category] : NULL;
}

void gd_ms_writer_columns(struct gd_ms_writer *w, const int *category, int count)
{
    w->columns = count < GD_MS_CATEGORIES ? count : GD_MS_CATEGORIES;
    memcpy(w->column, category, (size_t)w->columns * sizeof(*category));
}

static void put_md5(struct gd_buf *out, const struct gd_tensor *tensor)
{
    char digest[MD5_DIGEST_STRING_LENGTH];

    gd_buf_puts(out, MD5Data(tensor->data, gd_tensor_bytes(tensor), digest));
}

static double norm_of(const struct gd_stats *stats)
{
    return stats->nan > 0                        ? (double)NAN
           : stats->pos_inf + stats->neg_inf > 0 ? (double)INFINITY
                                                 : sqrt(stats->sum_sq);
}

/* As MindSpore: without finite elements, max and min keep their initial values. */
static void put_figure(struct gd_buf *out, int category, const struct gd_stats *stats,
                       const struct gd_tensor *tensor)
{
    switch (category) {
    case GD_MS_MAX: gd_buf_printf(out, "%g", isinf(stats->max) ? -DBL_MAX : stats->max); break;
    case GD_MS_MIN: gd_buf_printf(out, "%g", isinf(stats->min) ? DBL_MAX : stats->min); break;
    case GD_MS_AVG: gd_buf_printf(out, "%g", stats->mean); break;
    case GD_MS_COUNT: gd_buf_printf(out, "%" PRIu64, stats->count); break;
    case GD_MS_NEGATIVE: gd_buf_printf(out, "%" PRIu64, stats->negative); break;
    case GD_MS_POSITIVE: gd_buf_printf(out, "%" PRIu64, stats->positive); break;
    case GD_MS_NAN: gd_buf_printf(out, "%" PRIu64, stats->nan); break;
    case GD_MS_NEG_INF: gd_buf_printf(out, "%" PRIu64, stats->neg_inf); break;
    case GD_MS_POS_INF: gd_buf_printf(out, "%" PRIu64, stats->pos_inf); break;
    case GD_MS_ZERO: gd_buf_printf(out, "%" PRIu64, stats->zero); break;
    case GD_MS_L2NORM: gd_buf_printf(out, "%g", norm_of(stats)); break;
    default:
        if (tensor) {
            put_md5(out, tensor);
        }
        break;
    }
}

static void put_titles(const struct gd_ms_writer *w, struct gd_buf *out)
{
    gd_buf_puts(out,
                "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape");
    for (int i = 0; i < w->columns; i++) {
        gd_buf_printf(out, ",%s", category_title[w->column[i]]);
    }
    gd_buf_putc(out, '\n');
}

int gd_ms_writer_row(struct gd_ms_writer *w, const struct gd_ms_item *item, enum gd_dtype dtype,
                     const struct gd_shape *shape, const struct gd_stats *stats,
                     const struct gd_tensor *tensor, struct gd_err *err)
{
    struct graph_dir *dir = NULL;
    struct gd_folder *folder = NULL;
    char type[256], name[MAX_NAME];
    size_t bytes = 0;
    int rc = dir_of(w, item->node->subgraph, &dir, err);

    rc = rc != GD_OK ? rc : step_folder(w, dir, &folder, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (dir->rows.len == 0) {
        put_titles(w, &dir->rows);
    }
    gd_shape_bytes(shape, dtype, &bytes, NULL);
    spell_part(type_of(item->node), "Op", type, sizeof(type));
    spell_part(item->node->own_name, "node", name, sizeof(name));
    gd_buf_printf(&dir->rows, "%s,%s,0,0,%" PRIu64 ",%s,%" PRIu32 ",%zu,%s,\"(", type, name,
                  next_timestamp(w), item->is_input ? "input" : "output", item->slot, bytes,
                  gd_dtype_name(dtype));
    for (int i = 0; i < shape->rank; i++) {
        gd_buf_printf(&dir->rows, "%s%" PRId64, i ? "," : "", shape->dim[i]);
    }
    gd_buf_puts(&dir->rows, ")\"");
    for (int i = 0; i < w->columns; i++) {
        gd_buf_putc(&dir->rows, ',');
        put_figure(&dir->rows, w->column[i], stats, tensor);
    }
    gd_buf_putc(&dir->rows, '\n');
    return dir->rows.failed ? gd_fail_nomem(err) : GD_OK;
}

int gd_ms_writer_stood(struct gd_ms_writer *w, const char *node, struct gd_err *err)
{
    struct gd_buf line = GD_BUF_INIT(MAX_TEXT);

    gd_buf_printf(&line, "%" PRId64 ",", w->step);
    put_line(&line, node);
    int rc = line.failed
                 ? gd_fail_nomem(err)
                 : gd_folder_append(w->metadata, "stood_at.csv", gd_buf_text(&line), line.len, err);
    w->bytes += rc == GD_OK ? line.len : 0;
    gd_buf_deinit(&line);
    return rc;
}

static int end_dir(struct gd_ms_writer *w, uint32_t subgraph, bool whole, struct gd_err *err)
{
    struct graph_dir *dir = &w->dir[subgraph];
    char name[80], line[32];
    int rc = GD_OK;

    if (dir->rows.len > 0) {
        rc = put_file(w, dir->step, "statistic.csv", gd_buf_text(&dir->rows), dir->rows.len, err);
        gd_buf_clear(&dir->rows);
    }
    if (rc == GD_OK && whole && dir->step) {
        snprintf(name, sizeof(name), "ms_global_execution_order_graph_%" PRIu32 ".csv", subgraph);
        int len = snprintf(line, sizeof(line), "%" PRId64 "\n", w->step);
        rc = gd_folder_append(w->order, name, line, (size_t)len, err);
        w->bytes += rc == GD_OK ? (uint64_t)len : 0;
    }
    gd_folder_close(dir->step);
    dir->step = NULL;
    dir->constants_done = dir->constants_done || (whole && dir->constants);
    return rc;
}

int gd_ms_writer_end(struct gd_ms_writer *w, bool whole, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; i < w->dirs; i++) {
        int one = end_dir(w, i, whole && rc == GD_OK, rc == GD_OK ? err : NULL);
        rc = rc != GD_OK ? rc : one;
    }
    return rc;
}
