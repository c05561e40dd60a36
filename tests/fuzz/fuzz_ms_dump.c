// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What MindSpore's synchronous dump leaves: the first byte says what the rest is: names of files, a
 * table of statistics, a graph.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/mindspore/ms_graph_file.h"
#include "dump/mindspore/ms_name.h"
#include "dump/mindspore/ms_statistic.h"

static struct gd_disk *disk_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];
    struct gd_disk *disk = NULL;

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    FUZZ_CHECK(gd_disk_open(AT_FDCWD, path, true, &disk, NULL) == GD_OK);
    close(fd);
    return disk;
}

static bool inside(const char *part, size_t len, const char *text)
{
    return part >= text && part + len <= text + strlen(text);
}

static void names(const char *text)
{
    struct gd_ms_name name;
    struct gd_ms_bin_name bin;
    char escaped[64];

    if (gd_ms_name_parse(text, &name)) {
        FUZZ_CHECK(inside(name.type, name.type_len, text) &&
                   inside(name.name, name.name_len, text));
        FUZZ_CHECK(inside(name.format, name.format_len, text) && name.slot <= GD_MS_MAX_SLOT);
    }
    if (gd_ms_bin_name_parse(text, &bin)) {
        FUZZ_CHECK(inside(bin.name, bin.name_len, text) && bin.name_len > 0);
        FUZZ_CHECK(bin.shape.rank > 0 && bin.shape.rank <= GD_MAX_RANK);
    }
    gd_ms_escape(text, escaped, sizeof(escaped));
    FUZZ_CHECK(strlen(escaped) < sizeof(escaped) && !strchr(escaped, '/'));
    FUZZ_CHECK(inside(gd_ms_short_name(text), 0, text));
}

static int take_row(void *ctx, const struct ms_statistic *row, struct gd_err *err)
{
    size_t *rows = ctx;

    (void)err;
    ++*rows;
    FUZZ_CHECK(row->slot <= GD_MS_MAX_SLOT && row->shape.rank <= GD_MAX_RANK);
    FUZZ_CHECK(!(row->stats.unknown & ~(unsigned)GD_UNKNOWN_ALL));
    return GD_OK;
}

static void bad_row(void *ctx, const char *why)
{
    (void)ctx;
    FUZZ_CHECK(why[0]);
}

static void table(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = disk_of(data, size);
    struct gd_err err = {.text = ""};
    size_t rows = 0;

    if (ms_statistic_read(disk, take_row, bad_row, &rows, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
    }
    FUZZ_CHECK(rows <= size);
    gd_disk_unref(disk);
}

static void graph(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = disk_of(data, size);
    struct gd_err err = {.text = ""};
    struct gd_graph *into;
    uint32_t subgraph;

    FUZZ_CHECK(gd_graph_create((size_t)1 << 24, &into, NULL) == GD_OK);
    if (ms_graph_file_read(disk, into, &subgraph, &err) == GD_OK) {
        FUZZ_CHECK(gd_graph_subgraph_name(into, subgraph));
        for (gd_node_id node = 0; node < gd_graph_node_limit(into); node++) {
            gd_graph_set_slots(into, node, 2, 3, NULL);
        }
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_graph_destroy(into);
    gd_disk_unref(disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];

    if (size == 0) {
        return 0;
    }
    switch (data[0] % 3) {
    case 0:
        snprintf(text, sizeof(text), "%.*s", (int)(size - 1), (const char *)data + 1);
        names(text);
        break;
    case 1: table(data + 1, size - 1); break;
    default: graph(data + 1, size - 1); break;
    }
    return 0;
}
