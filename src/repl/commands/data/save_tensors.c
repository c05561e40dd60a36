// SPDX-License-Identifier: GPL-3.0-or-later
/* `save TENSOR|SELECTOR FILE`: as .npy or .npz. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "dump/files/tensor_writer.h"
#include "engine/graph/selector.h"
#include "engine/utf8.h"
#include "repl/commands/data/save.h"
#include "repl/core/command.h"
#include "repl/core/newfile.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define PIECE     ((size_t)1 << 20) /* bytes written between two checks for Ctrl-C */
/* tensors of a dump from this size on are copied in pieces */
#define HUGE      ((uint64_t)32 << 20)
#define ROWS      ((uint64_t)16 << 20) /* approximate size of a piece, in bytes */
#define MORE_RANK 8 /* dimensions that a tensor may have beyond the declared ones */
#define MAX_SAVED ((size_t)1000000)

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

/* ---- what is saved --------------------------------------------------------------------------- */

static int add_item(struct saving *s, struct saved **ret, struct gd_err *err)
{
    if (s->count == MAX_SAVED) {
        return gd_fail(err, GD_ELIMIT, "more than %zu tensors", MAX_SAVED);
    }
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 16;
        struct saved *grown = realloc(s->item, room * sizeof(*grown));
        if (!grown) {
            return gd_fail(err, GD_ENOMEM, "out of memory");
        }
        s->item = grown;
        s->room = room;
    }
    *ret = &s->item[s->count++];
    return GD_OK;
}

/* The key in a checkpoint, "layer1.0.weight", unless another node has that name; with the slot if
 * the node has several. */
static const char *key_of(struct command_call *call, gd_node_id node, uint32_t slot)
{
    struct gd_node_info info;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return "tensor";
    }
    size_t len = strlen(info.wire_name);
    bool own = gd_catalog_of(call->session) &&
               gd_graph_lookup_wire(call->session->graph, info.wire_name, len) == node;
    const char *name = own ? info.wire_name : info.name;
    return info.output_count == 1
               ? name
               : inspect_printf(call, "%s:%s", name, inspect_slot(call, node, slot));
}

static void learn_shape(struct saving *s, struct saved *item)
{
    struct gd_shape shape = {.rank = 0};
    size_t bytes = 0;
    item->dtype = GD_DT_NONE;
    item->rank = MORE_RANK;
    if (value_declared(s->call, &item->value, &item->dtype, &shape, NULL) == GD_OK) {
        item->rank += shape.rank;
        item->shape = shape;
        gd_shape_bytes(&shape, item->dtype, &bytes, NULL);
    }
    item->bytes = bytes;
}

static int add_one(struct saving *s, const struct value *value, struct gd_err *err)
{
    struct saved *item = NULL;
    int rc = add_item(s, &item, err);
    if (rc != GD_OK) {
        return rc;
    }
    *item = (struct saved){.value = *value};
    item->name =
        value->is_history ? "tensor" : key_of(s->call, value->arg.ref.node, value->arg.ref.slot);
    learn_shape(s, item);
    return GD_OK;
}

static int add_slot(struct saving *s, gd_node_id node, uint32_t slot, struct gd_err *err)
{
    struct command_call *call = s->call;
    struct saved *item = NULL;
    int rc = add_item(s, &item, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *name = gd_graph_name(call->session->graph, node);
    *item = (struct saved){
        .name = key_of(call, node, slot),
        .value = {.step = -1,
                  .prev_step = -1,
                  .label = inspect_printf(call, "%s:%s", name, inspect_slot(call, node, slot)),
                  .arg.ref = {.node = node, .slot = slot}}};
    learn_shape(s, item);
    return GD_OK;
}

static int add_selected(struct saving *s, const char *text, struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = inspect_session(s->call, err);
    rc = rc != GD_OK ? rc : gd_selector_parse(text, &selector, err);
    rc = rc != GD_OK ? rc
                     : gd_selector_resolve(selector, s->call->session->graph, &nodes, &count, err);
    gd_selector_destroy(selector);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct gd_output output;
        for (uint32_t slot = 0;
             rc == GD_OK && gd_graph_output(s->call->session->graph, nodes[i], slot, &output);
             slot++) {
            rc = add_slot(s, nodes[i], slot, err);
        }
    }
    free(nodes);
    return rc == GD_OK && s->count == 0
               ? gd_fail(err, GD_ENOTFOUND, "%.200s selects no tensor", text)
               : rc;
}

