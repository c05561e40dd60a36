// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * safetensors: header length, JSON header, then the elements of all tensors. Refuses what the
 * reference reader refuses: tensors that overlap or leave gaps, a length that does not match type
 * and shape, trailing bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/json.h"
#include "dump/io/little_endian.h"

#define MAX_HEADER UINT64_C(100000000)
#define DEPTH      8

struct type {
    const char *name;
    unsigned bits;
    enum gd_stored stored; /* NONE: listed, but cannot be read */
};

static const struct type types[] = {
    {"BOOL", 8, GD_STORED_BOOL},
    {"U8", 8, GD_STORED_UINT8},
    {"I8", 8, GD_STORED_INT8},
    {"U16", 16, GD_STORED_UINT16},
    {"I16", 16, GD_STORED_INT16},
    {"U32", 32, GD_STORED_UINT32},
    {"I32", 32, GD_STORED_INT32},
    {"U64", 64, GD_STORED_UINT64},
    {"I64", 64, GD_STORED_INT64},
    {"F16", 16, GD_STORED_FLOAT16},
    {"BF16", 16, GD_STORED_BFLOAT16},
    {"F32", 32, GD_STORED_FLOAT32},
    {"F64", 64, GD_STORED_FLOAT64},
    {"C64", 64, GD_STORED_COMPLEX64},
    {"F8_E4M3", 8, GD_STORED_FLOAT8_E4M3FN},
    {"F8_E5M2", 8, GD_STORED_FLOAT8_E5M2},
    {"F8_E8M0", 8, GD_STORED_FLOAT8_E8M0FNU},
    {"F8_E4M3FNUZ", 8, GD_STORED_FLOAT8_E4M3FNUZ},
    {"F8_E5M2FNUZ", 8, GD_STORED_FLOAT8_E5M2FNUZ},
    {"F4", 4, GD_STORED_FLOAT4_E2M1},
    {"F6_E2M3", 6, GD_STORED_NONE},
    {"F6_E3M2", 6, GD_STORED_NONE},
};

struct range { /* of a tensor, in the bytes after the header */
    uint64_t begin, end;
};

struct reading {
    struct gd_archive *archive;
    struct gd_disk *disk;
    struct gd_json json;
    uint64_t data;  /* where the elements begin */
    uint64_t taken; /* bytes of all tensors */
    struct range *ranges;
    size_t count, room;
    struct gd_err *err;
};

struct tensor { /* as in its header entry */
    const struct type *type;
    struct gd_shape shape;
    struct range range;
    bool has_type, has_shape, has_range;
};

static int fail_header(struct reading *in, size_t at, const char *what)
{
    return gd_json_fail(&in->json, at, GD_EPROTO, in->err, "broken safetensors header: %s", what);
}

/* ---- the header ------------------------------------------------------------------------------ */

static int next_token(struct reading *in, struct gd_json_token *ret)
{
    return gd_json_next(&in->json, ret, in->err);
}

static int read_type(struct reading *in, struct tensor *tensor)
{
    struct gd_json_token token;
    int rc = next_token(in, &token);

    if (rc != GD_OK) {
        return rc;
    }
    for (size_t i = 0; token.kind == GD_JSON_STRING && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, token.text) == 0) {
            tensor->type = &types[i];
            return GD_OK;
        }
    }
    return gd_json_fail(&in->json, token.at, GD_EPROTO, in->err,
                        "broken safetensors header: unknown element type %.40s", token.text);
}

/* Reads numbers to ret[0 ... max - 1]; *count gets how many. */
static int read_numbers(struct reading *in, uint64_t *ret, int max, int *count)
{
    struct gd_json_token token;
    int rc = next_token(in, &token);

    *count = 0;
    if (rc == GD_OK && token.kind != GD_JSON_ARRAY) {
        return fail_header(in, token.at, "expected an array of numbers");
    }
    while (rc == GD_OK) {
        rc = next_token(in, &token);
        if (rc != GD_OK || token.kind == GD_JSON_ARRAY_END) {
            break;
        }
        if (*count == max) {
            return gd_json_fail(&in->json, token.at, GD_ELIMIT, in->err, "more than %d numbers",
                                max);
        }
        if (token.kind != GD_JSON_NUMBER || !gd_json_unsigned(token.text, &ret[*count])) {
            return fail_header(in, token.at, "expected sizes and offsets as unsigned integers");
        }
        (*count)++;
    }
    return rc;
}

static int read_shape(struct reading *in, struct tensor *tensor)
{
    uint64_t dims[GD_MAX_RANK];
    int rc = read_numbers(in, dims, GD_MAX_RANK, &tensor->shape.rank);

    for (int i = 0; rc == GD_OK && i < tensor->shape.rank; i++) {
        if (dims[i] > INT64_MAX) {
            return fail_header(in, in->json.at, "dimension too large");
        }
        tensor->shape.dim[i] = (int64_t)dims[i];
    }
    return rc;
}

