// SPDX-License-Identifier: MIT
/* Metrics as JSON. */
#include <inttypes.h>
#include <math.h>

#include "agent/agent_metric.h"

#define MOST_CLASSES 128 /* of a matrix, or with a number each, that are listed */

static void put_text(struct gd_buf *out, const char *text)
{
    gd_buf_putc(out, '"');
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) {
            gd_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        } else {
            gd_buf_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
        }
    }
    gd_buf_putc(out, '"');
}

static void put_number(struct gd_buf *out, double value)
{
    if (isfinite(value)) {
        gd_buf_printf(out, "%.17g", value);
    } else {
        gd_buf_puts(out, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    }
}

static void put_numbers(struct gd_buf *out, const struct gd_metric *m)
{
    struct gd_metric_number number[MOST_CLASSES];
    size_t count = gd_metric_numbers(m, number, MOST_CLASSES);
    gd_buf_puts(out, ",\"numbers\":[");
    for (size_t i = 0; i < count && i < MOST_CLASSES; i++) {
        gd_buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        put_text(out, number[i].name);
        gd_buf_puts(out, ",\"value\":");
        put_number(out, number[i].value);
        gd_buf_putc(out, '}');
    }
    gd_buf_printf(out, "],\"number_count\":%zu", count);
}

static void put_matrix(struct gd_buf *out, const struct gd_metric *m)
{
    int64_t classes = gd_metric_classes(m);
    gd_buf_printf(out, ",\"classes\":%" PRId64, classes);
    if (classes > MOST_CLASSES) {
        return;
    }
    gd_buf_puts(out, ",\"matrix\":[");
    for (int64_t row = 0; row < classes; row++) {
        gd_buf_puts(out, row ? ",[" : "[");
        for (int64_t column = 0; column < classes; column++) {
            gd_buf_printf(out, "%s%" PRIu64, column ? "," : "", gd_metric_cell(m, row, column));
        }
        gd_buf_putc(out, ']');
    }
    gd_buf_putc(out, ']');
}

/* Adds what is not sent yet, of a metric over ranks; NULL: there is nothing. */
static struct gd_metric *add_part(const struct agent_metric_sums *sums)
{
    struct gd_buf all = GD_BUF_INIT(SIZE_MAX), part = GD_BUF_INIT(SIZE_MAX);
    struct gd_metric *both = NULL;
    bool ok = sums->part && gd_metric_counts(sums->part)->batches > 0 &&
              gd_metric_save(sums->metric, &all, NULL) == GD_OK &&
              gd_metric_save(sums->part, &part, NULL) == GD_OK &&
              gd_metric_create(gd_metric_spec(sums->metric), &both, NULL) == GD_OK;
    ok = ok && gd_metric_merge(both, gd_buf_text(&all), NULL) == GD_OK &&
         gd_metric_merge(both, gd_buf_text(&part), NULL) == GD_OK;
    gd_buf_deinit(&all);
    gd_buf_deinit(&part);
    if (!ok) {
        gd_metric_destroy(both);
    }
    return ok ? both : NULL;
}

static void put_sums(struct gd_buf *out, const struct agent_metric_sums *sums)
{
    struct gd_metric *both = add_part(sums), *metric = both ? both : sums->metric;
    const struct gd_metric_counts *c = gd_metric_counts(metric);
    gd_buf_printf(out,
                  "{\"since\":%" PRId64 ",\"step\":%" PRId64 ",\"samples\":%" PRIu64
                  ",\"batches\":%" PRIu64 ",\"nan\":%" PRIu64 ",\"ignored\":%" PRIu64
                  ",\"out_of_range\":%" PRIu64 ",\"not_kept\":%" PRIu64 ",\"refused\":%" PRIu64,
                  sums->since, sums->last, c->samples, c->batches, c->nan, c->ignored,
                  c->out_of_range, c->not_kept, sums->refused);
    if (sums->refused) {
        gd_buf_puts(out, ",\"why\":");
        put_text(out, sums->why);
    }
    put_numbers(out, metric);
    if (gd_metric_spec(metric)->kind == GD_METRIC_CONFUSION) {
        put_matrix(out, metric);
    }
    gd_metric_destroy(both);
    gd_buf_putc(out, '}');
}

void agent_metric_list(const struct agent *a, struct gd_buf *out)
{
    gd_buf_puts(out, "{\"metrics\":[");
    for (const struct agent_metric *m = a->metrics ? a->metrics->first : NULL; m; m = m->next) {
        struct gd_buf text = GD_BUF_INIT(1 << 14);
        gd_metric_text(&m->spec, &text);
        gd_buf_puts(out, m == a->metrics->first ? "{\"name\":" : ",{\"name\":");
        put_text(out, m->spec.name);
        gd_buf_puts(out, ",\"definition\":");
        put_text(out, gd_buf_text(&text));
        gd_buf_puts(out, ",\"train\":");
        put_sums(out, &m->train);
        if (m->eval.last > 0 || gd_metric_counts(m->eval.metric)->batches > 0) {
            gd_buf_puts(out, ",\"eval\":");
            put_sums(out, &m->eval);
        }
        gd_buf_putc(out, '}');
        gd_buf_deinit(&text);
    }
    gd_buf_puts(out, "]}");
}
