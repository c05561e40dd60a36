// SPDX-License-Identifier: GPL-3.0-or-later
/* JSON of PyTorch tools' dumps: members of a file that may be truncated, arguments with any
 * nesting, stacks; and the nodes made of them. */
#include "dump/msprobe/api_load.h"
#include "fuzz.h"

static int take_member(void *ctx, const char *name, const cJSON *value, struct gd_err *err)
{
    struct api_load *load = ctx;
    struct api_place place = {.is_input = name[0] & 1, .label = "", .step = 3};
    struct api_call *call;
    int rc = api_call_get(load, name, &call, err);

    if (rc != GD_OK) {
        return rc;
    }
    call->parent = api_keep(load, name);
    rc = api_frames(load, call, value, err);
    return rc != GD_OK ? rc : api_elements(load, call, value, &place, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_file_text text = {.data = (char *)(uintptr_t)data, .size = size};
    struct api_load load = {.dump = NULL};

    FUZZ_CHECK(gd_dump_create((uint64_t)64 << 20, &load.dump, NULL) == GD_OK);
    FUZZ_CHECK(gd_dump_catalog(load.dump, 0, "fuzz", &load.catalog, NULL) == GD_OK);
    api_members(&text, "fuzz", "", take_member, &load, NULL);
    api_members(&text, "fuzz", "data", take_member, &load, NULL);
    if (api_load_finish(&load, NULL) == GD_OK && load.count > 0) {
        struct gd_graph *graph = gd_catalog_graph(load.catalog);

        FUZZ_CHECK(gd_graph_node_limit(graph) == load.count);
        FUZZ_CHECK(gd_dump_finish(load.dump, NULL) == GD_OK);
        for (gd_node_id node = 0; node < load.count; node++) {
            struct gd_node_info info;

            FUZZ_CHECK(gd_graph_node(graph, node, &info) && info.name[0]);
            FUZZ_CHECK(info.input_slots <= info.output_count);
        }
    }
    gd_dump_destroy(load.dump);
    api_load_clear(&load);
    return 0;
}