static int read_range(struct reading *in, struct tensor *tensor)
{
    uint64_t ends[2];
    int count, rc = read_numbers(in, ends, 2, &count);

    if (rc == GD_OK && (count != 2 || ends[0] > ends[1])) {
        return fail_header(in, in->json.at, "expected data_offsets as a begin and an end");
    }
    if (rc == GD_OK) {
        tensor->range = (struct range){ends[0], ends[1]};
    }
    return rc;
}

static int read_tensor_keys(struct reading *in, struct tensor *tensor)
{
    struct gd_json_token token;
    int rc = next_token(in, &token);

    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        return fail_header(in, token.at, "expected an object for each tensor");
    }
    while (rc == GD_OK && (rc = next_token(in, &token)) == GD_OK && token.kind == GD_JSON_KEY) {
        bool *has = strcmp(token.text, "dtype") == 0          ? &tensor->has_type
                    : strcmp(token.text, "shape") == 0        ? &tensor->has_shape
                    : strcmp(token.text, "data_offsets") == 0 ? &tensor->has_range
                                                              : NULL;

        if (!has || *has) {
            return fail_header(in, token.at,
                               "expected the keys dtype, shape and data_offsets, each once");
        }
        *has = true;
        rc = has == &tensor->has_type    ? read_type(in, tensor)
             : has == &tensor->has_shape ? read_shape(in, tensor)
                                         : read_range(in, tensor);
    }
    if (rc == GD_OK && (!tensor->has_type || !tensor->has_shape || !tensor->has_range)) {
        return fail_header(in, token.at, "dtype, shape or data_offsets is missing");
    }
    return rc;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int check_length(struct reading *in, const struct tensor *tensor, size_t at)
{
    int64_t count = gd_shape_count(&tensor->shape);
    uint64_t bits;

    if (count < 0 || __builtin_mul_overflow((uint64_t)count, tensor->type->bits, &bits)) {
        return fail_header(in, at, "the number of elements exceeds 64 bits");
    }
    if (bits % 8 || bits / 8 != tensor->range.end - tensor->range.begin) {
        return fail_header(in, at, "data_offsets do not match dtype and shape");
    }
    return GD_OK;
}

static int add_range(struct reading *in, struct range range)
{
    if (!gd_grow_list(&in->ranges, in->count, &in->room, sizeof(*in->ranges))) {
        return gd_fail_nomem(in->err);
    }
    in->ranges[in->count++] = range;
    return GD_OK;
}

static int make_source(struct reading *in, const struct tensor *tensor, struct gd_source **ret)
{
    struct gd_source_desc desc = {.stored = tensor->type->stored};
    int rc = gd_bytes_of_disk(in->disk, in->data + tensor->range.begin,
                              tensor->range.end - tensor->range.begin, &desc.bytes, in->err);

    if (rc != GD_OK) {
        return rc;
    }
    desc.shape.rank = tensor->shape.rank;
    memcpy(desc.shape.dim, tensor->shape.dim,
           sizeof(desc.shape.dim[0]) * (size_t)tensor->shape.rank);
    rc = gd_source_create(&desc, ret, in->err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end;
}

static void sort_ranges(struct reading *in)
{
    if (in->count) {
        qsort(in->ranges, in->count, sizeof(*in->ranges), compare_ranges);
    }
}

/* If the tensors take more bytes than there are, two of them must overlap: report where. */
static int fail_overlap(struct reading *in)
{
    size_t i = 1;

    sort_ranges(in);
    while (i + 1 < in->count && in->ranges[i].begin >= in->ranges[i - 1].end) {
        i++;
    }
    return gd_fail(in->err, GD_EPROTO, "%.300s: tensors overlap at byte %llu of the elements",
                   gd_disk_path(in->disk), (unsigned long long)in->ranges[i].begin);
}

static int read_tensor(struct reading *in, const char *name, size_t at)
{
    struct gd_archive_entry entry = {.name = name, .kind = GD_ENTRY_TENSOR};
    struct tensor tensor = {.type = NULL};
    uint64_t all = gd_disk_size(in->disk) - in->data;
    int rc = read_tensor_keys(in, &tensor);

    rc = rc != GD_OK ? rc : check_length(in, &tensor, at);
    if (rc == GD_OK && tensor.range.end > all) {
        rc = gd_json_fail(&in->json, at, GD_EPROTO, in->err,
                          "the file is truncated: %.80s ends at byte %llu of %llu", name,
                          (unsigned long long)tensor.range.end, (unsigned long long)all);
    }
    if (rc == GD_OK && tensor.range.end - tensor.range.begin > all - in->taken) {
        rc = add_range(in, tensor.range);
        return rc != GD_OK ? rc
                           : fail_overlap(in); /* fail now, not after half a million more of them */
    }
    if (rc == GD_OK && gd_archive_find(in->archive, name) && name[0]) {
        rc = fail_header(in, at, "duplicate tensor");
    }
    if (rc == GD_OK && tensor.type->stored != GD_STORED_NONE) {
        rc = make_source(in, &tensor, &entry.source);
    } else if (rc == GD_OK) {
        entry.problem = "float6 elements are not supported";
    }
    if (rc == GD_OK) {
        in->taken += tensor.range.end - tensor.range.begin;
        rc = add_range(in, tensor.range);
    }
    rc = rc != GD_OK ? rc : gd_archive_add(in->archive, &entry, in->err);
    gd_source_unref(entry.source);
    return rc;
}

/* Free-form strings of the writer: {"format": "pt"}. */
static int read_metadata(struct reading *in)
{
    struct gd_json_token token;
    char line[400], *key = NULL;
    size_t used = 0;
    int rc = next_token(in, &token);

    line[0] = '\0';
    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        return fail_header(in, token.at, "expected an object for __metadata__");
    }
    while (rc == GD_OK && (rc = next_token(in, &token)) == GD_OK && token.kind == GD_JSON_KEY) {
        free(key);
        key = strdup(token.text);
        rc = key ? next_token(in, &token) : gd_fail_nomem(in->err);
        if (rc == GD_OK && token.kind != GD_JSON_STRING) {
            rc = fail_header(in, token.at, "__metadata__ may only contain strings");
        } else if (rc == GD_OK && used < sizeof(line)) {
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.60s: %.60s",
                                     used ? ", " : "", key, token.text);
        }
    }
    free(key);
    if (rc == GD_OK && used) {
        gd_archive_add_note(in->archive, "metadata: %s", line);
    }
    return rc;
}

