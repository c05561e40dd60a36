// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The profiler's directory of one rank, and PyTorch's files about memory. The first byte of the
 * input says which file the rest is; beside it are a table of types and one of steps that are
 * correct.
 */
#include "dump/detect.h"
#include "engine/memory/memory.h"
#include "fuzz_home.h"

static const char *const names[] = {
    "memory_usage_0.pb",
    "step_trace_raw_0_detail_time.csv",
    "output_timeline_data_0.txt",
    "framework_raw_0.csv",
    "aicore_intermediate_0_detail.csv",
    "aicore_intermediate_0_type.csv",
    "aicpu_intermediate_0.csv",
    "flops_0.txt",
    "flops_summary_0.json",
    "operator_memory.csv",
    "memory_record.csv",
    "npu_module_mem.csv",
    "memory_usage_summary_0.json",
    "timeline.json", /* of torch.profiler */
    "page.html",     /* of torch.cuda._memory_viz */
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static const char types[] =
    "kernel_type,total_time,execution_frequency,percent\nMatMul,1.5,2,100\n";
static const char steps[] = "step_num,start_point,end_point,total\n1,10000,20000,10000\n";

static void clear_home(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        remove_file(names[i]);
    }
}

static void remove_home(void)
{
    clear_home();
    rmdir(home);
}

static void make_home(void)
{
    FUZZ_CHECK(scratch_folder(home));
    atexit(remove_home);
}

static void check_rows(const struct gd_memory_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(row[i].name && row[i].bytes >= 0 && row[i].kind < GD_MEMORY_KINDS);
    }
}

static void look_at(struct gd_catalog *catalog)
{
    const struct gd_memory *memory = gd_catalog_has_memory(catalog);
    struct gd_time_report *times = gd_catalog_give_times(catalog);

    if (memory) {
        struct gd_memory copy;

        gd_memory_init(&copy);
        FUZZ_CHECK(gd_memory_copy(memory, &copy) == GD_OK);
        FUZZ_CHECK(copy.node_count == memory->node_count && gd_memory_sum(&copy).bytes >= 0);
        check_rows(copy.peak_nodes, copy.peak_node_count);
        check_rows(copy.nodes, copy.node_count);
        gd_memory_deinit(&copy);
    }
    for (uint32_t i = 0; times && i < times->op_count; i++) {
        FUZZ_CHECK(times->op[i].seconds >= 0 && times->op[i].calls > 0);
    }
    gd_time_report_destroy(times);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_detect_options options = {.max_graph = (uint64_t)64 << 20};
    struct gd_err err = {.text = ""};
    struct gd_dump *dump;

    if (size == 0) {
        return 0;
    }
    if (!home[0]) {
        make_home();
    }
    clear_home();
    write_file("aicore_intermediate_0_type.csv", types, sizeof(types) - 1);
    write_file("step_trace_raw_0_detail_time.csv", steps, sizeof(steps) - 1);
    write_file(names[data[0] % NAMES], data + 1, size - 1);
    if (gd_detect(home, &options, &dump, &err) == GD_OK) {
        for (size_t i = 0; i < gd_dump_count(dump); i++) {
            look_at(gd_dump_at(dump, i));
        }
        gd_dump_destroy(dump);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    return 0;
}
