// SPDX-License-Identifier: GPL-3.0-or-later
/* What an API dump says about one argument: type, shape, statistics, and the file with its
 * values. */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "dump/files/archive.h"
#include "dump/io/file_name.h"
#include "dump/io/folder.h"
#include "dump/msprobe/api_load.h"

#define MAX_NESTING GD_JSON_MAX_DEPTH

/* ---- files ----------------------------------------------------------------------------------- */

static int open_archive(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct gd_archive_entry *entry;
    struct gd_archive *archive;
    int rc = gd_archive_open(ctx, NULL, &archive, err);

    if (rc != GD_OK) {
        return rc;
    }
    entry = gd_archive_find(archive, "");
    if (!entry && gd_archive_count(archive) == 1) {
        entry = gd_archive_entry(archive, 0);
    }
    if (entry && entry->source) {
        *ret = gd_source_ref(entry->source);
    } else {
        rc = gd_fail(err, GD_EPROTO, "%.300s: %.150s", (const char *)ctx,
                     entry && entry->problem ? entry->problem
                                             : "it does not contain exactly one tensor");
    }
    gd_archive_close(archive);
    return rc;
}

int api_source(const char *folder, const char *name, struct gd_source **ret, struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = open_archive, .free_ctx = free};
    char path[PATH_MAX];
    struct stat st;
    char *copy;
    int len;

    if (!gd_folder_name_is_fine(name)) {
        return gd_fail(err, GD_EPROTO, "\"%.100s\" is not a file name next to it", name);
    }
    len = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return gd_fail(err, GD_ELIMIT, "a path of %d bytes", len);
    }
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return gd_fail(err, GD_ENOTFOUND, "the file with its values is missing");
    }
    copy = strdup(path);
    if (!copy) {
        return gd_fail_nomem(err);
    }
    return gd_source_create_lazy(&ops, copy, ret, err);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static bool number_of(const cJSON *item, double *ret)
{
    const char *text = cJSON_GetStringValue(item);

    if (cJSON_IsNumber(item)) {
        *ret = item->valuedouble;
    } else if (cJSON_IsBool(item)) {
        *ret = cJSON_IsTrue(item) ? 1 : 0;
    } else if (text && text[0]) {
        char *end;

        *ret = strtod(text, &end); /* old releases wrote "inf", "-Infinity", "nan" */
        return *end == '\0' && !isfinite(*ret);
    } else {
        return false;
    }
    return true;
}

/* A statistic that is not finite proves that such elements exist, but not how many. Finite ones
 * prove there are none if NaN would show in them, as it always does in mean and norm. */
static void take_counts(const struct api_numbers *of, bool nan_may_hide, struct gd_stats *stats)
{
    bool told = of->has_max && of->has_min && !isnan(of->max) && !isnan(of->min);
    bool extremes = told && isfinite(of->max) && isfinite(of->min);
    bool sums = (of->has_mean && isfinite(of->mean)) || (of->has_norm && isfinite(of->norm));

    if (sums || (told && !nan_may_hide)) {
        stats->unknown &= ~(unsigned)GD_UNKNOWN_NAN;
    }
    if (sums || extremes) {
        stats->unknown &= ~(unsigned)GD_UNKNOWN_INF;
    }
    gd_stats_prove(of->has_max ? of->max : 0, of->has_min ? of->min : 0,
                   of->has_mean ? of->mean : 0, of->has_norm ? of->norm : 0, stats);
}