/* Checks that tensors follow each other without gaps to the end of the file. */
static int check_ranges(struct reading *in)
{
    uint64_t end = 0, all = gd_disk_size(in->disk) - in->data;

    sort_ranges(in);
    for (size_t i = 0; i < in->count; i++) {
        if (in->ranges[i].begin != end) {
            return gd_fail(
                in->err, GD_EPROTO, "%.300s: tensors %s at byte %llu of the elements",
                gd_disk_path(in->disk), in->ranges[i].begin < end ? "overlap" : "leave a gap",
                (unsigned long long)(in->ranges[i].begin < end ? in->ranges[i].begin : end));
        }
        end = in->ranges[i].end;
    }
    if (end != all) {
        return gd_fail(in->err, GD_EPROTO, "%.300s has %llu bytes after the last tensor",
                       gd_disk_path(in->disk), (unsigned long long)(all - end));
    }
    return GD_OK;
}

static int read_header(struct reading *in)
{
    struct gd_json_token token;
    bool metadata = false;
    char *name = NULL;
    int rc = next_token(in, &token);

    if (rc == GD_OK && token.kind != GD_JSON_OBJECT) {
        return fail_header(in, token.at, "expected an object");
    }
    while (rc == GD_OK && (rc = next_token(in, &token)) == GD_OK && token.kind == GD_JSON_KEY) {
        free(name);
        name = strdup(token.text);
        if (!name) {
            rc = gd_fail_nomem(in->err);
        } else if (strcmp(name, "__metadata__") != 0) {
            rc = read_tensor(in, name, token.at);
        } else if (metadata) {
            rc = fail_header(in, token.at, "duplicate __metadata__");
        } else {
            metadata = true;
            rc = read_metadata(in);
        }
    }
    free(name);
    if (rc == GD_OK) {
        rc = next_token(in, &token); /* expects the end of the text */
    }
    return rc != GD_OK ? rc : check_ranges(in);
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_safetensors(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    return size > 8 && start[8] == '{' && gd_little_endian(start, 8) <= MAX_HEADER;
}

static int read_safetensors(struct gd_archive *archive, struct gd_disk *disk,
                            const struct gd_archive_options *options, struct gd_err *err)
{
    struct reading in = {.archive = archive, .disk = disk, .err = err};
    unsigned char start[8];
    uint64_t length;
    char *text;
    int rc = gd_disk_read(disk, 0, start, sizeof(start), err);

    (void)options;
    if (rc != GD_OK) {
        return rc;
    }
    length = gd_little_endian(start, 8);
    if (length > MAX_HEADER) {
        return gd_fail(err, GD_ELIMIT,
                       "%.300s: its safetensors header of %llu bytes exceeds the limit of %llu",
                       gd_disk_path(disk), (unsigned long long)length,
                       (unsigned long long)MAX_HEADER);
    }
    if (length > gd_disk_size(disk) - 8) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s is truncated: it ends within its header of %llu bytes",
                       gd_disk_path(disk), (unsigned long long)length);
    }
    text = malloc((size_t)length + 1);
    if (!text) {
        return gd_fail_nomem(err);
    }
    in.data = 8 + length;
    in.json = (struct gd_json){
        .text = text, .size = (size_t)length, .max_depth = DEPTH, .what = gd_disk_path(disk)};
    rc = gd_disk_read(disk, 8, text, (size_t)length, err);
    rc = rc != GD_OK ? rc : read_header(&in);
    gd_json_deinit(&in.json);
    free(in.ranges);
    free(text);
    return rc;
}

const struct gd_archive_format gd_safetensors_format = {
    .name = "safetensors",
    .what = "safetensors (.safetensors)",
    .is = is_safetensors,
    .read = read_safetensors,
};
