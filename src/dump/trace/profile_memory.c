// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Who held the memory, from the tables of MindSpore's and torch_npu's profilers (profile_memory):
 *
 * - operator_memory.csv (2.2: operator_memory_R.csv): one block in a row, with its operator, when
 * it was given and released, and what the allocator had given out then (1 MB = 1024 * 1024 bytes);
 * - memory_record.csv: what each component had at each moment. A MB of MindSpore's is 1000 KB of
 *   1024 bytes (KB_TO_MB = 1000 in ascend_memory_viewer.py), one of torch_npu's 1024;
 * - FRAMEWORK/cpu_ms_memory_record_R.txt: MindSpore's allocator, in bytes;
 * - npu_module_mem.csv: what each component of the driver reserved;
 * - memory_usage_summary_R.json: what the planner says, in GiB, where its .pb is missing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/file_name.h"
#include "dump/trace/profile_tables.h"
#include "engine/hash_index.h"
#include "engine/memory/memory.h"

#define MAX_BYTES  ((double)(INT64_C(1) << 48))
#define COMPONENTS 128 /* CANN has about 80 modules */
#define KIB        1024.0
#define MIB        (1024.0 * 1024)
#define SMALL_MIB  (1000.0 * 1024) /* MindSpore's */
#define MAX_TOTAL  (INT64_C(1) << 61)

/* Bytes of a cell in such units; -1: none. */
static int64_t bytes_of(const char *text, double unit)
{
    char *end;
    double value = strtod(text, &end) * unit;

    return end == text || !(value >= 0 && value < MAX_BYTES) ? -1 : llround(value);
}

static int64_t add_bytes(int64_t sum, int64_t bytes)
{
    return bytes > MAX_TOTAL - sum ? MAX_TOTAL : sum + bytes;
}

/* ---- components over time -------------------------------------------------------------------- */

struct component {
    char name[80];
    struct gd_memory_device is;
};

struct components {
    struct component item[COMPONENTS];
    size_t count;
    const char *allocated, *reserved; /* columns; NULL: not in the table */
    double unit;
    const char *fixed; /* the component, where no column says it */
    bool has_rows;
    uint64_t left_out; /* rows of further components */
};

static const struct gd_memory_device unknown_device = {"", -1, -1, -1, -1, -1, -1,
                                                       -1, -1, -1, -1, -1, -1};

static struct component *component_of(struct components *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->item[i].name, name) == 0) {
            return &all->item[i];
        }
    }
    if (all->count == COMPONENTS) {
        return NULL;
    }
    struct component *one = &all->item[all->count++];
    *one = (struct component){.is = unknown_device};
    snprintf(one->name, sizeof(one->name), "%s", name);
    return one;
}

static int take_record(struct profile *profile, const struct profile_row *row, void *ctx,
                       struct gd_err *err)
{
    struct components *all = ctx;
    const char *device = profile_cell(row, "Device Type");
    const char *what = all->fixed ? all->fixed : profile_cell(row, "Component");
    int64_t allocated =
        all->allocated ? bytes_of(profile_cell(row, all->allocated), all->unit) : -1;
    int64_t reserved = bytes_of(profile_cell(row, all->reserved), all->unit);
    struct component *one;
    char name[80];

    (void)profile;
    (void)err;
    snprintf(name, sizeof(name), "%.30s%s%.40s", device, *device && *what ? ", " : "", what);
    if (!*name || (allocated < 0 && reserved < 0)) {
        return GD_OK;
    }
    all->has_rows = true;
    one = component_of(all, name);
    if (!one) {
        all->left_out++;
        return GD_OK;
    }
    /* of the whole process ("APP") only what is reserved is known, and 0 is written for the rest */
    if (strcmp(what, "APP") != 0) {
        one->is.allocated = allocated;
        one->is.peak = allocated > one->is.peak ? allocated : one->is.peak;
    }
    one->is.reserved = reserved;
    one->is.peak_reserved = reserved > one->is.peak_reserved ? reserved : one->is.peak_reserved;
    return GD_OK;
}

static int note_left_out(struct gd_memory *report, const struct components *all, const char *file)
{
    char text[160];

    snprintf(text, sizeof(text), "%llu rows of components after the first %d (%s)",
             (unsigned long long)all->left_out, COMPONENTS, file);
    return all->left_out > 0 ? gd_memory_add_note(report, text) : GD_OK;
}

