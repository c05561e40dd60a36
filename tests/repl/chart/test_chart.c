// SPDX-License-Identifier: GPL-3.0-or-later
/* Charts: exact pictures, and pictures of any size of any numbers. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../unit.h"
#include "base/buf.h"
#include "repl/chart/chart.h"

#define COUNT 200

static struct chart_point falling[COUNT], rate[COUNT], near[COUNT];

static int make_curves(void **state)
{
    setlocale(LC_ALL, "C.UTF-8"); /* for the width of characters */
    for (int i = 0; i < COUNT; i++) {
        falling[i] = (struct chart_point){i + 1, 3 - i * 0.0125};
        rate[i] = (struct chart_point){i + 1, i < 100 ? 0.001 : 0.0001};
        near[i] = (struct chart_point){i + 1, 2.5 - i * 0.01};
    }
    return 0;
}

static struct chart_curve curve_of(const char *name, const struct chart_point *point)
{
    return (struct chart_curve){.name = name, .point = point, .count = COUNT};
}

static struct chart_options size_of(int rows, int cols)
{
    return (struct chart_options){.rows = rows, .cols = cols, .utf8 = true, .from = 1};
}

static void add_picture(const struct chart_picture *picture, struct gd_buf *out)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    enum chart_ink ink;

    for (int row = 0; row < picture->rows; row++) {
        for (int col = 0; col < picture->cols;) {
            col = chart_run(picture, row, col, &text, &ink);
            gd_buf_puts(out, gd_buf_text(&text));
        }
        gd_buf_putc(out, '\n');
    }
    gd_buf_deinit(&text);
}

static void expect_picture(const struct chart_curve *curves, size_t count,
                           struct chart_options options, const char *want)
{
    struct gd_buf out = GD_BUF_INIT(1 << 20);
    struct chart_picture picture;

    assert_true(chart_draw(curves, count, &options, &picture));
    add_picture(&picture, &out);
    if (strcmp(gd_buf_text(&out), want) != 0) {
        print_message("%s", gd_buf_text(&out));
    }
    assert_string_equal(gd_buf_text(&out), want);
    chart_release(&picture);
    gd_buf_deinit(&out);
}

static void a_curve_has_axes_and_a_title(void **state)
{
    struct chart_curve loss = curve_of("loss", falling);

    expect_picture(&loss, 1, size_of(10, 40),
                   "loss 0.5125 at step 200, 0.5125 to 3\n"
                   "   3┤⠙⠒⠦⢄⣀\n"
                   "    │    ⠈⠉⠒⠦⢄⣀\n"
                   "   2┤         ⠈⠉⠒⠢⢤⣀\n"
                   "    │              ⠈⠉⠓⠢⢤⣀⡀\n"
                   "    │                    ⠉⠓⠢⠤⣀⡀\n"
                   "   1┤                         ⠉⠑⠲⠤⣀⡀\n"
                   "    │                              ⠉⠑⠲⠤⣄\n"
                   "    └─────────────────┬────────────────┬\n"
                   "step                 100             200\n");
}

static void without_utf8_all_is_ascii(void **state)
{
    struct chart_curve loss = curve_of("loss", falling);
    struct chart_options options = size_of(9, 40);

    options.utf8 = false;
    expect_picture(&loss, 1, options,
                   "loss 0.5125 at step 200, 0.5125 to 3\n"
                   "   3+'\"-:..\n"
                   "    |     ''\"-:..\n"
                   "   2+           ''\"-:..\n"
                   "    |                 ''\"-:..\n"
                   "   1+                       ''\"-:..\n"
                   "    |                             ''\"-:.\n"
                   "    +-----------------+----------------+\n"
                   "step                 100             200\n");
}

