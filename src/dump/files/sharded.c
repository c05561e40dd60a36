// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The index of a sharded checkpoint: which tensor is in which file. Files are named without a
 * directory, are next to the index and are not links. An error in one file is reported at its
 * tensors; those of the other files can be read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/json.h"
#include "engine/hash_index.h"

#define MAX_INDEX  ((size_t)100 << 20)
#define DEPTH      8
#define MAX_SHARDS 4096

struct shard {
    const char *name;           /* in the index */
    struct gd_archive *archive; /* NULL: see `problem` */
    char problem[GD_ERR_TEXT_MAX];
    size_t used;
};

struct shards {
    struct gd_archive *archive;
    const struct gd_archive_options *options;
    int dir;
    struct shard *shard;
    size_t count, room;
    struct gd_hash_index by_name;
};

/* Whether the first character other than blanks begins an object. */
static bool begins_object(const unsigned char *start, size_t size)
{
    size_t at = size >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (at < size && start[at] && strchr(" \t\r\n", start[at])) {
        at++;
    }
    return at < size && start[at] == '{';
}

static int read_index(struct gd_disk *disk, cJSON **ret, struct gd_err *err)
{
    struct gd_json_options options = {.max_bytes = MAX_INDEX, .max_depth = DEPTH, .unique = true};

    return gd_json_read(disk, &options, ret, err);
}

/* The object that lists the tensors: weight_map, or the whole of a param_name_map.json. NULL:
 * none. */
static const cJSON *find_map(const cJSON *root)
{
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map"), *item;

    if (map) {
        return cJSON_IsObject(map) ? map : NULL;
    }
    if (!cJSON_IsObject(root) || !root->child) {
        return NULL;
    }
    cJSON_ArrayForEach(item, root)
    {
        if (!cJSON_IsString(item) || !strchr(item->valuestring, '.')) {
            return NULL;
        }
    }
    return root;
}

static bool is_index(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    cJSON *root;
    bool found;

    if (!begins_object(start, size) || gd_disk_size(disk) > MAX_INDEX ||
        read_index(disk, &root, NULL) != GD_OK) {
        return false;
    }
    found = find_map(root) != NULL;
    cJSON_Delete(root);
    return found;
}

/* ---- shards ---------------------------------------------------------------------------------- */

static int open_checked(struct shards *shards, const char *name, struct gd_archive **ret,
                        struct gd_err *err)
{
    struct gd_archive_options options = *shards->options;
    unsigned char start[GD_ARCHIVE_START];
    struct gd_disk *disk;
    size_t size;
    int rc;

    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0) {
        return gd_fail(err, GD_EPROTO,
                       "\"%.200s\" is not a file name next to the index: directories are refused",
                       name);
    }
    rc = gd_disk_open(shards->dir, name, false, &disk, err);
    if (rc != GD_OK) {
        return rc;
    }
    size = gd_disk_size(disk) < sizeof(start) ? (size_t)gd_disk_size(disk) : sizeof(start);
    rc = gd_disk_read(disk, 0, start, size, err);
    /* JSON is refused here: an index within an index would never end. */
    if (rc == GD_OK && begins_object(start, size)) {
        rc = gd_fail(err, GD_EPROTO, "%.200s is JSON, not a tensor file", name);
    }
    options.format = NULL;
    rc = rc != GD_OK ? rc : gd_archive_open_disk(disk, &options, ret, err);
    gd_disk_unref(disk);
    return rc;
}

static int add_shard(struct shards *shards, const char *name, struct shard **ret,
                     struct gd_err *err)
{
    uint32_t known =
        gd_hash_index_find(&shards->by_name, name, shards->shard, sizeof(*shards->shard));
    struct shard *shard;
    struct gd_err why;
    int rc;

