// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Values in numpy's layout. A first pass over all values that will be shown finds the common style
 * and width, a second one prints them.
 */
#include "engine/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype_impl.h"
#include "engine/decimal.h"

#define WORD_MAX      1024 /* the longest one: 309 digits, a point and MAX_PRECISION more, twice */
#define MAX_PRECISION 100  /* of the letter formats */
#define MAX_UNIQUE    400  /* shortest digits never go further after the point */
#define LOOK_EVERY    4096 /* values */

/* What numpy calls trimming: what to do with zeros at the end of a fraction. */
enum trim { TRIM_POINT, TRIM_ONE_ZERO, TRIM_ALL, TRIM_NONE };

/* How one column of floating point numbers is written. */
struct float_style {
    bool exponential;
    bool plus;     /* a sign on positive numbers, too: imaginary parts */
    int precision; /* digits after the point at most; -1: as many as are unique */
    int exponent_digits;
    int left, right; /* characters before and after the point */
    /* What is known about the numbers before the style is chosen: */
    double min, max; /* of the magnitudes of finite non-zero values */
    bool any_finite, any_special, any_neg_inf;
};

struct printer {
    const struct gd_tensor *tensor;
    const struct gd_format *format;
    struct gd_buf *out;
    int edge;
    bool abbreviated;
    bool scanning; /* the first pass: only look */
    size_t width;  /* of integers and of the words of letter formats */
    struct float_style real, imag;
    size_t line_start; /* in out, of the line being filled */
    void (*visit)(struct printer *printer, const unsigned char *element);
    int64_t visited, visits; /* of all times round */
    bool stopped;
};

static void copy_text(char *out, size_t *len, const char *text, size_t text_len)
{
    if (text_len > WORD_MAX - 1 - *len) {
        text_len = WORD_MAX - 1 - *len;
    }
    memcpy(out + *len, text, text_len);
    *len += text_len;
    out[*len] = '\0';
}

static void fill_text(char *out, size_t *len, char c, int times)
{
    for (; times > 0 && *len < WORD_MAX - 1; times--) {
        out[(*len)++] = c;
    }
    out[*len] = '\0';
}

static void add_sign(char *out, size_t *len, bool negative, bool plus)
{
    if (negative || plus) {
        fill_text(out, len, negative ? '-' : '+', 1);
    }
}

/* Digits [from, to) counted from the first one; missing ones are 0. */
static void add_digits(char *out, size_t *len, const struct gd_decimal *d, int from, int to)
{
    for (int i = from; i < to; i++) {
        fill_text(out, len, (char)('0' + (i >= 0 && i < d->count ? d->digit[i] : 0)), 1);
    }
}

/* How many of `have` digits after the point are kept. */
static int trim_zeros(const struct gd_decimal *d, int point, int have, enum trim trim)
{
    if (trim == TRIM_NONE) {
        return have;
    }
    while (have > 0 && (point + have - 1 >= d->count || d->digit[point + have - 1] == 0)) {
        have--;
    }
    return have == 0 && trim == TRIM_ONE_ZERO ? 1 : have;
}

/* whole: exact down to the point, where the shortest digits may end before it (65504 for 65500). */
static void positional_text(const struct gd_float_parts *value, int precision, enum trim trim,
                            bool whole, bool plus, char *out)
{
    struct gd_decimal d;
    size_t len = 0;
    int point, have; /* digits before the point, and after it */

    gd_decimal_at(value, precision < 0 ? INT_MIN : -precision, whole ? 0 : INT_MAX, &d);
    point = d.exponent + 1;
    have = d.count > point ? d.count - point : 0;
    add_sign(out, &len, value->negative, plus);
    if (point <= 0) {
        fill_text(out, &len, '0', 1);
    }
    add_digits(out, &len, &d, 0, point);
    /* Before the first digit, `point` is negative and counts the zeros after the point. */
    have = point < 0 ? d.count - point : have;
    if (point < 0) {
        while (have > -point && d.digit[have + point - 1] == 0) {
            have--;
        }
    } else {
        have = trim_zeros(&d, point, have, trim);
    }
    if (have > 0 || trim != TRIM_ALL) {
        fill_text(out, &len, '.', 1);
    }
    add_digits(out, &len, &d, point, point + have);
}

