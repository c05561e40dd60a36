// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * PyTorch's files: what all kinds of them share. A kind finds the pickles and the storages in its
 * container; what the values of the pickle mean, and under which names they are listed, is the same
 * for all.
 */
#ifndef GD_DUMP_TORCH_IMPL_H
#define GD_DUMP_TORCH_IMPL_H

#include "base/arena.h"
#include "dump/format.h"
#include "dump/hash_index.h"
#include "dump/torch/pickle.h"

#define TORCH_NOTE_MAX 256

struct torch_storage { /* a run of bytes that tensors are views of */
    const char *key;   /* key_len bytes, of the pickle */
    uint32_t key_len;
    struct gd_bytes *bytes; /* NULL: `problem` */
    char *problem;
};

struct torch_file {
    struct gd_archive *archive;
    struct gd_disk *disk;
    const char *path;
    bool swap;             /* the other byte order than the host's */
    bool has_enumerations; /* which are pickled as getattr(class, name) */

    /* Finds the bytes of a storage by its key, which ends in NUL here. An error becomes the problem
     * of its tensors. */
    int (*find)(struct torch_file *file, const char *key, struct gd_bytes **ret,
                struct gd_err *err);
    void *find_ctx;
    /* Of the oldest files, in which a persistent id is a whole tensor. NULL: it is a storage. */
    bool (*tensor_of)(struct torch_file *file, const struct gd_pickle_value *id,
                      struct gd_source_desc *ret);

    struct torch_storage **storage;
    uint32_t storage_count, storage_cap;
    struct gd_hash_index storages; /* by key */
};

/* A tensor as the pickle describes it. */
struct torch_part {
    const char *name; /* "indices" */
    struct gd_pickle_value *value;
};
struct torch_tensor {
    struct gd_source_desc view; /* without bytes: `problem`, or parts; holds a reference on them */
    const struct torch_storage *storage; /* whose bytes they are; NULL: of no storage */
    enum gd_trainable trainable;
    bool is_parameter;
    struct torch_part part[4]; /* what a sparse, nested or quantised tensor consists of, too */
    int parts;
    struct gd_pickle_value *state; /* attributes of its own; NULL none */
    char text[TORCH_NOTE_MAX];     /* of one that only has parts: what it is */
    char note[TORCH_NOTE_MAX];     /* "" none */
    char problem[GD_ERR_TEXT_MAX]; /* "" none */
};

/* ---- storages and types (torch_storage.c) ---------------------------------------------------- */

/* The element type of a storage class ("FloatStorage") or of a dtype ("float8_e4m3fn"); NONE. */
enum gd_stored torch_storage_type(const char *class);
enum gd_stored torch_dtype(const struct gd_pickle_value *value);
/* ('storage', class, key, location, numel[, view]): the parts of it; false: it is none. */
struct torch_storage_id {
    const struct gd_pickle_value *class, *key, *location, *view;
    int64_t numel;
};
bool torch_storage_id(const struct gd_pickle_value *value, struct torch_storage_id *ret);
bool torch_storage_bytes(const struct torch_storage_id *id,
                         uint64_t *ret); /* false: unknown class */
/* What a storage id says about the storage, and its bytes, which are looked for when they are first
 * asked for. False: `problem` says why there are none. */
struct torch_use {
    const struct torch_storage *storage;
    enum gd_stored stored; /* by the class of the storage */
    int64_t first, numel;  /* of its elements: all, or a part of it in old files */
};
bool torch_use_storage(struct torch_file *file, const struct gd_pickle_value *value,
                       struct torch_use *ret, char problem[GD_ERR_TEXT_MAX]);

/* ---- tensors (torch_rebuild.c), arrays (torch_numpy.c) --------------------------------------- */

/* A tuple of integers, or torch.Size of one; -1: it is none, or too long. */
int torch_get_dims(const struct gd_pickle_value *value, int64_t dim[GD_MAX_RANK]);
bool torch_is_rebuild(const struct gd_pickle_global *global); /* a function that makes tensors */
bool torch_is_tensor(const struct torch_file *file, const struct gd_pickle_value *value);
/* What cannot be read gets a problem; unref view.bytes afterwards. */
void torch_describe(struct torch_file *file, struct gd_pickle_value *value,
                    struct torch_tensor *ret);

bool torch_is_array(const struct gd_pickle_value *value);
/* Sets the view or the problem, and leaves the rest as it is. */
void torch_describe_array(const struct gd_pickle_value *value, struct torch_tensor *ret);
/* A numpy scalar, as text. False: it is none, or broken. */
bool torch_print_scalar(const struct gd_pickle_value *value, struct gd_buf *out);
/* The bytes that a value is: bytes, Python 2's str, bytes that protocol 2 wrote as a text. In
 * memory that the caller frees; NULL: it is none, or out of memory. */
unsigned char *torch_take_bytes(const struct gd_pickle_value *value, size_t *size);

/* ---- what is in the file (torch_names.c, torch_globals.c) -------------------------------------
 */

/* Adds all that the pickle holds to the archive, or what is under the key of the options; and notes
 * about the classes that it names. */
int torch_list(struct torch_file *file, const struct gd_pickle *pickle,
               const struct gd_archive_options *options, struct gd_err *err);
void torch_note_globals(struct torch_file *file, const struct gd_pickle *pickle);
/* A class or function whose meaning is known here. */
bool torch_is_known(const struct gd_pickle_global *global);

void torch_file_deinit(struct torch_file *file);

#endif
