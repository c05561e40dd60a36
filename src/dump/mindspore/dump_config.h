// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The files that configure a dump: MindSpore's data_dump.json and CANN's acl.json. Checks every key
 * and value and reports each mistake with its line.
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
    char *text; /* the unchanged text of the file */
    size_t size;
    char *path, *net_name; /* NULL: not set */
    bool has_steps;
    bool one_step; /* `iteration` is a single number, as in MindSpore 1.0 to 1.2 */
    struct gd_steps steps;
    enum gd_dump_data data;
    enum gd_dump_io io;
    bool chosen; /* only the operators in `kernel` */
    struct gd_kernel_choice **kernel;
    size_t kernels;
    int category[GD_MS_CATEGORIES], categories; /* 0: not set */
    /* settings without effect in a dump of a training: "a, b"; may be empty */
    struct gd_buf unused;
};

/* line 0: about the whole file. */
typedef void (*gd_dump_config_bad_fn)(void *ctx, unsigned long line, const char *text);

/* *bad counts the mistakes reported; *ret is NULL unless there are none. GD_EPROTO: not JSON, or
 * neither kind of file. `what` names the text in errors. */
int gd_dump_config_parse(const char *text, size_t size, const char *what, gd_dump_config_bad_fn fn,
                         void *ctx, size_t *bad, struct gd_dump_config **ret, struct gd_err *err);
int gd_dump_config_read(const char *path, gd_dump_config_bad_fn fn, void *ctx, size_t *bad,
                        struct gd_dump_config **ret, struct gd_err *err);
void gd_dump_config_free(struct gd_dump_config *config); /* NULL is fine */

#endif
