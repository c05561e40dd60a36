// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Archives for tests: a line of JSON in, a line of JSON out.
 *
 *     {"do": "open", "path": P, "format": F, "key": K, "dtype": D, "partial": true}
 *     {"do": "read", "path": P, "name": N, "slice": "[1:3]", "max": BYTES}   values as hex digits
 *     {"do": "run", "path": P, "name": N, "first": 0, "count": 10}
 *     {"do": "stats", "path": P, "name": N, "prev": [P, N], "threads": 2}
 *     {"do": "json", "path": P, "unique": true}
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

#include "dump/files/archive.h"
#include "dump/io/json.h"

static const char *text_of(const cJSON *ask, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(ask, key));
}

static double number_of(const cJSON *ask, const char *key, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(ask, key);

    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static void add_shape(cJSON *to, const struct gd_shape *shape)
{
    cJSON *dims = cJSON_AddArrayToObject(to, "shape");

    for (int i = 0; i < shape->rank; i++) {
        cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)shape->dim[i]));
    }
}

static void add_hex(cJSON *to, const unsigned char *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(size * 2 + 1);

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[data[i] >> 4];
        text[2 * i + 1] = digits[data[i] & 15];
    }
    text[size * 2] = '\0';
    cJSON_AddStringToObject(to, "hex", text);
    free(text);
}

static int open_archive(const cJSON *ask, const char *path, struct gd_archive **ret,
                        struct gd_err *err)
{
    struct gd_archive_options options = {.format = text_of(ask, "format"),
                                         .key = text_of(ask, "key"),
                                         .dtype = text_of(ask, "dtype")};

    options.partial = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ask, "partial"));
    return gd_archive_open(path, &options, ret, err);
}

static void add_entry(cJSON *to, const struct gd_archive_entry *entry)
{
    static const char *const kinds[] = {"tensor", "parameter", "buffer", "optimizer", "value"};
    static const char *const trainable[] = {"unknown", "yes", "no"};
    cJSON *item = cJSON_CreateObject();
    struct gd_source_info info;
    struct gd_err err;

    cJSON_AddItemToArray(to, item);
    cJSON_AddStringToObject(item, "name", entry->name);
    cJSON_AddStringToObject(item, "kind", kinds[entry->kind]);
    cJSON_AddStringToObject(item, "trainable", trainable[entry->trainable]);
    if (entry->text) {
        cJSON_AddStringToObject(item, "text", entry->text);
    }
    if (entry->problem) {
        cJSON_AddStringToObject(item, "problem", entry->problem);
    }
    if (entry->same_as) {
        cJSON_AddStringToObject(item, "same_as", entry->same_as);
    }
    if (!entry->source) {
        return;
    }
    if (gd_source_info(entry->source, &info, &err) != GD_OK) {
        cJSON_AddStringToObject(item, "error", err.text);
        return;
    }
    cJSON_AddStringToObject(item, "dtype", gd_dtype_name(info.dtype));
    cJSON_AddStringToObject(item, "stored", gd_stored_name(info.stored));
    cJSON_AddStringToObject(item, "note", info.note);
    add_shape(item, &info.shape);
}

static int do_open(const cJSON *ask, cJSON *answer, struct gd_err *err)
{
    struct gd_archive *archive;
    int rc = open_archive(ask, text_of(ask, "path"), &archive, err);
    cJSON *list;

    if (rc != GD_OK) {
        return rc;
    }
    cJSON_AddStringToObject(answer, "format", gd_archive_format(archive));
    list = cJSON_AddArrayToObject(answer, "entries");
    for (size_t i = 0; i < gd_archive_count(archive); i++) {
        add_entry(list, gd_archive_entry(archive, i));
    }
    list = cJSON_AddArrayToObject(answer, "notes");
    for (size_t i = 0; i < gd_archive_note_count(archive); i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(gd_archive_note(archive, i)));
    }
    gd_archive_close(archive);
    return GD_OK;
}

/* A reference on the source; it outlives its archive. */
static int find_source(const cJSON *ask, const char *path, const char *name, struct gd_source **ret,
                       struct gd_err *err)
{
    const struct gd_archive_entry *entry;
    struct gd_archive *archive;
    int rc = open_archive(ask, path, &archive, err);

    if (rc != GD_OK) {
        return rc;
    }
    entry = gd_archive_find(archive, name);
    if (!entry) {
        rc = gd_fail(err, GD_ENOTFOUND, "no %s", name);
    } else if (!entry->source) {
        rc = gd_fail(err, GD_ENODATA, "%s", entry->problem ? entry->problem : entry->text);
    } else {
        *ret = gd_source_ref(entry->source);
    }
    gd_archive_close(archive);
    return rc;
}