bool api_stats_of(const struct api_numbers *numbers, const struct gd_shape *shape,
                  bool nan_may_hide, struct gd_stats *ret)
{
    const struct api_numbers *of = numbers;

    memset(ret, 0, sizeof(*ret));
    ret->min = INFINITY;
    ret->max = -INFINITY;
    ret->unknown = GD_UNKNOWN_ALL;
    if (!of->has_max && !of->has_min && !of->has_mean && !of->has_norm) {
        return false;
    }
    if (shape) {
        int64_t count = gd_shape_count(shape);

        ret->count = count > 0 ? (uint64_t)count : 0;
        ret->unknown &= ~(unsigned)GD_UNKNOWN_COUNT;
    } else {
        /* at least one finite and one other element, or there would be no statistics */
        ret->count = 2;
    }
    take_counts(of, nan_may_hide, ret);
    if (of->has_max && isfinite(of->max)) {
        ret->max = of->max;
        ret->unknown &= ~(unsigned)GD_UNKNOWN_MAX;
    }
    if (of->has_min && isfinite(of->min)) {
        ret->min = of->min;
        ret->unknown &= ~(unsigned)GD_UNKNOWN_MIN;
    }
    if (of->has_mean && isfinite(of->mean)) {
        ret->mean = of->mean;
        ret->unknown &= ~(unsigned)GD_UNKNOWN_MEAN;
    }
    if (of->has_norm && isfinite(of->norm)) {
        ret->sum_sq = of->norm * of->norm;
        ret->unknown &= ~(unsigned)GD_UNKNOWN_SUM_SQ;
    }
    return true;
}

bool api_stats(const struct api_figures *figures, const struct gd_shape *shape, bool nan_may_hide,
               struct gd_stats *ret)
{
    struct api_numbers of = {.max = 0};

    of.has_max = number_of(figures->max, &of.max);
    of.has_min = number_of(figures->min, &of.min);
    of.has_mean = number_of(figures->mean, &of.mean);
    of.has_norm = number_of(figures->norm, &of.norm);
    return api_stats_of(&of, shape, nan_may_hide, ret);
}

const char *api_stats_note(const struct gd_stats *stats)
{
    return stats->nan || stats->pos_inf || stats->neg_inf
               ? "the dump says that there are NaN or infinite elements, but not how many"
               : NULL;
}

bool api_shape(const cJSON *array, struct gd_shape *ret)
{
    const cJSON *item;
    int64_t total = 1;

    *ret = (struct gd_shape){.rank = 0};
    if (!cJSON_IsArray(array)) {
        return false;
    }
    cJSON_ArrayForEach(item, array)
    {
        uint64_t dim;

        if (!cJSON_IsNumber(item) || !gd_json_unsigned(item->valuestring, &dim) ||
            dim > INT64_MAX || ret->rank == GD_MAX_RANK ||
            __builtin_mul_overflow(total, dim ? (int64_t)dim : 1, &total)) {
            return false;
        }
        ret->dim[ret->rank++] = (int64_t)dim;
    }
    return true;
}

/* ---- elements -------------------------------------------------------------------------------- */

static bool is_tensor(const cJSON *element)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "type"));

    return type && !cJSON_GetObjectItemCaseSensitive(element, "value") &&
           (cJSON_GetObjectItemCaseSensitive(element, "dtype") ||
            cJSON_GetObjectItemCaseSensitive(element, "datapath"));
}

static const char *digest_of(const cJSON *element, char *out, size_t size)
{
    const char *md5 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "md5"));

    if (!md5 || !md5[0]) {
        return NULL;
    }
    snprintf(out, size, "%s%.80s",
             strncmp(md5, "0x", 2) == 0 ? "xor:"
             : strlen(md5) == 8         ? "crc32:"
                                        : "md5:",
             md5);
    return out;
}

