// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define MAX_ARENA ((size_t)256 << 20)

static const char *const kind_names[GD_MEMORY_KINDS] = {
    [GD_MEMORY_WEIGHTS] = "weights",     [GD_MEMORY_GRADIENTS] = "gradients",
    [GD_MEMORY_OPTIMIZER] = "optimizer", [GD_MEMORY_BUFFERS] = "buffers",
    [GD_MEMORY_INPUTS] = "inputs",       [GD_MEMORY_ACTIVATIONS] = "activations",
    [GD_MEMORY_OTHER] = "other",
};

const char *gd_memory_kind_name(enum gd_memory_kind kind)
{
    return kind < GD_MEMORY_KINDS ? kind_names[kind] : "other";
}

enum gd_memory_kind gd_memory_kind_of(const char *name)
{
    for (int kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        if (strcmp(name, kind_names[kind]) == 0) {
            return (enum gd_memory_kind)kind;
        }
    }
    return GD_MEMORY_OTHER;
}

void gd_memory_init(struct gd_memory *report)
{
    *report = (struct gd_memory){.source = "",
                                 .unit = "tensor",
                                 .limit_name = "",
                                 .step = -1,
                                 .rss = -1,
                                 .rss_peak = -1,
                                 .limit = -1,
                                 .limit_used = -1,
                                 .machine = -1,
                                 .machine_free = -1,
                                 .growth_from = -1,
                                 .growth_to = -1,
                                 .peak = {-1, -1, "", "", "", ""},
                                 .oom = {-1, -1, -1, -1, false, "", "", "", ""}};
    gd_arena_init(&report->arena, MAX_ARENA);
}

void gd_memory_deinit(struct gd_memory *report)
{
    free(report->nodes);
    free(report->modules);
    free(report->peak_nodes);
    free(report->oom_nodes);
    free(report->growth);
    free(report->devices);
    free(report->processes);
    free(report->notes);
    gd_arena_deinit(&report->arena);
}

const char *gd_memory_text(struct gd_memory *report, const char *text)
{
    const char *copy = text && text[0] != '\0' ? gd_arena_strdup(&report->arena, text) : NULL;
    return copy ? copy : "";
}

/* Whether the list at `list` takes one more row; *rc otherwise. */
static bool take_row(struct gd_memory *report, void *list, size_t count, size_t *cap, size_t size,
                     int *rc)
{
    *rc = GD_OK;
    if (count >= GD_MEMORY_MAX_ROWS) {
        report->left_out++;
        return false;
    }
    if (!gd_grow_list(list, count, cap, size)) {
        *rc = GD_ENOMEM;
    }
    return *rc == GD_OK;
}

static struct gd_memory_row copy_row(struct gd_memory *report, const struct gd_memory_row *row)
{
    struct gd_memory_row copy = *row;
    copy.name = gd_memory_text(report, row->name);
    copy.where = gd_memory_text(report, row->where);
    copy.detail = gd_memory_text(report, row->detail);
    return copy;
}

static int add_row(struct gd_memory *report, struct gd_memory_row **rows, size_t *count,
                   size_t *cap, const struct gd_memory_row *row)
{
    int rc;
    if (take_row(report, rows, *count, cap, sizeof(*row), &rc)) {
        (*rows)[(*count)++] = copy_row(report, row);
    }
    return rc;
}

int gd_memory_add_node(struct gd_memory *report, const struct gd_memory_row *row)
{
    return add_row(report, &report->nodes, &report->node_count, &report->node_cap, row);
}

int gd_memory_add_module(struct gd_memory *report, const struct gd_memory_row *row)
{
    return add_row(report, &report->modules, &report->module_count, &report->module_cap, row);
}

int gd_memory_add_peak_node(struct gd_memory *report, const struct gd_memory_row *row)
{
    return add_row(report, &report->peak_nodes, &report->peak_node_count, &report->peak_node_cap,
                   row);
}

int gd_memory_add_oom_node(struct gd_memory *report, const struct gd_memory_row *row)
{
    return add_row(report, &report->oom_nodes, &report->oom_node_count, &report->oom_node_cap, row);
}

int gd_memory_add_growth(struct gd_memory *report, const struct gd_memory_growth *growth)
{
    int rc;
    if (take_row(report, &report->growth, report->growth_count, &report->growth_cap,
                 sizeof(*growth), &rc)) {
        struct gd_memory_growth *copy = &report->growth[report->growth_count++];
        *copy = *growth;
        copy->name = gd_memory_text(report, growth->name);
        copy->where = gd_memory_text(report, growth->where);
        copy->holder = gd_memory_text(report, growth->holder);
    }
    return rc;
}

int gd_memory_add_device(struct gd_memory *report, const struct gd_memory_device *device)
{
    int rc;
    if (take_row(report, &report->devices, report->device_count, &report->device_cap,
                 sizeof(*device), &rc)) {
        struct gd_memory_device *copy = &report->devices[report->device_count++];
        *copy = *device;
        copy->name = gd_memory_text(report, device->name);
    }
    return rc;
}

int gd_memory_add_process(struct gd_memory *report, const struct gd_memory_process *process)
{
    int rc;
    if (take_row(report, &report->processes, report->process_count, &report->process_cap,
                 sizeof(*process), &rc)) {
        struct gd_memory_process *copy = &report->processes[report->process_count++];
        *copy = *process;
        copy->name = gd_memory_text(report, process->name);
        copy->device = gd_memory_text(report, process->device);
    }
    return rc;
}