static void exponential_text(const struct gd_float_parts *value, int precision, enum trim trim,
                             int exponent_digits, bool plus, char *out)
{
    struct gd_decimal d;
    char exponent[16];
    size_t len = 0;

    gd_decimal_digits(value, precision < 0 ? 0 : precision + 1,
                      trim == TRIM_NONE ? precision + 1 : 0, &d);
    int have = trim == TRIM_NONE ? precision : trim_zeros(&d, 1, d.count - 1, trim);
    add_sign(out, &len, value->negative, plus);
    add_digits(out, &len, &d, 0, 1);
    if (have > 0 || trim != TRIM_ALL) {
        fill_text(out, &len, '.', 1);
    }
    add_digits(out, &len, &d, 1, 1 + have);
    snprintf(exponent, sizeof(exponent), "e%c%0*d", d.exponent < 0 ? '-' : '+', exponent_digits,
             d.exponent < 0 ? -d.exponent : d.exponent);
    copy_text(out, &len, exponent, strlen(exponent));
}

static const char *special_text(enum gd_float_class class, bool negative, bool plus)
{
    if (class == GD_FLOAT_NAN) {
        return plus ? "+nan" : "nan";
    }
    return negative ? "-inf" : plus ? "+inf" : "inf";
}

static int point_at(const char *text)
{
    return (int)strcspn(text, ".");
}

/* --- Finding the style ------------------------------------------------------------------------ */

static void look_at_range(struct float_style *style, enum gd_dtype dtype, const void *p)
{
    struct gd_float_parts parts;
    enum gd_float_class class = gd_float_take_apart(dtype, p, &parts);

    if (class != GD_FLOAT_FINITE) {
        style->any_special = true;
        style->any_neg_inf = style->any_neg_inf || (class == GD_FLOAT_INF && parts.negative);
        return;
    }
    style->any_finite = true;
    double magnitude = fabs(gd_dtype_load(dtype, p));
    if (magnitude == 0) {
        return;
    }
    style->min = magnitude < style->min ? magnitude : style->min;
    style->max = magnitude > style->max ? magnitude : style->max;
}

/* max / min, rounded as the type itself would. */
static double ratio_of(enum gd_dtype dtype, double max, double min)
{
    switch (dtype) {
    case GD_FLOAT16: return (double)gd_half_widen(gd_float_to_half((float)max / (float)min));
    case GD_BFLOAT16:
    case GD_FLOAT32:
    case GD_COMPLEX64: return (double)((float)max / (float)min);
    default: return max / min;
    }
}

static void choose_notation(struct float_style *style, enum gd_dtype dtype, bool suppress)
{
    if (style->max == 0) {
        return;
    }
    style->exponential =
        style->max >= 1e8 ||
        (!suppress && (style->min < 0.0001 || ratio_of(dtype, style->max, style->min) > 1000.0));
}

/* Widens left, right and exponent_digits to what this number needs by itself. */
static void look_at_width(struct float_style *style, int precision, enum gd_dtype dtype,
                          const void *p)
{
    struct gd_float_parts parts;
    char word[WORD_MAX];
    int left, right;

    if (gd_float_take_apart(dtype, p, &parts) != GD_FLOAT_FINITE) {
        return;
    }
    if (style->exponential) {
        char *e;

        exponential_text(&parts, precision, TRIM_POINT, 2, style->plus, word);
        e = strchr(word, 'e');
        *e = '\0';
        if ((int)strlen(e + 2) > style->exponent_digits) {
            style->exponent_digits = (int)strlen(e + 2);
        }
    } else {
        positional_text(&parts, precision, TRIM_POINT, false, style->plus, word);
    }
    left = point_at(word);
    right = (int)strlen(word) - left - 1;
    style->left = left > style->left ? left : style->left;
    style->right = right > style->right ? right : style->right;
}

