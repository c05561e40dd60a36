// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * PyTorch's oldest files (up to 0.1.9): a tar of `storages`, `tensors` and `pickle`, each a
 * sequence of pickles and numbers. The members are read in place, which a tar library cannot do;
 * nothing is unpacked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/io/little_endian.h"
#include "dump/torch/torch_impl.h"

#define BLOCK       512
#define MAX_MEMBERS 64

enum member { STORAGES, TENSORS, PICKLE, MEMBERS };
static const char *const member_names[MEMBERS] = {"storages", "tensors", "pickle"};

struct part { /* the unread part of a member */
    uint64_t at, end;
    bool found;
};

struct named { /* a storage or tensor, by the number used to refer to it */
    int64_t key;
    struct gd_source_desc view; /* of a storage: all of it */
};

struct table {
    struct named *named;
    uint32_t count;
    size_t cap;
    struct gd_hash_index by_key;
};

struct old {
    struct torch_file file;
    struct part member[MEMBERS];
    struct table storages, tensors;
};

static int fail_broken(const struct old *old, uint64_t at, const char *why, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.300s: byte %llu: %s", old->file.path, (unsigned long long)at,
                   why);
}

/* ---- the tar --------------------------------------------------------------------------------- */

static bool is_ustar(const unsigned char *block)
{
    return memcmp(block + 257, "ustar", 5) == 0;
}

static bool is_member(const unsigned char *block, const char *name)
{
    return strncmp((const char *)block, name, 100) == 0;
}

static bool tar_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    if (size < BLOCK || !is_ustar(start)) {
        return false;
    }
    for (int i = 0; i < MEMBERS; i++) {
        if (is_member(start, member_names[i])) {
            return true;
        }
    }
    return is_member(start, "sys_info");
}

/* Parses octal digits followed by a blank or NUL. */
static bool get_octal(const unsigned char *text, size_t size, uint64_t *ret)
{
    size_t i;

    *ret = 0;
    for (i = 0; i < size && text[i] >= '0' && text[i] <= '7'; i++) {
        *ret = *ret * 8 + (uint64_t)(text[i] - '0');
    }
    return i > 0 && (i == size || text[i] == ' ' || text[i] == '\0');
}

static int read_member(struct old *old, uint64_t *at, bool *last, struct gd_err *err)
{
    uint64_t file_size = gd_disk_size(old->file.disk), size;
    unsigned char block[BLOCK];
    int rc = gd_disk_read(old->file.disk, *at, block, BLOCK, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (block[0] == '\0') {
        *last = true;
        return GD_OK;
    }
    if (!is_ustar(block) || !get_octal(block + 124, 12, &size)) {
        return fail_broken(old, *at, "expected the header of a tar member", err);
    }
    *at += BLOCK;
    if (size > file_size - *at) {
        return fail_broken(old, *at, "a member of the tar exceeds the file", err);
    }
    if (block[156] != 'x' && block[156] != 'g' && block[156] != '0' && block[156] != '\0') {
        return fail_broken(old, *at - BLOCK, "a member of the tar is not a regular file", err);
    }
    for (int i = 0; i < MEMBERS; i++) {
        if (is_member(block, member_names[i]) && (block[156] == '0' || block[156] == '\0')) {
            if (old->member[i].found) {
                return fail_broken(old, *at - BLOCK, "the tar has a duplicate member", err);
            }
            old->member[i] = (struct part){.at = *at, .end = *at + size, .found = true};
        }
    }
    *at += (size + BLOCK - 1) / BLOCK * BLOCK;
    *last = *at >= file_size;
    return GD_OK;
}

static int read_members(struct old *old, struct gd_err *err)
{
    uint64_t at = 0;
    bool last = false;

    for (int count = 0; !last; count++) {
        int rc = count < MAX_MEMBERS ? read_member(old, &at, &last, err)
                                     : fail_broken(old, at, "the tar has too many members", err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        if (!old->member[i].found) {
            return gd_fail(err, GD_EPROTO, "%.300s: the tar has no member %s", old->file.path,
                           member_names[i]);
        }
    }
    return GD_OK;
}

/* ---- members --------------------------------------------------------------------------------- */

static int read_pickle(struct old *old, struct part *part, struct gd_pickle **ret,
                       struct gd_err *err)
{
    return gd_pickle_read_disk(old->file.disk, part->at, part->end - part->at, old->file.path, ret,
                               &part->at, err);
}

/* Reads numbers of 8 bytes, or of 4 bytes followed by 4 unused ones. */
static int read_numbers(struct old *old, struct part *part, int64_t *ret, size_t count,
                        struct gd_err *err)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < count; i++) {
        int rc;

        if (part->end - part->at < sizeof(bytes)) {
            return fail_broken(old, part->at, "a member of the tar ends unexpectedly", err);
        }
        rc = gd_disk_read(old->file.disk, part->at, bytes, sizeof(bytes), err);
        if (rc != GD_OK) {
            return rc;
        }
        ret[i] = (int64_t)gd_little_endian(bytes, sizeof(bytes));
        part->at += sizeof(bytes);
    }
    return GD_OK;
}

