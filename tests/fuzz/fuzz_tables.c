// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of statistics: of a monitor, of the transformer library, of gradients; reading them gives
 * a consistent dump. */
#include <stdio.h>
#include <unistd.h>

#include "dump/msprobe/api_walk.h"
#include "fuzz_disk.h"

static void read_as(const struct gd_dump_format *format, const char *path)
{
    const struct api_walk_ops *ops = format->detail;
    struct api_where where = {.root = "fuzz"};
    struct gd_err err = {.text = ""};
    struct api_load load = {.dump = NULL};

    FUZZ_CHECK(gd_dump_create((uint64_t)64 << 20, &load.dump, NULL) == GD_OK);
    FUZZ_CHECK(gd_dump_catalog(load.dump, 0, "fuzz", &load.catalog, NULL) == GD_OK);
    FUZZ_CHECK(ops->take(&load, path, &where, &err) == GD_OK || err.text[0]);
    FUZZ_CHECK(api_load_finish(&load, &err) == GD_OK || err.text[0]);
    FUZZ_CHECK(gd_dump_finish(load.dump, &err) == GD_OK || err.text[0]);
    gd_dump_destroy(load.dump);
    api_load_clear(&load);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);

    read_as(&gd_monitor_format, path);
    read_as(&gd_atb_table_format, path);
    close(fd);
    return 0;
}
