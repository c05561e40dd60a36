// SPDX-License-Identifier: GPL-3.0-or-later
/* msprobe's table from its rows: columns, differences of statistics, and the Result of each
 * call. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "repl/compare/compare_probe.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

#define NONE PROBE_NONE

/* ---- statistics --------------------------------------------------------------------------- */

const char *compare_probe_number(struct command_call *call, double value)
{
    char text[40];

    return isnan(value) ? "Nan"
                        : inspect_printf(call, "%s", gd_tool_number(value, text, sizeof(text)));
}

enum figure_kind {
    FIGURE_NUMBER,
    FIGURE_NAN,
    FIGURE_INF,
    FIGURE_NEG_INF,
    FIGURE_NONE,
    FIGURE_TEXT
};

static enum figure_kind kind_of(const char *figure, double *value)
{
    char *end;

    if (strcmp(figure, NONE) == 0) {
        return FIGURE_NONE;
    }
    *value = strtod(figure, &end);
    if (end == figure || *end) {
        return FIGURE_TEXT;
    }
    return isnan(*value)   ? FIGURE_NAN
           : isinf(*value) ? (*value > 0 ? FIGURE_INF : FIGURE_NEG_INF)
                           : FIGURE_NUMBER;
}

/* The difference of two statistics, absolute and in per cent of B's. */
static void differ_of(struct command_call *call, const char *a, const char *b, const char **diff,
                      const char **relative)
{
    double x = 0, y = 0;
    enum figure_kind p = kind_of(a, &x), q = kind_of(b, &y);

    if (strcmp(a, b) == 0) {
        *diff = "0";
    } else if (p == FIGURE_NONE || q == FIGURE_NONE) {
        *diff = NONE;
    } else if (p == FIGURE_TEXT || q == FIGURE_TEXT) {
        *diff = "Diff";
    } else if (p == FIGURE_NAN || q == FIGURE_NAN) {
        *diff = "Nan";
    } else if (p == FIGURE_NUMBER && q == FIGURE_NUMBER) {
        *diff = compare_probe_number(call, x - y);
        *relative = y == 0 ? "inf"
                           : inspect_printf(call, "%s%%",
                                            compare_probe_number(call, fabs((x - y) / y * 100)));
        return;
    } else {
        *diff = p == FIGURE_INF || (p == FIGURE_NUMBER && q == FIGURE_NEG_INF) ? "inf" : "-inf";
    }
    *relative = *diff;
}

/* ---- columns --------------------------------------------------------------------------------- */

#define IN(mode)  (1U << (mode))
#define NUMBERS   (IN(PROBE_ELEMENTS) | IN(PROBE_STATISTICS))
#define ALL       (NUMBERS | IN(PROBE_DIGESTS))
#define AT(field) offsetof(struct probe_row, field)

/* msprobe's columns, in its order. */
static const struct {
    const char *title; /* NULL: of the tool's metric */
    size_t at;         /* of the text in the row */
    unsigned modes;
} columns[] = {
    {"NPU Name", AT(a.name), ALL},
    {"Bench Name", AT(b.name), ALL},
    {"NPU Dtype", AT(a.dtype), ALL},
    {"Bench Dtype", AT(b.dtype), ALL},
    {"NPU Tensor Shape", AT(a.shape), ALL},
    {"Bench Tensor Shape", AT(b.shape), ALL},
    {"NPU Requires_grad", AT(a.grad), ALL},
    {"Bench Requires_grad", AT(b.grad), ALL},
    {NULL, AT(metric[0]), IN(PROBE_ELEMENTS)},
    {NULL, AT(metric[1]), IN(PROBE_ELEMENTS)},
    {NULL, AT(metric[2]), IN(PROBE_ELEMENTS)},
    {NULL, AT(metric[3]), IN(PROBE_ELEMENTS)},
    {NULL, AT(metric[4]), IN(PROBE_ELEMENTS)},
    {NULL, AT(metric[5]), IN(PROBE_ELEMENTS)},
    {"Max diff", AT(difference[0]), IN(PROBE_STATISTICS)},
    {"Min diff", AT(difference[1]), IN(PROBE_STATISTICS)},
    {"Mean diff", AT(difference[2]), IN(PROBE_STATISTICS)},
    {"L2norm diff", AT(difference[3]), IN(PROBE_STATISTICS)},
    {"MaxRelativeErr", AT(difference[4]), IN(PROBE_STATISTICS)},
    {"MinRelativeErr", AT(difference[5]), IN(PROBE_STATISTICS)},
    {"MeanRelativeErr", AT(difference[6]), IN(PROBE_STATISTICS)},
    {"NormRelativeErr", AT(difference[7]), IN(PROBE_STATISTICS)},
    {"NPU MD5", AT(a.digest), IN(PROBE_DIGESTS)},
    {"BENCH MD5", AT(b.digest), IN(PROBE_DIGESTS)},
    {"NPU max", AT(a.figure[0]), NUMBERS},
    {"NPU min", AT(a.figure[1]), NUMBERS},
    {"NPU mean", AT(a.figure[2]), NUMBERS},
    {"NPU l2norm", AT(a.figure[3]), NUMBERS},
    {"Bench max", AT(b.figure[0]), NUMBERS},
    {"Bench min", AT(b.figure[1]), NUMBERS},
    {"Bench mean", AT(b.figure[2]), NUMBERS},
    {"Bench l2norm", AT(b.figure[3]), NUMBERS},
    {"Requires_grad Consistent", AT(same_grad), ALL},
    {"Result", AT(result), ALL},
    {"Err_message", AT(message), ALL},
};