static int add_components(struct profile *profile, struct components *all, struct gd_err *err)
{
    struct gd_memory *report;
    int rc = all->count > 0 ? gd_catalog_memory(profile->catalog, &report, err) : GD_OK;

    for (size_t i = 0; rc == GD_OK && i < all->count; i++) {
        all->item[i].is.name = all->item[i].name;
        rc = gd_memory_add_device(report, &all->item[i].is) == GD_OK ? GD_OK : gd_fail_nomem(err);
    }
    return rc != GD_OK || all->count == 0 ||
                   note_left_out(report, all, "memory_record.csv") == GD_OK
               ? rc
               : gd_fail_nomem(err);
}

static bool is_of_torch(const struct profile *profile)
{
    return profile->above != GD_NO_ENTRY &&
           gd_ends_with(profile->listing->entry[profile->above].name, "_ascend_pt");
}

static int read_records(struct profile *profile, bool *found, struct gd_err *err)
{
    struct components all = {.allocated = "Total Allocated(MB)",
                             .reserved = "Total Reserved(MB)",
                             .unit = is_of_torch(profile) ? MIB : SMALL_MIB};
    uint32_t folder = profile->above == GD_NO_ENTRY
                          ? GD_NO_ENTRY
                          : gd_listing_child(profile->listing, profile->above, "FRAMEWORK");
    int64_t rank = profile_number_of(profile->listing, folder, "cpu_ms_memory_record_", ".txt");
    char name[64];
    int rc = profile_each_row(profile, profile->entry, "memory_record.csv", take_record, &all, err);

    if (rc == GD_OK && !all.has_rows && rank >= 0) {
        snprintf(name, sizeof(name), "cpu_ms_memory_record_%lld.txt", (long long)rank);
        all.allocated = "Total Allocated(Byte)";
        all.reserved = "Total Reserved(Byte)";
        all.unit = 1;
        all.fixed = "MindSpore's allocator";
        rc = profile_each_row(profile, folder, name, take_record, &all, err);
    }
    *found |= all.has_rows;
    return rc != GD_OK ? rc : add_components(profile, &all, err);
}

/* ---- components of the driver ---------------------------------------------------------------- */

static int read_modules(struct profile *profile, bool *found, struct gd_err *err)
{
    struct components all = {.reserved = "Total Reserved(KB)", .unit = KIB};
    struct gd_memory *report;
    int rc =
        profile_each_row(profile, profile->entry, "npu_module_mem.csv", take_record, &all, err);

    *found |= all.has_rows;
    rc = rc != GD_OK || all.count == 0 ? rc : gd_catalog_memory(profile->catalog, &report, err);
    if (rc != GD_OK || all.count == 0) {
        return rc;
    }
    for (size_t i = 0; rc == GD_OK && i < all.count; i++) {
        rc = gd_memory_add_module(report, &(struct gd_memory_row){
                                              .name = all.item[i].name,
                                              .where = "",
                                              .detail = "the most that it reserved",
                                              .kind = GD_MEMORY_OTHER,
                                              .bytes = all.item[i].is.peak_reserved,
                                              .count = -1,
                                          });
    }
    rc = rc != GD_OK ? rc : note_left_out(report, &all, "npu_module_mem.csv");
    return rc == GD_OK ? GD_OK : gd_fail_nomem(err);
}

/* ---- operators ------------------------------------------------------------------------------- */

struct holder { /* an operator */
    char *name;
    struct gd_memory_total peak, end;
};

struct blocks {
    const char *file; /* "operator_memory" and what follows it */
    uint64_t rows;
    double first, peak_at; /* microseconds */
    int64_t peak, peak_reserved;
    char peak_name[256], device[40];
    struct holder *holder;
    uint32_t count;
    size_t cap;
    struct gd_hash_index by_name;
    struct gd_memory_total end;
};

struct block {
    int64_t bytes;
    double given, released; /* INFINITY: not while it was recorded */
};

static double moment_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    return end == text || !(value >= 0 && value < 1e18) ? -1 : value;
}

