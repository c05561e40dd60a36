// SPDX-License-Identifier: GPL-3.0-or-later
/* The format: which directories are output of MindSpore's profiler, and reading one. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"

#define TRACE_FILE "trace_view.json"

/* A directory with the profiler's trace or one of its tables. */
bool gd_is_profile_place(const struct gd_listing *listing, uint32_t entry)
{
    static const char *const files[] = {
        "kernel_details.csv",  "step_trace_time.csv", "op_statistic.csv",  "operator_details.csv",
        "operator_memory.csv", "memory_record.csv",   "api_statistic.csv", TRACE_FILE};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (gd_listing_child(listing, entry, files[i]) != GD_NO_ENTRY) {
            return true;
        }
    }
    return false;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    return gd_findings_add_directories(
        findings, format, listing, gd_is_profile_place,
        "trace_view.json, kernel_details.csv, step_trace_time.csv or another of its tables", err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t rank_of(const struct profile *profile)
{
    uint32_t framework = profile->above == GD_NO_ENTRY
                             ? GD_NO_ENTRY
                             : gd_listing_child(profile->listing, profile->above, "FRAMEWORK");
    int64_t rank = profile_number_of(profile->listing, profile->above, "profiler_info_", ".json");

    rank =
        rank >= 0 ? rank : profile_number_of(profile->listing, framework, "cpu_framework_", ".txt");
    return rank >= 0 ? rank
                     : profile_number_of(profile->listing, profile->entry, "minddata_pipeline_raw_",
                                         ".csv");
}

/* "host_4711_20260102030405_ascend_ms": the worker is what precedes the time. */
static void worker_of(const struct profile *profile, char *out, size_t size)
{
    const char *name =
        profile->above == GD_NO_ENTRY ? "" : profile->listing->entry[profile->above].name;
    size_t len;

    name = gd_base_name(name);
    len = strlen(name);
    if (gd_ends_with(name, "_ascend_ms") || gd_ends_with(name, "_ascend_pt")) {
        len -= strlen("_ascend_ms");
        while (len > 0 && name[len - 1] >= '0' && name[len - 1] <= '9') {
            len--;
        }
        len -= len > 0 && name[len - 1] == '_';
    }
    snprintf(out, size, "%.*s", (int)len, name);
}

static int read_trace(struct profile *profile, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                      uint64_t *cut, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    uint32_t entry = gd_listing_child(profile->listing, profile->entry, TRACE_FILE);
    char path[PATH_MAX];
    int rc;

    if (entry == GD_NO_ENTRY) {
        return GD_OK;
    }
    rc = gd_listing_path(profile->listing, entry, path, sizeof(path), err);
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, &disk, err);
    return rc != GD_OK ? rc : trace_spans_read(&profile->run.spans, disk, go_on, ctx, cut, err);
}

static void note_kinds(struct profile *profile)
{
    for (size_t i = 0; i < profile->run.spans.count; i++) {
        enum trace_kind kind = (enum trace_kind)profile->run.spans.span[i].kind;

        profile->has_kernels |= kind == TRACE_KERNEL;
        profile->has_operators |= kind == TRACE_OP;
        profile->has_runtime |= kind == TRACE_RUNTIME;
        profile->has_collectives |= kind == TRACE_COMMUNICATION;
    }
}

/* The recordings of one process are parts of one training; the memory is that of the first. */
static int add_memory(struct profile *profile, struct gd_err *err)
{
    static const char *const files[] = {"operator_memory.csv", "memory_record.csv",
                                        "npu_module_mem.csv"};
    bool any = false;

    if (!gd_catalog_has_memory(profile->catalog)) {
        return profile_add_memory(profile, err);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        any |= gd_listing_child(profile->listing, profile->entry, files[i]) != GD_NO_ENTRY;
    }
    return any && profile->above != GD_NO_ENTRY
               ? gd_catalog_add_fact(profile->catalog,
                                     gd_base_name(profile->listing->entry[profile->above].name),
                                     "its memory is not shown, but that of an earlier recording: "
                                     "open it alone",
                                     err)
               : GD_OK;
}

static int read_tables(struct profile *profile, struct gd_err *err)
{
    int rc = profile_read_kernels(profile, err);

    note_kinds(profile);
    rc = rc != GD_OK ? rc : profile_read_communication(profile, err);
    rc = rc != GD_OK ? rc : profile_read_shapes(profile, err);
    rc = rc != GD_OK ? rc : profile_read_steps(profile, err);
    trace_spans_sort(&profile->run.spans);
    rc = rc != GD_OK || profile->run.spans.count == 0 ? rc : trace_run_analyse(&profile->run, err);
    rc = rc != GD_OK ? rc : trace_fill(&profile->run, profile->catalog, err);
    rc = rc != GD_OK ? rc : profile_add_totals(profile, err);
    rc = rc != GD_OK ? rc : add_memory(profile, err);
    return rc != GD_OK ? rc : profile_add_facts(profile, err);
}

static int read_format(const struct gd_listing *listing, const struct gd_finding *finding,
                       struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    struct profile profile = {.listing = listing,
                              .entry = finding->root,
                              .above = listing->entry[finding->root].parent,
                              .rank = -1,
                              .run.spans.rank = -1};
    struct gd_peer *peer;
    char worker[256];
    uint64_t cut = 0;
    int64_t rank = rank_of(&profile);
    int rc = read_trace(&profile, go_on, ctx, &cut, err);

    worker_of(&profile, worker, sizeof(worker));
    rc = rc != GD_OK
             ? rc
             : gd_dump_catalog(dump, rank < 0 ? 0 : (int)rank, worker, &profile.catalog, err);
    rc = rc != GD_OK ? rc : read_tables(&profile, err);
    if (rc == GD_OK) {
        peer = gd_catalog_peer(profile.catalog);
        snprintf(peer->framework, sizeof(peer->framework), "%s",
                 profile.above != GD_NO_ENTRY &&
                         gd_ends_with(listing->entry[profile.above].name, "_ascend_pt")
                     ? "PyTorch"
                     : "MindSpore");
    }
    rc = rc != GD_OK || !cut ? rc : trace_note_cut(profile.catalog, TRACE_FILE, cut, err);
    trace_run_deinit(&profile.run);
    return rc;
}

const struct gd_dump_format gd_profile_format = {
    .name = "profile",
    .what = "MindSpore profiler output (ASCEND_PROFILER_OUTPUT)",
    .find = find_places,
    .read = read_format,
};