int compare_probe_columns(enum probe_mode mode, const struct probe_row *row, const char **title,
                          const char **cell)
{
    int count = 0, metric = 0, more;
    const char *const *metrics = gd_tool_columns(GD_TOOL_MSPROBE, &more);

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        if (!(columns[i].modes & IN(mode))) {
            continue;
        }
        title[count] = columns[i].title ? columns[i].title : metrics[metric++];
        if (row) {
            memcpy(&cell[count], (const char *)row + columns[i].at, sizeof(*cell));
        }
        count++;
    }
    return count;
}

bool compare_probe_passed(const struct probe_row *row)
{
    return strcmp(row->result, "pass") == 0;
}

/* ---- the result of a call -------------------------------------------------------------------- */

struct judging {
    struct command_call *call;
    struct compare_row *row; /* of one call: inputs and parameters, then outputs */
    size_t count, inputs;
    enum probe_mode mode;
};

/* An error outranks a warning; a row lists all its faults. */
static void add_fault(struct judging *j, size_t i, bool is_error, const char *why)
{
    struct probe_row *row = j->row[i].probe;
    const char *level = is_error ? "error" : "warning";

    if (strcmp(row->result, "error") != 0) {
        row->result = level;
    }
    row->message = inspect_printf(j->call, "%s%s\"%s: %s\"", row->message,
                                  row->message[0] ? ", " : "", level, why);
}

static bool is_matched(const struct probe_row *row)
{
    return strcmp(row->b.name, NONE) != 0;
}

static bool is_wild(const char *figure)
{
    double value;
    enum figure_kind kind = kind_of(figure, &value);

    return kind == FIGURE_NAN || kind == FIGURE_INF || kind == FIGURE_NEG_INF;
}

/* Parses a number of a column; false for anything else, such as words and "inf". */
static bool parse_number(const char *cell, bool percent, double *ret)
{
    char *end;

    *ret = strtod(cell, &end);
    if (end == cell || isnan(*ret) || isinf(*ret)) {
        return false;
    }
    *ret /= percent ? 100 : 1;
    return percent ? strcmp(end, "%") == 0 : *end == '\0';
}

static double find_least(const struct judging *j, bool inputs, int metric)
{
    double least = 1, value;

    for (size_t i = inputs ? 0 : j->inputs; i < (inputs ? j->inputs : j->count); i++) {
        if (parse_number(j->row[i].probe->metric[metric], false, &value) && value < least) {
            least = value;
        }
    }
    return least;
}

#define NORM_RELATIVE 7 /* of the differences */

static double largest_norm(const struct judging *j, bool inputs)
{
    double largest = 0, value;

    for (size_t i = inputs ? 0 : j->inputs; i < (inputs ? j->inputs : j->count); i++) {
        if (parse_number(j->row[i].probe->difference[NORM_RELATIVE], true, &value) &&
            value > largest) {
            largest = value;
        }
    }
    return largest;
}

static void judge_row(struct judging *j, size_t i)
{
    const struct probe_row *row = j->row[i].probe;
    bool is_class = strncmp(row->a.dtype, "<class", 6) == 0;

    if (j->mode == PROBE_DIGESTS) {
        bool none = strcmp(row->a.digest, NONE) == 0 || strcmp(row->b.digest, NONE) == 0;

        if (strcmp(row->a.digest, row->b.digest) != 0) {
            add_fault(j, i, !none,
                      none ? "no counterpart to compare with" : "the checksums differ");
        }
        return;
    }
    if (!is_wild(row->b.figure[0]) && !is_wild(row->b.figure[1]) &&
        (is_wild(row->a.figure[0]) || is_wild(row->a.figure[1]))) {
        add_fault(j, i, true, "NaN or infinity in the extremes, but not in the reference");
    }
    if (!is_matched(row)) {
        return;
    }
    if (i < j->inputs && is_class && strcmp(row->a.figure[0], row->b.figure[0]) != 0) {
        add_fault(j, i, true, "numeric arguments differ");
    }
    if (strcmp(row->a.dtype, row->b.dtype) != 0 && !strstr(row->b.name, "qkv") &&
        !strstr(row->b.name, "gate_up")) {
        add_fault(j, i, true, "the types differ");
    }
    if (strcmp(row->a.shape, row->b.shape) != 0) {
        add_fault(j, i, true, "the shapes differ");
    }
}