/* False: not a block: torch_npu has rows of what was released, with negative sizes. */
static bool read_block(const struct profile_row *row, struct block *ret)
{
    double lasted = moment_of(profile_cell(row, "Duration(us)"));

    ret->bytes = bytes_of(profile_cell(row, "Size(KB)"), KIB);
    ret->given = moment_of(profile_cell(row, "Allocation Time(us)"));
    ret->released = moment_of(profile_cell(row, "Release Time(us)"));
    if (ret->released < 0) {
        ret->released = lasted >= 0 ? ret->given + lasted : INFINITY;
    }
    return ret->bytes > 0 && ret->given >= 0;
}

static int find_peak(struct profile *profile, const struct profile_row *row, void *ctx,
                     struct gd_err *err)
{
    struct blocks *blocks = ctx;
    struct block block;
    int64_t total = bytes_of(profile_cell(row, "Allocation Total Allocated(MB)"), MIB);
    int64_t reserved = bytes_of(profile_cell(row, "Allocation Total Reserved(MB)"), MIB);

    (void)profile;
    (void)err;
    if (!read_block(row, &block)) {
        return GD_OK;
    }
    blocks->first =
        blocks->rows++ == 0 || block.given < blocks->first ? block.given : blocks->first;
    blocks->peak_reserved = reserved > blocks->peak_reserved ? reserved : blocks->peak_reserved;
    if (total > blocks->peak) {
        const char *device = profile_cell(row, "Device Type");

        blocks->peak = total;
        blocks->peak_at = block.given;
        snprintf(blocks->peak_name, sizeof(blocks->peak_name), "%s", profile_cell(row, "Name"));
        snprintf(blocks->device, sizeof(blocks->device), "%s",
                 *device ? device : profile_cell(row, "Device"));
    }
    return GD_OK;
}

static int holder_of(struct blocks *blocks, const char *name, struct holder **ret,
                     struct gd_err *err)
{
    size_t len = strnlen(name, 1024), at = 0;
    uint64_t hash = gd_hash_index_hash(&blocks->by_name, name, len);
    uint32_t number;
    struct holder *one;

    while (gd_hash_index_next(&blocks->by_name, hash, &at, &number)) {
        *ret = &blocks->holder[number];
        if (strncmp((*ret)->name, name, len) == 0 && (*ret)->name[len] == '\0') {
            return GD_OK;
        }
    }
    if (!gd_grow_list(&blocks->holder, blocks->count, &blocks->cap, sizeof(*one))) {
        return gd_fail_nomem(err);
    }
    one = &blocks->holder[blocks->count];
    *one = (struct holder){.name = strndup(name, len)};
    if (!one->name) {
        return gd_fail_nomem(err);
    }
    *ret = one;
    return gd_hash_index_add(&blocks->by_name, hash, blocks->count++, err);
}

static void add_to(struct gd_memory_total *total, int64_t bytes)
{
    total->bytes = add_bytes(total->bytes, bytes);
    total->count++;
}

static int add_block(struct profile *profile, const struct profile_row *row, void *ctx,
                     struct gd_err *err)
{
    struct blocks *blocks = ctx;
    const char *name = profile_cell(row, "Name");
    struct holder *holder = NULL;
    struct block block;
    bool at_peak, at_end;
    int rc;

    (void)profile;
    if (!read_block(row, &block)) {
        return GD_OK;
    }
    at_peak =
        blocks->peak >= 0 && block.given <= blocks->peak_at && block.released > blocks->peak_at;
    at_end = isinf(block.released);
    if (!at_peak && !at_end) {
        return GD_OK;
    }
    rc = holder_of(blocks, *name ? name : "(no operator recorded)", &holder, err);
    if (rc == GD_OK && at_peak) {
        add_to(&holder->peak, block.bytes);
    }
    if (rc == GD_OK && at_end) {
        add_to(&holder->end, block.bytes);
        add_to(&blocks->end, block.bytes);
    }
    return rc;
}

static int report_holders(const struct blocks *blocks, struct gd_memory *report)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < blocks->count; i++) {
        const struct holder *holder = &blocks->holder[i];
        struct gd_memory_row row = {
            .name = holder->name, .where = "", .detail = "", .kind = GD_MEMORY_OTHER};

        if (holder->peak.count > 0) {
            row.bytes = holder->peak.bytes;
            row.count = holder->peak.count;
            rc = gd_memory_add_peak_node(report, &row);
        }
        if (rc == GD_OK && holder->end.count > 0) {
            row.bytes = holder->end.bytes;
            row.count = holder->end.count;
            rc = gd_memory_add_node(report, &row);
        }
    }
    return rc;
}