static void finish_style(struct float_style *style, int precision)
{
    style->precision = precision;
    if (!style->any_finite) {
        style->exponential = false;
    }
    if (style->exponential) {
        style->precision = style->right;
        style->right += style->exponent_digits + 2;
    }
    if (style->any_special) {
        bool neg_inf = style->plus || style->any_neg_inf;
        int room = style->right + 1;

        if (style->left < 3 - room) {
            style->left = 3 - room;
        }
        if (style->left < 3 + neg_inf - room) {
            style->left = 3 + neg_inf - room;
        }
    }
}

/* --- Words ------------------------------------------------------------------------------------ */

static void float_word(const struct float_style *style, enum gd_dtype dtype, const void *p,
                       char *out)
{
    struct gd_float_parts parts;
    enum gd_float_class class = gd_float_take_apart(dtype, p, &parts);
    char word[WORD_MAX];
    size_t len = 0;
    int left, right;

    out[0] = '\0';
    if (class != GD_FLOAT_FINITE) {
        const char *text = special_text(class, parts.negative, style->plus);

        fill_text(out, &len, ' ', style->left + style->right + 1 - (int)strlen(text));
        copy_text(out, &len, text, strlen(text));
        return;
    }
    if (style->exponential) {
        exponential_text(&parts, style->precision, TRIM_NONE, style->exponent_digits, style->plus,
                         word);
    } else {
        positional_text(&parts, style->precision, TRIM_POINT, true, style->plus, word);
    }
    left = point_at(word);
    right = (int)strlen(word) - left - 1;
    fill_text(out, &len, ' ', style->left - left);
    copy_text(out, &len, word, strlen(word));
    if (!style->exponential) {
        fill_text(out, &len, ' ', style->right - right);
    }
}

static size_t part_size(enum gd_dtype dtype)
{
    return gd_dtype_size(dtype) / 2;
}

/* The j comes before the blanks that align the fraction. */
static void complex_word(const struct printer *printer, const unsigned char *element, char *out)
{
    enum gd_dtype dtype = printer->tensor->dtype;
    char imag[WORD_MAX];
    size_t len, digits;

    float_word(&printer->real, dtype, element, out);
    float_word(&printer->imag, dtype, element + part_size(dtype), imag);
    len = strlen(out);
    digits = strlen(imag);
    while (digits && imag[digits - 1] == ' ') {
        digits--;
    }
    copy_text(out, &len, imag, digits);
    copy_text(out, &len, "j", 1);
    copy_text(out, &len, imag + digits, strlen(imag + digits));
}

static int64_t load_signed(enum gd_dtype dtype, const unsigned char *p)
{
    int64_t eight;

    if (gd_dtype_size(dtype) < 8) {
        return (int64_t)gd_dtype_load(dtype, p);
    }
    memcpy(&eight, p, sizeof(eight));
    return eight;
}

static void integer_text(enum gd_dtype dtype, const unsigned char *p, char *out)
{
    int64_t value = load_signed(dtype, p);

    if (gd_dtype_is_unsigned(dtype)) {
        snprintf(out, WORD_MAX, "%" PRIu64, (uint64_t)value);
    } else {
        snprintf(out, WORD_MAX, "%" PRId64, value);
    }
}

/* --- Letters: one form for every value, not numpy's choice ------------------------------------ */

static void hex_text(const unsigned char *p, size_t size, char *out)
{
    size_t len = 0;

    copy_text(out, &len, "0x", 2);
    for (size_t i = 0; i < size; i++) {
        char pair[3];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        unsigned byte = p[size - 1 - i];
#else
        unsigned byte = p[i];
#endif

        snprintf(pair, sizeof(pair), "%02x", byte);
        copy_text(out, &len, pair, 2);
    }
}

