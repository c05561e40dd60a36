// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of statistics that msprobe collects during training: gradients (grad_probe) and whatever
 * its monitor observes, both releases. One node per tensor, with statistics per step. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"
#include "dump/msprobe/msprobe_table.h"

#define MAX_ALARM ((uint64_t)64 << 20)

struct reading { /* of one table */
    struct api_load *load;
    const struct api_where *where;
    struct table table;
    const char *folder; /* with direction arrays; NULL: none */
    const char *suffix; /* of the nodes' names; "": given in the row */
    int64_t step;       /* of all rows; -1: given in each row */
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum gd_node_kind kind_of(const char *suffix)
{
    if (strncmp(suffix, "grad", 4) == 0 || gd_ends_with(suffix, "_grad") ||
        strcmp(suffix, "backward") == 0) {
        return GD_NODE_GRADIENT;
    }
    if (strncmp(suffix, "param", 5) == 0) {
        return GD_NODE_WEIGHT;
    }
    return strcmp(suffix, "actv") == 0 || strcmp(suffix, "forward") == 0 ? GD_NODE_ACTIVATION
                                                                         : GD_NODE_AUTO;
}

/* "fc1.weight" and "grad" give the node fc1/weight.grad; virtual pipeline stages other than the
 * first become a prefix. */
static int node_of(struct reading *in, const char *name, const char *suffix, struct api_call **ret,
                   struct gd_err *err)
{
    char wire[API_MAX_NAME], tail[256];
    const char *stage = table_cell(&in->table, "vpp_stage"), *dot;
    struct api_call *call;
    int64_t number = 0;
    bool has;
    int rc;

    name += *name == '.'; /* the model itself */
    snprintf(tail, sizeof(tail), "%s%.200s", suffix[0] ? "." : "", suffix);
    has = tail[0] && gd_ends_with(name, tail); /* has it already */
    if (table_whole(stage, &number) && number > 0) {
        snprintf(wire, sizeof(wire), "vpp%lld.%.3000s%s", (long long)number, name, has ? "" : tail);
    } else {
        snprintf(wire, sizeof(wire), "%.3000s%s", name, has ? "" : tail);
    }
    rc = api_call_get(in->load, wire, &call, err);
    if (rc != GD_OK) {
        return rc;
    }
    *ret = call;
    if (!call->parent) {
        size_t len = strlen(wire), cut = strlen(tail);

        wire[len - (cut < len ? cut : 0)] = '\0';
        dot = strrchr(wire, '.');
        call->leaf = len - (dot ? (size_t)(dot + 1 - wire) : 0);
        wire[dot ? dot - wire : 0] = '\0';
        call->parent = api_keep(in->load, wire);
        call->type = call->parent ? api_keep(in->load, suffix[0] ? suffix : "figures") : NULL;
        call->kind = kind_of(suffix);
        rc = call->type ? GD_OK : gd_fail_nomem(err);
    }
    return rc;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static bool is_known(const char *column)
{
    static const char *const known[] = {
        "vpp_stage",  "name", "step", "micro_step", "module_name", "scope",
        "param_name", "id",   "MD5",  "shape",      "dtype",       "max",
        "min",        "mean", "norm", "nans",       "zeros",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], column) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the counts of NaN and zeros if there are columns for them. */
static void take_counts(const struct table *table, const struct gd_shape *shape,
                        struct gd_stats *stats)
{
    const char *zeros = table_cell(table, "zeros");
    double number;

    if (table_number(table_cell(table, "nans"), &number) && number >= 0 && number < 1e18) {
        stats->nan = (uint64_t)number;
        stats->unknown &= ~(unsigned)GD_UNKNOWN_NAN;
        stats->count += stats->unknown & GD_UNKNOWN_COUNT ? stats->nan : 0;
    }
    zeros = zeros ? zeros : table_cell(table, "=0");
    if (shape && table_number(zeros, &number) && number >= 0 && number <= 1) {
        stats->zero = (uint64_t)llround(number * (double)gd_shape_count(shape));
        stats->unknown &= ~(unsigned)GD_UNKNOWN_ZERO;
    }
}

/* False: nothing was collected. "nan" may mean that too; without other evidence it is taken
 * literally. */
static bool take_stats(const struct table *table, const struct gd_shape *shape,
                       struct gd_stats *ret, const char **note)
{
    struct api_numbers of = {.max = 0};
    double nans;

