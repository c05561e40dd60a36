// SPDX-License-Identifier: GPL-3.0-or-later
/* tensors, find, save: tables of tensors, places in one, files from one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/graph/selector.h"
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

/* ---- tensors ------------------------------------------------------------------------------- */

#define TENSOR_ROWS 40 /* shown unless -a */

/* Names come last: they are long, and whole they can be copied. */
static const struct out_column plain_columns[] = {
    {"kind", "Kind", false}, {"dtype", "Type", false},  {"shape", "Shape", false},
    {"size", "Size", false}, {"name", "Tensor", false},
};
static const struct out_column stats_columns[] = {
    {"min", "Min", true}, {"max", "Max", true}, {"mean", "Mean", true},    {"std", "Std", true},
    {"nan", "NaN", true}, {"inf", "Inf", true}, {"name", "Tensor", false}, {"note", "", false},
};

static const char *slot_name(struct command_call *call, gd_node_id node, uint32_t slot)
{
    const char *name = gd_graph_name(call->session->graph, node);
    return inspect_name(call, inspect_printf(call, "%s:%s", name, inspect_slot(call, node, slot)));
}

struct tensor_rows {
    struct command_call *call;
    bool want_stats;
    struct out_table *table; /* one of the two */
    cJSON *records;
    uint64_t shown;
    uint64_t missing;      /* asked for, but without a value now */
    const char *first_why; /* what the first of those said */
};

static void plain_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot,
                      const struct gd_output *output)
{
    struct command_call *call = rows->call;
    struct gd_node_info info;
    size_t bytes = 0;
    bool sized = gd_shape_bytes(&output->shape, output->dtype, &bytes, NULL) == GD_OK;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return;
    }
    if (rows->records) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_text(call, item, "name", slot_name(call, node, slot));
        inspect_add_node(call, item, node);
        cJSON_AddNumberToObject(item, "slot", slot);
        cJSON_AddStringToObject(item, "dtype", gd_dtype_name(output->dtype));
        inspect_add_shape(item, "shape", &output->shape);
        if (sized) {
            inspect_add_count(item, "bytes", bytes);
        }
        cJSON_AddItemToArray(rows->records, item);
        return;
    }
    const char *cells[] = {gd_node_kind_name(info.kind), gd_dtype_name(output->dtype),
                           inspect_shape(call, &output->shape),
                           sized ? inspect_bytes(call, bytes) : "", slot_name(call, node, slot)};
    out_table_row(rows->table, cells);
}

/* NULL: the dump does not say. */
static const char *bad_cell(struct command_call *call, const struct gd_stats *s, unsigned bit,
                            uint64_t count)
{
    if (!(s->unknown & bit)) {
        return inspect_number(call, count);
    }
    return count > 0 ? inspect_printf(call, ">=%s", inspect_number(call, count)) : NULL;
}

static void stats_cells(struct tensor_rows *rows, const struct value *value)
{
    struct command_call *call = rows->call;
    const struct gd_stats *s = &value->stats;
    bool finite = s->count > s->nan + s->pos_inf + s->neg_inf;
    char age[VALUE_AGE];
    const char *cells[] = {
        finite ? inspect_printf(call, "%.4g", s->min) : NULL,
        finite ? inspect_printf(call, "%.4g", s->max) : NULL,
        finite ? inspect_printf(call, "%.4g", s->mean) : NULL,
        finite ? inspect_printf(call, "%.4g", s->std) : NULL,
        bad_cell(call, s, GD_UNKNOWN_NAN, s->nan),
        bad_cell(call, s, GD_UNKNOWN_INF, s->pos_inf + s->neg_inf),
        out_safe(call, value->label),
        value_age(call->session, value->step, age),
    };
    out_table_row(rows->table, cells);
}

