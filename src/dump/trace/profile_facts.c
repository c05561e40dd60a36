// SPDX-License-Identifier: GPL-3.0-or-later
/* What the profiler's JSON files and the table of the data pipeline say. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"

#define MAX_BYTES ((size_t)64 << 20)

int profile_read_tree(const struct profile *profile, uint32_t entry, cJSON **ret,
                      struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_json_options options = {.max_bytes = MAX_BYTES};
    char path[PATH_MAX];
    int rc;

    *ret = NULL;
    if (entry == GD_NO_ENTRY) {
        return GD_OK;
    }
    rc = gd_listing_path(profile->listing, entry, path, sizeof(path), err);
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, &disk, err);
    return rc != GD_OK ? rc : gd_json_read(disk, &options, ret, err);
}

static int read_tree(const struct profile *profile, const char *name, cJSON **ret,
                     struct gd_err *err)
{
    return profile_read_tree(profile, gd_listing_child(profile->listing, profile->entry, name), ret,
                             err);
}

static double number_in(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

/* ---- communication.json: step, kind, operator, "Communication Time Info" --------------------- */

struct collectives {
    uint64_t count;
    double elapsed, waited; /* milliseconds */
};

static int take_collective(struct profile *profile, const cJSON *op, struct collectives *sums,
                           struct gd_err *err)
{
    const cJSON *info = cJSON_GetObjectItemCaseSensitive(op, "Communication Time Info");
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(info, "Start Timestamp(us)");
    struct trace_span span = {.op = TRACE_NONE, .kind = TRACE_COMMUNICATION};
    double elapsed = number_in(info, "Elapse Time(ms)"), waited = number_in(info, "Wait Time(ms)");
    const char *text = cJSON_IsNumber(at) ? at->valuestring : cJSON_GetStringValue(at);
    int rc;

    if (!op->string || strcmp(op->string, "Total Op Info") == 0 ||
        !(elapsed >= 0 && elapsed < 1e12)) {
        return GD_OK;
    }
    sums->count++;
    sums->elapsed += elapsed;
    sums->waited += waited > 0 ? waited : 0;
    span.duration = (int64_t)(elapsed * 1e6);
    if (profile->has_collectives || !text || !trace_time_parse(text, &span.start) ||
        !trace_is_possible(span.start, span.duration)) {
        return GD_OK;
    }
    rc = trace_lane_of(&profile->run.spans, "communication.json", "", &span.lane, err);
    rc = rc != GD_OK ? rc
                     : trace_text(&profile->run.spans, op->string,
                                  strnlen(op->string, TRACE_MAX_NAME), &span.name, err);
    return rc != GD_OK ? rc : trace_add_span(&profile->run.spans, &span, err);
}

int profile_read_communication(struct profile *profile, struct gd_err *err)
{
    struct collectives sums = {.count = 0};
    const cJSON *step, *kind, *op;
    cJSON *tree;
    char text[128];
    int rc = read_tree(profile, "communication.json", &tree, err);

    if (rc != GD_OK || !tree) {
        return rc;
    }
    cJSON_ArrayForEach(step, tree)
    {
        cJSON_ArrayForEach(kind, step)
        {
            cJSON_ArrayForEach(op, kind)
            {
                rc = rc != GD_OK ? rc : take_collective(profile, op, &sums, err);
            }
        }
    }
    cJSON_Delete(tree);
    if (rc != GD_OK || sums.count == 0) {
        return rc;
    }
    snprintf(text, sizeof(text), "%llu collectives, %.6g ms, of which %.6g ms waiting for others",
             (unsigned long long)sums.count, sums.elapsed, sums.waited);
    return gd_catalog_add_fact(profile->catalog, "communication.json", text, err);
}

/* ---- communication_matrix.json: step, kind, operator, "0-1" ---------------------------------- */

struct link {
    const char *name, *op;
    double bandwidth; /* GB/s */
};

static void compare_links(const cJSON *op, struct link *slowest)
{
    const cJSON *link;

    cJSON_ArrayForEach(link, op)
    {
        double bandwidth = number_in(link, "Bandwidth(GB/s)");

        if (bandwidth > 0 && number_in(link, "Transit Size(MB)") > 0 &&
            (!slowest->name || bandwidth < slowest->bandwidth)) {
            *slowest = (struct link){link->string, op->string, bandwidth};
        }
    }
}

static int add_links(struct profile *profile, struct gd_err *err)
{
    struct link slowest = {.name = NULL};
    const cJSON *step, *kind, *op;
    cJSON *tree;
    char text[300];
    int rc = read_tree(profile, "communication_matrix.json", &tree, err);

    if (rc != GD_OK || !tree) {
        return rc;
    }
    cJSON_ArrayForEach(step, tree)
    {
        cJSON_ArrayForEach(kind, step)
        {
            cJSON_ArrayForEach(op, kind)
            {
                compare_links(op, &slowest);
            }
        }
    }
    if (slowest.name && slowest.op) {
        snprintf(text, sizeof(text), "%.40s, %.4g GB/s (%.200s)", slowest.name, slowest.bandwidth,
                 slowest.op);
        rc = gd_catalog_add_fact(profile->catalog, "slowest link", text, err);
    }
    cJSON_Delete(tree);
    return rc;
}

/* ---- the data pipeline ----------------------------------------------------------------------- */

static int take_dataset(struct profile *profile, const struct profile_row *row, void *ctx,
                        struct gd_err *err)
{
    char name[300], text[200];

    (void)ctx;
    if (!*profile_cell(row, "Operation")) {
        return GD_OK;
    }
    snprintf(name, sizeof(name), "dataset %.100s, %.100s", profile_cell(row, "Operation"),
             profile_cell(row, "Stage"));
    snprintf(text, sizeof(text), "%.40s times, %.40s us each", profile_cell(row, "Occurrences"),
             profile_cell(row, "Avg. time(us)"));
    return gd_catalog_add_fact(profile->catalog, name, text, err);
}

/* Texts, or lists of them, that warn of a bottleneck or say what to do. */
static int add_texts(struct profile *profile, const cJSON *tree, const char *name,
                     struct gd_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name), *each;
    int rc = GD_OK;

    if (cJSON_IsString(item) && *item->valuestring) {
        return gd_catalog_add_fact(profile->catalog, name, item->valuestring, err);
    }
    cJSON_ArrayForEach(each, item)
    {
        if (rc == GD_OK && cJSON_IsString(each) && *each->valuestring) {
            rc = gd_catalog_add_fact(profile->catalog, name, each->valuestring, err);
        }
    }
    return rc;
}

static int add_pipeline(struct profile *profile, struct gd_err *err)
{
    int64_t rank =
        profile_number_of(profile->listing, profile->entry, "minddata_pipeline_summary_", ".json");
    char file[64];
    cJSON *tree;
    int rc;

    if (rank < 0) {
        return GD_OK;
    }
    snprintf(file, sizeof(file), "minddata_pipeline_summary_%lld.json", (long long)rank);
    rc = read_tree(profile, file, &tree, err);
    if (rc != GD_OK || !tree) {
        return rc;
    }
    rc = add_texts(profile, tree, "bottleneck_warning", err);
    rc = rc != GD_OK ? rc : add_texts(profile, tree, "bottleneck_suggestion", err);
    cJSON_Delete(tree);
    return rc;
}

int profile_add_facts(struct profile *profile, struct gd_err *err)
{
    int rc = profile_each_row(profile, profile->entry, "dataset.csv", take_dataset, NULL, err);

    rc = rc != GD_OK ? rc : add_pipeline(profile, err);
    return rc != GD_OK ? rc : add_links(profile, err);
}
