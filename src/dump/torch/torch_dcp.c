// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Distributed checkpoints (torch.distributed.checkpoint): the pickle .metadata lists the tensors
 * and their pieces. Each piece is a torch.save file of its own, stored with others in one of the
 * files __RANK_N.distcp next to it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "dump/torch/torch_impl.h"

#define METADATA   "torch.distributed.checkpoint.metadata"
#define MAX_FILES  65536
#define MAX_PIECES 65536               /* per tensor */
#define MAX_ALL    (UINT32_C(1) << 23) /* of all tensors */
#define MAX_FIELDS 64                  /* per object; known ones have few */
#define MAX_KEY    4096

struct part_file {
    char *name;
    struct gd_disk *disk; /* NULL: see `problem` */
    char *problem;
};

struct dcp {
    struct gd_archive *archive;
    const char *path;
    int dir;
    struct part_file *file;
    size_t count, room;
    struct gd_hash_index by_name;
    const struct gd_pickle_value *places; /* storage_data */
    struct gd_hash_index by_piece;        /* of their keys, by tensor and offset */
    uint32_t pieces;                      /* of all tensors */
};

struct piece { /* rows of a tensor; there are very many */
    struct gd_disk *disk;
    int64_t first, rows;
};
struct pieces { /* of a tensor, in order of the first axis */
    char *name;
    struct gd_shape shape;
    enum gd_stored stored;
    struct piece *piece;
    size_t count;
};

/* ---- one tensor ------------------------------------------------------------------------------ */

static void free_pieces(void *ctx)
{
    struct pieces *pieces = ctx;

    for (size_t i = 0; i < pieces->count; i++) {
        gd_disk_unref(pieces->piece[i].disk);
    }
    free(pieces->piece);
    free(pieces->name);
    free(pieces);
}

/* Known from the pickle; the pieces themselves are checked when they are opened. */
static int info_pieces(void *ctx, struct gd_source_info *ret, struct gd_err *err)
{
    const struct pieces *pieces = ctx;
    size_t bytes;
    int rc = gd_shape_bytes(&pieces->shape, gd_stored_dtype(pieces->stored), &bytes, err);

    *ret = (struct gd_source_info){.dtype = gd_stored_dtype(pieces->stored),
                                   .stored = pieces->stored,
                                   .shape = pieces->shape,
                                   .bytes = bytes,
                                   .note = ""};
    return rc;
}

/* Opens a torch.save file that contains one tensor. */
static int open_piece(const struct pieces *pieces, size_t number, struct gd_source **ret,
                      struct gd_err *err)
{
    static const struct gd_archive_options options = {.format = "torch"};
    const struct piece *piece = &pieces->piece[number];
    const struct gd_archive_entry *entry;
    struct gd_archive *archive;
    struct gd_source_info info;
    int rc = gd_archive_open_disk(piece->disk, &options, &archive, err);
    bool fits;

    if (rc != GD_OK) {
        return rc;
    }
    entry = gd_archive_count(archive) == 1 ? gd_archive_entry(archive, 0) : NULL;
    if (!entry || !entry->source) {
        rc = gd_fail(err, GD_EPROTO, "%.200s: piece %zu of %.200s is not a tensor: %.300s",
                     gd_disk_path(piece->disk), number, pieces->name,
                     entry && entry->problem ? entry->problem : "");
    }
    rc = rc != GD_OK ? rc : gd_source_info(entry->source, &info, err);
    if (rc == GD_OK) {
        fits = info.stored == pieces->stored && info.shape.rank == pieces->shape.rank;
        for (int i = 0; fits && i < info.shape.rank; i++) {
            fits = info.shape.dim[i] == (i == 0 ? piece->rows : pieces->shape.dim[i]);
        }
        rc = fits ? GD_OK
                  : gd_fail(err, GD_EPROTO,
                            "%.200s: piece %zu of %.200s does not have the type and shape that "
                            ".metadata gives",
                            gd_disk_path(piece->disk), number, pieces->name);
    }
    *ret = rc != GD_OK ? NULL : gd_source_ref(entry->source);
    gd_archive_close(archive);
    return rc;
}

