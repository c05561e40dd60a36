// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Files of a dump that are read because of their names, in a directory with what they describe. The
 * first byte of the input says which file the rest is: tables of results and of gradients, files of
 * MindSpore's recorder, lines of ptdbg_ascend, names that were too long, ...
 */
#include "dump/detect.h"
#include "dump/files/archive.h"
#include "fuzz_home.h"

#define RDR "20240501102030"

static const char *const names[] = {
    "compare_result_rank0_1.csv",
    "accuracy_checking_result_1.csv",
    "free_benchmark.csv",
    "grad_summary_1.csv",
    "SESSION.graph_exec_order.0." RDR ".txt",
    "SESSION.assign_stream.0." RDR ".json",
    "DEVICE.task_info_graph.0." RDR ".ir",
    "KERNEL.mem_address_list." RDR ".txt",
    "api.pkl",
    "forward_info_7.json",
    "dump.json",
    "debug.json",
    "mapping.csv",
    "statistic.csv",
    "model.safetensors.index.json",
    ".metadata",
    "data_dump.json",
    "exception_info.1",
};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* A graph with the names, and a file whose name was too long. */
static const char graph_name[] = "SESSION.graph_build.0." RDR "_0042.ir";
static const char graph[] =
    "#IR entry : @g\nsubgraph @g() {\n  %0(z) = ReLU(%para1)\n      : (<Tensor>) -> "
    "(<Tensor>)\n      # fullname_with_scope: (Default/ReLU-op2)\n}\n";
static const char long_name[] = "12345678.npy";

static void remove_home(void)
{
    remove_file(graph_name);
    remove_file(long_name);
    rmdir(home);
}

static void make_home(void)
{
    FUZZ_CHECK(scratch_folder(home));
    write_file(graph_name, graph, sizeof(graph) - 1);
    write_file(long_name, "\x93NUMPY", 6);
    atexit(remove_home);
}

static int check_value(void *ctx, const struct gd_catalog_value *value)
{
    struct gd_node_info info;

    FUZZ_CHECK(gd_graph_node(ctx, value->node, &info) && value->slot < info.output_count);
    return 0;
}

static void look_at(const struct gd_dump *dump)
{
    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        struct gd_catalog *catalog = gd_dump_at(dump, i);
        size_t steps, events;
        const struct gd_catalog_step *step = gd_catalog_steps(catalog, &steps);
        const struct gd_catalog_event *event = gd_catalog_events(catalog, &events);

        for (size_t k = 0; k < events; k++) {
            FUZZ_CHECK(event[k].kind[0] && event[k].text);
        }
        for (size_t k = 0; k < steps; k++) {
            gd_catalog_each(catalog, step[k].step, check_value, gd_catalog_graph(catalog));
        }
    }
}

static void open_archive(const char *name)
{
    struct gd_err err = {.text = ""};
    struct gd_archive *archive;
    char path[256];

    path_of(name, path, sizeof(path));
    if (gd_archive_open(path, NULL, &archive, &err) == GD_OK) {
        FUZZ_CHECK(gd_archive_count(archive) == 0 || gd_archive_entry(archive, 0)->name);
        gd_archive_close(archive);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_detect_options options = {.max_graph = (uint64_t)64 << 20};
    struct gd_err err = {.text = ""};
    struct gd_dump *dump;
    const char *name;

    if (size == 0) {
        return 0;
    }
    if (!home[0]) {
        make_home();
    }
    name = names[data[0] % NAMES];
    write_file(name, data + 1, size - 1);
    if (strstr(name, "index.json") || name[0] == '.') {
        open_archive(name);
    } else if (gd_detect(home, &options, &dump, &err) == GD_OK) {
        look_at(dump);
        gd_dump_destroy(dump);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    remove_file(name);
    return 0;
}