/* Finds the file with the values; if it is missing, only statistics are used, with a note. */
static int find_values(struct api_load *load, const cJSON *element, const char *folder,
                       struct api_value *value, struct gd_err *err)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "data_name"));
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "datapath"));
    char below[PATH_MAX];
    struct gd_err why;
    int rc;

    if (path && folder && path[0] != '/' && !strstr(path, "..")) {
        const char *base = strrchr(path, '/');

        snprintf(below, sizeof(below), "%s/%.*s", folder, base ? (int)(base - path) : 0, path);
        folder = below;
        name = base ? base + 1 : path;
    }
    if (!name || !folder) {
        return GD_OK;
    }
    rc = api_source(folder, name, &value->source, &why);
    if (rc != GD_OK) {
        return gd_dump_leave_out(load->dump, name, &why, err);
    }
    if (value->dtype == GD_BFLOAT16 && gd_ends_with(name, ".npy")) {
        value->dtype = GD_FLOAT32;
        value->note = "bfloat16 saved as float32";
    }
    return GD_OK;
}

/* Describes the placement of a distributed tensor: "Shard(0), Replicate", or MindSpore's layout. */
static void tell_layout(const cJSON *element, struct gd_buf *out)
{
    const cJSON *placements = cJSON_GetObjectItemCaseSensitive(element, "placements"), *item;
    const cJSON *layout = cJSON_GetObjectItemCaseSensitive(element, "layout");
    const cJSON *told[] = {cJSON_GetObjectItemCaseSensitive(element, "device_mesh"), layout};
    static const char *const names[] = {" on the device mesh ", "layout "};

    cJSON_ArrayForEach(item, placements)
    {
        const cJSON *how = item->child, *value = how ? how->child : NULL;

        gd_buf_printf(out, "%s%s", out->len ? ", " : "placed as ",
                      how && how->string ? how->string : "?");
        if (cJSON_IsNumber(value) || cJSON_IsString(value)) {
            gd_buf_printf(out, "(%s)", value->valuestring);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        char *text = cJSON_IsArray(told[i]) || cJSON_IsObject(told[i])
                         ? cJSON_PrintUnformatted(told[i])
                         : NULL;

        if (text) {
            gd_buf_printf(out, "%s%.300s", out->len || i > 0 ? names[i] : names[i] + 8, text);
        }
        cJSON_free(text);
    }
}

static int add_value(struct api_load *load, struct api_call *call, const cJSON *element,
                     const char *folder, struct api_value *value, struct gd_err *err)
{
    GD_CLEANUP(gd_buf_deinit) struct gd_buf note = GD_BUF_INIT(2048);
    int rc = find_values(load, element, folder, value, err);

    if (rc != GD_OK) {
        return rc;
    }
    tell_layout(element, &note);
    if (note.len && value->note) {
        gd_buf_printf(&note, "; %s", value->note);
    }
    value->note = note.len && !note.failed ? gd_buf_text(&note) : value->note;
    return api_value_add(load, call, value, err);
}

static int take_tensor(struct api_load *load, struct api_call *call, const cJSON *element,
                       const struct api_place *place, const char *label, struct gd_err *err)
{
    const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(element, "dtype"));
    const cJSON *is_nan = cJSON_GetObjectItemCaseSensitive(element, "is_nan");
    const cJSON *needs_grad = cJSON_GetObjectItemCaseSensitive(element, "requires_grad");
    struct api_figures figures = {.max = cJSON_GetObjectItemCaseSensitive(element, "Max"),
                                  .min = cJSON_GetObjectItemCaseSensitive(element, "Min"),
                                  .mean = cJSON_GetObjectItemCaseSensitive(element, "Mean"),
                                  .norm = cJSON_GetObjectItemCaseSensitive(element, "Norm")};
    struct api_value value = {.is_input = place->is_input,
                              .label = label,
                              .step = place->step,
                              .dtype =
                                  dtype ? gd_stored_dtype(gd_stored_from_name(dtype)) : GD_DT_NONE};
    struct gd_stats stats;
    struct gd_shape shape;
    char digest[96];

    if (api_shape(cJSON_GetObjectItemCaseSensitive(element, "shape"), &shape)) {
        value.shape = &shape;
    }
    value.needs_grad = cJSON_IsBool(needs_grad) ? (cJSON_IsTrue(needs_grad) ? 1 : -1) : 0;
    value.digest = digest_of(element, digest, sizeof(digest));
    if (api_stats(&figures, value.shape, place->nan_may_hide, &stats) || cJSON_IsTrue(is_nan)) {
        value.stats = &stats;
    }
    if (cJSON_IsTrue(is_nan) && !stats.nan && !stats.pos_inf && !stats.neg_inf) {
        stats.nan = 1; /* or infinity: its check does not distinguish them */
        stats.unknown |= GD_UNKNOWN_NAN | GD_UNKNOWN_INF;
    }
    value.note = value.stats ? api_stats_note(&stats) : NULL;
    return add_value(load, call, element, place->folder, &value, err);
}

