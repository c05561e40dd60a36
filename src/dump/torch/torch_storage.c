// SPDX-License-Identifier: GPL-3.0-or-later
/* Storages of PyTorch files: parsing their ids, and finding their bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/torch/torch_impl.h"

#define MAX_KEY 64 /* characters */

/* ---- element types --------------------------------------------------------------------------- */

struct named_type {
    const char *name;
    enum gd_stored stored;
};

static enum gd_stored find_type(const struct named_type *types, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].stored;
        }
    }
    return GD_STORED_NONE;
}

enum gd_stored torch_storage_type(const char *class)
{
    static const struct named_type types[] = {
        {"FloatStorage", GD_STORED_FLOAT32},
        {"DoubleStorage", GD_STORED_FLOAT64},
        {"HalfStorage", GD_STORED_FLOAT16},
        {"BFloat16Storage", GD_STORED_BFLOAT16},
        {"LongStorage", GD_STORED_INT64},
        {"IntStorage", GD_STORED_INT32},
        {"ShortStorage", GD_STORED_INT16},
        {"CharStorage", GD_STORED_INT8},
        {"ByteStorage", GD_STORED_UINT8},
        {"BoolStorage", GD_STORED_BOOL},
        {"ComplexFloatStorage", GD_STORED_COMPLEX64},
        {"ComplexDoubleStorage", GD_STORED_COMPLEX128},
        {"QInt8Storage", GD_STORED_INT8},
        {"QUInt8Storage", GD_STORED_UINT8},
        {"QInt32Storage", GD_STORED_INT32},
        {"QUInt4x2Storage", GD_STORED_UINT4},
        {"QUInt2x4Storage", GD_STORED_UINT2},
        {"UntypedStorage", GD_STORED_UINT8},
        {"_UntypedStorage", GD_STORED_UINT8},
    };

    return find_type(types, sizeof(types) / sizeof(types[0]), class);
}

enum gd_stored torch_dtype(const struct gd_pickle_value *value)
{
    /* torch stores these in at least one byte each, whatever their names say. */
    static const struct named_type types[] = {
        {"uint1", GD_STORED_UINT8},
        {"uint2", GD_STORED_UINT8},
        {"uint3", GD_STORED_UINT8},
        {"uint4", GD_STORED_UINT8},
        {"uint5", GD_STORED_UINT8},
        {"uint6", GD_STORED_UINT8},
        {"uint7", GD_STORED_UINT8},
        {"int1", GD_STORED_INT8},
        {"int2", GD_STORED_INT8},
        {"int3", GD_STORED_INT8},
        {"int4", GD_STORED_INT8},
        {"int5", GD_STORED_INT8},
        {"int6", GD_STORED_INT8},
        {"int7", GD_STORED_INT8},
        {"bits8", GD_STORED_UINT8},
        {"bits16", GD_STORED_UINT16},
        {"bits1x8", GD_STORED_UINT8},
        {"bits2x4", GD_STORED_UINT8},
        {"bits4x2", GD_STORED_UINT8},
        {"qint8", GD_STORED_INT8},
        {"quint8", GD_STORED_UINT8},
        {"qint32", GD_STORED_INT32},
        {"quint4x2", GD_STORED_UINT4},
        {"quint2x4", GD_STORED_UINT2},
        {"float4_e2m1fn_x2", GD_STORED_UINT8},
    };
    enum gd_stored stored;

    if (!value || value->kind != GD_PICKLE_GLOBAL || strcmp(value->global->module, "torch") != 0) {
        return GD_STORED_NONE;
    }
    stored = find_type(types, sizeof(types) / sizeof(types[0]), value->global->name);
    return stored ? stored : gd_stored_from_name(value->global->name);
}

/* Bytes per element as torch counts a storage: packed ones count in bytes. */
static uint64_t item_bytes(enum gd_stored stored)
{
    unsigned bits = gd_stored_bits(stored);

    return bits < 8 ? 1 : bits / 8;
}

/* ---- ids ------------------------------------------------------------------------------------- */

bool torch_storage_id(const struct gd_pickle_value *value, struct torch_storage_id *ret)
{
    const struct gd_pickle_value *id, *class;

    if (!value || value->kind != GD_PICKLE_PERSISTENT) {
        return false;
    }
    id = value->id;
    class = gd_pickle_item(id, 1);
    *ret = (struct torch_storage_id){.class = class,
                                     .key = gd_pickle_item(id, 2),
                                     .location = gd_pickle_item(id, 3),
                                     .view = gd_pickle_item(id, 5)};
    return id->kind == GD_PICKLE_TUPLE && gd_pickle_is_text(gd_pickle_item(id, 0), "storage") &&
           class && class->kind == GD_PICKLE_GLOBAL && ret->key &&
           ret->key->kind == GD_PICKLE_TEXT && ret->location &&
           gd_pickle_get_int(gd_pickle_item(id, 4), &ret->numel) && ret->numel >= 0;
}

bool torch_storage_bytes(const struct torch_storage_id *id, uint64_t *ret)
{
    enum gd_stored stored = torch_storage_type(id->class->global->name);

    return stored && !__builtin_mul_overflow((uint64_t)id->numel, item_bytes(stored), ret);
}

