// SPDX-License-Identifier: GPL-3.0-or-later
/* Compiled graphs: finds the graph of each model, and looks up what it says about an operator. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/cann/cann_load.h"
#include "dump/io/file_name.h"

#define MAX_NAME  512
#define MAX_TRIES 16 /* graph texts read to find the one that has the operators */

struct candidate {
    uint32_t entry;
    int device;  /* -1: not given by its directory */
    long number; /* number of the text; the last one of a name counts */
    char name[MAX_NAME];
};

/* ---- the texts ------------------------------------------------------------------------------- */

/* "pid_123_deviceid_4", or "123_4" in older releases. */
static int device_of(const char *directory)
{
    const char *line = strrchr(directory, '_');
    char *end;
    long device = line ? strtol(line + 1, &end, 10) : -1;

    return line && end != line + 1 && *end == '\0' && device >= 0 && device < INT_MAX ? (int)device
                                                                                      : -1;
}

static int open_entry(struct cann_load *load, uint32_t entry, struct gd_disk **ret,
                      struct gd_err *err)
{
    char path[PATH_MAX];
    int rc = gd_listing_path(load->listing, entry, path, sizeof(path), err);

    return rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, ret, err);
}

static bool read_candidate(struct cann_load *load, uint32_t entry, struct candidate *ret)
{
    const struct gd_listing_entry *file = &load->listing->entry[entry];
    const char *name = strstr(file->name, "ge_proto_");
    char real[MAX_NAME];
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;

    ret->entry = entry;
    ret->device =
        file->parent == GD_NO_ENTRY ? -1 : device_of(load->listing->entry[file->parent].name);
    ret->number = name ? strtol(name + 9, NULL, 10) : 0;
    if (open_entry(load, entry, &disk, NULL) != GD_OK ||
        gd_ge_read_name(disk, real, sizeof(real), NULL) != GD_OK) {
        return false;
    }
    gd_cann_name_escape(real, ret->name, sizeof(ret->name));
    return true;
}

/* Graphs of this device are preferred, then later compilations. */
static bool is_better(const struct cann_load *load, const struct candidate *a,
                      const struct candidate *b)
{
    int x = a->device == load->rank ? 2 : a->device < 0;
    int y = b->device == load->rank ? 2 : b->device < 0;

    return x != y ? x > y : a->number > b->number;
}

