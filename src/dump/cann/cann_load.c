// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES (UINT32_C(1) << 26)

/* ---- files ----------------------------------------------------------------------------------- */

/* The directory rank_R above an iteration's. */
static uint32_t rank_dir(const struct gd_listing *listing, const struct cann_dir *dir)
{
    uint32_t at = dir->entry;

    for (int i = 0; i < 3 && at != 0; i++) {
        at = listing->entry[at].parent;
    }
    return dir->place.is_mindspore && strncmp(listing->entry[at].name, "rank_", 5) == 0
               ? at
               : GD_NO_ENTRY;
}

/* A network is one model, whichever start of the dump it belongs to. */
static int find_model(struct cann_load *load, const struct cann_dir *dir, uint32_t *ret)
{
    const struct gd_cann_path *place = &dir->place;
    struct cann_model made;
    char name[512];

    snprintf(name, sizeof(name), "%.400s%s%.100s", place->model,
             place->is_mindspore && place->graph[0] ? "/" : "",
             place->is_mindspore ? place->graph : "");
    for (uint32_t i = 0; i < load->model_count; i++) {
        if (strcmp(load->model[i].name, name) == 0) {
            *ret = i;
            return GD_OK;
        }
    }
    made = (struct cann_model){.name = gd_arena_strdup(&load->arena, name),
                               .rank_dir = rank_dir(load->listing, dir),
                               .graph_id = place->graph};
    if (!made.name ||
        !gd_grow_list(&load->model, load->model_count, &load->model_cap, sizeof(made))) {
        return gd_fail_nomem(load->err);
    }
    *ret = load->model_count++;
    load->model[*ret] = made;
    return GD_OK;
}

static int add_file(struct cann_load *load, const struct cann_file *file,
                    const struct gd_cann_name *name)
{
    struct cann_file *at;

    if (load->file_count == MAX_FILES) {
        return gd_fail(load->err, GD_ELIMIT, "the dump of a rank has more than %u files",
                       MAX_FILES);
    }
    if (!gd_grow_list(&load->file, load->file_count, &load->file_cap, sizeof(*load->file))) {
        return gd_fail_nomem(load->err);
    }
    at = &load->file[load->file_count++];
    *at = *file;
    at->name_kind = name->kind;
    at->type = gd_arena_strndup(&load->arena, name->type, name->type_len);
    at->name = gd_arena_strndup(&load->arena, name->name, name->name_len);
    at->task = name->task;
    at->stream = name->stream;
    at->context = name->context;
    at->thread = name->thread;
    at->time = name->time;
    at->op = CANN_NO_OP;
    return at->type && at->name ? GD_OK : gd_fail_nomem(load->err);
}

int cann_load_dir(struct cann_load *load, uint32_t dir, int64_t step)
{
    const struct cann_dir *in = &load->tree->dir[dir];
    const struct gd_listing_entry *entry = load->listing->entry;
    bool is_directory = entry[in->entry].is_directory;
    struct cann_file file = {.dir = dir, .step = step};
    struct gd_mapping *mapping = NULL;
    struct gd_cann_name name;
    const char *text;
    int rc = find_model(load, in, &file.model);

    rc = rc != GD_OK ? rc : gd_mapping_read(load->listing, in->entry, &mapping, load->err);
    file.entry = is_directory ? entry[in->entry].first_child : in->entry;
    for (; rc == GD_OK && file.entry != GD_NO_ENTRY;
         file.entry = is_directory ? entry[file.entry].next : GD_NO_ENTRY) {
        file.kind =
            cann_file_kind(load->listing, file.entry, mapping, in->place.exceptions, &name, &text);
        if (file.kind != CANN_FILE_NONE) {
            rc = add_file(load, &file, &name);
        }
    }
    gd_mapping_free(mapping);
    return rc;
}

/* ---- operators ------------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Records last; the others by model, operator, step and time. */
static int by_op(const void *a, const void *b)
{
    const struct cann_file *x = a, *y = b;
    int order = compare_numbers(x->name_kind != GD_CANN_OPERATOR, y->name_kind != GD_CANN_OPERATOR);

    order = order ? order : compare_numbers(x->model, y->model);
    order = order ? order : strcmp(x->name, y->name);
    order = order ? order : (x->step > y->step) - (x->step < y->step);
    order = order ? order : compare_numbers(x->time, y->time);
    order = order ? order : (x->thread > y->thread) - (x->thread < y->thread);
    return order ? order : compare_numbers(x->entry, y->entry);
}

static bool same_op(const struct cann_file *a, const struct cann_file *b)
{
    return a->model == b->model && strcmp(a->name, b->name) == 0;
}

