// SPDX-License-Identifier: GPL-3.0-or-later
/* Computes metrics for tests that compare them with scikit-learn's and MindSpore's. Commands on
 * stdin, one a line: metric SPEC             another metric batch FORM IGNORE DTYPE SHAPE DTYPE
 * SHAPE    outputs and labels, whose bytes follow; IGNORE "-": none number VALUE gd_metric_add
 *   clear | numbers | counts | matrix | save | merge TEXT
 * Answers are lines; the last is "." or "error: ...". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"

static struct gd_metric *metric;
static struct gd_err err;

static struct gd_tensor *read_tensor(const char *dtype, const char *shape)
{
    struct gd_shape dims = {.rank = 0};
    struct gd_tensor *tensor = NULL;
    for (const char *at = shape; *at && *at != '-'; at += strspn(at, ",")) {
        dims.dim[dims.rank++] = strtoll(at, (char **)(void *)&at, 10);
    }
    if (gd_tensor_create(gd_dtype_from_name(dtype), &dims, 0, &tensor, &err) != GD_OK) {
        abort();
    }
    size_t bytes = gd_tensor_bytes(tensor);
    if (bytes > 0 && fread(gd_tensor_bytes_mut(tensor), 1, bytes, stdin) != bytes) {
        abort();
    }
    return tensor;
}

static int run_batch(const char *line)
{
    int form;
    char ignore[32], dtype[2][16], shape[2][128];
    if (sscanf(line, "%d %31s %15s %127s %15s %127s", &form, ignore, dtype[0], shape[0], dtype[1],
               shape[1]) != 6) {
        abort();
    }
    struct gd_tensor *outputs = read_tensor(dtype[0], shape[0]);
    struct gd_tensor *labels = read_tensor(dtype[1], shape[1]);
    struct gd_metric_pair pair = {.form = (enum gd_metric_form)form,
                                  .has_ignore = ignore[0] != '-' || ignore[1],
                                  .ignore = atoll(ignore)};
    int rc = gd_metric_update(metric, &pair, outputs, labels, &err);
    gd_tensor_unref(outputs);
    gd_tensor_unref(labels);
    return rc;
}

static void show_numbers(void)
{
    struct gd_metric_number number[64];
    size_t count = gd_metric_numbers(metric, number, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        printf("%s %.17g\n", number[i].name, number[i].value);
    }
}

static int run_line(const char *line)
{
    struct gd_metric_spec spec;
    struct gd_buf text = GD_BUF_INIT(1 << 24);
    int rc = GD_OK;
    if (strncmp(line, "metric ", 7) == 0) {
        gd_metric_destroy(metric);
        metric = NULL;
        rc = gd_metric_parse(line + 7, &spec, &err);
        rc = rc != GD_OK ? rc : gd_metric_create(&spec, &metric, &err);
        if (rc == GD_OK) {
            gd_metric_text(&spec, &text);
            printf("%s\n", gd_buf_text(&text));
        }
    } else if (strncmp(line, "batch ", 6) == 0) {
        rc = run_batch(line + 6);
    } else if (strncmp(line, "number ", 7) == 0) {
        gd_metric_add(metric, strtod(line + 7, NULL));
    } else if (strcmp(line, "clear") == 0) {
        gd_metric_clear(metric);
    } else if (strcmp(line, "numbers") == 0) {
        show_numbers();
    } else if (strcmp(line, "counts") == 0) {
        const struct gd_metric_counts *c = gd_metric_counts(metric);
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
               c->samples, c->batches, c->nan, c->ignored, c->out_of_range, c->not_kept);
    } else if (strcmp(line, "matrix") == 0) {
        for (int64_t i = 0; i < gd_metric_classes(metric); i++) {
            for (int64_t j = 0; j < gd_metric_classes(metric); j++) {
                printf("%" PRIu64 " ", gd_metric_cell(metric, i, j));
            }
            printf("\n");
        }
    } else if (strcmp(line, "save") == 0) {
        rc = gd_metric_save(metric, &text, &err);
        printf("%s\n", gd_buf_text(&text));
    } else if (strncmp(line, "merge ", 6) == 0) {
        rc = gd_metric_merge(metric, line + 6, &err);
    }
    gd_buf_deinit(&text);
    return rc;
}

int main(void)
{
    static char line[1 << 20];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (run_line(line) == GD_OK) {
            puts(".");
        } else {
            printf("error: %s\n", err.text);
        }
        fflush(stdout);
    }
    gd_metric_destroy(metric);
    return 0;
}
