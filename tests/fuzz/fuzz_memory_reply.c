// SPDX-License-Identifier: GPL-3.0-or-later
/* The reply of a training process about its memory: numbers are sizes or unknown, texts are there,
 * and what is read can be written as a record. */
#include "fuzz.h"
#include "repl/values/memory.h"

static void check_rows(const struct gd_memory_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(row[i].bytes >= -1 && row[i].count >= -1 && row[i].kind < GD_MEMORY_KINDS);
        FUZZ_CHECK(row[i].name && row[i].where && row[i].detail);
        FUZZ_CHECK(i == 0 || row[i - 1].bytes >= row[i].bytes);
    }
}

static void check_report(const struct gd_memory *report)
{
    check_rows(report->nodes, report->node_count);
    check_rows(report->modules, report->module_count);
    for (size_t i = 0; i < report->device_count; i++) {
        FUZZ_CHECK(report->devices[i].name && report->devices[i].total >= -1);
    }
    for (size_t i = 0; i < report->growth_count; i++) {
        FUZZ_CHECK(report->growth[i].name && report->growth[i].bytes >= -1);
    }
    for (int kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        FUZZ_CHECK(report->kind[kind].bytes >= 0 && report->kind[kind].count >= 0);
    }
    FUZZ_CHECK(report->source && report->peak.name && report->rss >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    cJSON *reply = cJSON_Parse(text), *record = cJSON_CreateObject();
    struct gd_err err = {.text = ""};
    struct gd_memory report;

    gd_memory_init(&report);
    if (memory_read(reply, &report, &err) == GD_OK) {
        check_report(&report);
        (void)gd_memory_sum(&report);
        memory_record(record, &report);
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_memory_deinit(&report);
    cJSON_Delete(record);
    cJSON_Delete(reply);
    free(text);
    return 0;
}
