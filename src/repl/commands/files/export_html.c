// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `export html`: one page with the curves as SVG and with what commands print, all of it escaped.
 * The page loads nothing; its script only reads values at the pointer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "repl/chart/series.h"
#include "repl/commands/files/export.h"
#include "repl/core/repl_impl.h"
#include "repl/out/newfile.h"
#include "repl/values/inspect.h"

#define WIDTH       640 /* of a curve, without its margins */
#define HEIGHT      150
#define LEFT        70
#define HEAT_COLS   160 /* of a heat map */
#define HEAT_ROW    3   /* pixels */
#define HEAT_ROWS   (HEIGHT / HEAT_ROW)
#define HEAT_SHADES 8
#define FOOT        24
#define PAGE_WIDTH  110 /* columns of what commands print */
#define MOST_WHY    5
#define MOST_MARKS  200
#define MOST_TEXT   ((size_t)16 << 20)

static const char style[] =
    ":root{color-scheme:light dark;--line:#0b6;--soft:#8888;--bad:#d22;--hit:#c0c}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "pre{overflow-x:auto;font-size:13px;line-height:1.3;border-left:3px solid var(--soft);"
    "padding-left:1em}"
    "td,th{text-align:left;padding:0 1em 0 0;vertical-align:top}.chart{margin:1em 0}"
    ".chart p{margin:0;font-family:monospace;overflow-wrap:anywhere}svg{width:100%;height:auto}"
    "svg text{font:11px sans-serif;fill:currentColor}"
    ".axis{stroke:var(--soft);fill:none}.curve{stroke:var(--line);fill:none;stroke-width:1.3;"
    "stroke-linecap:round}"
    ".heat{fill:var(--line)}"
    ".bad{stroke:var(--bad);stroke-width:1.5}.hit{stroke:var(--hit);stroke-dasharray:2 3}";

static const char script[] =
    "for(const f of document.querySelectorAll('.chart')){const s=f.querySelector('svg'),"
    "o=f.querySelector('output'),p=JSON.parse(s.dataset.points);s.onmousemove=e=>{const r="
    "s.getBoundingClientRect(),x=(e.clientX-r.left)/r.width*720;let b=null;for(const q of p)"
    "if(!b||Math.abs(q[0]-x)<Math.abs(b[0]-x))b=q;if(b)o.textContent=' step '+b[1]+': '+b[2]}}";

/* ---- text ------------------------------------------------------------------------------------ */

/* Control characters are left out, and so are the colours of a terminal. */
static void put_text(FILE *file, const char *text)
{
    struct gd_buf safe = GD_BUF_INIT(MOST_TEXT);
    bool color = false;

    for (; *text != '\0'; text++) {
        if (*text == '\033') {
            color = true;
        }
        if (!color) {
            gd_buf_putc(&safe, *text);
        } else if (*text == 'm') {
            color = false;
        }
    }
    for (char *line = safe.data, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        out_put_html(file, line);
        fputs(end ? "\n" : "", file);
    }
    gd_buf_deinit(&safe);
}

static void put_fact(FILE *file, const char *name, const char *value)
{
    if (value[0] != '\0') {
        fprintf(file, "<tr><th>%s</th><td>", name);
        put_text(file, value);
        fputs("</td></tr>\n", file);
    }
}

/* ---- what commands print --------------------------------------------------------------------- */

static void keep_text(void *ctx, const char *text, size_t len, bool is_error)
{
    if (!is_error) {
        gd_buf_add(ctx, text, len);
    }
}

/* Runs the line as it would run at a plain prompt. *text is what it prints; false: it fails. The
 * exit status stays as it was. */
static bool run_line(struct repl *repl, const char *line, struct gd_buf *text)
{
    repl_write_fn write = repl->front.write;
    void *write_ctx = repl->front.write_ctx;
    struct repl_options options = repl->options;
    enum exit_status status = repl->end.status;

    repl->front.write = keep_text;
    repl->front.write_ctx = text;
    repl->options = (struct repl_options){
        .batch = options.batch, .utf8 = true, .width = PAGE_WIDTH, .sealed = options.sealed};
    bool ran = repl_run_line(repl, line, LINE_SCRIPT) == GD_OK;
    repl->options = options;
    repl->front.write = write;
    repl->front.write_ctx = write_ctx;
    repl->end.status = status;
    return ran && text->len > 0;
}

static void put_command(struct command_call *call, FILE *file, const char *title, const char *line)
{
    struct gd_buf text = GD_BUF_INIT(MOST_TEXT);

    if (run_line(call->repl, line, &text)) {
        fputs("<h2>", file);
        put_text(file, title);
        fputs("</h2>\n<pre>", file);
        put_text(file, gd_buf_text(&text));
        fputs("</pre>\n", file);
    }
    gd_buf_deinit(&text);
}

/* Why the newest hits of different nodes fired, as far as values are still there. */
static void put_causes(struct command_call *call, FILE *file)
{
    gd_node_id done[MOST_WHY];
    int count = 0;

    for (size_t i = call->session->hit_count; i > 0 && count < MOST_WHY; i--) {
        const struct gd_hit *hit = &call->session->hits[i - 1];
        bool again = hit->is_scalar || hit->error != 0 || hit->node == GD_NO_NODE;
        for (int k = 0; k < count && !again; k++) {
            again = done[k] == hit->node;
        }
        if (!again) {
            done[count++] = hit->node;
            put_command(call, file, inspect_printf(call, "Why %.300s", hit->node_name),
                        inspect_printf(call, "why hit %zu", i));
        }
    }
}

/* ---- curves ---------------------------------------------------------------------------------- */

struct page {
    struct command_call *call;
    FILE *file;
    size_t curves;
    enum { PASS_METRICS, PASS_HISTOGRAMS, PASS_STATISTICS } pass;
};

struct span {
    int64_t from, to;
    double low, high;
};

static double x_of(const struct span *span, int64_t step)
{
    double part =
        span->to > span->from ? (double)(step - span->from) / (double)(span->to - span->from) : 0.5;
    return LEFT + part * WIDTH;
}

static double y_of(const struct span *span, double value)
{
    double half = span->high / 2 - span->low / 2;
    double part = half > 0 ? (value / 2 - span->low / 2) / half : 0.5;

    return 6 + (1 - part) * (HEIGHT - 12);
}

static struct span span_of(const struct series *series)
{
    struct span span = {.from = series->point[0].step,
                        .to = series->point[series->count - 1].step,
                        .low = INFINITY,
                        .high = -INFINITY};

    for (size_t i = 0; i < series->count; i++) {
        double value = series->point[i].value;
        if (series->bins && series->bins[i].low <= series->bins[i].high) {
            span.low = fmin(span.low, series->bins[i].low);
            span.high = fmax(span.high, series->bins[i].high);
        } else if (isfinite(value)) {
            span.low = fmin(span.low, value);
            span.high = fmax(span.high, value);
        }
    }
    return span;
}

/* A polyline that breaks at NaN and Inf. Of several points that share half a pixel the lowest and
 * the highest stay. */
static void put_curve(FILE *file, const struct series *series, const struct span *span)
{
    bool open = false;

    for (size_t i = 0; i < series->count;) {
        double x = x_of(span, series->point[i].step), low = INFINITY, high = -INFINITY;
        size_t next = i;
        for (; next < series->count && x_of(span, series->point[next].step) < x + 0.5 &&
               isfinite(series->point[next].value);
             next++) {
            low = fmin(low, series->point[next].value);
            high = fmax(high, series->point[next].value);
        }
        if (next == i) {
            fputs(open ? "\"/>" : "", file);
            fprintf(file, "<path class=\"bad\" d=\"M%.1f %d l8 8 m0 -8 l-8 8\"/>", x - 4,
                    HEIGHT - 4);
            open = false;
            i++;
            continue;
        }
        fputs(open ? " " : "<polyline class=\"curve\" points=\"", file);
        fprintf(file, "%.1f,%.1f", x, y_of(span, low));
        if (high > low || !open) { /* a point alone is a dot */
            fprintf(file, " %.1f,%.1f", x, y_of(span, high));
        }
        open = true;
        i = next;
    }
    fputs(open ? "\"/>" : "", file);
}

/* ---- heat maps ---- */

/* The share of the elements of some steps in each row of a column. */
static void add_shares(const struct chart_bins *bins, const struct span *span, double *share)
{
    double count = (double)chart_bins_count(bins);

    for (int i = 0; i < CHART_BINS; i++) {
        double top = y_of(span, chart_bins_edge(bins, i + 1)) / HEAT_ROW;
        double end = y_of(span, chart_bins_edge(bins, i)) / HEAT_ROW;
        double part = bins->bin[i] ? (double)bins->bin[i] / count : 0;
        for (int row = (int)top; row < HEAT_ROWS && part > 0 && (row < end || row == (int)top);
             row++) {
            double inside = end > top ? fmin(end, row + 1) - fmax(top, row) : 1;
            share[row] += inside > 0 ? part * inside / (end > top ? end - top : 1) : 0;
        }
    }
}

/* Of each column the shares of its rows; returns the highest. Columns without a step keep 0, except
 * where there are fewer steps than columns: then a step is as wide as it has to be. */
static double fill_heat(const struct series *series, const struct span *span,
                        double share[HEAT_COLS][HEAT_ROWS])
{
    double peak = 0, wide = (double)HEAT_COLS / (double)(span->to - span->from + 1);
    int steps[HEAT_COLS] = {0};

    for (size_t i = 0; i < series->count; i++) {
        const struct chart_bins *bins = &series->bins[i];
        int first = (int)((double)(series->point[i].step - span->from) * wide);
        int end = (int)((double)(series->point[i].step - span->from + 1) * wide);
        end = end > first ? end : first + 1;
        for (int col = first; col < end && col < HEAT_COLS && bins->low <= bins->high; col++) {
            add_shares(bins, span, share[col]);
            steps[col]++;
        }
    }
    for (int col = 0; col < HEAT_COLS; col++) {
        for (int row = 0; row < HEAT_ROWS && steps[col] > 0; row++) {
            share[col][row] /= steps[col];
            peak = fmax(peak, share[col][row]);
        }
    }
    return peak;
}

/* One path for each shade. */
static void put_shades(FILE *file, double share[HEAT_COLS][HEAT_ROWS], double peak)
{
    double width = (double)WIDTH / HEAT_COLS;

    for (int level = 1; level <= HEAT_SHADES; level++) {
        fprintf(file, "<path class=\"heat\" opacity=\"%.2f\" d=\"", (double)level / HEAT_SHADES);
        for (int col = 0; col < HEAT_COLS; col++) {
            for (int row = 0; row < HEAT_ROWS; row++) {
                double part = share[col][row] > 0 ? share[col][row] / peak : 0;
                int of = (int)ceil(sqrt(part) * HEAT_SHADES);
                if ((of < HEAT_SHADES ? of : HEAT_SHADES) == level) {
                    fprintf(file, "M%.1f %dh%.1fv%dh-%.1fz", LEFT + col * width, row * HEAT_ROW,
                            width + 0.2, HEAT_ROW, width + 0.2);
                }
            }
        }
        fputs("\"/>", file);
    }
}

static void put_heat(FILE *file, const struct series *series, const struct span *span)
{
    double(*share)[HEAT_ROWS] = calloc(HEAT_COLS, sizeof(*share));

    if (share) {
        put_shades(file, share, fill_heat(series, span, share));
    }
    free(share);
    for (size_t i = 0; i < series->count; i++) {
        if (series->bins[i].nan || series->bins[i].inf) {
            fprintf(file, "<path class=\"bad\" d=\"M%.1f %d l8 8 m0 -8 l-8 8\"/>",
                    x_of(span, series->point[i].step) - 4, HEIGHT - 4);
        }
    }
}

static void put_label(FILE *file, int y, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", LEFT - 6, y, text);
}

static void put_axes(const struct page *page, const struct series *series, const struct span *span)
{
    char low[48], high[48];
    FILE *file = page->file;
    const struct gd_session *session = page->call->session;
    int64_t last = INT64_MIN;
    int marks = 0;

    fprintf(file, "<path class=\"axis\" d=\"M%d 0V%dH%d\"/>", LEFT, HEIGHT, LEFT + WIDTH);
    if (span->low <= span->high) {
        chart_end_text(span->low, series->unit, low, sizeof(low));
        chart_end_text(span->high, series->unit, high, sizeof(high));
        put_label(file, span->low < span->high ? 12 : HEIGHT / 2 + 4, high);
        if (span->low < span->high) {
            put_label(file, HEIGHT - 2, low);
        }
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\">step %lld</text>", LEFT, HEIGHT + 16,
            (long long)span->from);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%lld</text>", LEFT + WIDTH,
            HEIGHT + 16, (long long)span->to);
    for (size_t i = 0; i < session->hit_count && marks < MOST_MARKS; i++) {
        int64_t step = session->hits[i].step;
        if (session->hits[i].error == 0 && step != last && step >= span->from && step <= span->to) {
            fprintf(file, "<path class=\"hit\" d=\"M%.1f 0V%d\"/>", x_of(span, step), HEIGHT);
            last = step;
            marks++;
        }
    }
}

