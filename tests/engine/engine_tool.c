// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The engine's tensor functions behind lines of text, for tests that compare them with numpy.
 * One command a line on the standard input, fields separated by single blanks; every answer ends
 * with a line that is "." alone. DIMS is 2,3,4 or - for a scalar; HEX the elements' bytes or -.
 *
 *     slice DIMS SLICE                    view of int32 elements: DIMS, strides, offset
 *     take DTYPE DIMS SLICE HEX           the elements it selects, copied, in hexadecimal
 *     print DTYPE DIMS OPTIONS SLICE HEX  precision,threshold,edge,width,suppress,all,LETTER
 *     mindspore DTYPE DIMS COMMAS SLICE HEX   as MindSpore's Print writes it
 *     npy DTYPE DIMS                      the header in hexadecimal
 *     stats DTYPE DIMS SLICE HEX [HEX]    the record, one name=value a line; against the second
 *     hist DTYPE DIMS LO HI BINS HEX      the counts
 *     line DTYPE DIMS UTF8 BINS HEX       the one-line summary
 *
 * The slice "[...]" is the whole tensor.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "engine/format.h"
#include "tool_words.h"

#define TEXT_MAX ((size_t)64 << 20)

static unsigned char *parse_hex(const char *text, size_t *size)
{
    size_t len = text && strcmp(text, "-") != 0 ? strlen(text) / 2 : 0;
    unsigned char *bytes = malloc(len + 1);

    for (size_t i = 0; bytes && i < len; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    *size = len;
    return bytes;
}

static void put_hex(const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

static int parse_slice(const char *text, struct gd_slice *slice, struct gd_err *err)
{
    size_t used, len = strlen(text);
    int rc = gd_slice_parse(text, len, &used, slice, err);

    if (rc == GD_OK && used != len) {
        return gd_fail(err, GD_EINVAL, "text after the slice");
    }
    return rc;
}

static void free_bytes(void *data, size_t bytes, void *ctx)
{
    free(data);
}

/* The tensor of those fields, cut by the slice. */
static int parse_tensor(const char *dtype, const char *dims, const char *slice_text,
                        const char *hex, struct gd_tensor **ret, struct gd_err *err)
{
    struct gd_tensor *whole;
    struct gd_shape shape;
    struct gd_slice slice;
    unsigned char *bytes;
    size_t size;
    int rc;

    if (!dtype || !dims || !slice_text || !parse_dims(dims, &shape)) {
        return gd_fail(err, GD_EINVAL, "fields are missing");
    }
    bytes = parse_hex(hex, &size);
    rc = gd_tensor_wrap(gd_dtype_from_name(dtype), &shape, bytes, size, free_bytes, NULL, &whole,
                        err);
    if (rc != GD_OK) {
        free(bytes);
        return rc;
    }
    rc = parse_slice(slice_text, &slice, err);
    if (rc == GD_OK) {
        rc = gd_tensor_slice(whole, &slice, ret, err);
    }
    gd_tensor_unref(whole);
    return rc;
}

static int do_slice(char *line, struct gd_err *err)
{
    struct gd_slice_view view;
    struct gd_shape shape;
    struct gd_slice slice;
    int64_t stride[GD_MAX_RANK];
    int rc;

    if (!parse_dims(next_word(&line), &shape) || !line) {
        return gd_fail(err, GD_EINVAL, "fields are missing");
    }
    rc = parse_slice(line, &slice, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_shape_strides(&shape, 4, stride);
    rc = gd_slice_apply(&slice, &shape, stride, &view, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (int i = 0; i < view.shape.rank; i++) {
        printf("%" PRId64 " ", view.shape.dim[i]);
    }
    printf(":");
    for (int i = 0; i < view.shape.rank; i++) {
        printf(" %" PRId64, view.stride[i]);
    }
    printf(" : %" PRId64 "\n", view.offset);
    return GD_OK;
}

static int do_take(char *line, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line), *slice = next_word(&line);
    struct gd_tensor *tensor, *flat;
    int rc = parse_tensor(dtype, dims, slice, line, &tensor, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_tensor_contiguous(tensor, &flat, err);
    if (rc == GD_OK) {
        put_hex(flat->data, gd_tensor_bytes(flat));
        gd_tensor_unref(flat);
    }
    gd_tensor_unref(tensor);
    return rc;
}

static void parse_format(char *text, struct gd_format *format)
{
    char *save = NULL;
    long value[6] = {8, 1000, 3, 75, 0, 0};

    for (int i = 0; i < 6; i++) {
        char *word = strtok_r(i ? NULL : text, ",", &save);

        if (word) {
            value[i] = strtol(word, NULL, 10);
        }
    }
    format->precision = (int)value[0];
    format->threshold = value[1];
    format->edge_items = (int)value[2];
    format->line_width = (int)value[3];
    format->suppress = value[4] != 0;
    format->all = value[5] != 0;
    format->letter = save && *save && *save != '-' ? *save : '\0';
}

static int do_print(char *line, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line);
    char *options = next_word(&line), *slice = next_word(&line);
    struct gd_format format = GD_FORMAT_DEFAULT;
    struct gd_buf out = GD_BUF_INIT(TEXT_MAX);
    struct gd_tensor *tensor;
    int rc = parse_tensor(dtype, dims, slice, line, &tensor, err);

    if (rc != GD_OK) {
        return rc;
    }
    parse_format(options, &format);
    rc = gd_format_values(tensor, &format, &out, err);
    if (rc == GD_OK) {
        printf("%s\n", gd_buf_text(&out));
    }
    gd_buf_deinit(&out);
    gd_tensor_unref(tensor);
    return rc;
}

/* What a training process sends for a print. NULL: the tensor itself. */
static struct gd_tensor *copy_abridged(const struct gd_tensor *tensor)
{
    struct gd_shape shape;
    struct gd_tensor *part;

    if (gd_tensor_count(tensor) == 0 || !gd_shape_abridge(&tensor->shape, &shape) ||
        gd_tensor_create(tensor->dtype, &shape, 0, &part, NULL) != GD_OK) {
        return NULL;
    }
    gd_abridged_copy(gd_tensor_bytes_mut(part), tensor, &shape);
    part->abridged = true;
    part->whole = tensor->shape;
    return part;
}

static int do_mindspore(char *line, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line);
    const char *commas = next_word(&line), *slice = next_word(&line);
    struct gd_buf out = GD_BUF_INIT(TEXT_MAX), again = GD_BUF_INIT(TEXT_MAX);
    struct gd_tensor *tensor;
    int rc = parse_tensor(dtype, dims, slice, line, &tensor, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct gd_tensor *part = copy_abridged(tensor);
    rc = gd_format_print(tensor, strcmp(commas, "1") == 0, &out, err);
    if (rc == GD_OK && part) {
        rc = gd_format_print(part, strcmp(commas, "1") == 0, &again, err);
    }
    if (rc == GD_OK && part && strcmp(gd_buf_text(&out), gd_buf_text(&again)) != 0) {
        rc = gd_fail(err, GD_EINVAL, "abridged, it is %.200s", gd_buf_text(&again));
    }
    if (rc == GD_OK) {
        printf("%s\n", gd_buf_text(&out));
    }
    gd_tensor_unref(part);
    gd_buf_deinit(&out);
    gd_buf_deinit(&again);
    gd_tensor_unref(tensor);
    return rc;
}

static int do_npy(char *line, struct gd_err *err)
{
    enum gd_dtype dtype = gd_dtype_from_name(next_word(&line));
    struct gd_buf out = GD_BUF_INIT(1 << 16);
    struct gd_shape shape;
    int rc;

    if (!line || !parse_dims(line, &shape)) {
        return gd_fail(err, GD_EINVAL, "fields are missing");
    }
    rc = gd_npy_header(dtype, &shape, &out, err);
    if (rc == GD_OK) {
        put_hex(out.data, out.len);
    }
    gd_buf_deinit(&out);
    return rc;
}

#define SHOW_COUNT(name)  printf(#name "=%" PRIu64 "\n", s->name)
#define SHOW_NUMBER(name) printf(#name "=%a\n", s->name)

static void show_stats(const struct gd_stats *s)
{
    SHOW_COUNT(count);
    SHOW_COUNT(nan);
    SHOW_COUNT(pos_inf);
    SHOW_COUNT(neg_inf);
    SHOW_COUNT(zero);
    SHOW_COUNT(neg_zero);
    SHOW_COUNT(positive);
    SHOW_COUNT(negative);
    SHOW_COUNT(denormal);
    printf("in_range=%" PRIu64 "\n", s->in_range[0]);
    SHOW_COUNT(mismatch);
    SHOW_COUNT(unpaired);
    SHOW_NUMBER(min);
    SHOW_NUMBER(max);
    SHOW_NUMBER(mean);
    SHOW_NUMBER(abs_mean);
    SHOW_NUMBER(sum_sq);
    SHOW_NUMBER(std);
    SHOW_NUMBER(mean_abs_delta);
    SHOW_NUMBER(mean_delta);
    SHOW_NUMBER(sum_sq_delta);
    SHOW_NUMBER(max_abs_delta);
    SHOW_NUMBER(mean_abs_prev);
    SHOW_NUMBER(dot);
    SHOW_NUMBER(sum_sq_prev);
}

static int do_stats(char *line, struct gd_err *err)
{
    const struct gd_stats_options options = {
        .range_count = 1, .range = {{-1, 2}}, .rtol = 1e-2, .atol = 1e-3};
    const char *dtype = next_word(&line), *dims = next_word(&line), *slice = next_word(&line),
               *hex = next_word(&line);
    struct gd_tensor *cur, *prev = NULL;
    struct gd_stats stats;
    int rc = parse_tensor(dtype, dims, slice, hex, &cur, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (line) {
        rc = parse_tensor(dtype, dims, slice, line, &prev, err);
    }
    if (rc == GD_OK) {
        rc = gd_stats_compute(cur, prev, &options, &stats, err);
    }
    if (rc == GD_OK) {
        show_stats(&stats);
    }
    gd_tensor_unref(cur);
    gd_tensor_unref(prev);
    return rc;
}

static int do_hist(char *line, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line);
    double lo = strtod(next_word(&line), NULL), hi = strtod(next_word(&line), NULL);
    size_t bins = strtoul(next_word(&line), NULL, 10);
    uint64_t *count = calloc(bins + 1, sizeof(*count));
    struct gd_tensor *tensor;
    int rc = parse_tensor(dtype, dims, "[...]", line, &tensor, err);

    if (rc == GD_OK) {
        rc = gd_stats_histogram(tensor, lo, hi, bins, count, err);
        for (size_t i = 0; rc == GD_OK && i < bins; i++) {
            printf("%" PRIu64 "\n", count[i]);
        }
        gd_tensor_unref(tensor);
    }
    free(count);
    return rc;
}

static int do_line(char *line, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line), *utf8 = next_word(&line);
    size_t bins = strtoul(next_word(&line), NULL, 10);
    uint64_t *count = calloc(bins + 1, sizeof(*count));
    struct gd_buf out = GD_BUF_INIT(1 << 16);
    struct gd_stats stats;
    struct gd_tensor *tensor;
    int rc = parse_tensor(dtype, dims, "[...]", line, &tensor, err);

    if (rc == GD_OK) {
        rc = gd_stats_compute(tensor, NULL, NULL, &stats, err);
        if (rc == GD_OK && bins && stats.min <= stats.max) {
            rc = gd_stats_histogram(tensor, stats.min, stats.max, bins, count, err);
        }
        if (rc == GD_OK) {
            rc = gd_format_summary(tensor->dtype, &tensor->shape, &stats, bins ? count : NULL, bins,
                                   utf8[0] == '1', &out);
        }
        if (rc == GD_OK) {
            printf("%s\n", gd_buf_text(&out));
        }
        gd_tensor_unref(tensor);
    }
    gd_buf_deinit(&out);
    free(count);
    return rc;
}

static const struct tool_command commands[] = {
    {"slice", do_slice}, {"take", do_take},   {"print", do_print}, {"mindspore", do_mindspore},
    {"npy", do_npy},     {"stats", do_stats}, {"hist", do_hist},   {"line", do_line},
};

int main(void)
{
    char *line = NULL;
    size_t cap = 0;

    while (read_line(&line, &cap)) {
        struct gd_err err;
        int rc = run_command(commands, sizeof(commands) / sizeof(commands[0]), line, &err);
        if (rc != GD_OK) {
            printf("error %s: %s\n", gd_status_name(rc), err.text);
        }
        printf(".\n");
        fflush(stdout);
    }
    free(line);
    return 0;
}