static void curves_of_other_ranges_have_their_own_panels(void **state)
{
    struct chart_curve curves[] = {curve_of("loss", falling), curve_of("lr", rate)};

    expect_picture(curves, 2, size_of(13, 40),
                   "loss 0.5125 at step 200, 0.5125 to 3\n"
                   "     3┤⠉⠓⠒⠢⠤⢤⣀⣀\n"
                   "     2┤       ⠈⠉⠉⠒⠒⠦⠤⣄⣀⡀\n"
                   "      │                ⠈⠉⠙⠒⠲⠤⠤⣀⣀⡀\n"
                   "     1┤                         ⠉⠉⠓⠒⠢⠤⢤⣀\n"
                   "      └────────────────┬───────────────┬\n"
                   "lr 0.0001 at step 200, 0.0001 to 0.001\n"
                   "0.0010┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⡇\n"
                   "      │                ⡇\n"
                   "0.0005┤                ⢸\n"
                   "      │                ⢸⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
                   "      └────────────────┬───────────────┬\n"
                   "step                  100            200\n");
}

static void panels_lie_beside_each_other_on_a_wide_screen(void **state)
{
    struct chart_curve curves[] = {curve_of("loss", falling), curve_of("lr", rate)};

    expect_picture(curves, 2, size_of(8, 120),
                   "loss 0.5125 at step 200, 0.5125 to 3                          lr 0.0001 at "
                   "step 200, 0.0001 to 0.001\n"
                   "     3┤⠉⠙⠒⠒⠦⠤⠤⣄⣀⣀                                             "
                   "0.0010┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⡇\n"
                   "      │          ⠉⠉⠙⠒⠒⠢⠤⠤⣄⣀⣀                                        │          "
                   "               ⡇\n"
                   "     2┤                     ⠉⠉⠙⠒⠒⠢⠤⠤⣄⣀⣀                       0.0005┤          "
                   "               ⢣\n"
                   "     1┤                                ⠉⠉⠙⠒⠒⠢⠤⠤⣄⣀⣀                  │          "
                   "               ⢸\n"
                   "      │                                           ⠉⠉⠙⠒⠒⠲⠤⠤⣄⣀        │          "
                   "               ⢸⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
                   "      └─────────────┬────────────┬────────────┬────────────┬        "
                   "└────────────┬────────────┬────────────┬───────────┬\n"
                   "step               50           100          150         200  step             "
                   " 50           100          150        200\n");
}

static void similar_curves_share_a_scale_and_have_letters(void **state)
{
    struct chart_curve curves[] = {curve_of("loss", falling), curve_of("val", near)};
    struct chart_options options = size_of(10, 40);

    expect_picture(curves, 2, options,
                   "a loss 0.5125 at step 200, 0.5125 to 3\n"
                   "b val 0.51 at step 200, 0.51 to 2.5\n"
                   "   3┤⠉⠒⠦⢤⣀⡀\n"
                   "    │⠒⠲⠤⢤⣀⡉a⠒⠤⢄⣀\n"
                   "   2┤     ⠉⠉⠓⠲⠤⢬⣉⡓⠲⠤⣀⡀\n"
                   "    │            ⠉⠉⠓⠒⠬⢭b⡦⢤⣀⡀\n"
                   "   1┤                   ⠈⠉⠓⠛⠵⢶⣤⣄⣀\n"
                   "    │                          ⠈⠉⠛⠓a⢤⣀ab\n"
                   "    └────────────────┬───────────────┬\n"
                   "step                100            200\n");
    options.utf8 = false;
    expect_picture(curves, 2, options,
                   "a loss 0.5125 at step 200, 0.5125 to 3\n"
                   "b val 0.51 at step 200, 0.51 to 2.5\n"
                   "   3+aaaaaa\n"
                   "    |bbbbbbaaaaa\n"
                   "   2+     bbbbbbbbaaaa\n"
                   "    |            bbbbbbbbaaa\n"
                   "   1+                   bbbbbbbba\n"
                   "    |                          bbbbabbab\n"
                   "    +----------------+---------------+\n"
                   "step                100            200\n");
}