    if (known != UINT32_MAX) {
        *ret = &shards->shard[known];
        return GD_OK;
    }
    if (shards->count == MAX_SHARDS) {
        return gd_fail(err, GD_ELIMIT, "%.300s names more than %d files",
                       gd_archive_path(shards->archive), MAX_SHARDS);
    }
    if (!gd_grow_list(&shards->shard, shards->count, &shards->room, sizeof(*shards->shard))) {
        return gd_fail_nomem(err);
    }
    rc = gd_hash_index_add_name(&shards->by_name, name, (uint32_t)shards->count, err);
    if (rc != GD_OK) {
        return rc;
    }
    shard = &shards->shard[shards->count++];
    *shard = (struct shard){.name = name};
    rc = open_checked(shards, name, &shard->archive, &why);
    if (rc == GD_ENOMEM || rc == GD_EINTR) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK) {
        memcpy(shard->problem, why.text, sizeof(shard->problem));
        gd_archive_add_note(shards->archive, "%s", why.text);
    }
    *ret = shard;
    return GD_OK;
}

static int add_tensor(struct shards *shards, const char *name, const char *file, struct gd_err *err)
{
    struct gd_archive_entry entry = {.name = name};
    const struct gd_archive_entry *found = NULL;
    struct shard *shard = NULL;
    char problem[400];
    int rc = add_shard(shards, file, &shard, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (shard->archive && name[0]) {
        found = gd_archive_find(shard->archive, name);
    }
    if (found) {
        entry = *found;
        shard->used++;
    } else if (shard->archive) {
        snprintf(problem, sizeof(problem), "%.200s does not contain a tensor of that name", file);
        entry.problem = problem;
    } else {
        entry.problem = shard->problem;
    }
    return gd_archive_add(shards->archive, &entry, err);
}

/* ---- the index ------------------------------------------------------------------------------- */

static int open_directory(const char *path, struct gd_err *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd;

    if (!dir) {
        return gd_fail_nomem(err);
    }
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        fd = gd_fail_errno(err, GD_EIO, "cannot read the directory %.300s", dir);
    }
    free(dir);
    return fd;
}

static int add_tensors(struct shards *shards, const cJSON *map, struct gd_err *err)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, map)
    {
        int rc;

        if (!cJSON_IsString(item)) {
            return gd_fail(err, GD_EPROTO, "%.300s: the tensor %.100s is not mapped to a file name",
                           gd_archive_path(shards->archive), item->string);
        }
        rc = add_tensor(shards, item->string, item->valuestring, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

static void tell_leftover(const struct shards *shards)
{
    for (size_t i = 0; i < shards->count; i++) {
        const struct shard *shard = &shards->shard[i];

        if (shard->archive && gd_archive_count(shard->archive) > shard->used) {
            gd_archive_add_note(shards->archive,
                                "%.200s has %zu tensors that the index does not list", shard->name,
                                gd_archive_count(shard->archive) - shard->used);
        }
        for (size_t k = 0; shard->archive && k < gd_archive_note_count(shard->archive); k++) {
            gd_archive_add_note(shards->archive, "%.100s: %s", shard->name,
                                gd_archive_note(shard->archive, k));
        }
    }
}

static int read_sharded(struct gd_archive *archive, struct gd_disk *disk,
                        const struct gd_archive_options *options, struct gd_err *err)
{
    struct shards shards = {.archive = archive, .options = options};
    const cJSON *map;
    cJSON *root;
    int rc = read_index(disk, &root, err);

    if (rc != GD_OK) {
        return rc;
    }
    map = find_map(root);
    shards.dir = map ? open_directory(gd_disk_path(disk), err)
                     : gd_fail(err, GD_EPROTO, "%.300s has no weight_map from tensors to files",
                               gd_disk_path(disk));
    rc = shards.dir < 0 ? shards.dir : add_tensors(&shards, map, err);
    if (rc == GD_OK) {
        tell_leftover(&shards);
    }
    for (size_t i = 0; i < shards.count; i++) {
        gd_archive_close(shards.shard[i].archive);
    }
    if (shards.dir >= 0) {
        close(shards.dir);
    }
    free(shards.shard);
    gd_hash_index_deinit(&shards.by_name);
    cJSON_Delete(root);
    return rc;
}

const struct gd_archive_format gd_sharded_format = {
    .name = "sharded",
    .what = "index of a sharded checkpoint (.index.json)",
    .is = is_index,
    .read = read_sharded,
};
