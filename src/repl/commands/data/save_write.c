// SPDX-License-Identifier: GPL-3.0-or-later
/* `save TENSOR|SELECTOR FILE`: fetching and writing the tensors, large ones of a dump in pieces. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "dump/files/tensor_writer.h"
#include "repl/commands/data/save.h"
#include "repl/core/work.h"
#include "repl/out/newfile.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define PIECE ((size_t)1 << 20) /* bytes written between two checks for Ctrl-C */
/* tensors of a dump from this size on are copied in pieces */
#define HUGE  ((uint64_t)32 << 20)
#define ROWS  ((uint64_t)16 << 20) /* approximate size of a piece, in bytes */

static int write_elements(struct saving *s, const struct gd_tensor *tensor, struct gd_err *err)
{
    size_t bytes = gd_tensor_bytes(tensor);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        int rc = gd_tensor_writer_data(s->writer, tensor->data + at, n, err);
        if (rc != GD_OK) {
            return rc;
        }
        s->done += n;
        if (!repl_work_at(&s->work, s->done)) {
            return GD_EINTR;
        }
    }
    return GD_OK;
}

static int write_tensor(struct saving *s, const struct saved *item, struct gd_tensor *tensor,
                        struct gd_err *err)
{
    struct gd_tensor *whole = NULL;
    int rc = gd_tensor_contiguous(tensor, &whole, err);
    rc = rc != GD_OK
             ? rc
             : gd_tensor_writer_begin(s->writer, item->name, whole->dtype, &whole->shape, err);
    rc = rc != GD_OK ? rc : write_elements(s, whole, err);
    rc = rc != GD_OK ? rc : gd_tensor_writer_end(s->writer, err);
    s->written += rc == GD_OK;
    s->as_bits = s->as_bits || (tensor->dtype == GD_BFLOAT16 && s->kind != GD_FILE_SAFETENSORS);
    gd_tensor_unref(whole);
    return rc;
}

/* A tensor of a dump that need not fit in memory. */
static bool is_huge(const struct saving *s, const struct saved *item)
{
    const struct value *value = &item->value;
    return value->which == VALUE_CURRENT && !value->is_history && !value->arg.value &&
           value->arg.slice.count == 0 && item->shape.rank > 0 && item->bytes >= HUGE &&
           gd_catalog_of(s->call->session);
}

/* Fetches some rows and checks their shape. */
static int fetch_rows(struct saving *s, struct saved *item, int64_t first, int64_t count,
                      struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_tensor *rows = NULL;
    struct gd_slice slice = {.count = 1};
    struct gd_shape expected = item->shape;
    expected.dim[0] = count;
    slice.item[0] = (struct gd_slice_item){.kind = GD_SLICE_RANGE,
                                           .has_start = true,
                                           .start = first,
                                           .has_stop = true,
                                           .stop = first + count,
                                           .step = 1};
    int rc = repl_fetch(s->call, &item->value.arg.ref, &slice, &rows, &item->value.step, err);
    if (rc == GD_OK && (rows->dtype != item->dtype || rows->shape.rank != expected.rank ||
                        memcmp(rows->shape.dim, expected.dim,
                               (size_t)expected.rank * sizeof(expected.dim[0])) != 0)) {
        rc = gd_fail(err, GD_EPROTO, "%.200s does not have the shape that was announced",
                     item->name);
    }
    rc = rc != GD_OK ? rc : gd_tensor_contiguous(rows, ret, err);
    gd_tensor_unref(rows);
    return rc;
}

/* Fetches the first rows before it writes to the file. *begun: from then on a failure leaves a
 * damaged file. */
static int save_huge(struct saving *s, struct saved *item, bool *begun, struct gd_err *err)
{
    int64_t all = item->shape.dim[0];
    int64_t most = (int64_t)(ROWS / (item->bytes / (uint64_t)all + 1)) + 1;
    int rc = GD_OK;
    for (int64_t at = 0, n; rc == GD_OK && at < all; at += n) {
        struct gd_tensor *rows = NULL;
        n = all - at < most ? all - at : most;
        rc = fetch_rows(s, item, at, n, &rows, err);
        if (rc == GD_OK && at == 0) {
            *begun = true;
            rc = gd_tensor_writer_begin(s->writer, item->name, item->dtype, &item->shape, err);
        }
        rc = rc != GD_OK ? rc : write_elements(s, rows, err);
        gd_tensor_unref(rows);
    }
    rc = rc != GD_OK ? rc : gd_tensor_writer_end(s->writer, err);
    item->value.dtype = item->dtype;
    item->value.shape = item->shape;
    s->written += rc == GD_OK;
    s->as_bits = s->as_bits || (item->dtype == GD_BFLOAT16 && s->kind != GD_FILE_SAFETENSORS);
    return rc;
}

