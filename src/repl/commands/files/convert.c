// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: convert */
#include <string.h>
#include <unistd.h>

#include "dump/cann/cann_convert.h"
#include "dump/cann/cann_types.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

#define MAX_TOLD 20

struct told {
    struct command_call *call;
    struct repl_work *work;
    cJSON *list; /* of the record */
    uint64_t count;
};

static bool go_on(void *ctx, uint64_t done)
{
    struct told *told = ctx;

    return repl_work_at(told->work, done);
}

static void left_out(void *ctx, const char *path, const char *why)
{
    struct told *told = ctx;

    if (told->count++ < MAX_TOLD) {
        cJSON *item = out_push(told->list);
        out_set(item, OUT_TEXT("path", path), OUT_TEXT("reason", why));
        out_say(told->call->out, item, "warning: {path}: {reason}\n");
    }
}

static int take_options(struct command_call *call, struct gd_cann_convert_options *options,
                        struct gd_err *err)
{
    static const char *const kinds[] = {"npy", "bin", "mindspore"};
    const char *as = "npy", *format = NULL;
    int rc = inspect_take_option(call, "--as", &as, err);
    size_t kind = 0;

    rc = rc != GD_OK ? rc : inspect_take_option(call, "--format", &format, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    while (kind < 3 && strcmp(as, kinds[kind]) != 0) {
        kind++;
    }
    if (kind == 3) {
        return gd_fail(err, GD_EINVAL, "cannot convert to \"%.40s\": use npy, bin or mindspore",
                       as);
    }
    options->as = (enum gd_cann_as)kind;
    options->format = format ? gd_cann_format_from_name(format) : -1;
    return format && options->format < 0
               ? gd_fail(err, GD_EINVAL, "\"%.40s\" is not a tensor format: NCHW, NHWC, ND, ...",
                         format)
               : GD_OK;
}

static int convert_to(struct command_call *call, const char *from, const char *to,
                      struct gd_folder *folder, struct gd_cann_convert_options *options,
                      struct gd_err *err)
{
    cJSON *record = out_record(call->out, "converted");
    struct gd_cann_converted done;
    struct repl_work work;
    struct told told = {.call = call, .work = &work, .list = out_list(record, "warnings")};

    options->go_on = go_on;
    options->left_out = left_out;
    options->ctx = &told;
    repl_work_begin_count(&work, call, inspect_printf(call, "converting %.100s", from), "files", 0);
    int rc = gd_cann_convert_tree(from, folder, options, &done, err);
    rc = repl_work_end(&work, rc, err);
    if (rc != GD_OK) {
        return rc;
    }
    out_set(record, OUT_TEXT("directory", to), OUT_INT("files", done.files),
            OUT_INT("tensors", done.tensors), OUT_INT("records", done.records),
            OUT_INT("buffers", done.buffers), OUT_INT("left_out", done.left_out));
    out_say(call->out, record,
            "[({more|warning} more)\n]{tensors|tensor}[, {records|overflow record}]"
            "[, {buffers|buffer}] of {files|dump file} written to {directory}.\n",
            OUT_INT("more", done.left_out > MAX_TOLD ? done.left_out - MAX_TOLD : 0));
    return GD_OK;
}

static int run_convert(struct command_call *call, struct gd_err *err)
{
    struct gd_cann_convert_options options = {.format = -1};
    struct gd_folder *folder;
    const char *from, *to;
    int rc = repl_check_seal(call->repl, err);

    rc = rc != GD_OK ? rc : take_options(call, &options, err);
    if (rc == GD_OK && call->argc != 2) {
        rc = gd_fail(err, GD_EUSAGE, "convert: specify what to convert and a directory");
    }
    if (rc != GD_OK) {
        return rc;
    }
    from = inspect_home_path(call, call->argv[0]);
    to = inspect_home_path(call, call->argv[1]);
    if (access(from, F_OK) != 0) { /* before its directory is created */
        return gd_fail_errno(err, GD_ENOTFOUND, "cannot read %.300s", from);
    }
    rc = gd_folder_open(to, &folder, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_folder_is_empty(folder) &&
        !repl_confirm(call, "%s is not empty. Replace files of the same names?", to)) {
        out_printf(call->out, "Nothing was converted.\n");
    } else {
        rc = convert_to(call, from, to, folder, &options, err);
    }
    gd_folder_close(folder);
    return rc;
}

const struct command cmd_convert = {
    .name = "convert",
    .group = "files",
    .usage = "convert PATH DIRECTORY [--as npy|bin|mindspore] [--format FORMAT]",
    .summary = "Convert CANN dump files to .npy",
    .help =
        "PATH is a file dumped by CANN (MindSpore asynchronous, TensorFlow on Ascend,\n"
        "torch_npu) or a directory of such files; the target keeps its structure. Files get the\n"
        "names that the vendor's converter uses: NAME.output.0.npy; with --as mindspore those\n"
        "of MindSpore, with --as bin raw bytes. Tensors keep their stored layout; --format NCHW\n"
        "(or NHWC, ND, ...) converts the layout where possible. bfloat16 and float8 types become\n"
        "float32, int4 becomes int8. Names of 255 characters or more are replaced by numbers,\n"
        "listed in mapping.csv. Overflow records become JSON.",
    .examples = "convert dump/rank_0/net/1/0 npy\n"
                "convert dump/20260102030405/0 npy --format NCHW",
    .args = {ARG_FILE, ARG_FILE},
    .run = run_convert,
};