int gd_memory_add_note(struct gd_memory *report, const char *note)
{
    int rc;
    if (take_row(report, &report->notes, report->note_count, &report->note_cap, sizeof(note),
                 &rc)) {
        report->notes[report->note_count++] = gd_memory_text(report, note);
    }
    return rc;
}

static void copy_moments(const struct gd_memory *from, struct gd_memory *ret)
{
    ret->source = gd_memory_text(ret, from->source);
    ret->unit = gd_memory_text(ret, from->unit);
    ret->limit_name = gd_memory_text(ret, from->limit_name);
    ret->peak.name = gd_memory_text(ret, from->peak.name);
    ret->peak.where = gd_memory_text(ret, from->peak.where);
    ret->peak.phase = gd_memory_text(ret, from->peak.phase);
    ret->peak.note = gd_memory_text(ret, from->peak.note);
    ret->oom.device = gd_memory_text(ret, from->oom.device);
    ret->oom.name = gd_memory_text(ret, from->oom.name);
    ret->oom.where = gd_memory_text(ret, from->oom.where);
    ret->oom.note = gd_memory_text(ret, from->oom.note);
}

static int copy_rows(const struct gd_memory_row *rows, size_t count, struct gd_memory *ret,
                     int (*add)(struct gd_memory *report, const struct gd_memory_row *row))
{
    int rc = GD_OK;
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = add(ret, &rows[i]);
    }
    return rc;
}

static int copy_others(const struct gd_memory *from, struct gd_memory *ret)
{
    int rc = GD_OK;
    for (size_t i = 0; rc == GD_OK && i < from->growth_count; i++) {
        rc = gd_memory_add_growth(ret, &from->growth[i]);
    }
    for (size_t i = 0; rc == GD_OK && i < from->device_count; i++) {
        rc = gd_memory_add_device(ret, &from->devices[i]);
    }
    for (size_t i = 0; rc == GD_OK && i < from->process_count; i++) {
        rc = gd_memory_add_process(ret, &from->processes[i]);
    }
    for (size_t i = 0; rc == GD_OK && i < from->note_count; i++) {
        rc = gd_memory_add_note(ret, from->notes[i]);
    }
    return rc;
}

int gd_memory_copy(const struct gd_memory *from, struct gd_memory *ret)
{
    struct gd_memory copy = *from;
    /* Of the copy: its own texts and lists. */
    copy.arena = ret->arena;
    copy.nodes = copy.modules = copy.peak_nodes = copy.oom_nodes = NULL;
    copy.growth = NULL;
    copy.devices = NULL;
    copy.processes = NULL;
    copy.notes = NULL;
    copy.node_count = copy.module_count = copy.peak_node_count = copy.oom_node_count = 0;
    copy.growth_count = copy.device_count = copy.process_count = copy.note_count = 0;
    copy.node_cap = copy.module_cap = copy.peak_node_cap = copy.oom_node_cap = 0;
    copy.growth_cap = copy.device_cap = copy.process_cap = copy.note_cap = 0;
    *ret = copy;
    copy_moments(from, ret);
    int rc = copy_rows(from->nodes, from->node_count, ret, gd_memory_add_node);
    rc = rc != GD_OK ? rc : copy_rows(from->modules, from->module_count, ret, gd_memory_add_module);
    rc = rc != GD_OK
             ? rc
             : copy_rows(from->peak_nodes, from->peak_node_count, ret, gd_memory_add_peak_node);
    rc = rc != GD_OK
             ? rc
             : copy_rows(from->oom_nodes, from->oom_node_count, ret, gd_memory_add_oom_node);
    return rc != GD_OK ? rc : copy_others(from, ret);
}

static int compare_sizes(int64_t a, int64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0;
}

static int compare_rows(const void *first, const void *second)
{
    const struct gd_memory_row *a = first, *b = second;
    int order = compare_sizes(a->bytes, b->bytes);
    return order ? order : strcmp(a->name, b->name);
}

static int compare_growth(const void *first, const void *second)
{
    const struct gd_memory_growth *a = first, *b = second;
    int order = (a->per_step < b->per_step) - (a->per_step > b->per_step);
    return order ? order : strcmp(a->name, b->name);
}

static int compare_processes(const void *first, const void *second)
{
    const struct gd_memory_process *a = first, *b = second;
    int order = compare_sizes(a->bytes, b->bytes);
    return order ? order : (a->pid > b->pid) - (a->pid < b->pid);
}

static void sort_list(void *list, size_t count, size_t size,
                      int (*compare)(const void *, const void *))
{
    if (count > 1) {
        qsort(list, count, size, compare);
    }
}

void gd_memory_sort(struct gd_memory *report)
{
    sort_list(report->nodes, report->node_count, sizeof(*report->nodes), compare_rows);
    sort_list(report->modules, report->module_count, sizeof(*report->modules), compare_rows);
    sort_list(report->peak_nodes, report->peak_node_count, sizeof(*report->peak_nodes),
              compare_rows);
    sort_list(report->oom_nodes, report->oom_node_count, sizeof(*report->oom_nodes), compare_rows);
    sort_list(report->growth, report->growth_count, sizeof(*report->growth), compare_growth);
    sort_list(report->processes, report->process_count, sizeof(*report->processes),
              compare_processes);
}

struct gd_memory_total gd_memory_sum(const struct gd_memory *report)
{
    struct gd_memory_total sum = {0, 0};
    for (int kind = 0; kind < GD_MEMORY_KINDS; kind++) {
        sum.bytes += report->kind[kind].bytes > 0 ? report->kind[kind].bytes : 0;
        sum.count += report->kind[kind].count > 0 ? report->kind[kind].count : 0;
    }
    return sum;
}
