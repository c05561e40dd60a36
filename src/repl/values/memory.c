// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports of memory: the record, and its text. */
#include "repl/values/memory.h"

#include "repl/values/inspect.h"

#define ROWS_SHOWN 10

#define KNOWN(key, value) OUT_IF((value) >= 0, OUT_INT(key, value))

/* ---- the record ------------------------------------------------------------------------------ */

static void record_rows(cJSON *list, const struct gd_memory_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct gd_memory_row *row = &rows[i];
        out_set(out_push(list), OUT_TEXT("name", row->name),
                OUT_TEXT("kind", gd_memory_kind_name(row->kind)), KNOWN("bytes", row->bytes),
                KNOWN("count", row->count), OUT_SOME("where", row->where),
                OUT_SOME("detail", row->detail));
    }
}

static void record_growth(cJSON *record, const struct gd_memory *report)
{
    out_set(record, KNOWN("growth_from", report->growth_from),
            KNOWN("growth_to", report->growth_to));
    cJSON *list = out_list(record, "growth");
    for (size_t i = 0; i < report->growth_count; i++) {
        const struct gd_memory_growth *row = &report->growth[i];
        out_set(out_push(list), OUT_TEXT("name", row->name), OUT_REAL("per_step", row->per_step),
                KNOWN("bytes", row->bytes), KNOWN("count", row->count),
                KNOWN("first_step", row->first_step), KNOWN("last_step", row->last_step),
                OUT_SOME("where", row->where), OUT_SOME("holder", row->holder));
    }
}

static void record_devices(cJSON *record, const struct gd_memory *report)
{
    cJSON *list = out_list(record, "devices");
    for (size_t i = 0; i < report->device_count; i++) {
        const struct gd_memory_device *device = &report->devices[i];
        out_set(out_push(list), OUT_TEXT("name", device->name),
                KNOWN("allocated", device->allocated), KNOWN("reserved", device->reserved),
                KNOWN("peak", device->peak), KNOWN("peak_reserved", device->peak_reserved),
                KNOWN("unused", device->unused), KNOWN("largest_free", device->largest_free),
                KNOWN("split", device->split), KNOWN("requested", device->requested),
                KNOWN("segments", device->segments), KNOWN("blocks", device->blocks),
                KNOWN("free", device->free), KNOWN("total", device->total));
    }
    list = out_list(record, "processes");
    for (size_t i = 0; i < report->process_count; i++) {
        const struct gd_memory_process *process = &report->processes[i];
        out_set(out_push(list), KNOWN("pid", process->pid), OUT_TEXT("name", process->name),
                OUT_SOME("device", process->device), KNOWN("bytes", process->bytes));
    }
}

static void record_peak(cJSON *record, const struct gd_memory_peak *peak)
{
    if (peak->bytes >= 0 || peak->note[0] != '\0') {
        out_set(out_object(record, "peak"), KNOWN("bytes", peak->bytes), KNOWN("step", peak->step),
                OUT_SOME("name", peak->name), OUT_SOME("where", peak->where),
                OUT_SOME("phase", peak->phase), OUT_SOME("note", peak->note));
    }
}

static void record_oom(cJSON *record, const struct gd_memory *report)
{
    const struct gd_memory_oom *oom = &report->oom;
    if (oom->asked >= 0) {
        cJSON *object = out_object(record, "oom");
        out_set(object, OUT_INT("asked", oom->asked), KNOWN("free", oom->free),
                KNOWN("held", oom->held), KNOWN("reserved", oom->reserved),
                OUT_SOME("device", oom->device), OUT_SOME("name", oom->name),
                OUT_SOME("where", oom->where), OUT_SOME("note", oom->note));
        record_rows(out_list(object, "nodes"), report->oom_nodes, report->oom_node_count);
    }
}

/* False: it has numbers of devices only. */
static bool has_holders(const struct gd_memory *report, const struct gd_memory_total *sum)
{
    return report->source[0] != '\0' || sum->bytes > 0 || sum->count > 0;
}

