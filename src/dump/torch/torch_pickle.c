// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Python pickles without a container. Their contents are listed; numpy's arrays include their
 * values, tensors do not.
 */
#include <stdio.h>

#include "dump/torch/torch_impl.h"

static bool pickle_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    return size >= 3 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5;
}

static int pickle_read(struct gd_archive *archive, struct gd_disk *disk,
                       const struct gd_archive_options *options, struct gd_err *err)
{
    struct torch_file file = {.archive = archive, .disk = disk, .path = gd_disk_path(disk)};
    struct gd_pickle *pickle;
    char what[400];
    uint64_t end;
    int rc;

    snprintf(what, sizeof(what), "%.300s", file.path);
    rc = gd_pickle_read_disk(disk, 0, gd_disk_size(disk), what, &pickle, &end, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (end < gd_disk_size(disk)) {
        gd_archive_add_note(archive, "%llu bytes after the end of the pickle",
                            (unsigned long long)(gd_disk_size(disk) - end));
    }
    rc = torch_list(&file, pickle, options, err);
    gd_pickle_free(pickle);
    torch_file_deinit(&file);
    return rc;
}

const struct gd_archive_format gd_pickle_format = {
    .name = "pickle",
    .what = "Python pickle (listed, not run)",
    .is = pickle_is,
    .read = pickle_read,
};
