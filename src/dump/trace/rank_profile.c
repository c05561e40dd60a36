// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The output of MindSpore's profiler before ASCEND_PROFILER_OUTPUT (1.3 to 2.2): one directory with
 * the files of all ranks, whose number is in their names.
 *
 * Facts of the files are from MindSpore's writers (mindspore/python/mindspore/profiler/parser:
 * integrator, optime_parser, step_trace_parser, flops_parser, ascend_op_generator,
 * ascend_steptrace_generator, ascend_flops_generator, memory_usage_parser) and MindInsight's
 * readers.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"

#define MAX_RANKS 65536

struct file_name {
    const char *before, *after; /* the rank */
};

/* Those that make a directory a place of this format come first. */
static const struct file_name files[] = {{"aicore_intermediate_", "_detail.csv"},
                                         {"aicore_intermediate_", "_type.csv"},
                                         {"step_trace_raw_", "_detail_time.csv"},
                                         {"flops_summary_", ".json"},
                                         {"memory_usage_", ".pb"},
                                         {"output_timeline_data_", ".txt"},
                                         {"aicpu_intermediate_", ".csv"},
                                         {"flops_", ".txt"},
                                         {"memory_usage_summary_", ".json"},
                                         {"operator_memory_", ".csv"},
                                         {"ascend_timeline_display_", ".json"}};
#define FILES  (sizeof(files) / sizeof(files[0]))
#define MARKED 5

static int64_t rank_in_name(const char *name, size_t kinds)
{
    int64_t rank = -1;

    for (size_t i = 0; rank < 0 && i < kinds; i++) {
        rank = profile_number_in(name, files[i].before, files[i].after);
    }
    return rank;
}

bool gd_is_rank_profile_place(const struct gd_listing *listing, uint32_t entry)
{
    for (uint32_t i = listing->entry[entry].first_child; i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        if (rank_in_name(listing->entry[i].name, MARKED) >= 0) {
            return true;
        }
    }
    return false;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_directories(
        findings, format, listing, gd_is_rank_profile_place,
        "aicore_intermediate_R_detail.csv, step_trace_raw_R_detail_time.csv, flops_summary_R.json "
        "or memory_usage_R.pb",
        err);
}

/* ---- one rank -------------------------------------------------------------------------------- */

/* The timeline that the profiler made for display, where the one it was made from is missing. */
static int read_display(struct profile *profile, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                        uint64_t *cut, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    uint32_t entry = profile_rank_file(profile, "ascend_timeline_display_", ".json");
    char path[PATH_MAX];
    int rc;

    if (entry == GD_NO_ENTRY || profile->run.spans.count > 0) {
        return GD_OK;
    }
    rc = gd_listing_path(profile->listing, entry, path, sizeof(path), err);
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, &disk, err);
    rc = rc != GD_OK ? rc : trace_spans_read(&profile->run.spans, disk, go_on, ctx, cut, err);
    profile->has_operators = profile->run.spans.count > 0;
    return rc;
}

static int read_rank(struct profile *profile, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                     uint64_t *cut, struct gd_err *err)
{
    struct trace_run *run = &profile->run;
    uint32_t planned = profile_rank_file(profile, "memory_usage_", ".pb");
    char path[PATH_MAX];
    int rc = profile_read_timeline(profile, err);

    rc = rc != GD_OK ? rc : read_display(profile, go_on, ctx, cut, err);
    rc = rc != GD_OK ? rc : profile_read_step_trace(profile, err);
    trace_spans_sort(&run->spans);
    rc = rc != GD_OK || run->spans.count == 0 ? rc : trace_run_analyse(run, err);
    rc = rc != GD_OK ? rc : trace_fill(run, profile->catalog, err);
    rc = rc != GD_OK ? rc : profile_add_rank_totals(profile, err);
    rc = rc != GD_OK ? rc : profile_add_flops(profile, err);
    if (rc == GD_OK && planned != GD_NO_ENTRY) {
        rc = gd_listing_path(profile->listing, planned, path, sizeof(path), err);
        rc = rc != GD_OK ? rc : profile_add_planned_memory(profile, path, err);
    }
    return rc != GD_OK ? rc : profile_add_memory(profile, err);
}

/* The catalog of a rank; of each recording of that rank its own. */
static int catalog_for(struct gd_dump *dump, int rank, const char *path, struct gd_catalog **ret,
                       struct gd_err *err)
{
    int rc = gd_dump_catalog(dump, rank, "", ret, err);

    return rc == GD_OK && (gd_catalog_has_times(*ret) || gd_catalog_has_memory(*ret))
               ? gd_dump_catalog(dump, rank, path, ret, err)
               : rc;
}

static int add_rank(const struct gd_listing *listing, uint32_t place, int64_t rank,
                    struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                    struct gd_err *err)
{
    struct profile profile = {.listing = listing,
                              .entry = place,
                              .above = listing->entry[place].parent,
                              .rank = rank,
                              .run.spans.rank = -1};
    struct gd_err why = {.text = ""};
    char path[PATH_MAX];
    uint64_t cut = 0;
    int rc = gd_listing_path(listing, place, path, sizeof(path), err);

    rc = rc != GD_OK ? rc : catalog_for(dump, (int)rank, path, &profile.catalog, err);
    if (rc == GD_OK) {
        struct gd_peer *peer = gd_catalog_peer(profile.catalog);

        snprintf(peer->framework, sizeof(peer->framework), "MindSpore");
        gd_catalog_keep(profile.catalog);
        rc = read_rank(&profile, go_on, ctx, &cut, &why);
        rc = rc != GD_OK ? gd_dump_leave_out(dump, path, &why, err) : GD_OK;
    }
    rc = rc != GD_OK || !cut ? rc
                             : trace_note_cut(profile.catalog, "ascend_timeline_display", cut, err);
    trace_run_deinit(&profile.run);
    return rc;
}

static int order_ranks(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_free) int64_t *ranks = NULL;
    size_t count = 0, cap = 0;
    int rc = GD_OK;

    for (uint32_t i = listing->entry[finding->root].first_child; i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        int64_t rank = rank_in_name(listing->entry[i].name, FILES);

        if (rank >= 0 && rank < MAX_RANKS) {
            if (!gd_grow_list(&ranks, count, &cap, sizeof(*ranks))) {
                return gd_fail_nomem(err);
            }
            ranks[count++] = rank;
        }
    }
    if (count > 0) {
        qsort(ranks, count, sizeof(*ranks), order_ranks);
    }
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        if (i == 0 || ranks[i] != ranks[i - 1]) {
            rc = add_rank(listing, finding->root, ranks[i], dump, go_on, ctx, err);
        }
    }
    return rc;
}

const struct gd_dump_format gd_rank_profile_format = {
    .name = "rank-profile",
    .what = "MindSpore profiler output of 1.3 to 2.2 (aicore_intermediate_R_detail.csv, ...)",
    .find = find_places,
    .read = read_format,
};
