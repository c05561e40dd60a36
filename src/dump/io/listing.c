// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Directories are read breadth first: entries too deep to be listed never hide those above them.
 */
#include "dump/io/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/grow.h"
#include "dump/io/disk.h"

#define ASK_EVERY 256 /* entries between two calls of go_on */

struct gd_listing_impl {
    struct gd_arena names;
    struct gd_listing_entry *entry;
    size_t room;
};

struct reading {
    struct gd_listing *listing;
    uint32_t max;
    bool (*go_on)(void *ctx, uint64_t entries);
    void *ctx;
    struct gd_err *err;
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares digit runs of any length as numbers, ignoring leading zeros; moves past them. */
static int compare_numbers(const char **a, const char **b)
{
    size_t len_a, len_b;
    int order;

    while (**a == '0') {
        (*a)++;
    }
    while (**b == '0') {
        (*b)++;
    }
    for (len_a = 0; is_digit((*a)[len_a]); len_a++) {
    }
    for (len_b = 0; is_digit((*b)[len_b]); len_b++) {
    }
    order = len_a != len_b ? (len_a < len_b ? -1 : 1) : strncmp(*a, *b, len_a);
    *a += len_a;
    *b += len_b;
    return order;
}

/* "step_2" before "step_10". */
static int compare_names(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            int order = compare_numbers(&x, &y);

            if (order) {
                return order;
            }
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        } else {
            x++;
            y++;
        }
    }
    if (*x != *y) {
        return *x ? 1 : -1;
    }
    return strcmp(a, b); /* equal except for leading zeros */
}

static int compare_entries(const void *a, const void *b)
{
    const struct gd_listing_entry *x = a, *y = b;

    return compare_names(x->name, y->name);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int add_entry(struct reading *in, const struct gd_listing_entry *entry)
{
    struct gd_listing_impl *impl = in->listing->impl;

    if (in->listing->count >= in->max) {
        return gd_fail(in->err, GD_ELIMIT,
                       "%.300s contains more than %u files and directories: open a subdirectory",
                       impl->entry[0].name, in->max);
    }
    if (!gd_grow_list(&impl->entry, in->listing->count, &impl->room, sizeof(*impl->entry))) {
        return gd_fail_nomem(in->err);
    }
    in->listing->entry = impl->entry;
    impl->entry[in->listing->count++] = *entry;
    if (in->go_on && in->listing->count % ASK_EVERY == 0 &&
        !in->go_on(in->ctx, in->listing->count)) {
        return gd_fail(in->err, GD_EINTR, "interrupted while listing %.300s", impl->entry[0].name);
    }
    return GD_OK;
}

static double to_seconds(const struct timespec *time)
{
    return (double)time->tv_sec + (double)time->tv_nsec / 1e9;
}

static int add_child(struct reading *in, uint32_t parent, int dir_fd, const char *name)
{
    struct gd_listing *listing = in->listing;
    struct gd_listing_entry child = {
        .parent = parent, .first_child = GD_NO_ENTRY, .next = GD_NO_ENTRY};
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return GD_OK;
    }
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        listing->unreadable++;
        return GD_OK;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        *(S_ISLNK(st.st_mode) ? &listing->links : &listing->others) += 1;
        return GD_OK;
    }
    child.name = gd_arena_strdup(&listing->impl->names, name);
    if (!child.name) {
        return gd_fail_nomem(in->err);
    }
    child.is_directory = S_ISDIR(st.st_mode);
    child.size = child.is_directory ? 0 : (uint64_t)st.st_size;
    child.modified = to_seconds(&st.st_mtim);
    child.depth = (uint8_t)(listing->entry[parent].depth + 1);
    return add_entry(in, &child);
}

static int read_children(struct reading *in, uint32_t parent, DIR *dir)
{
    struct gd_listing *listing = in->listing;
    uint32_t first = listing->count;
    struct gd_listing_entry *entry;
    struct dirent *found;
    int rc = GD_OK;

    while (rc == GD_OK && (found = readdir(dir))) {
        rc = add_child(in, parent, dirfd(dir), found->d_name);
    }
    entry = listing->impl->entry;
    if (rc == GD_OK && listing->count > first) {
        qsort(entry + first, listing->count - first, sizeof(*entry), compare_entries);
        entry[parent].first_child = first;
        entry[parent].children = listing->count - first;
        for (uint32_t i = first; i + 1 < listing->count; i++) {
            entry[i].next = i + 1;
        }
    }
    return rc;
}

static int read_directory(struct reading *in, uint32_t index)
{
    char path[PATH_MAX];
    int fd, rc;
    DIR *dir;

    if (in->listing->entry[index].depth >= GD_LISTING_DEPTH) {
        in->listing->too_deep++;
        return GD_OK;
    }
    if (gd_listing_path(in->listing, index, path, sizeof(path), NULL) != GD_OK) {
        in->listing->unreadable++;
        return GD_OK;
    }
    /* The root may be a link: the user named it. */
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (index ? O_NOFOLLOW : 0));
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) {
            close(fd);
        }
        if (index == 0) {
            return gd_fail_errno(in->err, GD_EIO, "cannot read the directory %.300s", path);
        }
        in->listing->unreadable++;
        return GD_OK;
    }
    rc = read_children(in, index, dir);
    closedir(dir);
    return rc;
}

