// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_dirs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/cann/cann_container.h"
#include "dump/io/disk.h"
#include "dump/io/file_name.h"

#define MAX_TRIES    8 /* files of a directory that are examined */
#define MAX_PARTS    64
#define FIRST_LOOK   16
#define MAX_NARROWED 4096 /* directories of a tree that are compared pairwise */

bool cann_is_build_graph(const char *name)
{
    return strncmp(name, "ge_proto_", 9) == 0 && gd_ends_with(name, "_Build.txt");
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Whether the name without a suffix of `len` characters is a dump file's. */
static bool parses_without(const char *text, size_t suffix, struct gd_cann_name *name)
{
    char base[512];
    size_t len = strlen(text) - suffix;

    if (len >= sizeof(base)) {
        return false;
    }
    memcpy(base, text, len);
    base[len] = '\0';
    if (!gd_cann_name_parse(base, false, name) || name->kind == GD_CANN_EXCEPTION) {
        return false;
    }
    name->type = text + (name->type - base); /* was pointing into base */
    name->name = text + (name->name - base);
    return true;
}

enum cann_file_kind cann_file_kind(const struct gd_listing *listing, uint32_t entry,
                                   const struct gd_mapping *mapping, bool exceptions,
                                   struct gd_cann_name *name, const char **text)
{
    const struct gd_listing_entry *file = &listing->entry[entry];
    /* the root's name is the path it was opened with */
    *text = gd_mapping_name(mapping, gd_base_name(file->name));
    if (file->is_directory || file->size < 8) {
        return CANN_FILE_NONE;
    }
    if (gd_cann_name_parse(*text, exceptions, name)) {
        return CANN_FILE_CONTAINER;
    }
    if (gd_ends_with(*text, ".csv") && parses_without(*text, 4, name) &&
        name->kind == GD_CANN_OPERATOR) {
        return CANN_FILE_STATISTICS;
    }
    if (strncmp(*text, "Opdebug.", 8) == 0 && gd_ends_with(*text, ".output.0.json") &&
        parses_without(*text, 14, name) && name->kind == GD_CANN_OVERFLOW) {
        return CANN_FILE_RECORD;
    }
    return CANN_FILE_NONE;
}

static bool looks_right(const struct gd_listing *listing, uint32_t entry)
{
    unsigned char start[FIRST_LOOK];
    char path[PATH_MAX];
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    uint64_t size;

    if (gd_listing_path(listing, entry, path, sizeof(path), NULL) != GD_OK ||
        gd_disk_open(AT_FDCWD, path, false, &disk, NULL) != GD_OK) {
        return false;
    }
    size = gd_disk_size(disk);
    size = size < FIRST_LOOK ? size : FIRST_LOOK;
    return gd_disk_read(disk, 0, start, (size_t)size, NULL) == GD_OK &&
           gd_cann_looks_right(start, (size_t)size, gd_disk_size(disk));
}

/* Counts files whose names are those of dump files; 0 if the first of them have other contents. */
static void count_files(const struct gd_listing *listing, uint32_t directory,
                        const struct gd_mapping *mapping, struct cann_dir *ret)
{
    bool exceptions = ret->place.exceptions;
    uint32_t count = 0, tries = 0, right = 0, others = 0;
    struct gd_cann_name name;
    const char *text;

    for (uint32_t at = listing->entry[directory].first_child; at != GD_NO_ENTRY;
         at = listing->entry[at].next) {
        enum cann_file_kind kind = cann_file_kind(listing, at, mapping, exceptions, &name, &text);

        ret->records += kind != CANN_FILE_NONE && name.kind == GD_CANN_OVERFLOW;
        if (kind == CANN_FILE_CONTAINER) {
            count++;
            if (right == 0 && tries < MAX_TRIES) {
                tries++;
                right += looks_right(listing, at);
            }
        } else if (kind != CANN_FILE_NONE) {
            others++;
        }
    }
    ret->files = right ? count + others : others;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The real path of what was opened, in components, innermost first. */
static int root_parts(struct cann_dirs *tree, const struct gd_listing *listing, const char **part,
                      int max)
{
    char full[PATH_MAX];
    char *copy;
    int count = 0;

    if (!realpath(listing->entry[0].name, full)) {
        return 0;
    }
    copy = gd_arena_strdup(&tree->arena, full);
    for (char *end; copy && count < max && (end = strrchr(copy, '/')); *end = '\0') {
        if (end[1] != '\0') {
            part[count++] = end + 1;
        }
    }
    return count;
}

static void find_place(const struct gd_listing *listing, uint32_t directory,
                       const char *const *root, int root_count, struct cann_dir *ret)
{
    const char *part[MAX_PARTS];
    uint32_t at = directory;
    int count = 0, inside;

    for (; at != 0 && count < MAX_PARTS; at = listing->entry[at].parent) {
        part[count++] = listing->entry[at].name;
    }
    inside = count;
    for (int i = 0; i < root_count && count < MAX_PARTS; i++) {
        part[count++] = root[i];
    }
    gd_cann_path(part, count, inside, &ret->place);
    at = directory;
    for (int i = 0; i < ret->place.levels && at != 0; i++) {
        at = listing->entry[at].parent;
    }
    ret->entry = directory;
    ret->root = at;
}

static int add_dir(struct cann_dirs *tree, const struct cann_dir *dir, struct gd_err *err)
{
    if (!gd_grow_list(&tree->dir, tree->count, &tree->cap, sizeof(*tree->dir))) {
        return gd_fail_nomem(err);
    }
    tree->dir[tree->count++] = *dir;
    return GD_OK;
}

static int look_into(struct cann_dirs *tree, const struct gd_listing *listing, uint32_t directory,
                     const char *const *root, int root_count, struct gd_err *err)
{
    struct gd_mapping *mapping = NULL;
    struct cann_dir dir = {.files = 0};

    find_place(listing, directory, root, root_count, &dir);
    /* errors are reported later, with the files */
    gd_mapping_read(listing, directory, &mapping, NULL);
    count_files(listing, directory, mapping, &dir);
    gd_mapping_free(mapping);
    return dir.files ? add_dir(tree, &dir, err) : GD_OK;
}

/* A single file was opened. */
static int look_at_file(struct cann_dirs *tree, const struct gd_listing *listing,
                        const char *const *root, int root_count, struct gd_err *err)
{
    struct cann_dir dir = {.entry = 0, .root = 0, .files = 1};
    struct gd_cann_name name;
    const char *text;
    enum cann_file_kind kind;
    struct gd_mapping *mapping = NULL;

    gd_cann_path(root + (root_count > 1), root_count > 1 ? root_count - 1 : 0, 0, &dir.place);
    gd_mapping_read(listing, 0, &mapping, NULL);
    kind = cann_file_kind(listing, 0, mapping, dir.place.exceptions, &name, &text);
    gd_mapping_free(mapping);
    if (kind == CANN_FILE_NONE || (kind == CANN_FILE_CONTAINER && !looks_right(listing, 0))) {
        return GD_OK;
    }
    return add_dir(tree, &dir, err);
}

/* Data of exceptions counts as a tree of its own, extra-info, if there is nothing else next to
 * it. */
static void narrow_exceptions(struct cann_dirs *tree, const struct gd_listing *listing)
{
    for (size_t i = 0; i < tree->count && tree->count <= MAX_NARROWED; i++) {
        struct cann_dir *dir = &tree->dir[i];
        uint32_t device = dir->entry, data_dump = listing->entry[device].parent;
        bool alone = dir->place.exceptions && data_dump != GD_NO_ENTRY && data_dump != 0;

        for (size_t k = 0; alone && k < tree->count; k++) {
            alone = tree->dir[k].root != dir->root || tree->dir[k].place.exceptions;
        }
        if (alone && listing->entry[data_dump].parent != dir->root) {
            dir->root = listing->entry[data_dump].parent;
        }
    }
}

int cann_dirs_read(const struct gd_listing *listing, struct cann_dirs *ret, struct gd_err *err)
{
    const char *root[MAX_PARTS];
    int root_count, rc = GD_OK;

    *ret = (struct cann_dirs){.count = 0};
    gd_arena_init(&ret->arena, 0);
    root_count = root_parts(ret, listing, root, MAX_PARTS);
    if (!listing->entry[0].is_directory) {
        ret->graphs += cann_is_build_graph(root_count ? root[0] : "");
        return look_at_file(ret, listing, root, root_count, err);
    }
    for (uint32_t i = 0; i < listing->count && rc == GD_OK; i++) {
        if (listing->entry[i].is_directory) {
            rc = look_into(ret, listing, i, root, root_count, err);
        } else {
            ret->graphs += cann_is_build_graph(listing->entry[i].name);
        }
    }
    if (rc != GD_OK) {
        cann_dirs_clear(ret);
        return rc;
    }
    narrow_exceptions(ret, listing);
    return GD_OK;
}

void cann_dirs_clear(struct cann_dirs *tree)
{
    free(tree->dir);
    gd_arena_deinit(&tree->arena);
    *tree = (struct cann_dirs){.count = 0};
}