/* A part of an element, no longer complex. long double: 64-bit integers keep their digits. */
static void letter_part(enum gd_dtype dtype, const struct gd_format *format, size_t size, bool plus,
                        const unsigned char *p, char *out)
{
    int precision = format->precision > MAX_PRECISION ? MAX_PRECISION : format->precision;
    double value = gd_dtype_load(dtype, p);
    long double wide = value;

    if (format->letter == 'x') {
        hex_text(p, size, out);
        return;
    }
    if (gd_dtype_is_int(dtype)) {
        wide = gd_dtype_is_unsigned(dtype) ? (long double)(uint64_t)load_signed(dtype, p)
                                           : (long double)load_signed(dtype, p);
    }
    if (!isfinite(value)) {
        snprintf(out, WORD_MAX, "%s",
                 special_text(isnan(value) ? GD_FLOAT_NAN : GD_FLOAT_INF, value < 0, plus));
    } else if (format->letter == 'd') {
        snprintf(out, WORD_MAX, plus ? "%+.0Lf" : "%.0Lf", truncl(wide) + 0.0L);
    } else if (format->letter == 'e') {
        snprintf(out, WORD_MAX, plus ? "%+.*Le" : "%.*Le", precision, wide);
    } else {
        snprintf(out, WORD_MAX, plus ? "%+.*Lf" : "%.*Lf", precision, wide);
    }
}

static void letter_text(enum gd_dtype dtype, const struct gd_format *format,
                        const unsigned char *element, char *out)
{
    size_t size = gd_dtype_size(dtype), len;
    char imag[WORD_MAX];
    bool hex = format->letter == 'x';

    if (!gd_dtype_is_complex(dtype)) {
        letter_part(dtype, format, size, false, element, out);
        return;
    }
    letter_part(dtype, format, size / 2, false, element, out);
    letter_part(dtype, format, size / 2, true, element + size / 2, imag);
    len = strlen(out);
    if (hex) {
        copy_text(out, &len, "+", 1);
    }
    copy_text(out, &len, imag, strlen(imag));
    copy_text(out, &len, "j", 1);
}

/* --- Scalars ---------------------------------------------------------------------------------- */

static void scalar_part(enum gd_dtype dtype, const unsigned char *p, enum trim trim, bool plus,
                        char *out)
{
    struct gd_float_parts parts;
    enum gd_float_class class = gd_float_take_apart(dtype, p, &parts);
    double magnitude = fabs(gd_dtype_load(dtype, p));

    if (class != GD_FLOAT_FINITE) {
        snprintf(out, WORD_MAX, "%s", special_text(class, parts.negative, plus));
    } else if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16)) {
        positional_text(&parts, -1, trim, false, plus, out);
    } else {
        exponential_text(&parts, -1, TRIM_ALL, 2, plus, out);
    }
}

static int complex_scalar(enum gd_dtype dtype, const unsigned char *p, struct gd_buf *out)
{
    double real = gd_dtype_load(dtype, p);
    char re[WORD_MAX], im[WORD_MAX];

    if (real == 0 && !signbit(real)) {
        scalar_part(dtype, p + part_size(dtype), TRIM_ALL, false, im);
        return gd_buf_printf(out, "%sj", im);
    }
    scalar_part(dtype, p, TRIM_ALL, false, re);
    scalar_part(dtype, p + part_size(dtype), TRIM_ALL, true, im);
    return gd_buf_printf(out, "(%s%sj)", re, im);
}

int gd_format_scalar(enum gd_dtype dtype, const void *element, struct gd_buf *out)
{
    char word[WORD_MAX];

    if (gd_dtype_size(dtype) == 0) {
        return GD_EUNSUPPORTED;
    }
    if (dtype == GD_BOOL) {
        return gd_buf_puts(out, *(const unsigned char *)element ? "True" : "False");
    }
    if (gd_dtype_is_complex(dtype)) {
        return complex_scalar(dtype, element, out);
    }
    if (gd_dtype_is_float(dtype)) {
        scalar_part(dtype, element, TRIM_ONE_ZERO, false, word);
    } else {
        integer_text(dtype, element, word);
    }
    return gd_buf_puts(out, word);
}

/* --- The walk over what is shown -------------------------------------------------------------- */