void memory_record(cJSON *record, const struct gd_memory *report)
{
    struct gd_memory_total sum = gd_memory_sum(report);
    bool known = has_holders(report, &sum);
    out_set(record, KNOWN("step", report->step), OUT_SOME("source", report->source),
            OUT_BOOL("counted", report->counted), OUT_IF(known, OUT_INT("bytes", sum.bytes)),
            OUT_IF(known, OUT_INT("count", sum.count)));
    cJSON *kinds = out_object(record, "kinds");
    for (enum gd_memory_kind kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        out_set(out_object(kinds, gd_memory_kind_name(kind)),
                OUT_INT("bytes", report->kind[kind].bytes),
                OUT_INT("count", report->kind[kind].count));
    }
    record_peak(record, &report->peak);
    if (report->peak_node_count > 0) {
        record_rows(out_list(record, "peak_nodes"), report->peak_nodes, report->peak_node_count);
    }
    record_oom(record, report);
    record_rows(out_list(record, "modules"), report->modules, report->module_count);
    record_rows(out_list(record, "nodes"), report->nodes, report->node_count);
    record_growth(record, report);
    record_devices(record, report);
    out_set(record, KNOWN("rss", report->rss), KNOWN("rss_peak", report->rss_peak),
            KNOWN("limit", report->limit), OUT_SOME("limit_name", report->limit_name),
            KNOWN("limit_used", report->limit_used), KNOWN("machine", report->machine),
            KNOWN("machine_free", report->machine_free),
            OUT_IF(report->left_out > 0, OUT_INT("left_out", report->left_out)));
    cJSON *notes = out_list(record, "notes");
    for (size_t i = 0; i < report->note_count; i++) {
        out_push_text(notes, report->notes[i]);
    }
}

/* ---- its text -------------------------------------------------------------------------------- */

static void show_kinds(struct command_call *call, const struct gd_memory *report, int64_t all)
{
    out_printf(call->out, "%12s %7s %9s  %s\n", "Bytes", "Share",
               report->unit[0] == 'b'   ? "Blocks"
               : report->unit[0] == 't' ? "Tensors"
                                        : "Count",
               "Kind");
    for (enum gd_memory_kind kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        const struct gd_memory_total *total = &report->kind[kind];
        if (total->bytes > 0 || total->count > 0) {
            out_printf(call->out, "%12s %5.1f %% %9s  %s\n",
                       inspect_bytes(call, (uint64_t)total->bytes),
                       all > 0 ? 100.0 * (double)total->bytes / (double)all : 0.0,
                       inspect_number(call, (uint64_t)total->count), gd_memory_kind_name(kind));
        }
    }
}

static void show_peak(struct command_call *call, const cJSON *record)
{
    const cJSON *peak = cJSON_GetObjectItem(record, "peak");
    if (peak && cJSON_GetObjectItem(peak, "bytes")) {
        out_say(call->out, peak,
                "Peak[ within step {step}]: {bytes:bytes}[, at {name}][ ({where})][, {phase}]\n"
                "[  {note}\n]");
    } else if (peak) {
        out_say(call->out, peak, "Peak: unknown: {note}\n");
    }
}

static void show_rows(struct command_call *call, const cJSON *record, const char *key,
                      const char *title, bool all)
{
    static const struct out_column columns[] = {
        {"bytes", "Bytes", true, ":bytes"}, {"count", "Count", true, ":n"},
        {"kind", "Kind", false, NULL},      {"name", "Name", false, ":fit40"},
        {"where", "Line", false, NULL},     {"detail", "", false, NULL}};
    const cJSON *list = cJSON_GetObjectItem(record, key);
    int count = cJSON_GetArraySize(list);
    if (count == 0) {
        return;
    }
    out_printf(call->out, "\n%s\n", title);
    out_table_of(call->out, list, all ? (size_t)count : ROWS_SHOWN, columns, 6);
    if (!all && count > ROWS_SHOWN) {
        out_printf(call->out, "... and %d more (info memory -a)\n", count - ROWS_SHOWN);
    }
}

void memory_show_oom(struct command_call *call, const cJSON *record, bool all)
{
    const cJSON *oom = cJSON_GetObjectItem(record, "oom");
    if (!oom) {
        return;
    }
    out_say(call->out, oom,
            "\nOut of memory[ on {device}]: {asked:bytes} asked for[ by {name}][ ({where})]"
            "[, {free:bytes} free on the device]\n"
            "[  the process held {held:bytes}[, of {reserved:bytes} reserved]\n][  {note}\n]");
    show_rows(call, oom, "nodes", "Held when memory ran out", all);
}