static void write_point(const struct series *series, size_t i, char *out, size_t size)
{
    const struct chart_bins *bins = series->bins ? &series->bins[i] : NULL;
    char bad[64] = "";

    if (!bins) {
        chart_value_text(series->point[i].value, series->unit, out, size);
        return;
    }
    if (bins->nan || bins->inf) {
        snprintf(bad, sizeof(bad), ", %llu NaN, %llu Inf", (unsigned long long)bins->nan,
                 (unsigned long long)bins->inf);
    }
    if (bins->low <= bins->high) {
        snprintf(out, size, "%.4g to %.4g, median ~%.3g%s", bins->low, bins->high,
                 series->point[i].value, bad);
    } else {
        snprintf(out, size, "no finite element%s", bad);
    }
}

/* [x, step, "value"] of each point, or of one in many. */
static void put_points(FILE *file, const struct series *series, const struct span *span)
{
    size_t every = series->count / 2000 + 1;
    char value[160];

    fputs(" data-points=\"[", file);
    for (size_t i = 0; i < series->count; i += every) {
        write_point(series, i, value, sizeof(value));
        fprintf(file, "%s[%.1f,%lld,&quot;%s&quot;]", i > 0 ? "," : "",
                x_of(span, series->point[i].step), (long long)series->point[i].step, value);
    }
    fputs("]\"", file);
}