static void element_word(const struct printer *printer, const unsigned char *element, char *out)
{
    enum gd_dtype dtype = printer->tensor->dtype;
    char word[WORD_MAX];
    size_t len = 0;

    if (!printer->format->letter && gd_dtype_is_complex(dtype)) {
        complex_word(printer, element, out);
        return;
    }
    if (!printer->format->letter && gd_dtype_is_float(dtype)) {
        float_word(&printer->real, dtype, element, out);
        return;
    }
    if (printer->format->letter) {
        letter_text(dtype, printer->format, element, word);
    } else if (dtype == GD_BOOL) {
        snprintf(word, sizeof(word), "%s", *element ? " True" : "False");
    } else {
        integer_text(dtype, element, word);
    }
    out[0] = '\0';
    fill_text(out, &len, ' ', (int)printer->width - (int)strlen(word));
    copy_text(out, &len, word, strlen(word));
}

static void visit_width(struct printer *printer, const unsigned char *element)
{
    char word[WORD_MAX];

    element_word(printer, element, word);
    size_t len = strlen(word);
    if (len > printer->width) {
        printer->width = len;
    }
}

static void visit_range(struct printer *printer, const unsigned char *element)
{
    enum gd_dtype dtype = printer->tensor->dtype;

    look_at_range(&printer->real, dtype, element);
    if (gd_dtype_is_complex(dtype)) {
        look_at_range(&printer->imag, dtype, element + part_size(dtype));
    }
}

static void visit_parts(struct printer *printer, const unsigned char *element)
{
    enum gd_dtype dtype = printer->tensor->dtype;
    int precision = printer->format->precision;

    look_at_width(&printer->real, precision, dtype, element);
    if (gd_dtype_is_complex(dtype)) {
        look_at_width(&printer->imag, precision, dtype, element + part_size(dtype));
    }
}

static void new_line(struct printer *printer, int times, int indent)
{
    gd_buf_fill(printer->out, '\n', (size_t)times);
    printer->line_start = printer->out->len;
    gd_buf_fill(printer->out, ' ', (size_t)indent);
}

/* A word on the last axis: on a new line when it would pass the width and a new line helps. */
static void put_word(struct printer *printer, int axis, const char *word)
{
    struct gd_buf *out = printer->out;
    size_t indent = (size_t)axis + 1, column = out->len - printer->line_start;
    /* One is reserved for the closing bracket of each axis. */
    int64_t room = (int64_t)printer->format->line_width - axis - 1;

    if (out->failed) {
        return;
    }
    if ((int64_t)(column + strlen(word)) > room && column > indent) {
        while (out->len > printer->line_start && out->data[out->len - 1] == ' ') {
            out->data[--out->len] = '\0';
        }
        new_line(printer, 1, axis + 1);
    }
    gd_buf_puts(out, word);
}

static void visit_print(struct printer *printer, const unsigned char *element)
{
    char word[WORD_MAX];

    element_word(printer, element, word);
    put_word(printer, printer->tensor->shape.rank - 1, word);
}

static void put_between(struct printer *printer, int axis)
{
    int left = printer->tensor->shape.rank - axis;

    if (left == 1) {
        gd_buf_putc(printer->out, ' ');
    } else {
        new_line(printer, left - 1, axis + 1);
    }
}

static void scan_element(struct printer *printer)
{
    const struct gd_format *format = printer->format;

    printer->visited++;
    if (printer->visited % LOOK_EVERY == 0 && format->look) {
        double done = (double)printer->visited / (double)printer->visits;
        printer->stopped = !format->look(format->look_ctx, done);
    }
}

/* Every shown element below one index of the axes so far; brackets and blanks when printing. */
static void walk_axis(struct printer *printer, int axis, const unsigned char *at)
{
    const struct gd_tensor *tensor = printer->tensor;
    int64_t dim, stride;

    if (axis == tensor->shape.rank) {
        printer->visit(printer, at);
        scan_element(printer);
        return;
    }
    dim = tensor->shape.dim[axis];
    stride = tensor->stride[axis];
    bool cut = printer->abbreviated && dim > 2 * (int64_t)printer->edge;
    if (!printer->scanning) {
        gd_buf_putc(printer->out, '[');
    }
    for (int64_t i = 0; i < dim && !printer->out->failed && !printer->stopped; i++) {
        if (!printer->scanning && i > 0) {
            put_between(printer, axis);
        }
        if (cut && i == printer->edge) {
            if (!printer->scanning) {
                if (axis == tensor->shape.rank - 1) {
                    put_word(printer, axis, "...");
                } else {
                    gd_buf_puts(printer->out, "...");
                }
                put_between(printer, axis);
            }
            i = dim - printer->edge;
        }
        walk_axis(printer, axis + 1, at + i * stride);
    }
    if (!printer->scanning) {
        gd_buf_putc(printer->out, ']');
    }
}