/* Reads the number of storages or tensors that follow. */
static int read_count(struct old *old, struct part *part, int64_t *ret, struct gd_err *err)
{
    struct gd_pickle *pickle;
    int rc = read_pickle(old, part, &pickle, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_pickle_get_int(gd_pickle_root(pickle), ret) || *ret < 0) {
        rc = fail_broken(old, part->at, "expected a number of storages or tensors", err);
    }
    gd_pickle_free(pickle);
    return rc;
}

static const struct named *find_named(struct table *table, int64_t key)
{
    uint64_t hash = gd_hash_index_hash(&table->by_key, &key, sizeof(key));
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&table->by_key, hash, &at, &number);) {
        if (table->named[number].key == key) {
            return &table->named[number];
        }
    }
    return NULL;
}

static int add_named(struct old *old, struct table *table, uint64_t at, const struct named *named,
                     struct gd_err *err)
{
    uint64_t hash = gd_hash_index_hash(&table->by_key, &named->key, sizeof(named->key));

    if (find_named(table, named->key)) {
        return fail_broken(old, at, "the number of a storage or tensor is not unique", err);
    }
    if (!gd_grow_list(&table->named, table->count, &table->cap, sizeof(*table->named))) {
        return gd_fail_nomem(err);
    }
    table->named[table->count] = *named;
    gd_bytes_ref(named->view.bytes);
    return gd_hash_index_add(&table->by_key, hash, table->count++, err);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* Reads (key, location, class), the number of elements, and the elements. */
static int read_storage(struct old *old, struct part *part, struct gd_err *err)
{
    struct named named = {.view.shape.rank = 1};
    const struct gd_pickle_value *root, *class;
    struct gd_pickle *pickle;
    uint64_t begin = part->at, bytes;
    int rc = read_pickle(old, part, &pickle, err);

    if (rc != GD_OK) {
        return rc;
    }
    root = gd_pickle_root(pickle);
    class = gd_pickle_item(root, 2);
    if (class && class->kind == GD_PICKLE_GLOBAL) {
        named.view.stored = torch_storage_type(class->global->name);
    }
    if (!named.view.stored || !gd_pickle_get_int(gd_pickle_item(root, 0), &named.key)) {
        rc = fail_broken(old, begin, "expected a storage's number, location and class", err);
    }
    gd_pickle_free(pickle);
    rc = rc != GD_OK ? rc : read_numbers(old, part, named.view.shape.dim, 1, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (named.view.shape.dim[0] < 0 ||
        __builtin_mul_overflow((uint64_t)named.view.shape.dim[0],
                               gd_stored_bits(named.view.stored) / 8, &bytes) ||
        bytes > part->end - part->at) {
        return fail_broken(old, begin, "a storage exceeds its member of the tar", err);
    }
    rc = gd_bytes_of_disk(old->file.disk, part->at, bytes, &named.view.bytes, err);
    if (rc == GD_OK) {
        part->at += bytes;
        named.view.swap = old->file.swap;
        rc = add_named(old, &old->storages, begin, &named, err);
        gd_bytes_unref(named.view.bytes);
    }
    return rc;
}

/* Reads storages that are parts of others: [(key, key of the other, first element, number),
 * ...]. */
static int read_views(struct old *old, struct part *part, struct gd_err *err)
{
    const struct gd_pickle_value *root, *item;
    uint64_t begin = part->at;
    struct gd_pickle *pickle;
    int rc = read_pickle(old, part, &pickle, err);

    if (rc != GD_OK) {
        return rc;
    }
    root = gd_pickle_root(pickle);
    for (size_t i = 0; rc == GD_OK && (item = gd_pickle_item(root, i)); i++) {
        const struct named *whole;
        struct named named;
        int64_t key, first, end, numel;

        whole = gd_pickle_get_int(gd_pickle_item(item, 1), &key) ? find_named(&old->storages, key)
                                                                 : NULL;
        if (!whole || !gd_pickle_get_int(gd_pickle_item(item, 0), &key) ||
            !gd_pickle_get_int(gd_pickle_item(item, 2), &first) ||
            !gd_pickle_get_int(gd_pickle_item(item, 3), &numel) || first < 0 || numel < 0 ||
            __builtin_add_overflow(first, numel, &end) || end > whole->view.shape.dim[0]) {
            rc = fail_broken(old, begin, "a storage that is part of another is invalid", err);
            break;
        }
        named = *whole;
        named.key = key;
        named.view.offset += first;
        named.view.shape.dim[0] = numel;
        rc = add_named(old, &old->storages, begin, &named, err);
    }
    gd_pickle_free(pickle);
    return rc;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Reads (key, key of the storage, class), rank, sizes, strides and first element. */
static int read_tensor(struct old *old, struct part *part, struct gd_err *err)
{
    const struct named *storage = NULL;
    uint64_t begin = part->at;
    struct gd_pickle *pickle;
    struct named named;
    int64_t key, own = 0, rank = 0, first;
    int rc = read_pickle(old, part, &pickle, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (gd_pickle_get_int(gd_pickle_item(gd_pickle_root(pickle), 1), &key) &&
        gd_pickle_get_int(gd_pickle_item(gd_pickle_root(pickle), 0), &own)) {
        storage = find_named(&old->storages, key);
    }
    gd_pickle_free(pickle);
    if (!storage) {
        return fail_broken(old, begin, "a tensor is invalid, or its storage is missing", err);
    }
    named = *storage;
    named.key = own;
    rc = read_numbers(old, part, &rank, 1, err);
    rank = (int32_t)(uint32_t)(uint64_t)rank;
    if (rc == GD_OK && (rank < 0 || rank > GD_MAX_RANK)) {
        rc = fail_broken(old, begin, "a tensor with too many dimensions", err);
    }
    rc = rc != GD_OK ? rc : read_numbers(old, part, named.view.shape.dim, (size_t)rank, err);
    rc = rc != GD_OK ? rc : read_numbers(old, part, named.view.stride, (size_t)rank, err);
    rc = rc != GD_OK ? rc : read_numbers(old, part, &first, 1, err);
    if (rc == GD_OK &&
        (first < 0 || __builtin_add_overflow(named.view.offset, first, &named.view.offset))) {
        rc = fail_broken(old, begin, "the first element of a tensor is invalid", err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    named.view.shape.rank = (int)rank;
    named.view.has_stride = true;
    return add_named(old, &old->tensors, begin, &named, err);
}

static int read_all(struct old *old, enum member member,
                    int (*read)(struct old *old, struct part *part, struct gd_err *err),
                    struct gd_err *err)
{
    int64_t count;
    int rc = read_count(old, &old->member[member], &count, err);

    for (int64_t i = 0; rc == GD_OK && i < count; i++) {
        rc = read(old, &old->member[member], err);
    }
    return rc;
}

/* Resolves a persistent id of the object: a number, as integer or string. */
static bool tensor_of(struct torch_file *file, const struct gd_pickle_value *value,
                      struct gd_source_desc *ret)
{
    struct old *old = file->find_ctx;
    const struct named *named;
    int64_t key = 0;

    if (!gd_pickle_get_int(value->id, &key)) {
        if (value->id->kind != GD_PICKLE_TEXT || !value->id->count || value->id->count > 18) {
            return false;
        }
        for (uint32_t i = 0; i < value->id->count; i++) {
            char c = value->id->text[i];

            if (c < '0' || c > '9') {
                return false;
            }
            key = key * 10 + (c - '0');
        }
    }
    named = find_named(&old->tensors, key);
    named = named ? named : find_named(&old->storages, key);
    if (named) {
        *ret = named->view;
        gd_bytes_ref(ret->bytes);
    }
    return named != NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void free_table(struct table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        gd_bytes_unref(table->named[i].view.bytes);
    }
    free(table->named);
    gd_hash_index_deinit(&table->by_key);
}

static int read_object(struct old *old, const struct gd_archive_options *options,
                       struct gd_err *err)
{
    struct gd_pickle *pickle;
    int rc = read_pickle(old, &old->member[PICKLE], &pickle, err);

    if (rc == GD_OK) {
        rc = torch_list(&old->file, pickle, options, err);
        gd_pickle_free(pickle);
    }
    return rc;
}

static int tar_read(struct gd_archive *archive, struct gd_disk *disk,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    struct old *old = calloc(1, sizeof(*old));
    int rc;

    if (!old) {
        return gd_fail_nomem(err);
    }
    old->file = (struct torch_file){.archive = archive,
                                    .disk = disk,
                                    .path = gd_disk_path(disk),
                                    .swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
                                    .find_ctx = old,
                                    .tensor_of = tensor_of};
    rc = read_members(old, err);
    rc = rc != GD_OK ? rc : read_all(old, STORAGES, read_storage, err);
    rc = rc != GD_OK ? rc : read_views(old, &old->member[STORAGES], err);
    rc = rc != GD_OK ? rc : read_all(old, TENSORS, read_tensor, err);
    rc = rc != GD_OK ? rc : read_object(old, options, err);
    free_table(&old->tensors);
    free_table(&old->storages);
    torch_file_deinit(&old->file);
    free(old);
    return rc;
}

const struct gd_archive_format gd_torch_tar_format = {
    .name = "torch-tar",
    .what = "PyTorch file (torch.save, up to 0.1.9)",
    .is = tar_is,
    .read = tar_read,
};
