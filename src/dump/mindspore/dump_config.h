// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The files that say what is dumped: MindSpore's data_dump.json, and acl.json of CANN. Every key
 * and value is checked, and each mistake is told with its line.
 */
#ifndef GD_DUMP_DUMP_CONFIG_H
#define GD_DUMP_DUMP_CONFIG_H

#include "dump/cann/step_grammar.h"
#include "dump/io/disk.h"
#include "dump/mindspore/kernel_choice.h"
#include "dump/mindspore/ms_dump_writer.h"

enum gd_dump_data { GD_DUMP_TENSOR, GD_DUMP_STATISTIC, GD_DUMP_FULL };
enum gd_dump_io { GD_DUMP_ALL, GD_DUMP_INPUT, GD_DUMP_OUTPUT }; /* data_dump.json's numbers */

struct gd_dump_config {
    bool is_acl;
    char *text; /* of the file, word for word */
    size_t size;
    char *path, *net_name; /* NULL: not told */
    bool has_steps;
    bool one_step; /* `iteration` is a number, as in MindSpore 1.0 to 1.2 */
    struct gd_steps steps;
    enum gd_dump_data data;
    enum gd_dump_io io;
    bool chosen; /* only those of `kernel` */
    struct gd_kernel_choice **kernel;
    size_t kernels;
    int category[GD_MS_CATEGORIES], categories; /* 0: not told */
    struct gd_buf unused; /* keys that a dump of a training has no use for: "a, b"; may be empty */
};

/* line 0: of the file as a whole. */
typedef void (*gd_dump_config_bad_fn)(void *ctx, unsigned long line, const char *text);

/* *bad mistakes were told; *ret is NULL unless there are none. GD_EPROTO: it is no JSON, or neither
 * kind of file. `what` is what errors call the text. */
int gd_dump_config_parse(const char *text, size_t size, const char *what, gd_dump_config_bad_fn fn,
                         void *ctx, size_t *bad, struct gd_dump_config **ret, struct gd_err *err);
int gd_dump_config_read(const char *path, gd_dump_config_bad_fn fn, void *ctx, size_t *bad,
                        struct gd_dump_config **ret, struct gd_err *err);
void gd_dump_config_free(struct gd_dump_config *config); /* NULL is fine */

#endif
