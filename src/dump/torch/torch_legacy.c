// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * PyTorch files from before zip: five consecutive pickles (magic number, version, facts about the
 * machine, the object, the keys of the storages), then each storage in the order of the keys:
 * number of elements and bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/io/little_endian.h"
#include "dump/torch/torch_impl.h"

#define VERSION 1001

/* The integer 0x1950a86a20f9469cfc6c, pickled with protocol 2. */
static const unsigned char magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                      0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
/* torch.jit files of one or two releases. */
static const char preview[] = "PYTORCH1";

struct place { /* of a storage */
    uint64_t at, size;
    bool found; /* false: the file ends before it */
};

struct legacy {
    struct torch_file file;
    const struct gd_archive_options *options;
    uint64_t at; /* read so far */
    struct gd_pickle *object, *keys;
    struct place *place; /* per key in `keys` */
    size_t key_count;
    struct gd_hash_index by_key;    /* numbers of keys */
    struct gd_hash_index first_use; /* numbers of persistent ids, by key */
};

static bool legacy_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    return (size >= sizeof(magic) && memcmp(start, magic, sizeof(magic)) == 0) ||
           (size >= sizeof(preview) - 1 && memcmp(start, preview, sizeof(preview) - 1) == 0);
}

static int fail_broken(const struct legacy *legacy, struct gd_err *err, const char *why)
{
    gd_fail(err, GD_EPROTO, "%.300s: byte %llu: %s", legacy->file.path,
            (unsigned long long)legacy->at, why);
    return GD_EPROTO;
}

/* Reads the next pickle of the file. */
static int read_pickle(struct legacy *legacy, struct gd_pickle **ret, struct gd_err *err)
{
    struct gd_disk *disk = legacy->file.disk;

    return gd_pickle_read_disk(disk, legacy->at, gd_disk_size(disk) - legacy->at, legacy->file.path,
                               ret, &legacy->at, err);
}

/* Reads the version and the dict of facts. */
static int read_head(struct legacy *legacy, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_pickle) struct gd_pickle *version = NULL;
    GD_CLEANUP(gd_cleanup_pickle) struct gd_pickle *facts = NULL;
    const struct gd_pickle_value *little;
    int64_t number;
    int rc;

    legacy->at = sizeof(magic);
    rc = read_pickle(legacy, &version, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_pickle_get_int(gd_pickle_root(version), &number) || number != VERSION) {
        return fail_broken(legacy, err, "the file version is not 1001, the only one that exists");
    }
    rc = read_pickle(legacy, &facts, err);
    if (rc != GD_OK) {
        return rc;
    }
    little = gd_pickle_get(gd_pickle_root(facts), "little_endian");
    if (!little || little->kind != GD_PICKLE_BOOL) {
        return fail_broken(legacy, err, "the byte order is missing");
    }
    legacy->file.swap = little->truth == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return GD_OK;
}

/* ---- storages -------------------------------------------------------------------------------- */

/* The id that first names a key; false: none. */
static bool find_use(struct legacy *legacy, const struct gd_pickle_value *key,
                     struct torch_storage_id *ret)
{
    uint64_t hash = gd_hash_index_hash(&legacy->first_use, key->text, key->count);
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&legacy->first_use, hash, &at, &number);) {
        if (torch_storage_id(gd_pickle_persistent_at(legacy->object, number), ret) &&
            ret->key->count == key->count && memcmp(ret->key->text, key->text, key->count) == 0) {
            return true;
        }
    }
    return false;
}

/* The element size is that of the class under which a key is first named. */
static int index_uses(struct legacy *legacy, struct gd_err *err)
{
    size_t count = gd_pickle_persistent_count(legacy->object);
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct torch_storage_id id, other;

        if (torch_storage_id(gd_pickle_persistent_at(legacy->object, i), &id) &&
            !find_use(legacy, id.key, &other)) {
            uint64_t hash = gd_hash_index_hash(&legacy->first_use, id.key->text, id.key->count);

            rc = gd_hash_index_add(&legacy->first_use, hash, (uint32_t)i, err);
        }
    }
    return rc;
}

/* Reads the storage of a key at the current position. */
static int read_place(struct legacy *legacy, const struct gd_pickle_value *key, struct place *place,
                      struct gd_err *err)
{
    uint64_t size = gd_disk_size(legacy->file.disk), bytes;
    struct torch_storage_id id;
    unsigned char count[8];
    int rc;

    if (key->kind != GD_PICKLE_TEXT || !find_use(legacy, key, &id)) {
        return fail_broken(legacy, err, "the list of storages has a key that no tensor uses");
    }
    if (size - legacy->at < sizeof(count) && legacy->options->partial) {
        legacy->at = size;
        return GD_OK;
    }
    rc = gd_disk_read(legacy->file.disk, legacy->at, count, sizeof(count), err);
    if (rc != GD_OK) {
        return rc;
    }
    /* The count is little-endian, like every machine that wrote such files. */
    id.numel = (int64_t)gd_little_endian(count, 8);
    if (id.numel < 0 || !torch_storage_bytes(&id, &bytes)) {
        return fail_broken(legacy, err, "a storage has an impossible number of elements or type");
    }
    legacy->at += sizeof(count);
    if (bytes > size - legacy->at && legacy->options->partial) {
        legacy->at = size;
        return GD_OK;
    }
    if (bytes > size - legacy->at) {
        gd_fail(
            err, GD_EPROTO,
            "%.300s: byte %llu: a storage of %llu bytes begins here, but the file ends after %llu",
            legacy->file.path, (unsigned long long)legacy->at, (unsigned long long)bytes,
            (unsigned long long)(size - legacy->at));
        return GD_EPROTO;
    }
    *place = (struct place){.at = legacy->at, .size = bytes, .found = true};
    legacy->at += bytes;
    return GD_OK;
}

