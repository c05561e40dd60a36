// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_dirs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/mindspore/ms_file_name.h"

#define MAX_PARTS 64

struct parts { /* the path of a directory: [0] is its own name, [1] its parent's */
    const char *name[MAX_PARTS];
    uint32_t entry[MAX_PARTS]; /* GD_NO_ENTRY: above what was opened */
    int count;
};

/* ---- paths ----------------------------------------------------------------------------------- */

/* Appends the directories above the root of the listing, from its absolute path, innermost
 * first. */
static int parts_above(const struct gd_listing *listing, struct ms_dirs *tree, struct parts *ret,
                       struct gd_err *err)
{
    char path[PATH_MAX], *at;

    ret->count = 0;
    if (!realpath(listing->entry[0].name, path)) {
        snprintf(path, sizeof(path), "%s", listing->entry[0].name);
    }
    while ((at = strrchr(path, '/')) && ret->count < MAX_PARTS / 2) {
        const char *name = gd_arena_strdup(&tree->arena, at + 1);

        if (!name) {
            return gd_fail_nomem(err);
        }
        ret->entry[ret->count] = ret->count == 0 ? 0 : GD_NO_ENTRY;
        ret->name[ret->count++] = name;
        *at = '\0';
    }
    return GD_OK;
}

static void parts_of(const struct gd_listing *listing, uint32_t entry, const struct parts *above,
                     struct parts *ret)
{
    ret->count = 0;
    for (; entry != 0 && ret->count < MAX_PARTS / 2; entry = listing->entry[entry].parent) {
        ret->name[ret->count] = listing->entry[entry].name;
        ret->entry[ret->count++] = entry;
    }
    for (int i = 0; i < above->count && ret->count < MAX_PARTS; i++) {
        ret->name[ret->count] = above->name[i];
        ret->entry[ret->count++] = above->entry[i];
    }
}

static const char *part_at(const struct parts *parts, int i)
{
    return i < parts->count ? parts->name[i] : "";
}

static bool number_after(const char *name, const char *prefix, uint64_t max, uint64_t *ret)
{
    size_t len = strlen(prefix);

    return strncmp(name, prefix, len) == 0 &&
           gd_ms_number(name + len, strlen(name + len), max, ret);
}

/* "rank_3" */
static bool is_rank(const char *name, int *ret)
{
    uint64_t rank;

    if (!number_after(name, "rank_", 1000000, &rank)) {
        return false;
    }
    *ret = (int)rank;
    return true;
}

int ms_rank_of(const char *path)
{
    const char *at = strstr(path, "rank_");
    long rank = at && at[5] >= '0' && at[5] <= '9' ? strtol(at + 5, NULL, 10) : 0;

    return rank > INT32_MAX ? 0 : (int)rank;
}

/* The topmost of the first `levels` parts that is in the listing. */
static uint32_t top_of(const struct parts *parts, int levels)
{
    uint32_t top = parts->entry[0];

    for (int i = 1; i < levels && i < parts->count && parts->entry[i] != GD_NO_ENTRY; i++) {
        top = parts->entry[i];
    }
    return top;
}

/* rank_R/YmdHMS/step_N of whole graphs on Ascend; all starts of a rank are joined. */
static bool place_started(const struct parts *parts, struct ms_dir *ret)
{
    const char *start = part_at(parts, 1);
    uint64_t step;

    if (!number_after(part_at(parts, 0), "step_", INT64_MAX, &step) || strlen(start) != 14 ||
        strspn(start, "0123456789") != 14 || !is_rank(part_at(parts, 2), &ret->rank)) {
        return false;
    }
    ret->step = (int64_t)step;
    ret->root = top_of(parts, 3);
    ret->rank_dir = parts->entry[2];
    return true;
}

static void place_anywhere(const struct parts *parts, struct ms_dir *ret)
{
    ret->step = GD_EVERY_STEP;
    ret->net = ret->graph = "";
    ret->root = parts->entry[0];
    ret->rank_dir = GD_NO_ENTRY;
}

/* NET/GRAPH/ITERATION, NET/GRAPH/constants; any other directory has files that hold in every
 * step. */
static void place_npy(const struct parts *parts, struct ms_dir *ret)
{
    uint64_t step, graph;
    bool constants = strcmp(part_at(parts, 0), "constants") == 0;
    bool numbered = number_after(part_at(parts, 1), "", UINT32_MAX, &graph);

    place_anywhere(parts, ret);
    if (place_started(parts, ret) || !numbered ||
        (!constants && !number_after(part_at(parts, 0), "", INT64_MAX, &step))) {
        return;
    }
    ret->step = constants ? GD_EVERY_STEP : (int64_t)step;
    ret->graph = part_at(parts, 1);
    ret->net = part_at(parts, 2);
    ret->root = top_of(parts, 3);
    if (parts->count > 3 && is_rank(parts->name[3], &ret->rank)) {
        ret->rank_dir = parts->entry[3];
    }
}