/* Tensors without a value are counted; in records each says why. */
static int stats_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot)
{
    struct command_call *call = rows->call;
    struct gd_err err = {0};
    struct value value = {.step = -1,
                          .prev_step = -1,
                          .label = slot_name(call, node, slot),
                          .arg.ref = {.node = node, .slot = slot}};
    int rc = value_fetch(call, &value, VALUE_STATS, &err);
    if (rc == GD_EINTR) {
        return rc;
    }
    if (rows->records) {
        cJSON *item = cJSON_CreateObject();
        if (rc == GD_OK) {
            value_record(call, &value, NULL, item);
        } else {
            inspect_add_text(call, item, "name", value.label);
            inspect_add_text(call, item, "error", err.text);
        }
        cJSON_AddItemToArray(rows->records, item);
    } else if (rc == GD_OK) {
        stats_cells(rows, &value);
    } else if (rows->missing++ == 0) {
        rows->first_why = inspect_printf(call, "%s", out_safe(call, err.text));
    }
    value_deinit(&value);
    return GD_OK;
}

static int tensor_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot,
                      const struct gd_output *output)
{
    rows->shown++;
    if (rows->want_stats) {
        return stats_row(rows, node, slot);
    }
    plain_row(rows, node, slot, output);
    return GD_OK;
}

static void open_rows(struct tensor_rows *rows)
{
    struct command_call *call = rows->call;
    if (out_is_json(call->out)) {
        rows->records = cJSON_AddArrayToObject(out_record(call->out, "tensors"), "tensors");
    } else if (rows->want_stats) {
        rows->table = out_table_begin(call->out, "tensors", stats_columns,
                                      sizeof(stats_columns) / sizeof(stats_columns[0]));
    } else {
        rows->table = out_table_begin(call->out, "tensors", plain_columns,
                                      sizeof(plain_columns) / sizeof(plain_columns[0]));
    }
}

static void close_rows(struct tensor_rows *rows, uint64_t hidden)
{
    struct command_call *call = rows->call;
    if (rows->records) {
        inspect_add_count(out_record(call->out, "tensors"), "more", hidden);
        return;
    }
    out_table_end(rows->table);
    if (rows->missing == 1) {
        out_printf(call->out, "1 tensor has no value: %s\n", rows->first_why);
    } else if (rows->missing > 1) {
        out_printf(call->out, "%s have no value, the first: %s\n",
                   inspect_plural(call, rows->missing, "tensor"), rows->first_why);
    }
    if (hidden > 0) {
        out_printf(call->out, "... %s more (tensors -a)\n", inspect_number(call, hidden));
    } else if (rows->shown == 0) {
        out_printf(call->out, "No tensors.\n");
    }
}

static int show_tensors(struct command_call *call, const gd_node_id *nodes, size_t count,
                        bool want_stats, bool all)
{
    struct tensor_rows rows = {.call = call, .want_stats = want_stats};
    uint64_t hidden = 0;
    int rc = GD_OK;
    open_rows(&rows);
    for (size_t i = 0; i < count && rc == GD_OK; i++) {
        struct gd_output output;
        for (uint32_t slot = 0;
             rc == GD_OK && gd_graph_output(call->session->graph, nodes[i], slot, &output);
             slot++) {
            if (!all && rows.shown == TENSOR_ROWS) {
                hidden++;
            } else {
                rc = tensor_row(&rows, nodes[i], slot, &output);
            }
        }
    }
    close_rows(&rows, hidden);
    return rc;
}

static int run_tensors(struct command_call *call, struct gd_err *err)
{
    bool want_stats = inspect_take_flag(call, "-s");
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (want_stats && call->session->state == GD_RUNNING) { /* else each tensor would say it */
        return gd_fail(err, GD_ESTATE,
                       "the training is running: \"interrupt\" stops it, then tensors -s works");
    }
    struct gd_selector *selector = NULL;
    const char *text = call->argc ? inspect_join(call, 0, call->argc) : "all";
    rc = gd_selector_parse(text, &selector, err);
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (rc == GD_OK) {
        rc = gd_selector_resolve(selector, call->session->graph, &nodes, &count, err);
    }
    gd_selector_destroy(selector);
    if (rc != GD_OK) {
        return rc;
    }
    rc = show_tensors(call, nodes, count, want_stats, all);
    free(nodes);
    return rc == GD_EINTR ? gd_fail(err, rc, "interrupted") : rc;
}