/* "", "." or "..": parts of a path that must not be in an archive. */
static bool is_path_part(const char *part, size_t len)
{
    return len == 0 || (len == 1 && part[0] == '.') ||
           (len == 2 && part[0] == '.' && part[1] == '.');
}

/* The name as a member of an archive: a relative path without "..", safe to print. */
static const char *member_name(struct command_call *call, const char *name)
{
    struct gd_buf out = GD_BUF_INIT(SIZE_MAX);

    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (is_path_part(part, len)) {
            gd_buf_puts(&out, len == 2 ? "__" : "_");
            part += len;
        }
        for (const char *end = part + strcspn(part, "/"); part < end;) {
            uint32_t code = 0;
            size_t bytes = gd_utf8_decode(part, &code);
            if (bytes == 0 || gd_utf8_is_unsafe(code) || code == '\\') {
                gd_buf_putc(&out, '_');
            } else {
                gd_buf_add(&out, part, bytes);
            }
            part += bytes > 0 ? bytes : 1;
        }
        if (*part == '\0') {
            break;
        }
        gd_buf_putc(&out, '/');
    }
    const char *clean = gd_arena_strdup(call->arena, gd_buf_text(&out));
    clean = out.failed ? NULL : clean;
    gd_buf_deinit(&out);
    return clean;
}

/* Names come from the training process or a file and go into an archive that others unpack. */
static int clean_names(struct saving *s, struct gd_err *err)
{
    for (size_t i = 0; s->kind == GD_FILE_NPZ && i < s->count; i++) {
        const char *clean = member_name(s->call, s->item[i].name);
        if (!clean) {
            return gd_fail(err, GD_ENOMEM, "out of memory");
        }
        if (strcmp(clean, s->item[i].name) != 0) {
            s->dirty = s->cleaned++ ? s->dirty : s->item[i].name;
            s->clean = s->clean ? s->clean : clean;
            s->item[i].name = clean;
        }
    }
    return GD_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct saved *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Appends numbers to duplicate names: nodes of two graphs, or a node named like another one's
 * slot. */
static int part_names(struct saving *s, struct gd_err *err)
{
    struct saved **sorted = calloc(s->count + 1, sizeof(struct saved *));
    size_t parted = 1;
    if (!sorted) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    while (parted > 0) {
        parted = 0;
        for (size_t i = 0; i < s->count; i++) {
            sorted[i] = &s->item[i];
        }
        qsort(sorted, s->count, sizeof(struct saved *), by_name);
        const char *first = "";
        for (size_t i = 1, number = 2; i < s->count; i++) {
            bool same = strcmp(sorted[i]->name, number > 2 ? first : sorted[i - 1]->name) == 0;
            number = same ? number : 2;
            if (same) {
                first = number > 2 ? first : sorted[i - 1]->name;
                sorted[i]->name = inspect_printf(s->call, "%s#%zu", sorted[i]->name, number++);
                /* without memory for the name it would never become unique */
                if (!sorted[i]->name[0]) {
                    free(sorted);
                    return gd_fail(err, GD_ENOMEM, "out of memory");
                }
                parted++;
            }
        }
        s->renamed += parted;
    }
    free(sorted);
    return GD_OK;
}

/* Large elements first, so that all are aligned; otherwise keeps the order. */
static int by_size(const void *a, const void *b)
{
    const struct saved *x = a, *y = b;
    size_t i = gd_dtype_size(x->dtype), k = gd_dtype_size(y->dtype);
    if (i != k) {
        return i > k ? -1 : 1;
    }
    return x->value.arg.ref.node != y->value.arg.ref.node
               ? (x->value.arg.ref.node < y->value.arg.ref.node ? -1 : 1)
               : (x->value.arg.ref.slot > y->value.arg.ref.slot) -
                     (x->value.arg.ref.slot < y->value.arg.ref.slot);
}

/* ---- writing --------------------------------------------------------------------------------- */

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
    if (rc == GD_OK) {
        rc = gd_tensor_contiguous(rows, ret, err);
    }
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
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < s->count; i++) {
        plan[i] = (struct gd_tensor_plan){s->item[i].name, s->item[i].rank};
    }
    int rc = gd_tensor_writer_create(s->kind, s->file.file, plan, s->count, format_of(s),
                                     &s->writer, err);
    free(plan);
    return rc;
}