static int find_candidates(struct cann_load *load, struct candidate **ret, size_t *count)
{
    const struct gd_listing *listing = load->listing;
    size_t cap = 0;

    for (uint32_t i = 0; i < listing->count; i++) {
        if (listing->entry[i].is_directory ||
            !cann_is_build_graph(gd_base_name(listing->entry[i].name))) {
            continue;
        }
        if (!gd_grow_list(ret, *count, &cap, sizeof(**ret))) {
            return gd_fail_nomem(load->err);
        }
        *count += read_candidate(load, i, &(*ret)[*count]);
    }
    return GD_OK;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static int by_escaped(const void *a, const void *b)
{
    const struct cann_known *x = *(const struct cann_known *const *)a;
    const struct cann_known *y = *(const struct cann_known *const *)b;

    return strcmp(x->escaped, y->escaped);
}

static int by_name(const void *a, const void *b)
{
    const struct cann_known *x = *(const struct cann_known *const *)a;
    const struct cann_known *y = *(const struct cann_known *const *)b;
    int order = (x->graph > y->graph) - (x->graph < y->graph);

    return order ? order : strcmp(x->op->name, y->op->name);
}

static int index_ops(struct cann_load *load, struct cann_model *model)
{
    uint32_t count = 0, at = 0;

    for (uint32_t i = 0; i < model->ge->graph_count; i++) {
        count += model->ge->graph[i].op_count;
    }
    model->known = calloc(count + 1, sizeof(*model->known));
    model->by_escaped = calloc(count + 1, sizeof(*model->by_escaped));
    model->by_name = calloc(count + 1, sizeof(*model->by_name));
    if (!model->known || !model->by_escaped || !model->by_name) {
        return gd_fail_nomem(load->err);
    }
    for (uint32_t g = 0; g < model->ge->graph_count; g++) {
        for (uint32_t i = 0; i < model->ge->graph[g].op_count; i++, at++) {
            const struct gd_ge_op *op = &model->ge->graph[g].op[i];
            size_t size = strlen(op->name) + 1;
            char *escaped = gd_arena_alloc(&load->arena, size);

            if (!escaped) {
                return gd_fail_nomem(load->err);
            }
            gd_cann_name_escape(op->name, escaped, size);
            model->known[at] = (struct cann_known){.op = op,
                                                   .graph = g,
                                                   .at = i,
                                                   .escaped = escaped,
                                                   .node = GD_NO_NODE,
                                                   .first = CANN_NO_OP};
            model->by_escaped[at] = model->by_name[at] = &model->known[at];
        }
    }
    model->known_count = count;
    qsort(model->by_escaped, count, sizeof(*model->by_escaped), by_escaped);
    qsort(model->by_name, count, sizeof(*model->by_name), by_name);
    return GD_OK;
}

struct cann_known *cann_graph_known(const struct cann_load *load, uint32_t model, const char *name)
{
    const struct cann_model *at = &load->model[model];
    struct cann_known wanted = {.escaped = (char *)(uintptr_t)name};
    const struct cann_known *key = &wanted, **found = NULL;

    if (at->known_count > 0) {
        found = bsearch(&key, at->by_escaped, at->known_count, sizeof(*at->by_escaped), by_escaped);
    }
    return found ? &at->known[*found - at->known] : NULL;
}

struct cann_known *cann_graph_named(const struct cann_model *model, uint32_t graph,
                                    const char *name, size_t len)
{
    size_t low = 0, high = model->known_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cann_known *at = model->by_name[middle];
        int order = (at->graph > graph) - (at->graph < graph);

        order = order ? order : strncmp(at->op->name, name, len);
        order = order ? order : at->op->name[len] != '\0';
        if (order == 0) {
            return &model->known[at - model->known];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

void cann_graph_free(struct cann_model *model)
{
    gd_ge_free(model->ge);
    free(model->known);
    free(model->by_escaped);
    free(model->by_name);
    model->ge = NULL;
    model->known = NULL;
    model->by_escaped = model->by_name = NULL;
    model->known_count = 0;
}

/* ---- finding the graph of a model ------------------------------------------------------------ */

/* An unreadable text is left out; the model then has no graph. */
static int take_graph(struct cann_load *load, struct cann_model *model, uint32_t entry)
{
    struct gd_err why = {0};
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    char path[PATH_MAX] = "";
    int rc = open_entry(load, entry, &disk, &why);

    rc = rc != GD_OK ? rc : gd_ge_read(disk, &model->ge, &why);
    if (rc == GD_OK) {
        return index_ops(load, model);
    }
    model->ge = NULL;
    gd_listing_path(load->listing, entry, path, sizeof(path), NULL);
    return gd_dump_left_out(load->dump, path, why.text, load->err);
}

static int by_model_name(struct cann_load *load, const struct candidate *all, size_t count)
{
    int rc = GD_OK;

    for (uint32_t m = 0; m < load->model_count && rc == GD_OK; m++) {
        const struct candidate *best = NULL;

        for (size_t i = 0; i < count; i++) {
            if (strcmp(all[i].name, load->model[m].name) == 0 &&
                (!best || is_better(load, &all[i], best))) {
                best = &all[i];
            }
        }
        rc = best ? take_graph(load, &load->model[m], best->entry) : GD_OK;
    }
    return rc;
}

/* Whether most of the model's files have an operator in the graph. */
static bool knows_most(const struct cann_load *load, uint32_t model)
{
    size_t known = 0, all = 0;

    for (size_t i = 0; i < load->file_count; i++) {
        if (load->file[i].model == model && load->file[i].name_kind == GD_CANN_OPERATOR) {
            all++;
            known += cann_graph_known(load, model, load->file[i].name) != NULL;
        }
    }
    return known * 2 > all;
}

/* No graph has the directory's name: find the one that has the operators. */
static int by_operators(struct cann_load *load, const struct candidate *all, size_t count)
{
    int rc = GD_OK;

    for (uint32_t m = 0; m < load->model_count; m++) {
        struct cann_model *model = &load->model[m];
        size_t tries = 0;

        for (size_t i = 0; !model->ge && i < count && tries < MAX_TRIES; i++) {
            if (all[i].device >= 0 && all[i].device != load->rank) {
                continue;
            }
            tries++;
            rc = take_graph(load, model, all[i].entry);
            if (rc != GD_OK) {
                return rc;
            }
            if (model->ge && !knows_most(load, m)) {
                cann_graph_free(model);
            }
        }
    }
    return GD_OK;
}

/* Nothing was dumped on this device: show its computation graph, the one that reads training
 * data. */
static int graph_alone(struct cann_load *load, const struct candidate *all, size_t count)
{
    struct cann_model *model = load->model;
    const struct candidate *last = NULL;
    int rc = GD_OK;

    for (size_t i = 0; i < count && rc == GD_OK; i++) {
        if (all[i].device >= 0 && all[i].device != load->rank) {
            continue;
        }
        cann_graph_free(model);
        rc = take_graph(load, model, all[i].entry);
        last = &all[i];
        if (model->ge && model->ge->graph[0].has_iterator) {
            return rc;
        }
    }
    return rc != GD_OK || !last || model->ge ? rc : take_graph(load, model, last->entry);
}

int cann_graph_find(struct cann_load *load)
{
    struct candidate *all = NULL;
    size_t count = 0;
    int rc;

    if (load->tree->graphs == 0) {
        return GD_OK;
    }
    rc = find_candidates(load, &all, &count);
    if (rc == GD_OK && load->model_count == 0) {
        load->model = calloc(1, sizeof(*load->model));
        rc = load->model ? GD_OK : gd_fail_nomem(load->err);
        if (load->model) {
            load->model_count = 1;
            load->model->rank_dir = GD_NO_ENTRY;
            rc = graph_alone(load, all, count);
            load->model->name = load->model->ge ? load->model->ge->graph[0].name : "";
        }
    } else if (rc == GD_OK) {
        rc = by_model_name(load, all, count);
        rc = rc != GD_OK ? rc : by_operators(load, all, count);
    }
    free(all);
    return rc;
}