static int open_pieces(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct pieces *pieces = ctx;
    struct gd_source **part = calloc(pieces->count, sizeof(struct gd_source *));
    size_t done = 0;
    int rc = part ? GD_OK : gd_fail_nomem(err);

    while (rc == GD_OK && done < pieces->count) {
        rc = open_piece(pieces, done, &part[done], err);
        done += rc == GD_OK;
    }
    if (rc == GD_OK && pieces->count == 1) {
        *ret = gd_source_ref(part[0]);
    } else if (rc == GD_OK) {
        rc = gd_source_join(part, pieces->count, ret, err);
    }
    for (size_t i = 0; i < done; i++) {
        gd_source_unref(part[i]);
    }
    free(part);
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_file(struct dcp *dcp, const char *name, struct part_file *ret)
{
    struct gd_err why;
    int rc;

    *ret = (struct part_file){.name = strdup(name)};
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        rc = gd_fail(&why, GD_EPROTO,
                     "\"%.200s\" is not a file name next to .metadata: directories are refused",
                     name);
    } else {
        rc = gd_disk_open(dcp->dir, name, false, &ret->disk, &why);
    }
    if (rc != GD_OK) {
        ret->problem = strdup(why.text);
        gd_archive_add_note(dcp->archive, "%s", why.text);
    }
    return ret->name && (rc == GD_OK || ret->problem) ? GD_OK : GD_ENOMEM;
}

static const struct part_file *file_of(struct dcp *dcp, const char *name, struct gd_err *err)
{
    uint32_t known = gd_hash_index_find(&dcp->by_name, name, dcp->file, sizeof(*dcp->file));

    if (known != UINT32_MAX) {
        return &dcp->file[known];
    }
    if (dcp->count == MAX_FILES) {
        gd_fail(err, GD_ELIMIT, "%.300s names more than %d files", dcp->path, MAX_FILES);
        return NULL;
    }
    if (!gd_grow_list(&dcp->file, dcp->count, &dcp->room, sizeof(*dcp->file)) ||
        gd_hash_index_add_name(&dcp->by_name, name, (uint32_t)dcp->count, NULL) != GD_OK ||
        open_file(dcp, name, &dcp->file[dcp->count++]) != GD_OK) {
        gd_fail_nomem(err);
        return NULL;
    }
    return &dcp->file[dcp->count - 1];
}

/* ---- places of pieces ------------------------------------------------------------------------ */

static const struct gd_pickle_value *get_attribute(const struct gd_pickle_value *value,
                                                   const char *name)
{
    const struct gd_pickle_value *state =
        value && value->kind == GD_PICKLE_OBJECT ? value->object->state : NULL;

    /* Millions of objects may share one state, so a large one is not searched. */
    return state && state->count <= MAX_FIELDS ? gd_pickle_get(state, name) : NULL;
}

/* The key of a piece: the tensor's name and its offset; strings and objects have no offset. */
static bool make_key(const struct gd_pickle_value *name, const int64_t *offset, int rank,
                     unsigned char key[MAX_KEY], size_t *len)
{
    size_t bytes = (size_t)rank * sizeof(*offset);

    if (!name || name->kind != GD_PICKLE_TEXT || name->count > MAX_KEY - bytes) {
        return false;
    }
    memcpy(key, name->text, name->count);
    if (bytes > 0) {
        memcpy(key + name->count, offset, bytes);
    }
    *len = name->count + bytes;
    return true;
}

static bool key_of_place(const struct dcp *dcp, uint32_t index, unsigned char key[MAX_KEY],
                         size_t *len)
{
    const struct gd_pickle_value *place = dcp->places->item[(size_t)index * 2];
    int64_t offset[GD_MAX_RANK];
    int rank = torch_get_dims(get_attribute(place, "offset"), offset);

    return make_key(get_attribute(place, "fqn"), offset, rank < 0 ? 0 : rank, key, len);
}

/* The place for a key; NULL: none. */
static const struct gd_pickle_value *place_of_key(struct dcp *dcp, const unsigned char *key,
                                                  size_t len)
{
    uint64_t hash = gd_hash_index_hash(&dcp->by_piece, key, len);
    unsigned char other[MAX_KEY];
    size_t other_len;
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&dcp->by_piece, hash, &at, &number);) {
        if (key_of_place(dcp, number, other, &other_len) && other_len == len &&
            memcmp(key, other, len) == 0) {
            return dcp->places->item[(size_t)number * 2 + 1];
        }
    }
    return NULL;
}