static int report_blocks(const struct blocks *blocks, struct gd_memory *report)
{
    struct gd_memory_device device = unknown_device;
    int64_t listed = 0;
    char text[200];
    int rc;

    for (uint32_t i = 0; i < blocks->count; i++) {
        listed = add_bytes(listed, blocks->holder[i].peak.bytes);
    }
    snprintf(text, sizeof(text), "not released when the recording ended (%s, %llu blocks)",
             blocks->file, (unsigned long long)blocks->rows);
    report->source = gd_memory_text(report, text);
    report->unit = "block";
    report->kind[GD_MEMORY_OTHER] = blocks->end;
    if (blocks->peak >= 0) { /* the table has a column of it */
        report->peak.bytes = blocks->peak;
        report->peak.name = gd_memory_text(report, blocks->peak_name);
        snprintf(
            text, sizeof(text),
            "%.6g s after the first block; %.6g MiB of it in recorded blocks, the rest is older",
            (blocks->peak_at - blocks->first) / 1e6, (double)listed / MIB);
        report->peak.note = gd_memory_text(report, text);
    }
    rc = report_holders(blocks, report);
    if (rc == GD_OK && report->device_count == 0 && blocks->peak >= 0) {
        device.name = blocks->device;
        device.peak = blocks->peak;
        device.peak_reserved = blocks->peak_reserved;
        rc = gd_memory_add_device(report, &device);
    }
    return rc;
}

static int read_blocks(struct profile *profile, bool *found, struct gd_err *err)
{
    struct blocks blocks = {.file = "operator_memory", .peak = -1, .peak_reserved = -1};
    struct gd_memory *report;
    char name[64] = "operator_memory.csv";
    int rc;

    if (gd_listing_child(profile->listing, profile->entry, name) == GD_NO_ENTRY) {
        snprintf(name, sizeof(name), "operator_memory_%lld.csv", (long long)profile->rank);
    }
    blocks.file = name;
    rc = profile_each_row(profile, profile->entry, name, find_peak, &blocks, err);
    if (rc == GD_OK && blocks.rows > 0) {
        rc = profile_each_row(profile, profile->entry, name, add_block, &blocks, err);
        rc = rc != GD_OK ? rc : gd_catalog_memory(profile->catalog, &report, err);
        if (rc == GD_OK && report_blocks(&blocks, report) != GD_OK) {
            rc = gd_fail_nomem(err);
        }
        *found = true;
    }
    for (uint32_t i = 0; i < blocks.count; i++) {
        free(blocks.holder[i].name);
    }
    free(blocks.holder);
    gd_hash_index_deinit(&blocks.by_name);
    return rc;
}

/* ---- the planner's summary ------------------------------------------------------------------- */

static int64_t gib_in(const cJSON *tree, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);
    double bytes = cJSON_IsNumber(item) ? item->valuedouble * KIB * MIB : -1;

    return bytes >= 0 && bytes < MAX_BYTES ? llround(bytes) : -1;
}

static int read_summary(struct profile *profile, struct gd_err *err)
{
    struct gd_memory_device device = unknown_device;
    struct gd_memory *report;
    cJSON *tree;
    int rc = profile_read_tree(
        profile, profile_rank_file(profile, "memory_usage_summary_", ".json"), &tree, err);

    if (rc != GD_OK || !tree) {
        return rc;
    }
    device.name = "planned for the device";
    device.peak = gib_in(tree, "peak_mem");
    device.allocated = gib_in(tree, "static_mem");
    device.total = gib_in(tree, "capacity");
    cJSON_Delete(tree);
    rc = gd_catalog_memory(profile->catalog, &report, err);
    return rc != GD_OK || gd_memory_add_device(report, &device) == GD_OK ? rc : gd_fail_nomem(err);
}

int profile_add_memory(struct profile *profile, struct gd_err *err)
{
    bool found = gd_catalog_has_memory(profile->catalog) != NULL;
    int rc = read_records(profile, &found, err);

    rc = rc != GD_OK ? rc : read_modules(profile, &found, err);
    rc = rc != GD_OK ? rc : read_blocks(profile, &found, err);
    return rc != GD_OK || found ? rc : read_summary(profile, err);
}