/* ---- find ---------------------------------------------------------------------------------- */

#define FIND_SHOWN 20
#define FIND_PIECE (1 << 18) /* elements between two looks at Ctrl-C */

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

static const struct {
    const char *word;
    enum find_test test;
} find_words[] = {
    {"nonfinite", FIND_NONFINITE},
    {"nan", FIND_NAN},
    {"inf", FIND_INF},
    {"zero", FIND_ZERO},
    {"nonzero", FIND_NONZERO},
    {"negative", FIND_NEGATIVE},
    {"min", FIND_MIN},
    {"max", FIND_MAX},
};
static const struct {
    const char *sign;
    enum find_test test;
} find_signs[] = {
    {"<=", FIND_LE}, {">=", FIND_GE}, {"==", FIND_EQ},
    {"!=", FIND_NE}, {"<", FIND_LT},  {">", FIND_GT},
};

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* "[abs] <= 1e-3" at *text; moves *text behind it. */
static int parse_comparison(const char **text, struct find_condition *ret, struct gd_err *err)
{
    const char *p = *text;
    ret->absolute = strncmp(p, "abs", 3) == 0;
    p = skip_blanks(p + (ret->absolute ? 3 : 0));
    for (size_t i = 0; i < sizeof(find_signs) / sizeof(find_signs[0]); i++) {
        size_t len = strlen(find_signs[i].sign);
        if (strncmp(p, find_signs[i].sign, len) != 0) {
            continue;
        }
        p = skip_blanks(p + len);
        char *end = NULL;
        ret->test = find_signs[i].test;
        ret->limit = strtod(p, &end);
        if (end == p || (*end != '\0' && *end != ' ' && *end != '\t')) {
            return gd_fail(err, GD_EUSAGE, "a number must follow %s, not \"%.40s\"",
                           find_signs[i].sign, p);
        }
        *text = end;
        return GD_OK;
    }
    return gd_fail(err, GD_EUSAGE,
                   "what to find: nonfinite, nan, inf, zero, nonzero, negative, min, max, or a "
                   "comparison such as > 1e3 or abs < 1e-8");
}

static int parse_condition(const char **text, struct find_condition *ret, struct gd_err *err)
{
    const char *p = skip_blanks(*text);
    size_t len = strcspn(p, " \t");
    for (size_t i = 0; i < sizeof(find_words) / sizeof(find_words[0]); i++) {
        if (strlen(find_words[i].word) == len && memcmp(p, find_words[i].word, len) == 0) {
            ret->test = find_words[i].test;
            *text = p + len;
            return GD_OK;
        }
    }
    *text = p;
    return parse_comparison(text, ret, err);
}

static bool matches(const struct find_condition *condition, double x)
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
    case FIND_MAX: break; /* made FIND_EQ by resolve_extreme */
    }
    return false;
}