/* Duplicate keys are not added: very many would degrade the hash table. */
static int index_places(struct dcp *dcp, struct gd_err *err)
{
    unsigned char key[MAX_KEY];
    size_t len;
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < dcp->places->count; i++) {
        if (key_of_place(dcp, i, key, &len) && !place_of_key(dcp, key, len)) {
            rc = gd_hash_index_add(&dcp->by_piece, gd_hash_index_hash(&dcp->by_piece, key, len), i,
                                   err);
        }
    }
    return rc;
}

static const struct gd_pickle_value *find_place(struct dcp *dcp, const struct gd_pickle_value *name,
                                                const int64_t *offset, int rank)
{
    unsigned char key[MAX_KEY];
    size_t len;

    return make_key(name, offset, rank, key, &len) ? place_of_key(dcp, key, len) : NULL;
}

/* The part of a file that contains a piece; NULL: `err` says why. */
static struct gd_disk *open_window(struct dcp *dcp, const struct gd_pickle_value *place,
                                   struct gd_err *err)
{
    const struct gd_pickle_value *path = get_attribute(place, "relative_path");
    const struct part_file *file;
    struct gd_disk *window;
    int64_t at, size;
    char name[256];

    if (!path || path->kind != GD_PICKLE_TEXT || path->count >= sizeof(name) ||
        memchr(path->text, '\0', path->count) ||
        !gd_pickle_get_int(get_attribute(place, "offset"), &at) || at < 0 ||
        !gd_pickle_get_int(get_attribute(place, "length"), &size) || size < 0) {
        gd_fail(err, GD_EPROTO, ".metadata does not say in which file one of its pieces is");
        return NULL;
    }
    if (get_attribute(place, "transform_descriptors") &&
        get_attribute(place, "transform_descriptors")->kind != GD_PICKLE_NONE) {
        gd_fail(err, GD_EUNSUPPORTED,
                "its pieces were compressed or converted, which is not supported");
        return NULL;
    }
    snprintf(name, sizeof(name), "%.*s", (int)path->count, path->text);
    file = file_of(dcp, name, err);
    if (!file || !file->disk) {
        if (file) {
            gd_fail(err, GD_EPROTO, "%s", file->problem);
        }
        return NULL;
    }
    return gd_disk_part(file->disk, (uint64_t)at, (uint64_t)size, &window, err) != GD_OK ? NULL
                                                                                         : window;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Whether the pieces, in order of the first axis, make up the whole tensor. */
static bool are_rows(struct pieces *pieces)
{
    const struct gd_shape *shape = &pieces->shape;
    int64_t next = 0;

    qsort(pieces->piece, pieces->count, sizeof(*pieces->piece), by_row);
    for (size_t i = 0; shape->rank > 0 && i < pieces->count; i++) {
        if (pieces->piece[i].first != next ||
            __builtin_add_overflow(next, pieces->piece[i].rows, &next)) {
            return false;
        }
    }
    return shape->rank == 0 ? pieces->count == 1 : next == shape->dim[0];
}

/* Whether a piece consists of whole rows: all of each axis but the first. */
static bool is_rows(const struct gd_shape *shape, const int64_t *offset, const int64_t *size)
{
    for (int i = 1; i < shape->rank; i++) {
        if (offset[i] != 0 || size[i] != shape->dim[i]) {
            return false;
        }
    }
    return true;
}

static int add_piece(struct dcp *dcp, const struct gd_pickle_value *name,
                     const struct gd_pickle_value *chunk, struct pieces *pieces, bool *rows,
                     struct gd_err *err)
{
    struct piece *piece = &pieces->piece[pieces->count];
    int64_t offset[GD_MAX_RANK] = {0}, size[GD_MAX_RANK] = {0};
    const struct gd_pickle_value *place;
    int rank = pieces->shape.rank;

