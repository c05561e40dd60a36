// SPDX-License-Identifier: GPL-3.0-or-later
/* statistic.csv of Ascend's transformer library (ATB): one node per operator, one step per
 * execution. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"
#include "dump/msprobe/msprobe_table.h"

struct reading {
    struct api_load *load;
    struct table table;
    const char *folder; /* directory of the table */
    char device[64]; /* device and process of the first row; others become a prefix of the name */
};

/* The path in the table is from the machine that wrote it: use its longest suffix that exists below
 * the table. */
static int find_values(const struct reading *in, const char *path, struct gd_source **ret,
                       struct gd_err *err)
{
    if (!path || !path[0] || strcmp(path, "N/A") == 0 || strstr(path, "..")) {
        return GD_OK;
    }
    for (const char *at = path; at; at = strchr(at, '/')) {
        const char *base = strrchr(at + (*at == '/'), '/');
        char folder[PATH_MAX];
        int rc;

        at += *at == '/';
        base = base ? base + 1 : at;
        snprintf(folder, sizeof(folder), "%.3000s%s%.*s", in->folder, base > at ? "/" : "",
                 base > at && base - at < 1000 ? (int)(base - at) - 1 : 0, at);
        rc = api_source(folder, base, ret, NULL);
        if (rc != GD_ENOTFOUND) {
            return rc == GD_ENOMEM ? gd_fail(err, rc, "out of memory") : GD_OK;
        }
    }
    return GD_OK;
}

static const char *cell_text(const struct reading *in, const char *column)
{
    const char *text = table_cell(&in->table, column);

    return text ? text : "";
}

static int call_of(struct reading *in, struct api_call **ret, struct gd_err *err)
{
    const char *device = cell_text(in, "Device and PID"), *type = cell_text(in, "Op Type");
    char name[API_MAX_NAME];
    struct api_call *call;
    int rc;

    if (!in->device[0]) {
        snprintf(in->device, sizeof(in->device), "%.60s", device);
    }
    snprintf(name, sizeof(name), "%.60s%s%.3000s",
             strncmp(device, in->device, 60) == 0 ? "" : device,
             strncmp(device, in->device, 60) == 0 ? "" : "/", cell_text(in, "Op Name"));
    rc = api_call_get(in->load, name, &call, err);
    if (rc != GD_OK) {
        return rc;
    }
    *ret = call;
    if (!call->type && type[0]) {
        call->type = api_keep(in->load, type);
        call->kind = GD_NODE_ACTIVATION;
        rc = call->type ? GD_OK : gd_fail_nomem(err);
    }
    if (rc == GD_OK && cell_text(in, "Op Id")[0]) {
        rc = api_attr_add(in->load, call, "id", cell_text(in, "Op Id"), err);
    }
    return rc;
}

/* "2,3", "[2, 3]" */
static bool shape_of(const char *text, struct gd_shape *ret)
{
    char brackets[600];

    if (strpbrk(text, "[(")) {
        return table_shape(text, ret);
    }
    snprintf(brackets, sizeof(brackets), "[%.500s]", text);
    return text[0] && table_shape(brackets, ret);
}

static int take_row(void *ctx, struct gd_err *err)
{
    struct reading *in = ctx;
    struct api_value value = {.label = cell_text(in, "Index")};
    struct api_numbers of = {.max = 0};
    struct gd_shape shape;
    struct gd_stats stats;
    struct api_call *call;
    int rc;

    if (!cell_text(in, "Op Name")[0] ||
        !table_whole(cell_text(in, "Execution Count"), &value.step)) {
        return gd_fail(err, GD_EPROTO, "the row has no name or no execution count");
    }
    rc = call_of(in, &call, err);
    rc = rc != GD_OK ? rc : gd_catalog_add_step(in->load->catalog, value.step, err);
    if (rc != GD_OK) {
        return rc;
    }
    value.is_input = strncasecmp(cell_text(in, "Input/Output"), "in", 2) == 0;
    value.dtype = gd_stored_dtype(gd_stored_from_name(cell_text(in, "Dtype")));
    value.shape = shape_of(cell_text(in, "Shape"), &shape) ? &shape : NULL;
    table_numbers(&in->table, "Max", "Min", "Mean", "Norm", &of);
    value.stats = api_stats_of(&of, value.shape, false, &stats) ? &stats : NULL;
    rc = find_values(in, cell_text(in, "Tensor Path"), &value.source, err);
    return rc != GD_OK ? rc : api_value_add(in->load, call, &value, err);
}

static bool wants_file(const struct gd_listing *listing, uint32_t entry)
{
    const char *name = gd_base_name(listing->entry[entry].name);
    char start[64];

    if (strcmp(name, "statistic.csv") != 0) {
        return false;
    }
    gd_listing_peek(listing, entry, start, sizeof(start));
    return strncmp(start, "Device and PID,Execution Count,", 31) == 0;
}

static int take_table(struct api_load *load, const char *path, const struct api_where *where,
                      struct gd_err *err)
{
    struct reading in = {.load = load};
    struct gd_peer *peer = gd_catalog_peer(load->catalog);
    char folder[PATH_MAX];
    int rc = table_open(path, &in.table, err);

    (void)where;
    if (rc != GD_OK) {
        return rc;
    }
    gd_folder_of(path, folder, sizeof(folder));
    snprintf(peer->framework, sizeof(peer->framework), "ATB");
    in.folder = folder;
    rc = api_take_rows(in.load, &in.table, path, take_row, &in, err);
    table_close(&in.table);
    return rc;
}

static const struct api_walk_ops ops = {
    .rule = "statistic.csv, whose columns begin with Device and PID",
    .wants = wants_file,
    .take = take_table,
    .steps_inside = true,
};

const struct gd_dump_format gd_atb_table_format = {
    .name = "atb",
    .what = "dump of Ascend's transformer library (ATB)",
    .detail = &ops,
    .find = api_walk_find,
    .read = api_walk_read,
};