/* The number of a key in the list; false: not in it, or not read yet. */
static bool find_key(struct legacy *legacy, const char *key, uint32_t key_len, uint32_t *ret)
{
    const struct gd_pickle_value *keys = gd_pickle_root(legacy->keys);
    uint64_t hash = gd_hash_index_hash(&legacy->by_key, key, key_len);

    for (size_t at = 0; gd_hash_index_next(&legacy->by_key, hash, &at, ret);) {
        const struct gd_pickle_value *known = keys->item[*ret];

        if (known->count == key_len && memcmp(known->text, key, key_len) == 0) {
            return true;
        }
    }
    return false;
}

static int index_key(struct legacy *legacy, const struct gd_pickle_value *keys, uint32_t index,
                     struct gd_err *err)
{
    const struct gd_pickle_value *key = keys->item[index];
    uint32_t number;

    if (find_key(legacy, key->text, key->count, &number)) {
        return fail_broken(legacy, err, "the list of storages has a duplicate key");
    }
    return gd_hash_index_add(
        &legacy->by_key, gd_hash_index_hash(&legacy->by_key, key->text, key->count), index, err);
}

static int read_places(struct legacy *legacy, struct gd_err *err)
{
    const struct gd_pickle_value *keys = gd_pickle_root(legacy->keys);
    int rc = index_uses(legacy, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (keys->kind != GD_PICKLE_LIST) {
        return fail_broken(legacy, err, "the list of storages is not a list of keys");
    }
    legacy->key_count = keys->count;
    legacy->place = calloc(legacy->key_count + 1, sizeof(*legacy->place));
    if (!legacy->place) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; rc == GD_OK && i < keys->count; i++) {
        rc = read_place(legacy, keys->item[i], &legacy->place[i], err);
        rc = rc != GD_OK ? rc : index_key(legacy, keys, i, err);
    }
    if (rc == GD_OK && legacy->at < gd_disk_size(legacy->file.disk)) {
        gd_archive_add_note(legacy->file.archive, "%llu bytes after the last storage",
                            (unsigned long long)(gd_disk_size(legacy->file.disk) - legacy->at));
    }
    return rc;
}

static int find_storage(struct torch_file *file, const char *key, struct gd_bytes **ret,
                        struct gd_err *err)
{
    struct legacy *legacy = file->find_ctx;
    const struct place *place;
    uint32_t number;

    if (!find_key(legacy, key, (uint32_t)strlen(key), &number)) {
        return gd_fail(err, GD_EPROTO, "the file has no storage %s", key);
    }
    place = &legacy->place[number];
    return place->found ? gd_bytes_of_disk(file->disk, place->at, place->size, ret, err)
                        : gd_fail(err, GD_EPROTO, "the file is truncated before storage %s", key);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_file(struct legacy *legacy, struct gd_err *err)
{
    int rc = read_head(legacy, err);

    rc = rc != GD_OK ? rc : read_pickle(legacy, &legacy->object, err);
    rc = rc != GD_OK ? rc : read_pickle(legacy, &legacy->keys, err);
    rc = rc != GD_OK ? rc : read_places(legacy, err);
    return rc != GD_OK ? rc : torch_list(&legacy->file, legacy->object, legacy->options, err);
}

static int legacy_read(struct gd_archive *archive, struct gd_disk *disk,
                       const struct gd_archive_options *options, struct gd_err *err)
{
    struct legacy legacy = {
        .file = {.archive = archive, .disk = disk, .path = gd_disk_path(disk)},
        .options = options,
    };
    unsigned char start[sizeof(magic)] = {0};
    int rc;

    if (gd_disk_size(disk) >= sizeof(start)) {
        rc = gd_disk_read(disk, 0, start, sizeof(start), err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (memcmp(start, preview, sizeof(preview) - 1) == 0) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%.300s is a TorchScript program of a PyTorch 1.0 preview, which is not "
                       "supported: save its state_dict() with torch.save",
                       legacy.file.path);
    }
    if (memcmp(start, magic, sizeof(magic)) != 0) {
        return gd_fail(err, GD_EPROTO, "%.300s does not begin with PyTorch's old magic number",
                       legacy.file.path);
    }
    legacy.file.find = find_storage;
    legacy.file.find_ctx = &legacy;
    rc = read_file(&legacy, err);
    torch_file_deinit(&legacy.file);
    gd_pickle_free(legacy.object);
    gd_pickle_free(legacy.keys);
    gd_hash_index_deinit(&legacy.by_key);
    gd_hash_index_deinit(&legacy.first_use);
    free(legacy.place);
    return rc;
}

const struct gd_archive_format gd_torch_legacy_format = {
    .name = "torch-legacy",
    .what = "PyTorch file (torch.save, 0.2 to 1.5)",
    .is = legacy_is,
    .read = legacy_read,
};