static void a_small_screen_puts_scales_over_each_other(void **state)
{
    struct chart_curve curves[] = {curve_of("loss", falling), curve_of("lr", rate)};

    expect_picture(curves, 2, size_of(7, 30),
                   "a loss 0.5125 at step 200, 0.5\n"
                   "b lr 0.0001 at step 200, 0.000\n"
                   "    │⠉⠛⠛⠯⠭⣍a⡉⠉⠉⠉⡇\n"
                   "    │       ⠉⠉⠑⠒⢣⠤⢄⣀⣀\n"
                   "    │           ⢸⣀⣀⣀⣈⣉⣙b⣲⣤⣤⣀ab\n"
                   "    └───────────┬──────────┬\n"
                   "step           100       200\n");
}

/* A spike of one step among many that share its column, NaN and Inf, and steps with hits. */
static void nothing_is_dropped_silently(void **state)
{
    static struct chart_point point[20000];
    static const int64_t marked[] = {5000};
    struct chart_curve curve = {.name = "norm", .point = point, .count = 20000};
    struct chart_options options = size_of(9, 60);

    for (int i = 0; i < 20000; i++) {
        point[i] = (struct chart_point){i, i == 12345 ? 8 : 1};
    }
    point[3000].value = NAN;
    point[15000].value = INFINITY;
    options.marked = marked;
    options.marked_count = 1;
    expect_picture(&curve, 1, options,
                   "norm 1 at step 19999, 2 NaN/Inf from step 3000, 1 to 8\n"
                   "   8┤                                 ⢸\n"
                   "   6┤                                 ⢸\n"
                   "    │                                 ⢸\n"
                   "   4┤                                 ⢸\n"
                   "    │                                 ⢸\n"
                   "   2┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣸⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀\n"
                   "    └┬───────×────▲─────────────┬─────────────×─────────────\n"
                   "step 0          5000          10000         15000\n");
}

static void a_logarithmic_scale_counts_what_it_cannot_show(void **state)
{
    struct chart_point point[] = {{1, 1000}, {2, 10}, {3, 0}, {4, -1}, {5, 0.1}, {6, 1}};
    struct chart_curve curve = {.name = "ratio", .point = point, .count = 6};
    struct chart_options options = size_of(11, 60);

    options.log = true;
    expect_picture(&curve, 1, options,
                   "ratio 1 at step 6, log scale, 2 <= 0 not shown, 0.1 to 1000\n"
                   "    │⠑⠢⣀\n"
                   "    │   ⠑⠢⡀\n"
                   " 100┤     ⠈⠑⠤⡀\n"
                   "    │        ⠈⠑⠤⡀\n"
                   "    │\n"
                   "   1┤                                                      ⣀\n"
                   "    │                                                ⢀⣀⠤⠔⠊⠉\n"
                   "    │                                           ⢀⡠⠤⠒⠉⠁\n"
                   "    └┬──────────┬──────────┬─────────┬──────────┬──────────┬\n"
                   "step 1          2          3         4          5          6\n");
}

static void a_part_of_the_steps_and_a_cursor(void **state)
{
    struct chart_curve loss = curve_of("loss", falling);
    struct chart_options options = size_of(8, 50);

    options.from = 101;
    options.to = 120;
    options.has_cursor = true;
    options.cursor = 110;
    expect_picture(&loss, 1, options,
                   "loss 1.6375 at step 110, 1.512 to 1.75\n"
                   "    │⠉⠑⠒⠢⠤⠤⣀⣀⡀            ┊\n"
                   " 1.7┤        ⠈⠉⠑⠒⠒⠤⠤⢄⣀⡀   ┊\n"
                   "    │                 ⠈⠉⠉⠒⠒⠢⠤⠤⣀⣀\n"
                   " 1.6┤                     ┊     ⠉⠉⠑⠒⠒⠤⠤⣀⣀⡀\n"
                   "    │                     ┊              ⠈⠉⠉⠒⠒⠤⠤⢄⣀\n"
                   "    └─────────┬───────────┬───────────┬──────────┬\n"
                   "step         105         110         115       120\n");
    options.from = 1000;
    options.to = 2000;
    expect_picture(&loss, 1, options,
                   "loss: no value in these steps\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    └┬─────────────────────┬─────────────────────┬\n"
                   "step                     1500                 2000\n");
    options.to = INT64_MAX;
    expect_picture(&loss, 1, options,
                   "loss: no value in these steps\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    │\n"
                   "    └──────────────────────┬──────────────────────\n"
                   "step                     1000\n");
}