static int do_read(const cJSON *ask, cJSON *answer, struct gd_source *source, struct gd_err *err)
{
    const char *text = text_of(ask, "slice");
    struct gd_slice slice = {.count = 0};
    struct gd_tensor *tensor;
    size_t used;
    int rc = text ? gd_slice_parse(text, strlen(text), &used, &slice, err) : GD_OK;

    if (rc == GD_OK) {
        rc = gd_source_read(source, &slice, (size_t)number_of(ask, "max", 0), &tensor, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    cJSON_AddStringToObject(answer, "dtype", gd_dtype_name(tensor->dtype));
    add_shape(answer, &tensor->shape);
    add_hex(answer, tensor->data, gd_tensor_bytes(tensor));
    gd_tensor_unref(tensor);
    return GD_OK;
}

static int do_run(const cJSON *ask, cJSON *answer, struct gd_source *source, struct gd_err *err)
{
    int64_t first = (int64_t)number_of(ask, "first", 0),
            count = (int64_t)number_of(ask, "count", 0);
    struct gd_source_info info;
    unsigned char *data;
    int rc = gd_source_info(source, &info, err);

    if (rc != GD_OK) {
        return rc;
    }
    data = malloc((size_t)count * gd_dtype_size(info.dtype) + 1);
    rc = gd_source_read_run(source, first, count, data, err);
    if (rc == GD_OK) {
        add_hex(answer, data, (size_t)count * gd_dtype_size(info.dtype));
    }
    free(data);
    return rc;
}

/* Doubles as strings that give them back exactly. */
static void add_double(cJSON *to, const char *name, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%a", value);
    cJSON_AddStringToObject(to, name, text);
}

static void add_stats(cJSON *to, const struct gd_stats *s)
{
    cJSON_AddNumberToObject(to, "count", (double)s->count);
    cJSON_AddNumberToObject(to, "nan", (double)s->nan);
    cJSON_AddNumberToObject(to, "pos_inf", (double)s->pos_inf);
    cJSON_AddNumberToObject(to, "neg_inf", (double)s->neg_inf);
    cJSON_AddNumberToObject(to, "zero", (double)s->zero);
    cJSON_AddNumberToObject(to, "positive", (double)s->positive);
    cJSON_AddNumberToObject(to, "negative", (double)s->negative);
    cJSON_AddNumberToObject(to, "mismatch", (double)s->mismatch);
    add_double(to, "min", s->min);
    add_double(to, "max", s->max);
    add_double(to, "mean", s->mean);
    add_double(to, "sum_sq", s->sum_sq);
    add_double(to, "std", s->std);
    add_double(to, "sum_sq_delta", s->sum_sq_delta);
    add_double(to, "dot", s->dot);
}

/* Both ways: as a stream, and of the tensor in memory. */
static int do_stats(const cJSON *ask, cJSON *answer, struct gd_source *source, struct gd_err *err)
{
    const cJSON *other = cJSON_GetObjectItemCaseSensitive(ask, "prev");
    struct gd_stats_options options = {.threads = (int)number_of(ask, "threads", 1)};
    struct gd_source *prev = NULL;
    struct gd_tensor *a = NULL, *b = NULL;
    struct gd_stats streamed, whole;
    int rc = GD_OK;

    if (other) {
        rc = find_source(ask, cJSON_GetStringValue(cJSON_GetArrayItem(other, 0)),
                         cJSON_GetStringValue(cJSON_GetArrayItem(other, 1)), &prev, err);
    }
    rc = rc != GD_OK ? rc : gd_source_stats(source, prev, &options, &streamed, err);
    rc = rc != GD_OK ? rc : gd_source_read(source, NULL, 0, &a, err);
    rc = rc != GD_OK || !prev ? rc : gd_source_read(prev, NULL, 0, &b, err);
    rc = rc != GD_OK ? rc : gd_stats_compute(a, b, &options, &whole, err);
    if (rc == GD_OK) {
        add_stats(cJSON_AddObjectToObject(answer, "streamed"), &streamed);
        add_stats(cJSON_AddObjectToObject(answer, "whole"), &whole);
    }
    gd_tensor_unref(a);
    gd_tensor_unref(b);
    gd_source_unref(prev);
    return rc;
}

static int do_json(const cJSON *ask, cJSON *answer, struct gd_err *err)
{
    struct gd_json_options options = {.what = "FILE"};
    struct gd_disk *disk;
    cJSON *tree;
    int rc = gd_disk_open(AT_FDCWD, text_of(ask, "path"), true, &disk, err);

    if (rc != GD_OK) {
        return rc;
    }
    options.unique = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ask, "unique"));
    rc = gd_json_read(disk, &options, &tree, err);
    if (rc == GD_OK) {
        cJSON_AddItemToObject(answer, "tree", tree);
    }
    gd_disk_unref(disk);
    return rc;
}

static int do_source(const char *what, const cJSON *ask, cJSON *answer, struct gd_err *err)
{
    const char *name = text_of(ask, "name");
    struct gd_source *source;
    int rc = find_source(ask, text_of(ask, "path"), name ? name : "", &source, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (strcmp(what, "read") == 0) {
        rc = do_read(ask, answer, source, err);
    } else if (strcmp(what, "run") == 0) {
        rc = do_run(ask, answer, source, err);
    } else {
        rc = do_stats(ask, answer, source, err);
    }
    gd_source_unref(source);
    return rc;
}

static void answer_line(const char *line)
{
    cJSON *ask = cJSON_Parse(line), *answer = cJSON_CreateObject();
    const char *what = text_of(ask, "do");
    struct gd_err err;
    char *text;
    int rc;

    if (!what) {
        rc = gd_fail(&err, GD_EUSAGE, "what?");
    } else if (strcmp(what, "open") == 0) {
        rc = do_open(ask, answer, &err);
    } else if (strcmp(what, "json") == 0) {
        rc = do_json(ask, answer, &err);
    } else {
        rc = do_source(what, ask, answer, &err);
    }
    if (rc != GD_OK) {
        cJSON_AddStringToObject(answer, "code", gd_status_name(rc));
        cJSON_AddStringToObject(answer, "error", err.text);
    }
    text = cJSON_PrintUnformatted(answer);
    printf("%s\n", text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(answer);
    cJSON_Delete(ask);
}

int main(void)
{
    size_t room = 0;
    char *line = NULL;

    while (getline(&line, &room, stdin) > 0) {
        answer_line(line);
    }
    free(line);
    return 0;
}