    if (torch_get_dims(get_attribute(chunk, "offsets"), offset) != rank ||
        torch_get_dims(get_attribute(chunk, "sizes"), size) != rank) {
        return gd_fail(err, GD_EPROTO, "the offset of one of its pieces is invalid");
    }
    place = find_place(dcp, name, offset, rank);
    place = place ? place : find_place(dcp, name, offset, 0);
    if (!place) {
        return gd_fail(err, GD_EPROTO, ".metadata does not say in which file one of its pieces is");
    }
    *piece =
        (struct piece){.disk = open_window(dcp, place, err), .first = offset[0], .rows = size[0]};
    pieces->count += piece->disk != NULL;
    *rows = *rows && is_rows(&pieces->shape, offset, size);
    return piece->disk ? GD_OK : GD_EPROTO;
}

static int describe_tensor(struct dcp *dcp, const struct gd_pickle_value *name,
                           const struct gd_pickle_value *tensor, struct pieces *pieces,
                           struct gd_err *err)
{
    const struct gd_pickle_value *chunks = get_attribute(tensor, "chunks");
    const struct gd_pickle_value *how = get_attribute(tensor, "properties");
    bool rows = true;
    int rc = GD_OK;

    pieces->shape.rank = torch_get_dims(get_attribute(tensor, "size"), pieces->shape.dim);
    if (pieces->shape.rank < 0 || gd_shape_count(&pieces->shape) < 0) {
        pieces->shape.rank = 0;
        return gd_fail(err, GD_EPROTO, "its shape is invalid, or has more than %d dimensions",
                       GD_MAX_RANK);
    }
    how = how && how->kind == GD_PICKLE_OBJECT ? how->object->state : NULL;
    pieces->stored = torch_dtype(how && how->kind == GD_PICKLE_DICT ? gd_pickle_get(how, "dtype")
                                                                    : gd_pickle_item(how, 0));
    if (!pieces->stored) {
        return gd_fail(err, GD_EPROTO, "unknown element type");
    }
    if (!chunks || chunks->kind != GD_PICKLE_LIST || chunks->count == 0 ||
        chunks->count > MAX_PIECES) {
        return gd_fail(err, GD_EPROTO, "its pieces are not listed");
    }
    if (chunks->count > MAX_ALL - dcp->pieces) {
        return gd_fail(err, GD_ELIMIT, "it and the preceding tensors have more than %u pieces",
                       MAX_ALL);
    }
    dcp->pieces += chunks->count;
    pieces->piece = calloc(chunks->count, sizeof(*pieces->piece));
    if (!pieces->piece) {
        return gd_fail_nomem(err);
    }
    for (uint32_t i = 0; rc == GD_OK && i < chunks->count; i++) {
        rc = add_piece(dcp, name, chunks->item[i], pieces, &rows, err);
    }
    if (rc == GD_OK && !(rows && are_rows(pieces))) {
        rc = gd_fail(err, GD_EUNSUPPORTED,
                     "its %zu pieces are not consecutive rows: they are split along another axis, "
                     "or some are missing",
                     pieces->count);
    }
    return rc;
}

static int add_tensor(struct dcp *dcp, const struct gd_pickle_value *name,
                      const struct gd_pickle_value *tensor, struct gd_archive_entry *entry,
                      struct gd_err *err)
{
    static const struct gd_source_ops ops = {
        .open = open_pieces, .info = info_pieces, .free_ctx = free_pieces};
    struct pieces *pieces = calloc(1, sizeof(*pieces));
    struct gd_err why;
    int rc;

    if (!pieces || !(pieces->name = strdup(entry->name))) {
        free(pieces);
        return gd_fail_nomem(err);
    }
    rc = describe_tensor(dcp, name, tensor, pieces, &why);
    if (rc != GD_OK) {
        free_pieces(pieces);
        entry->problem = why.text;
        return rc == GD_ENOMEM ? gd_fail(err, rc, "%s", why.text)
                               : gd_archive_add(dcp->archive, entry, err);
    }
    rc = gd_source_create_lazy(&ops, pieces, &entry->source, err);
    rc = rc != GD_OK ? rc : gd_archive_add(dcp->archive, entry, err);
    gd_source_unref(entry->source);
    return rc;
}

/* An entry that is not a tensor was saved as an object: show it if it is a number or string. */
static int add_object(struct dcp *dcp, const struct gd_pickle_value *name,
                      struct gd_archive_entry *entry, struct gd_err *err)
{
    static const struct gd_archive_options options = {.format = "torch"};
    const struct gd_pickle_value *place = find_place(dcp, name, NULL, 0);
    const struct gd_archive_entry *only = NULL;
    struct gd_archive *archive = NULL;
    struct gd_err why = {.text = "it is not a tensor, and .metadata does not say where it is"};
    struct gd_disk *window = place ? open_window(dcp, place, &why) : NULL;
    int rc;