    table_numbers(table, "max", "min", "mean", "norm", &of);
    if ((table_number(table_cell(table, "nans"), &nans) && isnan(nans)) ||
        (table_cell(table, "shape") && strcmp(table_cell(table, "shape"), "nan") == 0)) {
        return false;
    }
    if (!api_stats_of(&of, shape, false, ret)) {
        return false;
    }
    *note = ret->nan || ret->pos_inf || ret->neg_inf
                ? "the table says that there are NaN or infinite elements, but not how many"
                : NULL;
    take_counts(table, shape, ret);
    return true;
}

/* "(-inf, -1]: 0.25, (-1, 0]: 0.5": the distribution of a gradient's elements. */
static void tell_spread(const struct table *table, struct gd_buf *out)
{
    for (size_t i = 0; i < table->columns; i++) {
        const char *cell = table_at(table, i), *name = table->column[i];

        if (cell && (name[0] == '(' || name[0] == '[')) {
            gd_buf_printf(out, "%s%.60s: %.30s", out->len ? ", " : "share of elements in ", name,
                          cell);
        }
    }
}

/* Other statistics (entropy, eigenvalues) become scalars of the step. */
static int take_scalars(struct reading *in, const char *name, int64_t step, struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < in->table.columns; i++) {
        const char *column = in->table.column[i];
        char scalar[512];
        double number;

        if (is_known(column) || strchr("([=", column[0]) ||
            !table_number(table_at(&in->table, i), &number)) {
            continue;
        }
        snprintf(scalar, sizeof(scalar), "%.300s.%.100s", name, column);
        rc = gd_catalog_add_scalar(in->load->catalog, step, scalar, number, err);
    }
    return rc;
}

/* From 0. The second monitor counts from 1; a reduced value belongs to all micro steps. */
static int64_t micro_step(const struct table *table)
{
    const char *scope = table_cell(table, "scope");
    int64_t ret = 0;

    if (!table_whole(table_cell(table, "micro_step"), &ret) || ret >= API_MAX_SLOTS) {
        return 0;
    }
    return !scope ? ret : strcmp(scope, "reduced") == 0 || ret == 0 ? 0 : ret - 1;
}

static int add_value(struct reading *in, struct api_call *call, int64_t step, struct gd_err *err)
{
    const struct table *table = &in->table;
    const char *dtype = table_cell(table, "dtype"), *crc = table_cell(table, "MD5");
    GD_CLEANUP(gd_buf_deinit) struct gd_buf note = GD_BUF_INIT(8192);
    struct api_value value = {.label = "", .step = step};
    struct gd_shape shape;
    struct gd_stats stats;
    char digest[48], label[24];
    int64_t micro = micro_step(table);

    value.shape = table_shape(table_cell(table, "shape"), &shape) ? &shape : NULL;
    value.dtype = dtype ? gd_stored_dtype(gd_stored_from_name(dtype)) : GD_DT_NONE;
    if (micro > 0) {
        snprintf(label, sizeof(label), "%lld", (long long)micro);
        value.label = label;
    }
    if (crc && crc[0]) {
        snprintf(digest, sizeof(digest), "crc32:%.32s", crc);
        value.digest = digest;
    }
    value.stats = take_stats(table, value.shape, &stats, &value.note) ? &stats : NULL;
    tell_spread(table, &note);
    if (note.len && !value.note && !note.failed) {
        value.note = gd_buf_text(&note);
    }
    return value.stats || value.digest ? api_value_add(in->load, call, &value, err) : GD_OK;
}

/* The signs of a gradient, if they were saved: PARAMETER.npy, true where positive. */
static int take_direction(struct reading *in, const char *name, int64_t step, struct gd_err *err)
{
    struct api_value value = {
        .label = "", .step = step, .note = "true where the element is positive"};
    char file[300];
    struct api_call *call;
    int rc;

    snprintf(file, sizeof(file), "%.250s.npy", name);
    rc = api_source(in->folder, file, &value.source, NULL);
    if (rc != GD_OK) {
        return rc == GD_ENOMEM ? gd_fail(err, rc, "out of memory") : GD_OK;
    }
    rc = node_of(in, name, "grad_direction", &call, err);
    if (rc != GD_OK) {
        gd_source_unref(value.source);
        return rc;
    }
    return api_value_add(in->load, call, &value, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The second monitor's "reduced" gradients are the first one's "grad_reduced". */
static const char *suffix_of(const struct reading *in)
{
    const char *scope = table_cell(&in->table, "scope");

    if (in->suffix[0] || !scope) {
        return in->suffix;
    }
    return strcmp(scope, "reduced") == 0     ? "grad_reduced"
           : strcmp(scope, "unreduced") == 0 ? "grad_unreduced"
                                             : scope;
}

static int take_row(void *ctx, struct gd_err *err)
{
    struct reading *in = ctx;
    static const char *const names[] = {"name", "module_name", "param_name"};
    const char *name = NULL;
    int64_t step = in->step;
    struct api_call *call;
    int rc;

    for (size_t i = 0; !name && i < sizeof(names) / sizeof(names[0]); i++) {
        name = table_cell(&in->table, names[i]);
    }
    if (!name || !name[name ? strspn(name, ".") : 0]) {
        return gd_fail(err, GD_EPROTO, "the row has no name");
    }
    if (step < 0 && !table_whole(table_cell(&in->table, "step"), &step)) {
        return gd_fail(err, GD_EPROTO, "the row has no step");
    }
    rc = gd_catalog_add_step(in->load->catalog, step, err);
    rc = rc != GD_OK ? rc : node_of(in, name, suffix_of(in), &call, err);
    rc = rc != GD_OK ? rc : add_value(in, call, step, err);
    rc = rc != GD_OK ? rc : take_scalars(in, name, step, err);
    return rc != GD_OK || !in->folder ? rc : take_direction(in, name, step, err);
}

/* Reads the rows of the table, and closes it. */
static int take_table(struct reading *in, const char *path, struct gd_err *err)
{
    struct gd_peer *peer = gd_catalog_peer(in->load->catalog);
    int rc;

    if (!peer->framework[0]) {
        snprintf(peer->framework, sizeof(peer->framework), "msprobe");
    }
    rc = api_take_rows(in->load, &in->table, path, take_row, in, err);
    table_close(&in->table);
    return rc;
}

/* ---- grad_probe ------------------------------------------------------------------------------ */

/* "grad_summary_{step}.csv" */
static bool grad_step(const char *name, int64_t *ret)
{
    char digits[24];
    size_t len = strlen(name);

    if (strncmp(name, "grad_summary_", 13) != 0 || !gd_ends_with(name, ".csv") || len - 17 > 15 ||
        len <= 17) {
        return false;
    }
    snprintf(digits, sizeof(digits), "%.*s", (int)len - 17, name + 13);
    return table_whole(digits, ret);
}

static bool wants_grad(const struct gd_listing *listing, uint32_t entry)
{
    int64_t step;

    return grad_step(gd_base_name(listing->entry[entry].name), &step);
}

static int take_grad(struct api_load *load, const char *path, const struct api_where *where,
                     struct gd_err *err)
{
    struct reading in = {.load = load, .where = where, .suffix = "grad"};
    const char *base = gd_base_name(path);
    char folder[PATH_MAX];
    int rc;

    if (!grad_step(base, &in.step)) {
        return gd_fail(err, GD_EPROTO, "its name has no step");
    }
    snprintf(folder, sizeof(folder), "%.*sstep%lld", (int)(base - path), path, (long long)in.step);
    in.folder = folder;
    rc = table_open(path, &in.table, err);
    return rc != GD_OK ? rc : take_table(&in, path, err);
}

static const struct api_walk_ops grad_ops = {
    .rule = "grad_summary_STEP.csv",
    .wants = wants_grad,
    .take = take_grad,
    .steps_inside = true,
};

const struct gd_dump_format gd_grad_probe_format = {
    .name = "grad-probe",
    .what = "statistics of gradients from msprobe's grad_probe",
    .detail = &grad_ops,
    .find = api_walk_find,
    .read = api_walk_read,
};

/* ---- monitor --------------------------------------------------------------------------------- */

/* "PREFIX_A-B.csv", "SLUG_stepA-B.csv": the length of PREFIX; 0: another name. */
static size_t monitor_prefix(const char *name)
{
    size_t at = strlen(name);

    if (at < 8 || !gd_ends_with(name, ".csv")) {
        return 0;
    }
    at -= 4;
    for (int part = 0; part < 2; part++) {
        size_t end = at;

        while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') {
            at--;
        }
        if (at == end || at == 0 || (part == 0 && name[--at] != '-')) {
            return 0;
        }
    }
    at -= at > 4 && strncmp(name + at - 4, "step", 4) == 0 ? 4 : 0;
    return at > 1 && name[at - 1] == '_' ? at - 1 : 0;
}

static bool wants_monitor(const struct gd_listing *listing, uint32_t entry)
{
    char start[64];

    if (!monitor_prefix(gd_base_name(listing->entry[entry].name))) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    return gd_starts_with(start, "vpp_stage,name,step") || gd_starts_with(start, "vpp_stage,step,");
}

/* The table name that goes with an alarm's tag. */
static const char *alarm_suffix(const char *tag)
{
    if (strcmp(tag, "post_grad") == 0) {
        return "grad_reduced";
    }
    return strcmp(tag, "acc_grad") == 0 || strcmp(tag, "pre_grad") == 0 ? "grad_unreduced" : tag;
}

/* {tag: {step, tag_name, message}}, where tag_name is "VPP:NAME[:MICRO]/rankR/SUFFIX". */
static int take_alarm(void *ctx, const char *key, const cJSON *value, struct gd_err *err)
{
    struct reading *in = ctx;
    const char *tag = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "tag_name"));
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "message"));
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(value, "step");
    const char *begin = tag ? strchr(tag, ':') : NULL, *last = tag ? strrchr(tag, '/') : NULL;
    struct api_call *call = NULL;
    char wire[API_MAX_NAME];
    int64_t number;

    if (!cJSON_IsNumber(step) || !table_whole(step->valuestring, &number)) {
        return GD_OK;
    }
    begin = begin ? begin + 1 + (begin[1] == '.') : tag;
    if (begin && last > begin) {
        snprintf(wire, sizeof(wire), "%.*s.%.200s", (int)(strcspn(begin, ":/") & 0xfff), begin,
                 alarm_suffix(last + 1));
        call = api_call_find(in->load, wire);
    }
    return call ? api_event_add(in->load, call, number, "anomaly", text ? text : key, err)
                : gd_catalog_add_event(in->load->catalog, number, GD_NO_NODE, "anomaly",
                                       text ? text : key, err);
}

