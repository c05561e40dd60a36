// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An archive: everything that a tensor file or a checkpoint holds, by name: .npy, .npz,
 * safetensors and its sharded index, PyTorch's zip, legacy and tar files, MindSpore's .ckpt.
 * Opening reads what names and shapes need; values are read through their sources. What a file is,
 * its bytes say; its name is a hint at most. Nothing is executed, nothing is written, no link
 * inside is followed.
 */
#ifndef GD_DUMP_ARCHIVE_H
#define GD_DUMP_ARCHIVE_H

#include "base/buf.h"
#include "dump/io/source.h"

struct gd_archive;

enum gd_trainable { GD_TRAINABLE_UNKNOWN = 0, GD_TRAINABLE_YES, GD_TRAINABLE_NO };
enum gd_entry_kind { /* what an entry is for, as far as the file tells */
                     GD_ENTRY_TENSOR = 0,
                     GD_ENTRY_PARAMETER, /* of a state dict or a module */
                     GD_ENTRY_BUFFER,    /* running statistics and the like */
                     GD_ENTRY_OPTIMIZER, /* state of an optimizer */
                     GD_ENTRY_VALUE,     /* a number or text and no tensor: source is NULL */
};

struct gd_archive_entry {
    const char *name; /* "optimizer.state[0].exp_avg"; as the file spells it */
    enum gd_entry_kind kind;
    struct gd_source *source; /* NULL: `problem` or `text` */
    const char *text;         /* of a VALUE: "3", "0.001", "'Adam'"; else NULL */
    const char *problem;      /* why it cannot be read, one line; else NULL */
    enum gd_trainable trainable;
    const char *same_as; /* the earlier entry that shares its storage and view (tied weights);
                            NULL none */
};

struct gd_archive_options {
    const char *format; /* name of a format: do not look for another; NULL: any */
    const char *key;    /* PyTorch: the dictionary inside that holds the weights; NULL: all */
    const char *dtype;  /* what an ambiguous element type is; NULL: it is refused or opaque */
    bool partial;       /* of a file that is cut short: what there is */
};

/* Whether a file or directory of that name, without its path, is what a profiler wrote; the error
 * that says what to open it with. */
bool gd_is_profile(const char *name, bool is_directory);
int gd_fail_profile(const char *path, struct gd_err *err);

/* GD_EPROTO: it is none of the formats, or one that is broken: file, byte and reason. The options
 * may be NULL. */
int gd_archive_open(const char *path, const struct gd_archive_options *options,
                    struct gd_archive **ret, struct gd_err *err);
int gd_archive_open_disk(struct gd_disk *disk, const struct gd_archive_options *options,
                         struct gd_archive **ret, struct gd_err *err);
void gd_archive_close(struct gd_archive *archive); /* sources live on by their own references */

const char *gd_archive_format(const struct gd_archive *archive); /* "npy", "torch", ... */
const char *gd_archive_path(const struct gd_archive *archive);
size_t gd_archive_count(const struct gd_archive *archive);
const struct gd_archive_entry *gd_archive_entry(const struct gd_archive *archive, size_t index);
/* By exact name; NULL: none. Of a file with one tensor, "" names it. */
const struct gd_archive_entry *gd_archive_find(const struct gd_archive *archive, const char *name);
/* What is worth a line to who opens it, a line each: an assumed type, a suspicious global, a
 * missing shard, trailing bytes. */
size_t gd_archive_note_count(const struct gd_archive *archive);
const char *gd_archive_note(const struct gd_archive *archive, size_t index);

/* ---- for the readers of formats -------------------------------------------------------------- */

#define GD_ARCHIVE_START 4096

struct gd_archive_format {
    const char *name; /* "npz" */
    const char *what; /* "NumPy archive (.npz)": for `info formats` */
    /* Whether the beginning of the file (size bytes, at most GD_ARCHIVE_START) says so. */
    bool (*is)(const unsigned char *start, size_t size, struct gd_disk *disk);
    int (*read)(struct gd_archive *archive, struct gd_disk *disk,
                const struct gd_archive_options *options, struct gd_err *err);
};
/* In the order in which they are asked; ends with NULL. */
extern const struct gd_archive_format *const gd_archive_formats[];
extern const struct gd_archive_format gd_npy_format, gd_atb_format, gd_npz_format,
    gd_safetensors_format, gd_sharded_format, gd_torch_format, gd_torch_legacy_format,
    gd_torch_tar_format, gd_torch_dcp_format, gd_pickle_format, gd_ms_ckpt_format;

/* Copies all texts, takes a reference on the source. GD_ELIMIT: more than a million entries, or
 * than the size of the file allows. */
int gd_archive_add(struct gd_archive *archive, const struct gd_archive_entry *entry,
                   struct gd_err *err);
void gd_archive_add_note(struct gd_archive *archive, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
