// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `save`: save.c says what is saved. Of TENSOR|SELECTOR, save_collect.c finds the tensors and
 * save_write.c writes them.
 */
#ifndef GD_REPL_SAVE_H
#define GD_REPL_SAVE_H

#include "dump/files/tensor_writer.h"
#include "repl/core/command.h"
#include "repl/core/work.h"
#include "repl/out/newfile.h"
#include "repl/values/value.h"

/* A file name made from what is saved (call->argv), for a `save` without one. NULL: out of memory.
 */
const char *save_name(struct command_call *call, const char *mode);
/* `save TENSOR|SELECTOR FILE`: what call->argv has left. */
int save_tensors(struct command_call *call, const char *path, enum value_which which, bool force,
                 struct gd_err *err);
/* `save watchpoints FILE`, `save breakpoints FILE` (both kinds). */
int save_points(struct command_call *call, bool breakpoints, const char *path, bool force,
                struct gd_err *err);
/* `save overflow N DIR` */
int save_overflow(struct command_call *call, struct gd_err *err);

struct saved { /* one tensor to be saved */
    const char *name;
    struct value value;  /* parsed, not fetched */
    enum gd_dtype dtype; /* as far as known before the fetch */
    struct gd_shape shape;
    int rank;
    uint64_t bytes;
};

struct saving {
    struct command_call *call;
    struct saved *item;
    size_t count, room;
    enum gd_tensor_file kind;
    struct newfile file;
    struct gd_tensor_writer *writer;
    struct repl_work work;
    uint64_t done;             /* bytes written */
    size_t written;            /* tensors */
    size_t missing;            /* without a value now */
    size_t renamed;            /* tensors with the name of another one */
    size_t cleaned;            /* tensors whose name would leave the directory or harm a terminal */
    const char *dirty, *clean; /* the first of those: its name, and its name in the file */
    size_t old;                /* not of the step at which the session is stopped */
    const char *why;           /* reason of the first one without a value */
    bool as_bits;              /* bfloat16 in a numpy file */
    bool stood;                /* the values are of a stopped live training */
};

/* Collects the tensors that call->argv names. GD_ELIMIT: too many. */
int save_collect(struct saving *s, enum value_which which, struct gd_err *err);
/* Names as members of an archive: relative paths, safe to print, each one unique. */
int save_clean_names(struct saving *s, struct gd_err *err);
int save_part_names(struct saving *s, struct gd_err *err);
/* For qsort: large elements first, so that all are aligned; otherwise keeps the order. */
int save_by_size(const void *a, const void *b);

/* Fetches and writes all of them. */
int save_write_file(struct saving *s, const char *path, struct gd_err *err);

#endif
