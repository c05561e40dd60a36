// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What all kinds of PyTorch files share. Each kind finds the pickles and storages in its container;
 * the meaning of the pickle's values, and the names they are listed under, are the same for all.
 */
#ifndef GD_DUMP_TORCH_IMPL_H
#define GD_DUMP_TORCH_IMPL_H

#include "base/arena.h"
#include "dump/format.h"
#include "dump/torch/pickle.h"
#include "engine/hash_index.h"

#define TORCH_NOTE_MAX 256

struct torch_storage { /* bytes that tensors are views of */
    const char *key;   /* key_len bytes, in the pickle */
    uint32_t key_len;
    struct gd_bytes *bytes; /* NULL: see `problem` */
    char *problem;
};

struct torch_file {
    struct gd_archive *archive;
    struct gd_disk *disk;
    const char *path;
    bool swap;             /* byte order differs from the host's */
    bool has_enumerations; /* pickled as getattr(class, name) */

    /* Finds the bytes of a storage by its key (NUL-terminated). An error becomes the problem of its
     * tensors. */
    int (*find)(struct torch_file *file, const char *key, struct gd_bytes **ret,
                struct gd_err *err);
    void *find_ctx;
    /* The oldest files, where a persistent id is a whole tensor. NULL: ids are storages. */
    bool (*tensor_of)(struct torch_file *file, const struct gd_pickle_value *id,
                      struct gd_source_desc *ret);

    struct torch_storage **storage;
    uint32_t storage_count;
    size_t storage_cap;
    struct gd_hash_index storages; /* by key */
};

/* A tensor as described by the pickle. */
struct torch_part {
    const char *name; /* "indices" */
    struct gd_pickle_value *value;
};
struct torch_tensor {
    struct gd_source_desc view; /* without bytes: see `problem` or `part`; holds a reference */
    const struct torch_storage *storage; /* the storage of its bytes; NULL: none */
    enum gd_trainable trainable;
    bool is_parameter;
    /* additional tensors that a sparse, nested or quantised tensor consists of */
    struct torch_part part[4];
    int parts;
    struct gd_pickle_value *state; /* extra attributes; NULL: none */
    char text[TORCH_NOTE_MAX];     /* if it only has parts: what it is */
    char note[TORCH_NOTE_MAX];     /* "" none */
    char problem[GD_ERR_TEXT_MAX]; /* "" none */
};

/* ---- storages and types (torch_storage.c) ---------------------------------------------------- */

/* The element type of a storage class ("FloatStorage") or a dtype ("float8_e4m3fn"); NONE:
 * unknown. */
enum gd_stored torch_storage_type(const char *class);
enum gd_stored torch_dtype(const struct gd_pickle_value *value);
/* The parts of ('storage', class, key, location, numel[, view]); false: not one. */
struct torch_storage_id {
    const struct gd_pickle_value *class, *key, *location, *view;
    int64_t numel;
};
bool torch_storage_id(const struct gd_pickle_value *value, struct torch_storage_id *ret);
bool torch_storage_bytes(const struct torch_storage_id *id,
                         uint64_t *ret); /* false: unknown class */
/* What a storage id says about the storage, and its bytes, which are located on first use. False:
 * there are none, `problem` says why. */
struct torch_use {
    const struct torch_storage *storage;
    enum gd_stored stored; /* from the class of the storage */
    int64_t first, numel;  /* in elements: all, or a part of it in old files */
};
bool torch_use_storage(struct torch_file *file, const struct gd_pickle_value *value,
                       struct torch_use *ret, char problem[GD_ERR_TEXT_MAX]);

/* ---- tensors (torch_rebuild.c), arrays (torch_numpy.c) --------------------------------------- */

/* Parses a tuple of integers, or torch.Size of one; -1: neither, or too long. */
int torch_get_dims(const struct gd_pickle_value *value, int64_t dim[GD_MAX_RANK]);
/* whether the function creates tensors */
bool torch_is_rebuild(const struct gd_pickle_global *global);
bool torch_is_tensor(const struct torch_file *file, const struct gd_pickle_value *value);
/* Fills in *ret; what cannot be read gets a problem. Unref view.bytes afterwards. */
void torch_describe(struct torch_file *file, struct gd_pickle_value *value,
                    struct torch_tensor *ret);

bool torch_is_array(const struct gd_pickle_value *value);
/* Sets only the view or the problem. */
void torch_describe_array(const struct gd_pickle_value *value, struct torch_tensor *ret);
/* Prints a numpy scalar. False: it is not one, or broken. */
bool torch_print_scalar(const struct gd_pickle_value *value, struct gd_buf *out);

/* ---- what is in the file (torch_names.c, torch_globals.c) -------------------------------------
 */

/* Adds everything in the pickle to the archive, or what is under the key in the options; and notes
 * about the classes it names. */
int torch_list(struct torch_file *file, const struct gd_pickle *pickle,
               const struct gd_archive_options *options, struct gd_err *err);
void torch_note_globals(struct torch_file *file, const struct gd_pickle *pickle);

void torch_file_deinit(struct torch_file *file);

#endif