static bool key_is_plain(const struct gd_pickle_value *key)
{
    if (!key->count || key->count > MAX_KEY) {
        return false;
    }
    for (uint32_t i = 0; i < key->count; i++) {
        char c = key->text[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') &&
            c != '_' && c != '.' && c != '-') {
            return false;
        }
    }
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct torch_storage *known_storage(struct torch_file *file,
                                           const struct gd_pickle_value *key, uint64_t hash)
{
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&file->storages, hash, &at, &number);) {
        struct torch_storage *storage = file->storage[number];

        if (storage->key_len == key->count && memcmp(storage->key, key->text, key->count) == 0) {
            return storage;
        }
    }
    return NULL;
}

static struct torch_storage *add_storage(struct torch_file *file, const struct gd_pickle_value *key,
                                         uint64_t hash)
{
    struct torch_storage *storage = calloc(1, sizeof(*storage));
    if (!storage ||
        !gd_grow_list(&file->storage, file->storage_count, &file->storage_cap, sizeof(storage)) ||
        gd_hash_index_add(&file->storages, hash, file->storage_count, NULL) != GD_OK) {
        free(storage);
        return NULL;
    }
    storage->key = key->text;
    storage->key_len = key->count;
    file->storage[file->storage_count++] = storage;
    return storage;
}

static struct torch_storage *find_storage(struct torch_file *file,
                                          const struct gd_pickle_value *key)
{
    uint64_t hash = gd_hash_index_hash(&file->storages, key->text, key->count);
    struct torch_storage *storage = known_storage(file, key, hash);
    char name[MAX_KEY + 1];
    struct gd_err err;

    if (storage) {
        return storage;
    }
    storage = add_storage(file, key, hash);
    if (storage) {
        snprintf(name, sizeof(name), "%.*s", (int)key->count, key->text);
        if (!file->find) {
            storage->problem = strdup("its values are not in this file: a bare pickle has none");
        } else if (file->find(file, name, &storage->bytes, &err) != GD_OK) {
            storage->problem = strdup(err.text);
        }
    }
    return storage;
}

static bool refuse_storage(char problem[GD_ERR_TEXT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse_storage(char problem[GD_ERR_TEXT_MAX], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(problem, GD_ERR_TEXT_MAX, format, args);
    va_end(args);
    return false;
}

/* A part of a storage: (key, first element, number). */
static bool use_view(const struct torch_storage_id *id, struct torch_use *ret,
                     char problem[GD_ERR_TEXT_MAX])
{
    int64_t end;

    if (!id->view || id->view->kind == GD_PICKLE_NONE) {
        return true;
    }
    if (!gd_pickle_get_int(gd_pickle_item(id->view, 1), &ret->first) ||
        !gd_pickle_get_int(gd_pickle_item(id->view, 2), &ret->numel) || ret->first < 0 ||
        ret->numel < 0 || __builtin_add_overflow(ret->first, ret->numel, &end) || end > id->numel) {
        return refuse_storage(problem, "its part exceeds the storage of %lld elements",
                              (long long)id->numel);
    }
    return true;
}

bool torch_use_storage(struct torch_file *file, const struct gd_pickle_value *value,
                       struct torch_use *ret, char problem[GD_ERR_TEXT_MAX])
{
    struct torch_storage_id id;
    uint64_t bytes;

    if (!torch_storage_id(value, &id)) {
        return refuse_storage(problem, "it has no valid storage");
    }
    if (gd_pickle_is_text(id.location, "meta")) {
        return refuse_storage(problem, "it was on the meta device: it has no values");
    }
    *ret =
        (struct torch_use){.stored = torch_storage_type(id.class->global->name), .numel = id.numel};
    if (!torch_storage_bytes(&id, &bytes)) {
        return refuse_storage(problem, "its storage has the unknown class %.100s, or is too large",
                              id.class->global->name);
    }
    if (!key_is_plain(id.key)) {
        return refuse_storage(problem, "the key of its storage is invalid");
    }
    ret->storage = find_storage(file, id.key);
    if (!ret->storage) {
        return refuse_storage(problem, "out of memory");
    }
    if (!ret->storage->bytes) {
        return refuse_storage(problem, "%s",
                              ret->storage->problem ? ret->storage->problem : "out of memory");
    }
    if (gd_bytes_size(ret->storage->bytes) != bytes) {
        return refuse_storage(
            problem, "storage %.*s should have %lld elements of %s, %llu bytes, but has %llu",
            (int)id.key->count, id.key->text, (long long)id.numel, gd_stored_name(ret->stored),
            (unsigned long long)bytes, (unsigned long long)gd_bytes_size(ret->storage->bytes));
    }
    return use_view(&id, ret, problem);
}

void torch_file_deinit(struct torch_file *file)
{
    for (uint32_t i = 0; i < file->storage_count; i++) {
        gd_bytes_unref(file->storage[i]->bytes);
        free(file->storage[i]->problem);
        free(file->storage[i]);
    }
    free(file->storage);
    gd_hash_index_deinit(&file->storages);
}