static void units_and_names_are_shown(void **state)
{
    struct chart_point point[] = {{1, 3.0e9}, {2, 4.5e9}, {3, 4.0e9}};
    struct chart_curve curve = {
        .name = "メモリ\x1b[31m", .unit = CHART_BYTES, .point = point, .count = 3};

    expect_picture(&curve, 1, size_of(7, 60),
                   "メモリ\\x1b[31m 3.725 GiB at step 3, 2.794 GiB to 4.191 GiB\n"
                   "   4┤                     ⢀⣀⠤⠤⠒⠒⠉⠉⠉⠑⠒⠒⠒⠒⠒⠤⠤⠤⠤⠤⣀⣀⣀⣀⣀⡀\n"
                   "    │              ⣀⣀⠤⠔⠒⠊⠉⠁                        ⠈⠉⠉⠉⠉⠉⠒⠒⠒\n"
                   " GiB│      ⢀⣀⡠⠤⠔⠒⠉⠉\n"
                   "   3┤⣀⠤⠤⠒⠒⠉⠁\n"
                   "    └┬──────────────────────────┬──────────────────────────┬\n"
                   "step 1                          2                          3\n");
}

/* As TensorBoard: the first value itself, then weighted; NaN stays and does not count. */
static void smoothing_is_corrected_at_the_start(void **state)
{
    struct chart_point point[] = {{1, 1}, {2, 2}, {3, NAN}, {4, 4}};

    chart_smooth(point, 4, 0.5);
    assert_true(point[0].value == 1);
    assert_true(fabs(point[1].value - (0.5 * 0.5 * 1 + 0.5 * 2) / 0.75) < 1e-12);
    assert_true(isnan(point[2].value));
    assert_true(fabs(point[3].value - (0.125 * 1 + 0.25 * 2 + 0.5 * 4) / 0.875) < 1e-12);
}

static void any_size_and_any_numbers_make_a_picture(void **state)
{
    static const double values[] = {0,         -0.0, 1e308, -1e308,   5e-324, NAN, INFINITY,
                                    -INFINITY, 1,    1e-30, 123456.7, -1,     1e15};
    static const int64_t steps[] = {0, 1, 2, 1000, 1000000, INT64_MAX / 2, INT64_MAX - 1};
    struct chart_point point[7];
    struct chart_picture picture;

    for (unsigned round = 0; round < 3000; round++) {
        struct chart_curve curves[CHART_MAX_CURVES];
        unsigned seed = round * 2654435761u;
        struct chart_options options = size_of((int)(seed % 41), (int)(seed / 64 % 160));
        for (int i = 0; i < 7; i++) {
            point[i] = (struct chart_point){steps[i], values[(seed >> i) % 13]};
        }
        for (int i = 0; i < CHART_MAX_CURVES; i++) {
            curves[i] =
                (struct chart_curve){.name = "x",
                                     .unit = (enum chart_unit)((seed + (unsigned)i) % CHART_UNITS),
                                     .point = point + i % 3,
                                     .count = (seed >> i) % 5};
        }
        options.log = round & 1;
        options.utf8 = round & 2;
        options.shared = round & 4;
        options.smooth = round & 8 ? 0.9 : 0;
        options.has_cursor = round & 16;
        options.cursor = steps[seed % 7];
        options.from = round & 32 ? steps[seed % 7] : 1;
        options.to = round & 32 ? steps[seed % 7] : 0;
        assert_true(chart_draw(curves, seed % (CHART_MAX_CURVES + 1), &options, &picture));
        assert_true(picture.rows >= CHART_MIN_ROWS && picture.cols >= CHART_MIN_COLS);
        chart_release(&picture);
    }
}

