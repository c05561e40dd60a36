// SPDX-License-Identifier: GPL-3.0-or-later
/* The tensor file formats, and opening a file with the one that claims it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/format.h"
#include "dump/io/file_name.h"

/* In detection order. */
static const struct gd_archive_format *const formats[] = {
    &gd_npy_format,     &gd_torch_format,        &gd_npz_format,       &gd_safetensors_format,
    &gd_sharded_format, &gd_torch_legacy_format, &gd_torch_tar_format, &gd_ms_ckpt_format,
    &gd_atb_format,     &gd_torch_dcp_format,    &gd_pickle_format,
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const struct gd_archive_format *find_format(const char *name, const unsigned char *start,
                                                   size_t size, struct gd_disk *disk)
{
    for (size_t i = 0; i < FORMATS; i++) {
        const struct gd_archive_format *format = formats[i];

        if (name ? strcmp(format->name, name) == 0 : format->is(start, size, disk)) {
            return format;
        }
    }
    return NULL;
}

bool gd_is_profile_rest(const char *name)
{
    static const char *const tables[][2] = {{"cpu_op_detail_info_", ".csv"},
                                            {"cpu_op_type_info_", ".csv"},
                                            {"gpu_op_detail_info_", ".csv"},
                                            {"gpu_op_type_info_", ".csv"},
                                            {"gpu_activity_data_", ".csv"},
                                            {"pynative_op_intermediate_", ".csv"},
                                            {"hccl_raw_", ".csv"},
                                            {"flops_scope_", ".json"},
                                            {"memory_usage_details_", ".json"}};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (gd_starts_with(name, tables[i][0]) && gd_ends_with(name, tables[i][1])) {
            return true;
        }
    }
    return false;
}

bool gd_is_profile(const char *name, bool is_directory)
{
    static const char *const ends[] = {".nsys-rep", ".qdrep", ".ncu-rep"};

    if (is_directory) {
        return gd_ends_with(name, "_ascend_ms") || gd_ends_with(name, "_ascend_pt") ||
               strcmp(name, "ASCEND_PROFILER_OUTPUT") == 0 || gd_starts_with(name, "PROF_");
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (gd_ends_with(name, ends[i])) {
            return true;
        }
    }
    return gd_is_profile_rest(name) ||
           (gd_starts_with(name, "profiler_info") && gd_ends_with(name, ".json"));
}

int gd_fail_profile(const char *path, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO,
                   "%.300s is profiler output without the tables or the trace that gradb reads "
                   "(ASCEND_PROFILER_OUTPUT, *.trace.json): let the profiler analyse or export it",
                   path);
}

/* What torch.profiler's export_memory_timeline draws, and the flame graphs of _memory_viz. */
static bool is_picture(struct gd_disk *disk)
{
    char start[513] = "";
    size_t size = gd_disk_size(disk) < 512 ? (size_t)gd_disk_size(disk) : 512;

    if (gd_disk_read(disk, 0, start, size, NULL) != GD_OK) {
        return false;
    }
    return strstr(start, "Memory Timeline HTML") ||
           (strstr(start, "<svg") && strcasestr(start, "flame"));
}

static int no_format(struct gd_disk *disk, const char *name, struct gd_err *err)
{
    char all[256];
    size_t used = 0;

    all[0] = '\0';
    for (size_t i = 0; i < FORMATS && used < sizeof(all); i++) {
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                 formats[i]->name);
    }
    if (name) {
        return gd_fail(err, GD_EINVAL, "\"%.60s\" is not a tensor file format: there are %s", name,
                       all);
    }
    if (gd_disk_size(disk) == 0) {
        return gd_fail(err, GD_EPROTO, "%.300s is empty: the writer was interrupted",
                       gd_disk_path(disk));
    }
    if (is_picture(disk)) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s is a picture of memory, without its numbers: open the snapshot "
                       "(.pickle), or the .json that export_memory_timeline writes",
                       gd_disk_path(disk));
    }
    if (gd_is_profile(gd_base_name(gd_disk_path(disk)), false)) {
        return gd_fail_profile(gd_disk_path(disk), err);
    }
    if (gd_ends_with(gd_disk_path(disk), ".csv")) {
        return gd_fail(err, GD_EPROTO, "%.300s is a table: open its dump's directory instead",
                       gd_disk_path(disk));
    }
    return gd_fail(err, GD_EPROTO, "%.300s is not a tensor file of a known format (%s)",
                   gd_disk_path(disk), all);
}

int gd_archive_open_disk(struct gd_disk *disk, const struct gd_archive_options *options,
                         struct gd_archive **ret, struct gd_err *err)
{
    static const struct gd_archive_options none;
    const struct gd_archive_format *format;
    unsigned char start[GD_ARCHIVE_START];
    size_t size = gd_disk_size(disk) < sizeof(start) ? (size_t)gd_disk_size(disk) : sizeof(start);
    struct gd_archive *archive;
    int rc = gd_disk_read(disk, 0, start, size, err);

    if (rc != GD_OK) {
        return rc;
    }
    options = options ? options : &none;
    format = find_format(options->format, start, size, disk);
    if (!format) {
        return no_format(disk, options->format, err);
    }
    rc = gd_archive_create(disk, format->name, &archive, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = format->read(archive, disk, options, err);
    if (rc != GD_OK) {
        gd_archive_close(archive);
        return rc;
    }
    if (gd_disk_is_changed(disk)) {
        gd_archive_add_note(archive, "the file was modified while it was being read");
    }
    *ret = archive;
    return GD_OK;
}

int gd_archive_open(const char *path, const struct gd_archive_options *options,
                    struct gd_archive **ret, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    int rc = gd_disk_open(AT_FDCWD, path, true, &disk, err);

    return rc != GD_OK ? rc : gd_archive_open_disk(disk, options, ret, err);
}
