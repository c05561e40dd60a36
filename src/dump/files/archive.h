// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An archive: all entries of a tensor file or checkpoint, by name. Supports .npy, .npz, safetensors
 * and its sharded index, PyTorch's zip, legacy and tar files, MindSpore's .ckpt. Opening reads
 * names and shapes; sources read the values. The format is recognised by content, not by name.
 * Nothing is executed or written, and links inside are not followed.
 */
#ifndef GD_DUMP_ARCHIVE_H
#define GD_DUMP_ARCHIVE_H

#include "base/buf.h"
#include "dump/io/source.h"

struct gd_archive;

enum gd_trainable { GD_TRAINABLE_UNKNOWN = 0, GD_TRAINABLE_YES, GD_TRAINABLE_NO };
enum gd_entry_kind { /* what an entry is for, as far as the file says */
                     GD_ENTRY_TENSOR = 0,
                     GD_ENTRY_PARAMETER, /* of a state dict or module */
                     GD_ENTRY_BUFFER,    /* e.g. running statistics */
                     GD_ENTRY_OPTIMIZER, /* optimizer state */
                     GD_ENTRY_VALUE,     /* a number or string, not a tensor: source is NULL */
};

struct gd_archive_entry {
    const char *name; /* as in the file: "optimizer.state[0].exp_avg" */
    enum gd_entry_kind kind;
    struct gd_source *source; /* NULL: see `problem` or `text` */
    const char *text;         /* of a VALUE: "3", "0.001", "'Adam'"; otherwise NULL */
    const char *problem;      /* why it cannot be read, one line; otherwise NULL */
    enum gd_trainable trainable;
    /* an earlier entry with the same storage and view (tied weights); NULL: none */
    const char *same_as;
};

struct gd_archive_options {
    const char *format; /* only this format; NULL: any */
    const char *key;    /* PyTorch: the dictionary inside that has the weights; NULL: all */
    const char *dtype;  /* resolves ambiguous element types; NULL: those are refused or opaque */
    bool partial;       /* read what there is of a truncated file */
};

/* Whether a file is a table of MindSpore's profiler that no format reads. */
bool gd_is_profile_rest(const char *name);
/* Whether a file or directory name (without path) is one that a profiler writes; and the error that
 * says what to open it with. */
bool gd_is_profile(const char *name, bool is_directory);
int gd_fail_profile(const char *path, struct gd_err *err);

/* GD_EPROTO: no known format, or broken: names file, byte and reason. options may be NULL. */
int gd_archive_open(const char *path, const struct gd_archive_options *options,
                    struct gd_archive **ret, struct gd_err *err);
int gd_archive_open_disk(struct gd_disk *disk, const struct gd_archive_options *options,
                         struct gd_archive **ret, struct gd_err *err);
void gd_archive_close(struct gd_archive *archive); /* sources stay valid by their own references */

const char *gd_archive_format(const struct gd_archive *archive); /* "npy", "torch", ... */
const char *gd_archive_path(const struct gd_archive *archive);
size_t gd_archive_count(const struct gd_archive *archive);
const struct gd_archive_entry *gd_archive_entry(const struct gd_archive *archive, size_t index);
/* Finds an exact name; NULL: none. In a file with one tensor, "" finds it. */
const struct gd_archive_entry *gd_archive_find(const struct gd_archive *archive, const char *name);
/* Notes for the user, one line each: an assumed type, a suspicious global, a missing shard,
 * trailing bytes. */
size_t gd_archive_note_count(const struct gd_archive *archive);
const char *gd_archive_note(const struct gd_archive *archive, size_t index);

/* ---- for the readers of formats -------------------------------------------------------------- */

/* An empty archive of the file; `format` is a format's name. */
int gd_archive_create(struct gd_disk *disk, const char *format, struct gd_archive **ret,
                      struct gd_err *err);
/* Copies all strings and takes a reference on the source. GD_ELIMIT: more than a million entries,
 * or too many for the file's size. */
int gd_archive_add(struct gd_archive *archive, const struct gd_archive_entry *entry,
                   struct gd_err *err);
void gd_archive_add_note(struct gd_archive *archive, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