    if (window && gd_archive_open_disk(window, &options, &archive, &why) == GD_OK) {
        only = gd_archive_count(archive) == 1 ? gd_archive_entry(archive, 0) : NULL;
    }
    entry->kind = GD_ENTRY_VALUE;
    entry->text = only && only->text ? only->text : archive ? "an object" : NULL;
    entry->problem = entry->text ? NULL : why.text;
    rc = gd_archive_add(dcp->archive, entry, err);
    gd_archive_close(archive);
    gd_disk_unref(window);
    return rc;
}

static int add_one(struct dcp *dcp, const struct gd_pickle_value *name,
                   const struct gd_pickle_value *value, struct gd_err *err)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR};
    char text[MAX_KEY + 1];

    if (name->kind != GD_PICKLE_TEXT || name->count > MAX_KEY ||
        memchr(name->text, '\0', name->count)) {
        return gd_fail(err, GD_EPROTO, "%.300s: a tensor's name is not a string, or is too long",
                       dcp->path);
    }
    snprintf(text, sizeof(text), "%.*s", (int)name->count, name->text);
    entry.name = text;
    if (gd_pickle_is_call(value, METADATA, "TensorStorageMetadata")) {
        return add_tensor(dcp, name, value, &entry, err);
    }
    return add_object(dcp, name, &entry, err);
}

/* ---- entry points ---------------------------------------------------------------------------- */

static bool dcp_is(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    size_t near = size < 128 ? size : 128;

    (void)disk;
    return size >= 3 && start[0] == 0x80 && memmem(start, near, METADATA, strlen(METADATA));
}

static int open_directory(const char *path, struct gd_err *err)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd < 0) {
        fd = gd_fail_errno(err, GD_EIO, "cannot read the directory %.300s", dir ? dir : "");
    }
    free(dir);
    return fd;
}

static int list_tensors(struct dcp *dcp, const struct gd_pickle *pickle, struct gd_err *err)
{
    const struct gd_pickle_value *root = gd_pickle_root(pickle);
    const struct gd_pickle_value *tensors = get_attribute(root, "state_dict_metadata");
    int rc;

    dcp->places = get_attribute(root, "storage_data");
    if (!tensors || tensors->kind != GD_PICKLE_DICT || !dcp->places ||
        dcp->places->kind != GD_PICKLE_DICT) {
        return gd_fail(err, GD_EPROTO, "%.300s does not list tensors and their places", dcp->path);
    }
    rc = index_places(dcp, err);
    for (uint32_t i = 0; rc == GD_OK && i < tensors->count; i++) {
        rc = add_one(dcp, tensors->item[(size_t)i * 2], tensors->item[(size_t)i * 2 + 1], err);
    }
    return rc;
}

static int dcp_read(struct gd_archive *archive, struct gd_disk *disk,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    struct dcp dcp = {.archive = archive, .path = gd_disk_path(disk)};
    struct torch_file file = {
        .archive = archive, .disk = disk, .path = dcp.path, .has_enumerations = true};
    struct gd_pickle *pickle;
    uint64_t end;
    int rc = gd_pickle_read_disk(disk, 0, gd_disk_size(disk), dcp.path, &pickle, &end, err);

    (void)options;
    if (rc != GD_OK) {
        return rc;
    }
    torch_note_globals(&file, pickle);
    dcp.dir = open_directory(dcp.path, err);
    rc = dcp.dir < 0 ? dcp.dir : list_tensors(&dcp, pickle, err);
    for (size_t i = 0; i < dcp.count; i++) {
        gd_disk_unref(dcp.file[i].disk);
        free(dcp.file[i].name);
        free(dcp.file[i].problem);
    }
    if (dcp.dir >= 0) {
        close(dcp.dir);
    }
    free(dcp.file);
    gd_hash_index_deinit(&dcp.by_name);
    gd_hash_index_deinit(&dcp.by_piece);
    gd_pickle_free(pickle);
    return rc;
}

const struct gd_archive_format gd_torch_dcp_format = {
    .name = "torch-dcp",
    .what = "PyTorch distributed checkpoint (.metadata next to *.distcp)",
    .is = dcp_is,
    .read = dcp_read,
};
