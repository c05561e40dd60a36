// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: find */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define FIND_SHOWN 20
#define FIND_PIECE (1 << 18) /* elements between two checks for Ctrl-C */

enum find_test {
    FIND_NONFINITE,
    FIND_NAN,
    FIND_INF,
    FIND_ZERO,
    FIND_NONZERO,
    FIND_NEGATIVE,
    FIND_MIN,
    FIND_MAX,
    FIND_LT,
    FIND_LE,
    FIND_GT,
    FIND_GE,
    FIND_EQ,
    FIND_NE,
};

struct find_condition {
    enum find_test test;
    bool absolute; /* compare |x| */
    double limit;
};

struct find_word {
    const char *text;
    enum find_test test;
};

static const struct find_word find_words[] = {
    {"nonfinite", FIND_NONFINITE},
    {"nan", FIND_NAN},
    {"inf", FIND_INF},
    {"zero", FIND_ZERO},
    {"nonzero", FIND_NONZERO},
    {"negative", FIND_NEGATIVE},
    {"min", FIND_MIN},
    {"max", FIND_MAX},
};

static const struct find_word find_signs[] = {
    {"<=", FIND_LE}, {">=", FIND_GE}, {"==", FIND_EQ},
    {"!=", FIND_NE}, {"<", FIND_LT},  {">", FIND_GT},
};

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Parses "[abs] <= 1e-3" at *text and moves *text past it. */
static int parse_comparison(const char **text, struct find_condition *ret, struct gd_err *err)
{
    const char *p = *text;
    ret->absolute = strncmp(p, "abs", 3) == 0;
    p = skip_blanks(p + (ret->absolute ? 3 : 0));
    for (size_t i = 0; i < sizeof(find_signs) / sizeof(find_signs[0]); i++) {
        size_t len = strlen(find_signs[i].text);
        if (strncmp(p, find_signs[i].text, len) != 0) {
            continue;
        }
        p = skip_blanks(p + len);
        char *end = NULL;
        ret->test = find_signs[i].test;
        ret->limit = strtod(p, &end);
        if (end == p || (*end != '\0' && *end != ' ' && *end != '\t')) {
            return gd_fail(err, GD_EUSAGE, "expected a number after %s, not \"%.40s\"",
                           find_signs[i].text, p);
        }
        *text = end;
        return GD_OK;
    }
    return gd_fail(err, GD_EUSAGE,
                   "find: specify nonfinite, nan, inf, zero, nonzero, negative, min, max, or a "
                   "comparison such as > 1e3 or abs < 1e-8");
}

static int parse_condition(const char **text, struct find_condition *ret, struct gd_err *err)
{
    const char *p = skip_blanks(*text);
    size_t len = strcspn(p, " \t");
    for (size_t i = 0; i < sizeof(find_words) / sizeof(find_words[0]); i++) {
        if (strlen(find_words[i].text) == len && memcmp(p, find_words[i].text, len) == 0) {
            ret->test = find_words[i].test;
            *text = p + len;
            return GD_OK;
        }
    }
    *text = p;
    return parse_comparison(text, ret, err);
}

static bool is_match(const struct find_condition *condition, double x)
{
    double y = condition->absolute ? fabs(x) : x;
    switch (condition->test) {
    case FIND_NONFINITE: return !isfinite(x);
    case FIND_NAN: return isnan(x);
    case FIND_INF: return isinf(x);
    case FIND_ZERO: return x == 0;
    case FIND_NONZERO: return !(x == 0);
    case FIND_NEGATIVE: return x < 0;
    case FIND_LT: return y < condition->limit;
    case FIND_LE: return y <= condition->limit;
    case FIND_GT: return y > condition->limit;
    case FIND_GE: return y >= condition->limit;
    case FIND_EQ: return y == condition->limit;
    case FIND_NE: return !(y == condition->limit);
    case FIND_MIN:
    case FIND_MAX: break; /* resolve_extreme has made it FIND_EQ */
    }
    return false;
}

/* min and max become comparisons with the smallest or largest finite element. */
static int resolve_extreme(const struct value *value, struct find_condition *condition,
                           struct gd_err *err)
{
    if (condition->test != FIND_MIN && condition->test != FIND_MAX) {
        return GD_OK;
    }
    if (!value->has_stats ||
        value->stats.count == value->stats.nan + value->stats.pos_inf + value->stats.neg_inf) {
        return gd_fail(err, GD_ENODATA, "the tensor has no finite element");
    }
    condition->limit = condition->test == FIND_MIN ? value->stats.min : value->stats.max;
    condition->test = FIND_EQ;
    return GD_OK;
}

struct finding {
    struct find_condition condition;
    bool complex;
    bool all;
    uint64_t found;
    cJSON *list; /* JSON only */
};

static double element_number(const struct gd_tensor *tensor, int64_t offset, bool complex)
{
    double real = gd_dtype_load(tensor->dtype, tensor->data + offset);
    if (!complex) {
        return real;
    }
    enum gd_dtype part = tensor->dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
    double imaginary = gd_dtype_load(part, tensor->data + offset + gd_dtype_size(part));
    return isnan(real) || isnan(imaginary) ? NAN : hypot(real, imaginary);
}