/* Compares outputs with inputs. */
static void judge_elements(struct judging *j)
{
    enum { COSINE = 0, THOUSANDTH = 4 };
    double in = find_least(j, true, THOUSANDTH), cosine = find_least(j, true, COSINE);

    if (j->inputs == j->count) {
        return;
    }
    if (in > 0.9 && find_least(j, false, THOUSANDTH) < 0.1) {
        add_fault(j, j->inputs, true,
                  "less than a tenth is within one thousandth, but more than 0.9 of the inputs");
    }
    if (cosine > 0.9 && cosine - find_least(j, false, COSINE) > 0.1) {
        add_fault(j, j->inputs, false, "the cosine is 0.1 less than that of the inputs");
    }
}

static void judge_statistics(struct judging *j)
{
    double in = largest_norm(j, true), out = largest_norm(j, false);

    for (size_t i = j->inputs; in < 0.1 && i < j->count; i++) {
        const char *cell = j->row[i].probe->difference[NORM_RELATIVE];
        double value = 0;

        if (strcmp(cell, "inf") == 0 || strcmp(cell, "-inf") == 0 ||
            (parse_number(cell, true, &value) && value > 0.5)) {
            add_fault(j, i, true, "the norm differs by more than 50 %");
        }
    }
    if (j->inputs < j->count && (in == 0 ? out > 0.1 : out / in > 10)) {
        add_fault(j, j->inputs, false, "the norm differs ten times as much as those of the inputs");
    }
}

static bool has_word(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word) != 0) {
        list++;
    }
    return *list != NULL;
}

/* Calls that return uninitialised memory, or whose inputs have not arrived yet. */
static void note_ignored(const struct judging *j, bool *all, bool *inputs)
{
    static const char *const empty[] = {
        "empty",     "empty_like",        "numpy",         "to", "__setitem__", "empty_with_format",
        "new_empty", "new_empty_strided", "empty_strided", NULL};
    static const char *const received[] = {"_reduce_scatter_base", "_all_gather_base",
                                           "all_to_all_single", "batch_isend_irecv", NULL};
    const char *dot = j->inputs ? strchr(j->row[0].probe->a.name, '.') : NULL;
    const char *name =
        dot ? inspect_printf(j->call, "%.*s", (int)strcspn(dot + 1, "."), dot + 1) : "";

    *all = has_word(name, empty);
    *inputs = has_word(name, received);
}

static void judge_call(struct judging *j)
{
    bool all, inputs;

    note_ignored(j, &all, &inputs);
    for (size_t i = inputs ? j->inputs : 0; !all && i < j->count; i++) {
        judge_row(j, i);
    }
    if (!all && !inputs && j->mode == PROBE_ELEMENTS) {
        judge_elements(j);
    } else if (!all && !inputs && j->mode == PROBE_STATISTICS) {
        judge_statistics(j);
    }
}

static enum probe_mode mode_of(const struct compare_rows *rows)
{
    enum probe_mode mode = PROBE_STATISTICS;

    for (size_t i = 0; i < rows->count; i++) {
        const struct probe_row *row = rows->row[i].probe;

        if (row->has_elements) {
            return PROBE_ELEMENTS;
        }
        if (row->a.dtype && row->a.dtype[0] != '<' && strcmp(row->a.digest, NONE) != 0 &&
            strcmp(row->b.digest, NONE) != 0) {
            mode = PROBE_DIGESTS;
        }
    }
    return mode;
}

int compare_probe_judge(struct command_call *call, struct compare_rows *rows, struct gd_err *err)
{
    struct judging j = {.call = call, .mode = mode_of(rows)};

    rows->probe_mode = j.mode;
    for (size_t i = 0; i < rows->count; i++) {
        struct probe_row *row = rows->row[i].probe;

        row->same_grad = strcmp(row->a.grad, row->b.grad) == 0 ? "True" : "False";
        for (int k = 0; k < 4; k++) {
            differ_of(call, row->a.figure[k], row->b.figure[k], &row->difference[k],
                      &row->difference[k + 4]);
        }
    }
    for (size_t i = 0; i < rows->count; i += j.count) {
        const struct probe_row *first = rows->row[i].probe;

        j.row = &rows->row[i];
        j.inputs = 0;
        for (j.count = 0; i + j.count < rows->count; j.count++) {
            const struct probe_row *row = j.row[j.count].probe;

            if (row->group != first->group || row->number != first->number) {
                break;
            }
            j.inputs += row->place != PROBE_OUTPUT;
        }
        judge_call(&j);
    }
    for (size_t i = 0; i < rows->count; i++) {
        struct probe_row *row = rows->row[i].probe;

        row->message = inspect_printf(call, "[%s]", row->message);
        if (!row->message) {
            return gd_fail(err, GD_ENOMEM, "out of memory for the rows of a comparison");
        }
    }
    return GD_OK;
}