/* Adds an argument that is not a tensor as an attribute of the call: "in1" "0.5",
 * "kwargs.group_ranks" "[0,1]". */
static int take_plain(struct api_load *load, struct api_call *call, const cJSON *element,
                      bool is_input, const char *label, struct gd_err *err)
{
    char name[300], value[300];
    int rc = GD_OK;

    for (const cJSON *item = element->child; item && rc == GD_OK; item = item->next) {
        const char *key = item->string ? item->string : "";
        bool is_value = strcmp(key, "value") == 0;
        bool plain = label[0] >= '0' && label[0] <= '9';
        char *text = strcmp(key, "type") == 0 ? NULL : cJSON_PrintUnformatted(item);

        snprintf(name, sizeof(name), "%s%.200s%s%.60s",
                 !label[0] || plain ? (is_input ? "in" : "out") : "", label, is_value ? "" : ".",
                 is_value ? "" : key);
        snprintf(value, sizeof(value), "%.290s", text ? text : "");
        if (text) {
            rc = api_attr_add(load, call, name, value, err);
        }
        cJSON_free(text);
    }
    return rc;
}

struct nest { /* an object or array being walked */
    const cJSON *next;
    size_t label; /* length of the label prefix for its members */
    uint32_t index;
};

/* Appends a member's label to its parent's. */
static void put_label(struct gd_buf *label, struct nest *nest, bool is_bare)
{
    label->len = nest->label;
    if (label->data) {
        label->data[label->len] = '\0';
    }
    if (is_bare) {
        return;
    }
    if (nest->next->string) {
        gd_buf_printf(label, "%s%s", label->len ? "." : "", nest->next->string);
    } else {
        gd_buf_printf(label, "%s%u", label->len ? "." : "", nest->index);
    }
    nest->index++;
}

int api_elements(struct api_load *load, struct api_call *call, const cJSON *element,
                 const struct api_place *place, struct gd_err *err)
{
    struct nest nest[MAX_NESTING];
    GD_CLEANUP(gd_buf_deinit) struct gd_buf label = GD_BUF_INIT(API_MAX_NAME);
    int depth = 0, rc = GD_OK;

    if (!element) {
        return GD_OK;
    }
    gd_buf_puts(&label, place->label);
    nest[0] = (struct nest){.next = element, .label = label.len};
    while (rc == GD_OK && depth >= 0) {
        struct nest *at = &nest[depth];
        const cJSON *now = at->next;

        if (!now) {
            depth--;
            continue;
        }
        put_label(&label, at, depth == 0);
        at->next = depth == 0 ? NULL : now->next;
        if (label.failed) {
            rc =
                gd_fail(err, GD_ELIMIT, "the argument's name has more than %d bytes", API_MAX_NAME);
        } else if (is_tensor(now)) {
            rc = take_tensor(load, call, now, place, gd_buf_text(&label), err);
        } else if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(now, "type")) &&
                   now->child->next) { /* a number, string, type or process group */
            rc = take_plain(load, call, now, place->is_input, gd_buf_text(&label), err);
        } else if (now->child && depth + 1 < MAX_NESTING) {
            nest[++depth] = (struct nest){.next = now->child, .label = label.len};
        }
    }
    return rc;
}
