// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The definition of a metric on the first line, and the counts of a rank on each of the others.
 * What is accepted means the same when its text is parsed again; counts that are refused change
 * nothing; and what was added up can be saved, and added to nothing.
 */
#include "base/metric.h"
#include "fuzz.h"

static void save_counts(const struct gd_metric *metric, struct gd_buf *out)
{
    gd_buf_clear(out);
    FUZZ_CHECK(gd_metric_save(metric, out, NULL) == GD_OK || out->len == 0);
}

static void check_numbers(const struct gd_metric *metric)
{
    struct gd_metric_number number[4];
    size_t count = gd_metric_numbers(metric, number, 4);

    for (size_t i = 0; i < count && i < 4; i++) {
        FUZZ_CHECK(memchr(number[i].name, '\0', sizeof(number[i].name)));
    }
    (void)gd_metric_cell(metric, gd_metric_classes(metric) - 1, 0);
}

static void add_to_nothing(const struct gd_metric *metric, const char *saved)
{
    struct gd_metric *other = NULL;

    FUZZ_CHECK(gd_metric_create(gd_metric_spec(metric), &other, NULL) == GD_OK);
    FUZZ_CHECK(gd_metric_merge(other, saved, NULL) == GD_OK);
    FUZZ_CHECK(gd_metric_counts(other)->samples == gd_metric_counts(metric)->samples);
    FUZZ_CHECK(gd_metric_classes(other) == gd_metric_classes(metric));
    gd_metric_destroy(other);
}

static void add_batch(struct gd_metric *metric)
{
    const struct gd_shape wide = {.rank = 2, .dim = {2, 3}}, flat = {.rank = 1, .dim = {2}};
    struct gd_metric_pair pair = {.form = GD_FORM_UNKNOWN};
    struct gd_tensor *outputs = NULL, *labels = NULL;

    FUZZ_CHECK(gd_tensor_create(GD_FLOAT32, &wide, 0, &outputs, NULL) == GD_OK);
    FUZZ_CHECK(gd_tensor_create(GD_INT64, &flat, 0, &labels, NULL) == GD_OK);
    memset(gd_tensor_bytes_mut(outputs), 0x3f, gd_tensor_bytes(outputs));
    memset(gd_tensor_bytes_mut(labels), 0, gd_tensor_bytes(labels));
    struct gd_buf plan = GD_BUF_INIT(1 << 13);
    enum gd_metric_kind kind = gd_metric_spec(metric)->kind;
    pair.samples = gd_metric_samples_create();
    int planned = gd_metric_plan(metric, &pair, outputs, labels, &plan, NULL);
    int updated = gd_metric_update(metric, &pair, outputs, labels, NULL);
    /* the others are judged by their values */
    FUZZ_CHECK(planned == updated || kind == GD_METRIC_AUC || kind >= GD_METRIC_CUSTOM);
    gd_buf_deinit(&plan);
    gd_metric_samples_destroy(pair.samples);
    gd_tensor_unref(outputs);
    gd_tensor_unref(labels);
}

static void merge_all(struct gd_metric *metric, char *lines)
{
    struct gd_buf before = GD_BUF_INIT(1 << 26), after = GD_BUF_INIT(1 << 26);
    struct gd_err err = {.text = ""};

    for (char *at = lines, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next) {
            *next++ = '\0';
        }
        save_counts(metric, &before);
        int rc = gd_metric_merge(metric, at, &err);
        save_counts(metric, &after);
        FUZZ_CHECK(rc == GD_OK || err.text[0]);
        FUZZ_CHECK(rc == GD_OK || strcmp(gd_buf_text(&before), gd_buf_text(&after)) == 0);
        check_numbers(metric);
    }
    if (after.len > 0) {
        add_to_nothing(metric, gd_buf_text(&after));
    }
    gd_buf_deinit(&before);
    gd_buf_deinit(&after);
}

static void check_text(const struct gd_metric_spec *spec)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16), again = GD_BUF_INIT(1 << 16);
    struct gd_metric_spec other;

    gd_metric_text(spec, &text);
    FUZZ_CHECK(gd_metric_parse(gd_buf_text(&text), &other, NULL) == GD_OK);
    gd_metric_text(&other, &again);
    FUZZ_CHECK(strcmp(gd_buf_text(&text), gd_buf_text(&again)) == 0);
    gd_buf_deinit(&text);
    gd_buf_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines = strchr(text, '\n');
    struct gd_metric *metric = NULL;
    struct gd_metric_spec spec;
    struct gd_err err = {.text = ""};

    if (lines) {
        *lines++ = '\0';
    }
    if (gd_metric_parse(text, &spec, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
    } else if (gd_metric_create(&spec, &metric, NULL) == GD_OK) {
        check_text(&spec);
        merge_all(metric, lines);
        add_batch(metric);
        check_numbers(metric);
        gd_metric_destroy(metric);
    }
    free(text);
    return 0;
}