/* Fetches the elements without statistics. */
static int fetch_item(struct saving *s, struct saved *item, struct gd_err *err)
{
    if (item->value.tensor) {
        return GD_OK;
    }
    return s->count > 1 ? repl_fetch(s->call, &item->value.arg.ref, NULL, &item->value.tensor,
                                     &item->value.step, err)
                        : value_fetch(s->call, &item->value, VALUE_ELEMENTS, err);
}

static void count_old(struct saving *s, const struct saved *item)
{
    char age[VALUE_AGE];
    s->old += !item->value.is_history && item->value.which == VALUE_CURRENT &&
              value_age(s->call->session, item->value.step, age)[0] != '\0';
}

/* Counts and skips tensors without a value, if there are several. */
static int save_item(struct saving *s, struct saved *item, struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    bool begun = false, huge = is_huge(s, item);
    int rc = huge ? save_huge(s, item, &begun, &why) : fetch_item(s, item, &why);
    if (rc == GD_OK && !huge) {
        rc = write_tensor(s, item, item->value.tensor, err);
    } else if (rc != GD_OK && (begun || (huge && s->count == 1))) {
        rc = gd_fail(err, rc, "%s", why.text);
    } else if (rc == GD_OK) {
        return GD_OK;
    } else if (rc == GD_EINTR || rc == GD_ENOMEM || rc == GD_ELOST) {
        rc = gd_fail(err, rc, "%s", why.text);
        /* the rest has no value either */
    } else if (s->stood && s->call->session->state != GD_STOPPED) {
        rc = gd_fail(err, GD_ELOST, "the training ended before everything was saved: %s", why.text);
    } else {
        if (s->missing++ == 0) {
            s->why = inspect_printf(s->call, "%s", out_safe(s->call, why.text));
        }
        rc = GD_OK;
    }
    if (begun || item->value.tensor) {
        count_old(s, item);
    }
    if (s->count > 1) { /* a single tensor is described by its record */
        value_deinit(&item->value);
        item->value.tensor = NULL;
    }
    return rc;
}

static int save_items(struct saving *s, struct gd_err *err)
{
    int rc = GD_OK;
    for (size_t i = 0; i < s->count && rc == GD_OK; i++) {
        rc = save_item(s, &s->item[i], err);
        if (rc == GD_OK && !repl_work_at(&s->work, s->done)) {
            rc = GD_EINTR;
        }
    }
    if (rc == GD_OK && s->written == 0) {
        rc = gd_fail(err, GD_ENODATA, "none of %zu tensors has a value; the first: %.200s",
                     s->count, s->why);
    }
    return rc == GD_OK ? gd_tensor_writer_finish(s->writer, err) : rc;
}

/* The framework for the metadata of a safetensors file. */
static const char *format_of(const struct saving *s)
{
    const struct gd_session *session = s->call->session;
    if (session && strcmp(session->peer.framework, "PyTorch") == 0) {
        return "pt";
    }
    return session && strcmp(session->peer.framework, "MindSpore") == 0 ? "ms" : NULL;
}

static int make_writer(struct saving *s, struct gd_err *err)
{
    struct gd_tensor_plan *plan = calloc(s->count + 1, sizeof(*plan));
    if (!plan) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < s->count; i++) {
        plan[i] = (struct gd_tensor_plan){s->item[i].name, s->item[i].rank};
    }
    int rc = gd_tensor_writer_create(s->kind, s->file.file, plan, s->count, format_of(s),
                                     &s->writer, err);
    free(plan);
    return rc;
}

int save_write_file(struct saving *s, const char *path, struct gd_err *err)
{
    uint64_t bytes = 0;
    /* A single tensor is fetched before the file is created; several are fetched one by one. */
    int rc = s->count == 1 && !is_huge(s, &s->item[0])
                 ? value_fetch(s->call, &s->item[0].value, VALUE_ELEMENTS, err)
                 : GD_OK;
    rc = rc != GD_OK ? rc : newfile_open(&s->file, path, false, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; i < s->count; i++) {
        bytes += s->item[i].bytes;
    }
    s->stood = s->call->session && s->call->session->state == GD_STOPPED;
    repl_work_begin(&s->work, s->call,
                    s->count == 1 ? inspect_printf(s->call, "saving %.100s", s->item[0].value.label)
                                  : inspect_printf(s->call, "saving %zu tensors", s->count),
                    bytes);
    rc = make_writer(s, err);
    rc = rc != GD_OK ? rc : save_items(s, err);
    rc = repl_work_end(&s->work, rc, err);
    gd_tensor_writer_destroy(s->writer);
    int end = newfile_close(&s->file, rc == GD_OK, rc == GD_OK ? err : NULL);
    return rc == GD_OK ? end : rc;
}