static void scan_elements(struct printer *printer,
                          void (*visit)(struct printer *printer, const unsigned char *element))
{
    printer->visit = visit;
    printer->scanning = true;
    walk_axis(printer, 0, printer->tensor->data);
    printer->scanning = false;
}

/* How many elements the walk would print, as far as it matters. */
static int64_t shown_count(const struct printer *printer)
{
    const struct gd_shape *shape = &printer->tensor->shape;
    int64_t count = 1, edge = printer->edge;

    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dim[i];

        count *= printer->abbreviated && dim > 2 * edge ? 2 * edge : dim;
    }
    return count;
}

static void find_layout(struct printer *printer)
{
    enum gd_dtype dtype = printer->tensor->dtype;
    bool numbers = gd_dtype_is_float(dtype) || gd_dtype_is_complex(dtype);
    int precision = printer->format->precision;

    printer->visits = shown_count(printer) * (printer->format->letter || !numbers ? 2 : 3);
    if (printer->format->letter || !numbers) {
        scan_elements(printer, visit_width);
        return;
    }
    printer->imag.plus = true;
    printer->real.min = printer->imag.min = INFINITY;
    scan_elements(printer, visit_range);
    choose_notation(&printer->real, dtype, printer->format->suppress);
    choose_notation(&printer->imag, dtype, printer->format->suppress);
    scan_elements(printer, visit_parts);
    finish_style(&printer->real, precision);
    finish_style(&printer->imag, precision);
}

static int print_array(struct printer *printer, struct gd_err *err)
{
    const struct gd_format *format = printer->format;
    const struct gd_buf *out = printer->out;

    printer->edge = format->edge_items < 1 ? 1 : format->edge_items;
    printer->abbreviated = !format->all && gd_tensor_count(printer->tensor) > format->threshold;
    printer->line_start = out->len;
    /* Each takes at least two characters; without this check, a huge tensor would be processed
     * before the buffer refuses. */
    if ((uint64_t)shown_count(printer) > (out->max - out->len) / 2) {
        return gd_fail(err, GD_ELIMIT, "%lld values do not fit in %zu bytes of text: print a slice",
                       (long long)shown_count(printer), out->max);
    }
    find_layout(printer);
    printer->visit = visit_print;
    walk_axis(printer, 0, printer->tensor->data);
    return printer->stopped ? gd_fail(err, GD_EINTR, "interrupted") : GD_OK;
}

int gd_format_values(const struct gd_tensor *tensor, const struct gd_format *format,
                     struct gd_buf *out, struct gd_err *err)
{
    struct gd_format checked = *format;
    struct printer printer = {.tensor = tensor, .format = &checked, .out = out};
    char word[WORD_MAX];

    if (checked.precision < 0) {
        checked.precision = 0;
    }
    if (checked.precision > MAX_UNIQUE) {
        checked.precision = MAX_UNIQUE;
    }
    if (gd_dtype_size(tensor->dtype) == 0) {
        return gd_fail(err, GD_EUNSUPPORTED, "values of type %s cannot be printed",
                       gd_dtype_name(tensor->dtype));
    }
    if (gd_tensor_count(tensor) == 0) {
        gd_buf_puts(out, "[]");
    } else if (tensor->shape.rank == 0 && !format->letter) {
        gd_format_scalar(tensor->dtype, tensor->data, out);
    } else if (tensor->shape.rank == 0) {
        letter_text(tensor->dtype, &checked, tensor->data, word);
        gd_buf_puts(out, word);
    } else {
        int rc = print_array(&printer, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (out->failed) {
        return gd_fail(err, GD_ELIMIT, "the values need more than %zu bytes of text: print a slice",
                       out->max);
    }
    return GD_OK;
}