static bool same_task(const struct cann_file *a, const struct cann_file *b)
{
    return a->task == b->task && a->stream == b->stream && a->context == b->context &&
           a->thread == b->thread;
}

/* Which execution within its step a file belongs to; files[first .. at) are the operator's earlier
 * ones in this step. A task that ran again (a loop) is the same execution. If steps are unknown,
 * every file is an execution of its own. */
static uint32_t occurrence_of(const struct cann_load *load, const uint32_t *number, size_t first,
                              size_t at)
{
    const struct cann_file *file = load->file;
    bool has_step = load->tree->dir[file[at].dir].place.has_step;
    uint32_t next = 0;

    /* Collectives are dumped in two files: inputs and outputs. */
    if (at > first && file[at - 1].inputs > 0 && file[at - 1].outputs == 0 &&
        file[at].inputs == 0 && file[at].outputs > 0) {
        return number[at - 1];
    }
    for (size_t i = first; i < at; i++) {
        if (has_step && same_task(&file[i], &file[at])) {
            return number[i];
        }
        next = number[i] >= next ? number[i] + 1 : next;
    }
    return next;
}

/* Only the latest executions are searched: repetitions come soon. */
#define LOOK_BACK 256

static void number_files(const struct cann_load *load, size_t count, uint32_t *number)
{
    size_t first = 0;

    for (size_t i = 0; i < count; i++) {
        if (!same_op(&load->file[i], &load->file[first]) ||
            load->file[i].step != load->file[first].step) {
            first = i;
        } else if (i - first > LOOK_BACK) {
            number[i] = occurrence_of(load, number, i - LOOK_BACK, i);
            continue;
        }
        number[i] = occurrence_of(load, number, first, i);
    }
}

static int add_op(struct cann_load *load, const struct cann_file *file, uint32_t occurrence,
                  size_t at, size_t *cap, uint32_t *ret)
{
    if (!gd_grow_list(&load->op, load->op_count, cap, sizeof(*load->op))) {
        return gd_fail_nomem(load->err);
    }
    *ret = load->op_count++;
    load->op[*ret] = (struct cann_op){.model = file->model,
                                      .type = file->type,
                                      .name = file->name,
                                      .real = file->real ? file->real : file->name,
                                      .occurrence = occurrence,
                                      .first_file = (uint32_t)at,
                                      .time = file->time,
                                      .node = GD_NO_NODE};
    return GD_OK;
}

/* The operators of one name; by_occurrence gets the number of each, the first for all files. */
static int ops_of_name(struct cann_load *load, size_t from, size_t to, const uint32_t *number,
                       size_t *cap)
{
    uint32_t first = load->op_count;
    int rc = GD_OK;

    for (size_t i = from; i < to && rc == GD_OK; i++) {
        struct cann_file *file = &load->file[i];
        uint32_t at = first + number[i];

        while (at >= load->op_count && rc == GD_OK) {
            rc = add_op(load, file, load->op_count - first, i, cap, &file->op);
        }
        if (rc == GD_OK) {
            struct cann_op *op = &load->op[at];

            file->op = at;
            op->inputs = file->inputs > op->inputs ? file->inputs : op->inputs;
            op->outputs = file->outputs > op->outputs ? file->outputs : op->outputs;
        }
    }
    return rc;
}

int cann_load_ops(struct cann_load *load)
{
    size_t count = 0, cap = 0;
    uint32_t *number;
    int rc = GD_OK;

    if (load->file_count > 0) {
        qsort(load->file, load->file_count, sizeof(*load->file), by_op);
    }
    while (count < load->file_count && load->file[count].name_kind == GD_CANN_OPERATOR) {
        count++;
    }
    number = calloc(count + 1, sizeof(*number));
    if (!number) {
        return gd_fail_nomem(load->err);
    }
    number_files(load, count, number);
    for (size_t from = 0, to; from < count && rc == GD_OK; from = to) {
        for (to = from + 1; to < count && same_op(&load->file[to], &load->file[from]); to++) {
        }
        rc = ops_of_name(load, from, to, number, &cap);
    }
    free(number);
    return rc;
}

void cann_load_free(struct cann_load *load)
{
    for (size_t i = 0; i < load->file_count; i++) {
        for (uint32_t k = 0; k < load->file[i].value_count; k++) {
            gd_source_unref(load->file[i].value[k].source);
        }
    }
    for (uint32_t i = 0; i < load->model_count; i++) {
        cann_graph_free(&load->model[i]);
    }
    free(load->file);
    free(load->model);
    free(load->op);
    gd_arena_deinit(&load->arena);
}