static int write_file(struct saving *s, const char *path, struct gd_err *err)
{
    uint64_t bytes = 0;
    /* A single tensor is fetched before the file is created; several are fetched one by one. */
    int rc = s->count == 1 && !is_huge(s, &s->item[0])
                 ? value_fetch(s->call, &s->item[0].value, VALUE_ELEMENTS, err)
                 : GD_OK;
    rc = rc != GD_OK ? rc : newfile_open(&s->file, path, err);
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

/* ---- the command ----------------------------------------------------------------------------- */

static int check_types(const struct saving *s, struct gd_err *err)
{
    if (s->kind == GD_FILE_NPY && s->count > 1) {
        return gd_fail(err, GD_EINVAL,
                       "%zu tensors do not fit into one .npy file: use .npz or .safetensors",
                       s->count);
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct saved *item = &s->item[i];
        if (item->dtype != GD_DT_NONE && !gd_tensor_file_holds(s->kind, item->dtype)) {
            return gd_fail(err, GD_EUNSUPPORTED, "%.200s is %s, which %s cannot hold", item->name,
                           gd_dtype_name(item->dtype),
                           s->kind == GD_FILE_SAFETENSORS ? "safetensors (an .npz can)"
                                                          : "a numpy file");
        }
    }
    return GD_OK;
}

static void report_cleaned(struct saving *s)
{
    struct command_call *call = s->call;
    if (s->cleaned) {
        out_printf(call->out, "%s renamed, as the name is not safe in a file: %s is %s%s\n",
                   inspect_plural(call, s->cleaned, "tensor"), out_safe(call, s->dirty),
                   out_safe(call, s->clean), s->cleaned > 1 ? ", ..." : "");
    }
}

static void report_one(struct saving *s, const char *path)
{
    struct command_call *call = s->call;
    struct value *value = &s->item[0].value;
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "saved");
        out_set(record, OUT_TEXT("file", path));
        value_record(call, value, NULL, record);
        return;
    }
    out_printf(call->out, "Saved %s, %s %s, to %s%s\n", value_title(call, value),
               gd_dtype_name(value->dtype), inspect_shape(call, &value->shape),
               out_safe(call, path), s->as_bits ? " (as the bits: numpy has no bfloat16)" : "");
    report_cleaned(s);
}

static void report_many(struct saving *s, const char *path)
{
    struct command_call *call = s->call;
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "saved");
        out_set(record, OUT_TEXT("file", path), OUT_INT("count", s->written),
                OUT_INT("bytes", s->done), OUT_INT("missing", s->missing),
                OUT_INT("renamed", s->renamed), OUT_INT("of_other_steps", s->old),
                OUT_INT("cleaned", s->cleaned));
        return;
    }
    out_printf(call->out, "Saved %s, %s, to %s%s\n", inspect_plural(call, s->written, "tensor"),
               inspect_bytes(call, s->done), out_safe(call, path),
               s->as_bits ? " (bfloat16 as its bits: numpy has no such type)" : "");
    if (s->renamed) {
        out_printf(call->out, "%s renamed: a number was appended to a duplicate name\n",
                   inspect_plural(call, s->renamed, "tensor"));
    }
    if (s->old) {
        out_printf(call->out, "%s %s not of step %lld, at which the session is stopped\n",
                   inspect_plural(call, s->old, "tensor"), s->old == 1 ? "is" : "are",
                   (long long)call->session->stop.step);
    }
    report_cleaned(s);
    if (s->missing) {
        out_printf(call->out, "%s %s no value; the first: %s\n",
                   inspect_plural(call, s->missing, "tensor"), s->missing == 1 ? "has" : "have",
                   s->why);
    }
}