/* ---- histograms ---- */

#define STEPS 8

static struct chart_bins spread[STEPS];
static struct chart_point medians[STEPS];

/* All elements in the lowest bin at first, and in all bins evenly at the end; two steps are missing
 * between the fourth and the fifth. */
static struct chart_curve make_spread(void)
{
    for (int i = 0; i < STEPS; i++) {
        spread[i] = (struct chart_bins){.low = 0, .high = 1, .nan = i == 6 ? 3 : 0};
        for (int k = 0; k < CHART_BINS; k++) {
            spread[i].bin[k] = k * STEPS < CHART_BINS * (i + 1) ? 10 : 0;
        }
        medians[i].step = i < 4 ? i + 1 : i + 3;
        medians[i].value = chart_bins_quantile(&spread[i], 0.5);
    }
    return (struct chart_curve){.name = "w", .point = medians, .bins = spread, .count = STEPS};
}

static void a_histogram_is_a_heat_map(void **state)
{
    struct chart_curve curve = make_spread();

    expect_picture(&curve, 1, size_of(8, 46),
                   "w at step 10\n"
                   "0 to 1, median ~0.5, NaN/Inf in 1 step from 9\n"
                   " 1.0┤                                  ░░░░░░░\n"
                   " 0.5┤                         ░░░░▒▒▒▒▒▒▒▒▒▒░░\n"
                   "    │       ░▒▒▒▒▒▒▒▒▒        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░\n"
                   "   0┤████████▓▓▓▓▒▒▒▒▒        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░\n"
                   "    └──────────────────┬─────────────────×───┬\n"
                   "step                   5                    10\n");
}

static void a_wide_map_has_one_title(void **state)
{
    struct chart_curve curve = make_spread();
    struct chart_options options = size_of(9, 70);
    struct gd_buf out = GD_BUF_INIT(1 << 16);
    struct chart_picture picture;

    assert_true(chart_draw(&curve, 1, &options, &picture));
    add_picture(&picture, &out);
    assert_int_equal(strncmp(gd_buf_text(&out),
                             "w 0 to 1, median ~0.5 at step 10, NaN/Inf in 1 step from 9\n 1.0",
                             62),
                     0);
    gd_buf_deinit(&out);
    chart_release(&picture);
}

static void shades_are_ascii_or_logarithmic(void **state)
{
    struct chart_curve curve = make_spread();
    struct chart_options options = size_of(8, 46);

    options.utf8 = false;
    options.log = true;
    options.has_cursor = true;
    options.cursor = 6; /* of step 4, the last before it */
    expect_picture(&curve, 1, options,
                   "w at step 4\n"
                   "0 to 1, median ~0.25, NaN/Inf in 1 step from 9\n"
                   " 1.0+                      :          *#######\n"
                   " 0.5+                      : ######@@@########\n"
                   "    |       #@@@@@@@@@     : @@@@@@@@@########\n"
                   "   0+@@@@@@@@@@@@@@@@@     : @@@@@@@@@########\n"
                   "    +------------------+-----------------!---+\n"
                   "step                   5                    10\n");
}

static void quantiles_are_inside_a_bin(void **state)
{
    struct chart_bins bins = {.low = -4, .high = 4};

    assert_true(isnan(chart_bins_quantile(&bins, 0.5)));
    bins.bin[10] = 4; /* from -2 to -1.8 */
    assert_float_equal(chart_bins_quantile(&bins, 0), -2, 1e-12);
    assert_float_equal(chart_bins_quantile(&bins, 0.5), -1.9, 1e-12);
    assert_float_equal(chart_bins_quantile(&bins, 1), -1.8, 1e-12);
    bins = (struct chart_bins){.low = -1.7e308, .high = 1.7e308};
    bins.bin[0] = bins.bin[CHART_BINS - 1] = UINT64_MAX / 2;
    assert_true(isfinite(chart_bins_quantile(&bins, 0.5)));
}

