// SPDX-License-Identifier: GPL-3.0-or-later
/* Dumps of PyTorch's tools: the first byte tells which file the rest is: msprobe's, ptdbg_ascend's,
 * API info. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/detect.h"
#include "fuzz.h"

static const char *const names[] = {"dump.json", "x.pkl", "forward_info_1.json"};
static const char *const formats[] = {"msprobe", "ptdbg", "api-info"};
static char folder[64];

static void clean(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void check(const struct gd_dump *dump)
{
    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        struct gd_graph *graph = gd_catalog_graph(gd_dump_at(dump, i));

        for (gd_node_id node = 0; node < gd_graph_node_limit(graph); node++) {
            struct gd_node_info info;
            uint32_t count;

            FUZZ_CHECK(gd_graph_node(graph, node, &info) && info.name[0] && info.type);
            FUZZ_CHECK(info.input_slots <= info.output_count);
            gd_graph_stack(graph, node, &count);
            for (uint32_t slot = 0; slot < info.output_count && slot < 64; slot++) {
                const struct gd_catalog_value *value =
                    gd_catalog_find(gd_dump_at(dump, i), node, slot, 0);

                FUZZ_CHECK(!value || value->source || !value->shape ||
                           value->shape->rank <= GD_MAX_RANK);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t which = size ? data[0] % 3 : 0;
    struct gd_detect_options options = {.format = formats[which], .max_graph = (uint64_t)64 << 20};
    struct gd_dump *dump;
    char path[128];
    FILE *file;

    if (size == 0) {
        return 0;
    }
    if (!folder[0]) {
        snprintf(folder, sizeof(folder), "/tmp/gradb-fuzz-XXXXXX");
        FUZZ_CHECK(mkdtemp(folder));
        atexit(clean);
    }
    snprintf(path, sizeof(path), "%s/%s", folder, names[which]);
    file = fopen(path, "w");
    FUZZ_CHECK(file && fwrite(data + 1, 1, size - 1, file) == size - 1 && fclose(file) == 0);
    if (gd_detect(path, &options, &dump, NULL) == GD_OK) {
        check(dump);
        gd_dump_destroy(dump);
    }
    return 0;
}
