// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tensors as text: numpy's layout of values, digit for digit, and the one-line summary.
 */
#ifndef GD_ENGINE_FORMAT_H
#define GD_ENGINE_FORMAT_H

#include "base/buf.h"
#include "base/stats.h"
#include "base/tensor.h"

struct gd_format {
    int precision;     /* digits after the point; numpy's default 8 */
    int64_t threshold; /* more elements than this are abbreviated with `...`; default 1000 */
    int edge_items;    /* shown at each edge when abbreviated, at least 1; default 3 */
    int line_width;    /* default 75 */
    char letter;       /* 0 as numpy; 'f' fixed, 'e' scientific, 'x' the bits, 'd' integer */
    bool all;          /* never abbreviate */
    bool suppress;     /* numpy's suppress_small */
    /* Called now and then while many values are printed, with how much of all is done, 0 to 1;
     * false ends it with GD_EINTR. NULL: nobody asks. */
    bool (*look)(void *ctx, double done);
    void *look_ctx;
};

#define GD_FORMAT_DEFAULT                                                                          \
    {                                                                                              \
        .precision = 8, .threshold = 1000, .edge_items = 3, .line_width = 75                       \
    }

/* The text of numpy's str(a), digit for digit: brackets, one space between values, rows on their
 * own lines; no trailing newline. A 0-d tensor is its value alone, an empty one "[]". bfloat16
 * prints the shortest digits that no other bfloat16 has. GD_EUNSUPPORTED: strings; GD_ELIMIT from
 * the buffer, at once when the values cannot fit. */
int gd_format_values(const struct gd_tensor *tensor, const struct gd_format *format,
                     struct gd_buf *out, struct gd_err *err);

/*
 * One line, no newline:
 *     float32 (64, 8) n=512 2 KiB min=-0.31 max=0.29 mean=1e-05 std=0.08 zeros=2.5% NaN!3 |▁▃█▃▁|
 *     float32 () 4 B value=0.25
 *     bool (9,) n=9 9 B true=3 false=6
 *     int32 (4,) n=4 16 B all zero
 *     float32 (0, 4) n=0 0 B empty
 * min to std are over the finite elements, and left out when there are none; NaN!k, +Inf!k and
 * -Inf!k follow whenever k is not 0, NaN!>=k where it is a lower bound. Complex: |min|, |max|,
 * |mean| of the magnitudes. hist (may be NULL) is drawn with block glyphs, or with " .:-=+*%#" when
 * not utf8.
 */
int gd_format_summary(enum gd_dtype dtype, const struct gd_shape *shape,
                      const struct gd_stats *stats, const uint64_t *hist, size_t bins, bool utf8,
                      struct gd_buf *out);
/* Whether a count of NaN or infinities is "at least" (gd_stats.unknown). */
bool gd_format_is_bound(const struct gd_stats *stats);
/* The bars alone, " |..|"; nothing when all bins are empty. */
void gd_format_histogram(const uint64_t *hist, size_t bins, bool utf8, struct gd_buf *out);

/* One value as numpy prints a 0-d array of it (shortest digits that read back). */
int gd_format_scalar(enum gd_dtype dtype, const void *element, struct gd_buf *out);

/*
 * As MindSpore's Print operator writes a tensor, to the letter (2.10; no newline at the end):
 *     Tensor(shape=[2, 1], dtype=Int32, value=
 *     [[1]
 *      [1]])
 * Axes longer than 6 are abbreviated, a single axis when it is longer than 1000. A tensor without
 * axes is its value alone; an abridged tensor is enough. commas: as Print and print() write it
 * outside of compiled graphs (PyNative): with commas, and a tensor without axes as Tensor(shape=[],
 * ..., value= 3). A tensor without elements has an empty value in both (the compiled operator
 * prints a number that is not in the tensor). GD_EUNSUPPORTED: strings.
 */
int gd_format_print(const struct gd_tensor *tensor, bool commas, struct gd_buf *out,
                    struct gd_err *err);

/* "512 B", "32 KiB", "1.5 GiB" into out; returns out. */
char *gd_format_bytes(uint64_t bytes, char *out, size_t size);

/* The .npy 1.0 header of a C-order array, padded to 64 bytes. GD_EUNSUPPORTED: no descriptor. */
int gd_npy_header(enum gd_dtype dtype, const struct gd_shape *shape, struct gd_buf *out,
                  struct gd_err *err);

#endif