/* NET/device_D/iteration_K, NET/iteration_K */
static void place_bin(const struct parts *parts, struct ms_dir *ret)
{
    uint64_t step, device = 0;
    bool has_device;

    place_anywhere(parts, ret);
    if (!number_after(part_at(parts, 0), "iteration_", INT64_MAX, &step)) {
        return;
    }
    has_device = number_after(part_at(parts, 1), "device_", 1000000, &device);
    ret->step = (int64_t)step;
    ret->rank = (int)device;
    ret->net = part_at(parts, has_device ? 2 : 1);
    ret->root = top_of(parts, has_device ? 2 : 1);
    if (!has_device && parts->count > 1 && parts->entry[1] != GD_NO_ENTRY) {
        ret->root = parts->entry[1];
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

bool ms_is_renamed(const char *name)
{
    size_t len = strlen(name);
    size_t digits = strspn(name, "0123456789");

    return digits > 0 && len == digits + 4 && strcmp(name + digits, ".npy") == 0;
}

/* Whether it begins like MindSpore's. */
static bool is_statistic(const struct gd_listing *listing, uint32_t entry)
{
    static const char header[] = "Op Type,Op Name,Task ID,Stream ID,Timestamp,I";
    char start[sizeof(header)];

    gd_listing_peek(listing, entry, start, sizeof(start));
    return strcmp(start, header) == 0;
}

static bool is_ours(const struct gd_listing *listing, uint32_t entry, bool bin, bool mapped)
{
    const char *name = listing->entry[entry].name;
    struct gd_ms_bin_name bin_name;
    struct gd_ms_name npy_name;
    size_t len = strlen(name);

    if (bin) {
        return gd_ms_bin_name_parse(name, &bin_name);
    }
    if (strcmp(name, "statistic.csv") == 0) {
        return is_statistic(listing, entry);
    }
    /* raw elements: the name gives the type */
    if (len <= 4 || strcmp(name + len - 4, ".npy") != 0) {
        return gd_ms_name_parse(name, &npy_name) && npy_name.stored != GD_STORED_NONE;
    }
    return gd_ms_name_parse(name, &npy_name) || (mapped && ms_is_renamed(name));
}

static uint32_t count_files(const struct gd_listing *listing, uint32_t directory, bool bin)
{
    bool mapped = gd_listing_child(listing, directory, "mapping.csv") != GD_NO_ENTRY;
    uint32_t count = 0;

    for (uint32_t i = listing->entry[directory].first_child; i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        count += !listing->entry[i].is_directory && is_ours(listing, i, bin, mapped);
    }
    return count;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static int compare_dirs(const void *a, const void *b)
{
    const struct ms_dir *x = a, *y = b;
    int order;

    if (x->root != y->root) {
        return x->root < y->root ? -1 : 1;
    }
    order = strlen(x->graph) != strlen(y->graph) ? strlen(x->graph) < strlen(y->graph) ? -1 : 1
                                                 : strcmp(x->graph, y->graph);
    return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

int ms_dirs_read(const struct gd_listing *listing, uint32_t root, bool bin, struct ms_dirs *ret,
                 struct gd_err *err)
{
    struct parts above, parts;
    int rc;

    *ret = (struct ms_dirs){.dir = NULL};
    gd_arena_init(&ret->arena, 0);
    rc = parts_above(listing, ret, &above, err);
    for (uint32_t i = root; rc == GD_OK && i != GD_NO_ENTRY;
         i = gd_listing_next(listing, i, root)) {
        struct ms_dir dir = {.entry = i};

        if (!listing->entry[i].is_directory) {
            continue;
        }
        dir.files = count_files(listing, i, bin);
        if (dir.files > 0) {
            if (!gd_grow_list(&ret->dir, ret->count, &ret->cap, sizeof(*ret->dir))) {
                rc = gd_fail_nomem(err);
                break;
            }
            parts_of(listing, i, &above, &parts);
            (bin ? place_bin : place_npy)(&parts, &dir);
            ret->dir[ret->count++] = dir;
        }
    }
    if (rc != GD_OK) {
        ms_dirs_clear(ret);
    } else if (ret->count > 1) {
        qsort(ret->dir, ret->count, sizeof(*ret->dir), compare_dirs);
    }
    return rc;
}

void ms_dirs_clear(struct ms_dirs *tree)
{
    free(tree->dir);
    gd_arena_deinit(&tree->arena);
    *tree = (struct ms_dirs){.dir = NULL};
}

static int add_roots(const struct ms_dirs *tree, const struct gd_dump_format *format,
                     struct gd_findings *findings, struct gd_err *err)
{
    const struct ms_dirs_rule *rule = format->detail;
    int rc = GD_OK;

    for (size_t i = 0, end; rc == GD_OK && i < tree->count; i = end) {
        struct gd_finding finding = {
            .format = format, .root = tree->dir[i].root, .rule = rule->text};

        for (end = i; end < tree->count && tree->dir[end].root == finding.root; end++) {
            finding.files += tree->dir[end].files;
        }
        rc = gd_findings_add(findings, &finding, err);
    }
    return rc;
}

int ms_dirs_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                 struct gd_findings *findings, struct gd_err *err)
{
    const struct ms_dirs_rule *rule = format->detail;
    struct ms_dirs tree;
    int rc = ms_dirs_read(listing, 0, rule->is_bin, &tree, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = add_roots(&tree, format, findings, err);
    ms_dirs_clear(&tree);
    return rc;
}