static void report_element(struct command_call *call, struct finding *finding,
                           const struct gd_tensor *tensor, const int64_t *index, int64_t offset)
{
    const unsigned char *p = tensor->data + offset;
    if (finding->list) {
        cJSON *item = out_push(finding->list);
        cJSON *place = out_list(item, "index");
        for (int i = 0; i < tensor->shape.rank; i++) {
            out_push_int(place, index[i]);
        }
        out_set(item, OUT_JSON("value", value_element_record(tensor->dtype, p)));
    }
    if (!out_is_text(call->out)) {
        return;
    }
    struct gd_buf buf = GD_BUF_INIT(4096);
    gd_buf_puts(&buf, "  [");
    for (int i = 0; i < tensor->shape.rank; i++) {
        gd_buf_printf(&buf, "%s%lld", i > 0 ? ", " : "", (long long)index[i]);
    }
    gd_buf_puts(&buf, "]  ");
    gd_format_scalar(tensor->dtype, p, &buf);
    out_printf(call->out, "%s\n", gd_buf_text(&buf));
    gd_buf_deinit(&buf);
}

/* Walks the elements in C order, advancing indices and byte offset together. false: interrupted. */
static bool walk_elements(struct command_call *call, struct finding *finding,
                          const struct gd_tensor *tensor, struct repl_work *work)
{
    uint64_t item = gd_dtype_size(tensor->dtype);
    int64_t index[GD_MAX_RANK] = {0};
    int64_t offset = 0;
    int64_t count = gd_tensor_count(tensor);
    for (int64_t n = 0; n < count; n++) {
        if (n % FIND_PIECE == FIND_PIECE - 1 && !repl_work_at(work, (uint64_t)n * item)) {
            return false;
        }
        if (is_match(&finding->condition, element_number(tensor, offset, finding->complex))) {
            if (finding->all || finding->found < FIND_SHOWN) {
                report_element(call, finding, tensor, index, offset);
            }
            finding->found++;
        }
        for (int axis = tensor->shape.rank - 1; axis >= 0; axis--) {
            offset += tensor->stride[axis];
            if (++index[axis] < tensor->shape.dim[axis]) {
                break;
            }
            offset -= tensor->stride[axis] * tensor->shape.dim[axis];
            index[axis] = 0;
        }
    }
    return true;
}

static void report_total(struct command_call *call, const struct finding *finding,
                         const struct value *value)
{
    bool hides = !finding->all && finding->found > FIND_SHOWN;
    cJSON *record = out_record(call->out, "found");
    out_set(record, OUT_TEXT("name", value->label), OUT_INT("found", finding->found),
            OUT_INT("count", gd_tensor_count(value->tensor)),
            OUT_IF(value->step >= 0, OUT_INT("step", value->step)));
    out_say(call->out, record,
            "[  ... {more:n} more (-a shows all)\n]{found:n} of {count|element} in {title}\n",
            OUT_INT("more", hides ? finding->found - FIND_SHOWN : 0),
            OUT_TEXT("title", value_title(call, value)));
}

static int find_in(struct command_call *call, struct finding *finding, struct value *value,
                   struct gd_err *err)
{
    int rc = value_fetch(call, value, VALUE_ELEMENTS, err);
    if (rc == GD_OK && !value->has_stats) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "%s elements cannot be compared",
                     gd_dtype_name(value->dtype));
    }
    rc = rc != GD_OK ? rc : resolve_extreme(value, &finding->condition, err);
    if (rc != GD_OK) {
        return rc;
    }
    finding->complex = gd_dtype_is_complex(value->dtype);
    if (out_is_json(call->out)) {
        finding->list = out_list(out_record(call->out, "found"), "elements");
    }
    struct repl_work work;
    repl_work_begin(&work, call, inspect_printf(call, "searching %.100s", value->label),
                    gd_tensor_bytes(value->tensor));
    bool whole = walk_elements(call, finding, value->tensor, &work);
    rc = repl_work_end(&work, GD_OK, err);
    if (whole) {
        report_total(call, finding, value);
    }
    return rc;
}

/* The line is taken raw: `>` is a comparison, not a redirection. */
static int run_find(struct command_call *call, struct gd_err *err)
{
    struct finding finding = {0};
    const char *text = skip_blanks(call->line);
    if (strncmp(text, "-a ", 3) == 0) {
        finding.all = true;
        text = skip_blanks(text + 3);
    }
    int rc = parse_condition(&text, &finding.condition, err);
    if (rc != GD_OK) {
        return rc;
    }
    text = skip_blanks(text);
    if (strncmp(text, "in ", 3) == 0) {
        text = skip_blanks(text + 3);
    }
    struct value value;
    rc = value_parse(call, text[0] ? text : NULL, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = find_in(call, &finding, &value, err);
    value_deinit(&value);
    return rc;
}

const struct command cmd_find = {
    .name = "find",
    .group = "data",
    .usage = "find [-a] CONDITION [NODE[:SLOT][SLICE]|$N]",
    .summary = "List the elements that meet a condition",
    .help =
        "CONDITION is nonfinite, nan, inf, zero, nonzero, negative, min, max, or a comparison\n"
        "with a number (< <= > >= == !=) of the value, or of its magnitude after abs. The first\n"
        "20 are listed; -a lists all. If a slice is given, indices are relative to it.",
    .examples = "find nonfinite model/block0/attn/linear\n"
                "find max model/head/weight\n"
                "find abs > 1e3 model/head/weight[0]",
    .args = {ARG_WORD, ARG_TENSOR},
    .flags = CMD_RAW | CMD_REPEATS,
    .run = run_find,
};