/* min and max are the elements equal to the smallest or largest finite one. */
static int resolve_extreme(const struct value *value, struct find_condition *condition,
                           struct gd_err *err)
{
    if (condition->test != FIND_MIN && condition->test != FIND_MAX) {
        return GD_OK;
    }
    if (!value->has_stats ||
        value->stats.count == value->stats.nan + value->stats.pos_inf + value->stats.neg_inf) {
        return gd_fail(err, GD_ENODATA, "there is no finite element");
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
        cJSON *item = cJSON_CreateObject();
        cJSON *place = cJSON_AddArrayToObject(item, "index");
        for (int i = 0; i < tensor->shape.rank; i++) {
            cJSON_AddItemToArray(place, cJSON_CreateNumber((double)index[i]));
        }
        cJSON_AddItemToObject(item, "value", value_element_record(tensor->dtype, p));
        cJSON_AddItemToArray(finding->list, item);
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

/* Walks the elements in C order, an odometer of indices beside the byte offset. false: it was
 * stopped. */
static bool walk(struct command_call *call, struct finding *finding, const struct gd_tensor *tensor,
                 struct repl_work *work)
{
    uint64_t item = gd_dtype_size(tensor->dtype);
    int64_t index[GD_MAX_RANK] = {0};
    int64_t offset = 0;
    int64_t count = gd_tensor_count(tensor);
    for (int64_t n = 0; n < count; n++) {
        if (n % FIND_PIECE == FIND_PIECE - 1 && !repl_work_at(work, (uint64_t)n * item)) {
            return false;
        }
        if (matches(&finding->condition, element_number(tensor, offset, finding->complex))) {
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
    int64_t count = gd_tensor_count(value->tensor);
    if (finding->list) {
        cJSON *record = out_record(call->out, "found");
        inspect_add_text(call, record, "name", value->label);
        inspect_add_count(record, "found", finding->found);
        inspect_add_count(record, "count", (uint64_t)count);
        if (value->step >= 0) {
            inspect_add_count(record, "step", (uint64_t)value->step);
        }
        return;
    }
    if (!finding->all && finding->found > FIND_SHOWN) {
        out_printf(call->out, "  ... %s more (-a shows all)\n",
                   inspect_number(call, finding->found - FIND_SHOWN));
    }
    out_printf(call->out, "%s of %s in %s\n", inspect_number(call, finding->found),
               inspect_plural(call, (uint64_t)count, "element"), value_title(call, value));
}

static int find_in(struct command_call *call, struct finding *finding, struct value *value,
                   struct gd_err *err)
{
    int rc = value_fetch(call, value, VALUE_ELEMENTS, err);
    if (rc == GD_OK && !value->has_stats) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "%s elements cannot be compared",
                     gd_dtype_name(value->dtype));
    }
    if (rc == GD_OK) {
        rc = resolve_extreme(value, &finding->condition, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    finding->complex = gd_dtype_is_complex(value->dtype);
    if (out_is_json(call->out)) {
        finding->list = cJSON_AddArrayToObject(out_record(call->out, "found"), "elements");
    }
    struct repl_work work;
    repl_work_begin(&work, call, inspect_printf(call, "searching %.100s", value->label),
                    gd_tensor_bytes(value->tensor));
    bool whole = walk(call, finding, value->tensor, &work);
    rc = repl_work_end(&work, GD_OK, err);
    if (whole) {
        report_total(call, finding, value);
    }
    return rc;
}

/* The line is taken as it stands: `>` is a comparison here, not a redirection. */
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

/* ---- save ---------------------------------------------------------------------------------- */

static const char *home_path(struct command_call *call, const char *path)
{
    const char *home = getenv("HOME");
    if (path[0] == '~' && path[1] == '/' && home) {
        return inspect_printf(call, "%s%s", home, path + 1);
    }
    return path;
}

/* The file of `save`, and what is left in front of it. A first word alone has none. */
static const char *take_file(struct command_call *call)
{
    const char *last = call->argc > 1 ? call->argv[call->argc - 1] : "";
    bool mode = strcmp(last, "prev") == 0 || strcmp(last, "diff") == 0;

    if (call->argc < 2 || (call->argc == 2 && mode)) {
        return NULL;
    }
    return home_path(call, call->argv[--call->argc]);
}

static int run_save(struct command_call *call, struct gd_err *err)
{
    bool force = inspect_take_flag(call, "-f");
    inspect_join_slices(call);
    const char *what = call->argc > 0 ? call->argv[0] : "";
    if (call->argc == 3 && strcmp(what, "overflow") == 0) {
        return cmd_save_overflow(call, call->argv[1], call->argv[2], err);
    }
    bool watchpoints = strcmp(what, "watchpoints") == 0;
    const char *path = take_file(call);
    if (call->argc == 1 && (watchpoints || strcmp(what, "breakpoints") == 0)) {
        path = path ? path : inspect_printf(call, "%s.gdb", what);
        return cmd_save_points(call, !watchpoints, path, force, err);
    }
    const char *last = call->argc > 1 ? call->argv[call->argc - 1] : "";
    bool previous = strcmp(last, "prev") == 0, difference = strcmp(last, "diff") == 0;
    call->argc -= previous || difference;
    path = path ? path : cmd_save_name(call, previous || difference ? last : "");
    return path ? cmd_save_tensors(call, path, previous, difference, force, err)
                : gd_fail(err, GD_ENOMEM, "out of memory");
}

const struct command cmd_data_table[] = {
    {
        .name = "tensors",
        .aliases = "lt",
        .group = "data",
        .usage = "tensors [SELECTOR] [-s] [-a]",
        .summary = "List tensors with type and shape, or with their statistics",
        .help = "  -s  fetch statistics of each, computed where the tensors live\n"
                "  -a  all of them, not only the first 40\n"
                "\n"
                "  tensors gradients -s\n"
                "  tensors Default/network/block0\n"
                "  tensors type:MatMul -s -a\n",
        .args = {ARG_SELECTOR},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = run_tensors,
    },
    {
        .name = "find",
        .group = "data",
        .usage = "find [-a] CONDITION [NODE[:SLOT][SLICE]|$N]",
        .summary = "List the indices of elements that meet a condition",
        .help = "CONDITION is nonfinite, nan, inf, zero, nonzero, negative, min, max, or a\n"
                "comparison with a number: < <= > >= == !=, of the value or, with abs in\n"
                "front, of its magnitude. The first 20 are listed; -a lists all. Indices\n"
                "are those of the slice, where one is given.\n"
                "\n"
                "  find nonfinite attn/MatMul-op4\n"
                "  find max head.weight\n"
                "  find abs > 1e3 head.weight[0]\n",
        .args = {ARG_WORD, ARG_TENSOR},
        .flags = CMD_RAW | CMD_REPEATS,
        .run = run_find,
    },
    {
        .name = "save",
        .group = "data",
        .usage = "save [-f] [NODE[:SLOT][SLICE]|$N [prev|diff]] [FILE.npy] | save [-f] SELECTOR "
                 "FILE.npz|FILE.safetensors | save [-f] watchpoints|breakpoints [FILE] | save "
                 "overflow N DIR",
        .summary = "Save tensors to a .npy, .npz or safetensors file, or watchpoints as commands",
        .help =
            "The end of the file's name says what it becomes: an .npz or a .safetensors file\n"
            "holds as many tensors as you like, those of a selector (\"help selectors\"), under\n"
            "the names of their nodes. Anything else is one tensor for numpy.load. numpy has\n"
            "no bfloat16: its 16 bits are saved. Without FILE it is called after the tensor;\n"
            "without a tensor it is the current node. A file that exists is replaced after a\n"
            "question; in scripts and with --json only with -f or after \"set confirm off\".\n"
            "\n"
            "save watchpoints writes the commands that set them again, with ignore counts,\n"
            "bodies and excluded nodes, for \"source\"; save breakpoints writes both kinds.\n"
            "save overflow writes the call of an overflow (\"info overflows\") to a new folder\n"
            "where the training runs.\n"
            "\n"
            "  save watchpoints watch.gdb\n"
            "  save head.weight w.npy\n"
            "  save weights except *bias weights.safetensors\n"
            "  save $3[0] first-row.npy\n",
        .args = {ARG_TENSOR, ARG_FILE},
        .run = run_save,
    },
    {.name = NULL},
};