static void show_growth(struct command_call *call, const cJSON *record)
{
    static const struct out_column columns[] = {
        {"per_step", "Per step", true, ":bytes"}, {"bytes", "Now", true, ":bytes"},
        {"count", "Count", true, ":n"},           {"name", "Name", false, ":fit40"},
        {"where", "Line", false, NULL},           {"holder", "Held by", false, NULL}};
    const cJSON *list = cJSON_GetObjectItem(record, "growth");
    if (!cJSON_GetObjectItem(record, "growth_from")) {
        return;
    }
    if (cJSON_GetArraySize(list) == 0) {
        out_say(call->out, record,
                "\nGrowth: nothing grew steadily from step {growth_from} to step {growth_to}\n");
        return;
    }
    out_say(call->out, record, "\nGrowth from step {growth_from} to step {growth_to}\n");
    out_table_of(call->out, list, ROWS_SHOWN, columns, 6);
}

static void show_devices(struct command_call *call, const cJSON *record)
{
    static const struct out_column columns[] = {{"bytes", "Bytes", true, ":bytes"},
                                                {"pid", "Process", true, NULL},
                                                {"name", "Program", false, NULL},
                                                {"device", "Device", false, NULL}};
    const cJSON *device, *processes = cJSON_GetObjectItem(record, "processes");
    cJSON_ArrayForEach(device, cJSON_GetObjectItem(record, "devices"))
    {
        out_say(call->out, device,
                "\n{name}:[ {allocated:bytes} allocated][ ({requested:bytes} requested)]"
                "[ (peak {peak:bytes})]"
                "[, {reserved:bytes} reserved[ (peak {peak_reserved:bytes})]]\n"
                "[  reserved but free: {unused:bytes}[, the largest block {largest_free:bytes}]"
                "[, {split:bytes} in segments that other blocks keep]\n]"
                "[  {segments|segment}[, {blocks|block}]\n]"
                "[  free on the device: {free:bytes}[ of {total:bytes}]\n]");
    }
    if (cJSON_GetArraySize(processes) > 0) {
        out_printf(call->out, "\nOther processes\n");
        out_table_of(call->out, processes, ROWS_SHOWN, columns, 4);
    }
}

static void show_process(struct command_call *call, const struct gd_memory *report,
                         const cJSON *record)
{
    bool on_devices = cJSON_GetArraySize(cJSON_GetObjectItem(record, "devices")) > 0;
    bool counted = report->counted && out_number_of(record, "bytes") > 0;
    out_say(call->out, record,
            "[\nProcess: RSS {rss:bytes}[, peak {rss_peak:bytes}][{?counted}: {bytes:bytes} "
            "accounted for by tensors; the rest is libraries, allocator caches and the program "
            "itself]\n]"
            "[Limit: {limit:bytes} ({limit_name})[, {limit_used:bytes} used]\n]"
            "[RAM: {machine:bytes}[, {machine_free:bytes} available]\n]",
            OUT_BOOL("counted", counted && !on_devices));
}

void memory_show(struct command_call *call, const struct gd_memory *report, bool all)
{
    struct gd_memory_total sum = gd_memory_sum(report);
    cJSON *record = out_record(call->out, "memory");
    memory_record(record, report);
    if (!out_is_text(call->out)) {
        return;
    }
    if (has_holders(report, &sum)) {
        out_say(call->out, record, "[Step {step}: ]{bytes:bytes} in {size}[: {source}]\n",
                OUT_TEXT("size", inspect_plural(call, (uint64_t)sum.count, report->unit)));
        show_kinds(call, report, sum.bytes);
    }
    show_peak(call, record);
    show_rows(call, record, "peak_nodes", "Held at the peak", all);
    memory_show_oom(call, record, all);
    show_rows(call, record, "modules", "Largest modules", all);
    show_rows(call, record, "nodes", "Largest nodes", all);
    show_growth(call, record);
    show_process(call, report, record);
    show_devices(call, record);
    for (size_t i = 0; i < report->note_count; i++) {
        out_printf(call->out, "%sNot counted: %s\n", i == 0 ? "\n" : "",
                   out_safe(call, report->notes[i]));
    }
    out_say(call->out, record, "[\nThe tables are incomplete: {left_out|row} left out\n]");
}