/* anomaly_detected/rankR/anomaly.json next to the run's directory; reported once, after the last
 * table, when all nodes exist. */
static int finish_monitor(struct api_load *load, const struct api_where *where, struct gd_err *err)
{
    struct reading in = {.load = load, .where = where};
    int len = (int)(gd_base_name(where->root) - where->root);
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*sanomaly_detected/rank%d/anomaly.json", len, where->root,
             where->rank);
    return api_take_members(load, path, MAX_ALARM, take_alarm, &in, err);
}

static int take_monitor(struct api_load *load, const char *path, const struct api_where *where,
                        struct gd_err *err)
{
    struct reading in = {.load = load, .where = where, .step = -1};
    const char *base = gd_base_name(path);
    char suffix[256];
    int rc = table_open(path, &in.table, err);

    if (rc != GD_OK) {
        return rc;
    }
    snprintf(suffix, sizeof(suffix), "%.*s", (int)monitor_prefix(base), base);
    in.suffix = table_cell(&in.table, "module_name") ? "" : suffix;
    return take_table(&in, path, err);
}

static const struct api_walk_ops monitor_ops = {
    .rule = "PREFIX_A-B.csv, whose columns begin with vpp_stage",
    .wants = wants_monitor,
    .take = take_monitor,
    .finish = finish_monitor,
    .steps_inside = true,
};

const struct gd_dump_format gd_monitor_format = {
    .name = "monitor",
    .what = "statistics of a training from msprobe's monitor",
    .detail = &monitor_ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