static int collect_items(struct saving *s, enum value_which which, struct gd_err *err)
{
    struct command_call *call = s->call;
    struct gd_err why = {.text = ""};
    struct value value;
    const char *text = call->argc > 0 ? call->argv[0] : NULL;
    int rc = call->argc <= 1 ? value_parse(call, text, &value, &why) : GD_ENOTFOUND;
    if (rc == GD_OK) {
        value.which = which;
        return add_one(s, &value, err);
    }
    if (call->argc == 0) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (call->argc == 1 && s->kind == GD_FILE_NPY) {
        return add_selected(s, call->argv[0], NULL) == GD_OK && s->count > 1
                   ? GD_OK /* too many tensors: reported where they are counted */
                   : gd_fail(err, rc, "%s", why.text);
    }
    if (which != VALUE_CURRENT) {
        return gd_fail(err, GD_EUSAGE, "only the current values of several tensors can be saved");
    }
    return add_selected(s, inspect_join(call, 0, call->argc), err);
}

/* The last part of the name without characters unsuitable for a file: "fc1.weight_0_3". */
static const char *file_name(struct command_call *call, const char *label, const char *mode,
                             const char *end)
{
    const char *slash = strrchr(label, '/'), *from = slash && slash[1] ? slash + 1 : label;
    size_t len = 0, room = strlen(from) + strlen(mode) + strlen(end) + 2;
    char *name = gd_arena_alloc(call->arena, room);

    for (; name && *from; from++) {
        bool good = isalnum((unsigned char)*from) || strchr("._-", *from);
        if (good || (len > 0 && name[len - 1] != '_')) {
            name[len++] = good ? *from : '_';
        }
    }
    while (name && len > 0 && name[len - 1] == '_') {
        len--;
    }
    if (name) {
        snprintf(name + len, room - len, "%s%s%s", mode[0] ? "." : "", mode, end);
    }
    return name;
}

const char *save_name(struct command_call *call, const char *mode)
{
    const char *text = call->argc > 0 ? call->argv[0] : NULL;
    struct gd_node_info info;
    struct value value;

    if (value_parse(call, text, &value, NULL) != GD_OK) {
        return file_name(call, text ? text : "tensors", mode, ".npz");
    }
    gd_node_id node = value.arg.ref.node;
    bool one = !value.is_history && value.arg.slice.count == 0 &&
               gd_graph_node(call->session->graph, node, &info) && info.output_count <= 1;
    const char *name = file_name(call, one ? info.name : value.label, mode, ".npy");
    value_deinit(&value);
    return name;
}

int save_tensors(struct command_call *call, const char *path, bool previous, bool difference,
                 bool force, struct gd_err *err)
{
    struct saving s = {.call = call, .kind = gd_tensor_file_of(path)};
    int rc = repl_check_seal(call->repl, err);
    rc = rc != GD_OK ? rc
                     : collect_items(&s,
                                     previous     ? VALUE_PREVIOUS
                                     : difference ? VALUE_DIFFERENCE
                                                  : VALUE_CURRENT,
                                     err);
    rc = rc != GD_OK ? rc : check_types(&s, err);
    rc = rc != GD_OK ? rc : clean_names(&s, err);
    rc = rc != GD_OK ? rc : part_names(&s, err);
    bool may = true;
    rc = rc != GD_OK ? rc : repl_may_replace(call, path, force, &may, err);
    if (rc == GD_OK && !may) {
        out_printf(call->out, "Not saved.\n");
    } else if (rc == GD_OK) {
        if (s.count > 1) {
            qsort(s.item, s.count, sizeof(*s.item), by_size);
        }
        rc = write_file(&s, path, err);
        if (rc == GD_OK) {
            (s.count == 1 ? report_one : report_many)(&s, path);
        }
    }
    for (size_t i = 0; i < s.count; i++) {
        value_deinit(&s.item[i].value);
    }
    free(s.item);
    return rc;
}
