// SPDX-License-Identifier: GPL-3.0-or-later
/* The reply of a training process about its memory. It comes from outside: every member is checked,
 * and an unknown or wrong one counts as unknown. */
#include <string.h>

#include "repl/values/memory.h"

#define MAX_BYTES 1e18 /* the sum of all kinds fits an int64_t */

static int64_t whole_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    bool is_size = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < MAX_BYTES;
    return is_size ? (int64_t)item->valuedouble : -1;
}

static struct gd_memory_row row_of(const cJSON *item)
{
    return (struct gd_memory_row){.name = out_text_of(item, "name"),
                                  .where = out_text_of(item, "where"),
                                  .detail = out_text_of(item, "detail"),
                                  .kind = gd_memory_kind_of(out_text_of(item, "kind")),
                                  .bytes = whole_of(item, "bytes"),
                                  .count = whole_of(item, "count")};
}

static int read_node(struct gd_memory *report, const cJSON *item)
{
    struct gd_memory_row row = row_of(item);
    return gd_memory_add_node(report, &row);
}

static int read_module(struct gd_memory *report, const cJSON *item)
{
    struct gd_memory_row row = row_of(item);
    return gd_memory_add_module(report, &row);
}

static int read_growth(struct gd_memory *report, const cJSON *item)
{
    struct gd_memory_growth growth = {.name = out_text_of(item, "name"),
                                      .where = out_text_of(item, "where"),
                                      .holder = out_text_of(item, "holder"),
                                      .bytes = whole_of(item, "bytes"),
                                      .count = whole_of(item, "count"),
                                      .per_step = out_number_of(item, "per_step"),
                                      .first_step = whole_of(item, "first_step"),
                                      .last_step = whole_of(item, "last_step")};
    return gd_memory_add_growth(report, &growth);
}

static int read_device(struct gd_memory *report, const cJSON *item)
{
    struct gd_memory_device device = {.name = out_text_of(item, "name"),
                                      .allocated = whole_of(item, "allocated"),
                                      .reserved = whole_of(item, "reserved"),
                                      .peak = whole_of(item, "peak"),
                                      .peak_reserved = whole_of(item, "peak_reserved"),
                                      .unused = whole_of(item, "unused"),
                                      .largest_free = whole_of(item, "largest_free"),
                                      .requested = whole_of(item, "requested"),
                                      .split = whole_of(item, "split"),
                                      .segments = whole_of(item, "segments"),
                                      .blocks = whole_of(item, "blocks"),
                                      .free = whole_of(item, "free"),
                                      .total = whole_of(item, "total")};
    return gd_memory_add_device(report, &device);
}

static int read_process(struct gd_memory *report, const cJSON *item)
{
    struct gd_memory_process process = {.pid = whole_of(item, "pid"),
                                        .name = out_text_of(item, "name"),
                                        .device = out_text_of(item, "device"),
                                        .bytes = whole_of(item, "bytes")};
    return gd_memory_add_process(report, &process);
}

static int read_note(struct gd_memory *report, const cJSON *item)
{
    return cJSON_IsString(item) ? gd_memory_add_note(report, item->valuestring) : GD_OK;
}

static int read_lists(const cJSON *reply, struct gd_memory *report)
{
    static const struct {
        const char *key;
        int (*read)(struct gd_memory *report, const cJSON *item);
    } lists[] = {{"nodes", read_node},     {"modules", read_module},    {"growth", read_growth},
                 {"devices", read_device}, {"processes", read_process}, {"notes", read_note}};
    int rc = GD_OK;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const cJSON *item;
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, lists[i].key))
        {
            rc = rc != GD_OK ? rc : lists[i].read(report, item);
        }
    }
    return rc;
}

static void read_totals(const cJSON *reply, struct gd_memory *report)
{
    const cJSON *kinds = cJSON_GetObjectItem(reply, "kinds");
    const cJSON *peak = cJSON_GetObjectItem(reply, "peak");
    for (enum gd_memory_kind kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        const cJSON *item = cJSON_GetObjectItem(kinds, gd_memory_kind_name(kind));
        int64_t bytes = whole_of(item, "bytes"), count = whole_of(item, "count");
        report->kind[kind].bytes = bytes > 0 ? bytes : 0;
        report->kind[kind].count = count > 0 ? count : 0;
    }
    report->peak = (struct gd_memory_peak){
        .bytes = whole_of(peak, "bytes"),
        .step = whole_of(peak, "step"),
        .name = gd_memory_text(report, out_text_of(peak, "name")),
        .where = gd_memory_text(report, out_text_of(peak, "where")),
        .phase = gd_memory_text(report, out_text_of(peak, "phase")),
        .note = gd_memory_text(report, out_text_of(peak, "note")),
    };
}

int memory_read(const cJSON *reply, struct gd_memory *report, struct gd_err *err)
{
    if (!cJSON_IsObject(reply)) {
        return gd_fail(err, GD_EPROTO, "the training process sent a malformed reply about memory");
    }
    report->source = gd_memory_text(report, out_text_of(reply, "source"));
    report->counted = true;
    report->step = whole_of(reply, "step");
    report->rss = whole_of(reply, "rss");
    report->rss_peak = whole_of(reply, "rss_peak");
    report->limit = whole_of(reply, "limit");
    report->limit_name = gd_memory_text(report, out_text_of(reply, "limit_name"));
    report->limit_used = whole_of(reply, "limit_used");
    report->machine = whole_of(reply, "machine");
    report->machine_free = whole_of(reply, "machine_free");
    report->growth_from = whole_of(reply, "growth_from");
    report->growth_to = whole_of(reply, "growth_to");
    read_totals(reply, report);
    int rc = read_lists(reply, report);
    gd_memory_sort(report);
    return rc == GD_OK ? GD_OK : gd_fail_nomem(err);
}