static int pass_of(const struct series_key *key)
{
    return key->is_metric ? PASS_METRICS : key->is_bins ? PASS_HISTOGRAMS : PASS_STATISTICS;
}

static bool put_series(void *ctx, const struct series_key *key)
{
    struct page *page = ctx;
    struct series series;
    char value[160];

    if (pass_of(key) != (int)page->pass ||
        series_of(page->call->session, key, &series, NULL) != GD_OK) {
        return true;
    }
    if (series.count > 0) {
        struct span span = span_of(&series);
        const struct chart_point *last = &series.point[series.count - 1];
        write_point(&series, series.count - 1, value, sizeof(value));
        fputs("<div class=\"chart\"><p><b>", page->file);
        put_text(page->file, key->label);
        fprintf(page->file, "</b> %s at step %lld<output></output></p>\n", value,
                (long long)last->step);
        fprintf(page->file, "<svg viewBox=\"0 0 %d %d\" role=\"img\"", LEFT + WIDTH + 10,
                HEIGHT + FOOT);
        put_points(page->file, &series, &span);
        fputs(">", page->file);
        put_axes(page, &series, &span);
        (series.bins ? put_heat : put_curve)(page->file, &series, &span);
        fputs("</svg></div>\n", page->file);
        page->curves++;
    }
    series_release(&series);
    return true;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_facts(struct page *page)
{
    const struct gd_session *session = page->call->session;
    const struct gd_peer *peer = &session->peer;
    char date[32] = "", steps[64];
    time_t now = time(NULL);
    struct tm tm;

    if (localtime_r(&now, &tm)) {
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
    }
    snprintf(steps, sizeof(steps), "%lld (%s)", (long long)gd_session_step(session),
             gd_state_name(session->state));
    fputs("<table>\n", page->file);
    put_fact(page->file, "program", peer->program);
    put_fact(page->file, "framework",
             inspect_printf(page->call, "%s %s", peer->framework, peer->version));
    put_fact(page->file, "device", peer->device);
    put_fact(page->file, "host", peer->host);
    put_fact(page->file, "rank",
             inspect_printf(page->call, "%d of %d", peer->rank, peer->world_size));
    put_fact(page->file, "step", steps);
    put_fact(page->file, "ended", session->end_text);
    put_fact(page->file, "written", inspect_printf(page->call, "%s by gradb " GRADB_VERSION, date));
    fputs("</table>\n", page->file);
}

/* Few: they are recorded where they are asked for. */
static void put_histograms(struct page *page)
{
    struct gd_history_head head = {.histograms = 0};

    if (page->call->session->history) {
        gd_history_head(page->call->session->history, &head);
    }
    if (head.histograms > 0) {
        fputs("<h2>Histograms</h2>\n<p>The stronger the colour, the larger the share of the "
              "elements.</p>\n",
              page->file);
        page->pass = PASS_HISTOGRAMS;
        series_each(page->call->session, put_series, page);
    }
}

static void put_page(struct page *page)
{
    FILE *file = page->file;

    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>gradb: ",
          file);
    put_text(file, page->call->session->peer.program);
    fprintf(file, "</title>\n<style>%s</style></head><body>\n<h1>", style);
    put_text(file, page->call->session->peer.program);
    fputs("</h1>\n", file);
    put_facts(page);
    fputs("<h2>Metrics</h2>\n", file);
    page->pass = PASS_METRICS;
    series_each(page->call->session, put_series, page);
    if (page->curves == 0) {
        fputs("<p>The training has reported none.</p>\n", file);
    }
    put_histograms(page);
    put_command(page->call, file, "Watchpoints", "info watchpoints");
    put_command(page->call, file, "Hits", "info hits");
    put_causes(page->call, file);
    put_command(page->call, file, "Events", "info events");
    fputs("<h2>Tensors</h2>\n<details><summary>Statistics of the watched tensors</summary>\n",
          file);
    page->pass = PASS_STATISTICS;
    series_each(page->call->session, put_series, page);
    fprintf(file, "</details>\n<script>%s</script>\n</body></html>\n", script);
}

int export_html(struct command_call *call, struct gd_err *err)
{
    struct page page = {.call = call};
    struct newfile file;
    int rc = repl_check_seal(call->repl, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc == GD_OK && (call->argc != 1 || call->argv[0][0] == '\0')) {
        rc = gd_fail(err, GD_EUSAGE, "export html: specify a file");
    }
    if (rc != GD_OK) {
        return rc;
    }
    const char *path = inspect_home_path(call, call->argv[0]);
    rc = newfile_open(&file, path, false, err);
    if (rc != GD_OK) {
        return rc;
    }
    page.file = file.file;
    put_page(&page);
    rc = newfile_close(&file, true, err);
    if (rc == GD_OK) {
        cJSON *record = out_record(call->out, "exported");
        out_set(record, OUT_TEXT("file", path), OUT_TEXT("format", "html"),
                OUT_INT("series", page.curves));
        out_say(call->out, record, "Wrote {series|curve} to {file}.\n");
    }
    return rc;
}
