// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory snapshots, and what is reported of them. The input is the file. */
#include "fuzz.h"
#include "fuzz_disk.h"

#include "dump/memory/snapshot.h"

static void check_rows(const struct gd_memory_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(rows[i].name[0] && rows[i].kind < GD_MEMORY_KINDS);
        FUZZ_CHECK(i == 0 || rows[i - 1].bytes >= rows[i].bytes);
    }
}

static void check_report(const struct gd_snapshot *snapshot)
{
    struct gd_memory report;
    int64_t allocated = 0;

    gd_memory_init(&report);
    FUZZ_CHECK(gd_snapshot_report(snapshot, &report) == GD_OK);
    check_rows(report.nodes, report.node_count);
    check_rows(report.peak_nodes, report.peak_node_count);
    check_rows(report.oom_nodes, report.oom_node_count);
    for (size_t i = 0; i < report.device_count; i++) {
        const struct gd_memory_device *device = &report.devices[i];

        FUZZ_CHECK(device->allocated >= 0 && device->unused >= device->split);
        FUZZ_CHECK(device->reserved >= device->allocated + device->unused);
        allocated += device->allocated;
    }
    FUZZ_CHECK(gd_memory_sum(&report).bytes == allocated);
    gd_memory_deinit(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);
    struct gd_err err = {.text = ""};
    struct gd_snapshot *snapshot;

    gd_snapshot_is(data, size);
    if (gd_snapshot_read(disk, NULL, NULL, &snapshot, &err) == GD_OK) {
        check_report(snapshot);
        gd_snapshot_free(snapshot);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_disk_unref(disk);
    return 0;
}