static int read_root(struct reading *in, const char *path)
{
    struct gd_listing_entry root = {
        .parent = GD_NO_ENTRY, .first_child = GD_NO_ENTRY, .next = GD_NO_ENTRY};
    struct stat st;

    if (stat(path, &st) != 0) {
        return gd_fail_errno(in->err, errno == ENOENT ? GD_ENOTFOUND : GD_EIO, "cannot open %.300s",
                             path);
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        return gd_fail(in->err, GD_EIO, "%.300s is neither a file nor a directory", path);
    }
    root.name = gd_arena_strdup(&in->listing->impl->names, path);
    if (!root.name) {
        return gd_fail_nomem(in->err);
    }
    root.is_directory = S_ISDIR(st.st_mode);
    root.size = root.is_directory ? 0 : (uint64_t)st.st_size;
    root.modified = to_seconds(&st.st_mtim);
    return add_entry(in, &root);
}

int gd_listing_read(const char *path, uint32_t max_entries,
                    bool (*go_on)(void *ctx, uint64_t entries), void *ctx, struct gd_listing **ret,
                    struct gd_err *err)
{
    struct reading in = {
        .max = max_entries ? max_entries : GD_NO_ENTRY - 1, .go_on = go_on, .ctx = ctx, .err = err};
    struct gd_listing *listing = calloc(1, sizeof(*listing));
    int rc;

    if (listing) {
        listing->impl = calloc(1, sizeof(*listing->impl));
    }
    if (!listing || !listing->impl) {
        free(listing);
        return gd_fail_nomem(err);
    }
    gd_arena_init(&listing->impl->names, 0);
    in.listing = listing;
    rc = read_root(&in, path);
    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        if (listing->entry[i].is_directory) {
            rc = read_directory(&in, i);
        }
    }
    if (rc != GD_OK) {
        gd_listing_free(listing);
        return rc;
    }
    *ret = listing;
    return GD_OK;
}

void gd_listing_free(struct gd_listing *listing)
{
    if (!listing) {
        return;
    }
    gd_arena_deinit(&listing->impl->names);
    free(listing->impl->entry);
    free(listing->impl);
    free(listing);
}

/* ---- queries --------------------------------------------------------------------------------- */

int gd_listing_path(const struct gd_listing *listing, uint32_t entry, char *out, size_t size,
                    struct gd_err *err)
{
    uint32_t way[GD_LISTING_DEPTH + 2];
    size_t used = 0;
    int depth = 0;

    for (uint32_t at = entry; at != GD_NO_ENTRY; at = listing->entry[at].parent) {
        way[depth++] = at;
    }
    while (depth-- > 0) {
        const char *name = listing->entry[way[depth]].name;
        bool slash = used > 0 && out[used - 1] != '/';
        int wrote = snprintf(out + used, size - used, "%s%s", slash ? "/" : "", name);

        if (wrote < 0 || (size_t)wrote >= size - used) {
            return gd_fail(err, GD_ELIMIT, "a path longer than %zu bytes below %.300s", size,
                           listing->entry[0].name);
        }
        used += (size_t)wrote;
    }
    return GD_OK;
}

uint32_t gd_listing_child(const struct gd_listing *listing, uint32_t entry, const char *name)
{
    struct gd_listing_entry key = {.name = name};
    const struct gd_listing_entry *dir = &listing->entry[entry], *found;

    if (dir->children == 0) {
        return GD_NO_ENTRY;
    }
    found = bsearch(&key, &listing->entry[dir->first_child], dir->children, sizeof(key),
                    compare_entries);
    return found ? (uint32_t)(found - listing->entry) : GD_NO_ENTRY;
}

uint32_t gd_listing_up(const struct gd_listing *listing, uint32_t entry, uint32_t levels)
{
    while (levels-- > 0 && listing->entry[entry].parent != GD_NO_ENTRY) {
        entry = listing->entry[entry].parent;
    }
    return entry;
}

uint32_t gd_listing_next(const struct gd_listing *listing, uint32_t entry, uint32_t root)
{
    if (listing->entry[entry].first_child != GD_NO_ENTRY) {
        return listing->entry[entry].first_child;
    }
    while (entry != root && listing->entry[entry].next == GD_NO_ENTRY) {
        entry = listing->entry[entry].parent;
    }
    return entry == root ? GD_NO_ENTRY : listing->entry[entry].next;
}

int gd_listing_open(const struct gd_listing *listing, uint32_t entry, struct gd_disk **ret,
                    struct gd_err *err)
{
    char path[PATH_MAX];
    int rc = gd_listing_path(listing, entry, path, sizeof(path), err);

    return rc != GD_OK ? rc
                       : gd_disk_open(AT_FDCWD, path, listing->entry[entry].parent == GD_NO_ENTRY,
                                      ret, err);
}

size_t gd_listing_peek(const struct gd_listing *listing, uint32_t entry, char *out, size_t size)
{
    struct gd_disk *disk;
    size_t len;

    out[0] = '\0';
    if (gd_listing_open(listing, entry, &disk, NULL) != GD_OK) {
        return 0;
    }
    len = gd_disk_size(disk) < size - 1 ? (size_t)gd_disk_size(disk) : size - 1;
    if (len && gd_disk_read(disk, 0, out, len, NULL) != GD_OK) {
        len = 0;
    }
    gd_disk_unref(disk);
    out[len] = '\0';
    return len;
}