static void a_map_has_a_panel_of_its_own(void **state)
{
    struct chart_curve curves[] = {make_spread(), curve_of("loss", falling)};
    struct chart_options options = size_of(16, 60);
    struct chart_picture picture;

    options.shared = true;
    for (int rows = CHART_MIN_ROWS; rows < 30; rows++) {
        int heat = 0, dots = 0;
        options.rows = rows;
        assert_true(chart_draw(curves, 2, &options, &picture));
        for (int i = 0; i < picture.rows * picture.cols; i++) {
            heat += picture.cell[i].ink >= CHART_HEAT0;
            dots +=
                picture.cell[i].glyph[0] == (char)0xe2 && picture.cell[i].glyph[1] == (char)0xa0;
        }
        assert_true(rows < 12 || (heat > 0 && dots > 0));
        chart_release(&picture);
    }
}

static void any_histogram_is_drawn(void **state)
{
    static const double ends[] = {-1.7e308, -1, -1e-310, 0, 1e-310, 2, 1.7e308, INFINITY};
    struct chart_bins bins[6];
    struct chart_point point[6];
    struct chart_picture picture;

    for (unsigned round = 0; round < 3000; round++) {
        unsigned seed = round * 2654435761u;
        struct chart_options options = size_of((int)(seed % 23), (int)(seed / 64 % 120));
        for (int i = 0; i < 6; i++) {
            unsigned low = (seed >> i) % 8, high = (seed >> 2 * i) % 8;
            bins[i] = (struct chart_bins){.low = ends[low], .high = ends[high], .inf = seed & 1};
            if (low <= high && high < 7) {
                bins[i].bin[seed % CHART_BINS] = UINT64_MAX >> 32;
                bins[i].bin[(seed >> 3) % CHART_BINS] = 1;
            } else {
                bins[i].low = INFINITY;
                bins[i].high = -INFINITY;
            }
            point[i] = (struct chart_point){.step = (int64_t)i << (seed % 60),
                                            .value = chart_bins_quantile(&bins[i], 0.5)};
        }
        struct chart_curve curve = {.name = "x", .point = point, .bins = bins, .count = seed % 7};
        options.log = round & 1;
        options.utf8 = round & 2;
        options.has_cursor = round & 4;
        options.cursor = point[seed % 6].step;
        options.from = round & 8 ? point[seed % 6].step : 1;
        options.to = round & 8 ? point[seed % 6].step : 0;
        assert_true(chart_draw(&curve, 1, &options, &picture));
        chart_release(&picture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_has_axes_and_a_title),
        cmocka_unit_test(without_utf8_all_is_ascii),
        cmocka_unit_test(curves_of_other_ranges_have_their_own_panels),
        cmocka_unit_test(panels_lie_beside_each_other_on_a_wide_screen),
        cmocka_unit_test(similar_curves_share_a_scale_and_have_letters),
        cmocka_unit_test(a_small_screen_puts_scales_over_each_other),
        cmocka_unit_test(nothing_is_dropped_silently),
        cmocka_unit_test(a_logarithmic_scale_counts_what_it_cannot_show),
        cmocka_unit_test(a_part_of_the_steps_and_a_cursor),
        cmocka_unit_test(units_and_names_are_shown),
        cmocka_unit_test(a_histogram_is_a_heat_map),
        cmocka_unit_test(a_wide_map_has_one_title),
        cmocka_unit_test(shades_are_ascii_or_logarithmic),
        cmocka_unit_test(quantiles_are_inside_a_bin),
        cmocka_unit_test(a_map_has_a_panel_of_its_own),
        cmocka_unit_test(any_histogram_is_drawn),
        cmocka_unit_test(smoothing_is_corrected_at_the_start),
        cmocka_unit_test(any_size_and_any_numbers_make_a_picture),
    };
    return cmocka_run_group_tests(tests, make_curves, NULL);
}
