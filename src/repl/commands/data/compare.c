// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: compare */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "repl/commands/data/compare.h"
#include "repl/compare/compare_files.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_ROWS 1000
#define ROWS     10

static int compare_tensors(struct command_call *call, const struct compare_sides *sides,
                           const struct compare_rule *rule, struct gd_err *err)
{
    struct compare_differing *worst = malloc((size_t)rule->rows * sizeof(*worst) + 1);
    struct gd_stats a, b;
    struct repl_work work;
    struct compare_tally tally;
    size_t count;
    int rc = worst ? repl_stats_compute(call, "statistics of the first", sides->a, NULL, &a, err)
                   : gd_fail(err, GD_ENOMEM, "out of memory for a comparison");

    if (rc == GD_OK) {
        rc = repl_stats_compute(call, "statistics of the second", sides->b, NULL, &b, err);
    }
    if (rc == GD_OK) {
        repl_work_begin(&work, call, inspect_printf(call, "comparing %.100s", sides->a_label),
                        2 * gd_tensor_bytes(sides->a));
        compare_elements(sides, rule, &work, &tally, worst, &count);
        rc = repl_work_end(&work, GD_OK, err);
    }
    if (rc == GD_OK) {
        compare_show(call, sides, rule, &tally, worst, count, &a, &b);
    }
    free(worst);
    return rc;
}

static int fetch_side(struct command_call *call, const char *text, enum value_which which,
                      struct value *value, struct gd_tensor **ret, struct gd_err *err)
{
    int rc = value_parse(call, text, value, err);

    if (rc == GD_OK) {
        value->which = which;
        rc = value_fetch(call, value, VALUE_ELEMENTS, err);
    }
    return rc == GD_OK ? gd_tensor_contiguous(value->tensor, ret, err) : rc;
}

static int check_sides(const struct compare_sides *sides, struct gd_err *err)
{
    char a[256], b[256];

    if (gd_tensor_is_alike(sides->a, sides->b)) {
        return gd_tensor_count(sides->a) > 0
                   ? GD_OK
                   : gd_fail(err, GD_ENODATA, "%.120s has no elements: nothing to compare",
                             sides->a_label);
    }
    return gd_fail(err, GD_EINVAL,
                   "cannot compare %.120s (%s %s) with %.120s (%s %s): types and shapes must match",
                   sides->a_label, gd_dtype_name(sides->a->dtype),
                   gd_shape_text(&sides->a->shape, a, sizeof(a)), sides->b_label,
                   gd_dtype_name(sides->b->dtype), gd_shape_text(&sides->b->shape, b, sizeof(b)));
}

/* second NULL: the value of the previous step. */
static int compare_two(struct command_call *call, const char *first, const char *second,
                       const struct compare_rule *rule, struct gd_err *err)
{
    struct value a = {.step = -1}, b = {.step = -1};
    struct compare_sides sides = {
        .a_title = "Current", .b_title = "Previous", .a_key = "current", .b_key = "previous"};
    int rc;

    if (second) {
        sides.a_title = "First";
        sides.b_title = "Second";
        sides.a_key = "first";
        sides.b_key = "second";
        sides.a_first = true;
    }
    rc = fetch_side(call, second ? second : first, second ? VALUE_CURRENT : VALUE_PREVIOUS, &b,
                    &sides.b, err);
    rc = rc != GD_OK ? rc : fetch_side(call, first, VALUE_CURRENT, &a, &sides.a, err);
    if (rc == GD_OK) {
        sides.a_label = a.label;
        sides.b_label = b.label;
        sides.a_step = a.step;
        sides.b_step = b.step;
        rc = check_sides(&sides, err);
    }
    rc = rc != GD_OK ? rc : compare_tensors(call, &sides, rule, err);
    gd_tensor_unref(sides.a);
    gd_tensor_unref(sides.b);
    value_deinit(&a);
    value_deinit(&b);
    return rc;
}

static bool parse_number(const char *text, double *ret)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end != '\0') {
        return false;
    }
    *ret = value;
    return true;
}

/* Takes "rtol=1e-5", "atol=1e-8" and the like out of call->argv. */
static int take_rule(struct command_call *call, struct compare_rule *rule, struct gd_err *err)
{
    int kept = 0;

    for (int i = 0; i < call->argc; i++) {
        const char *word = call->argv[i];
        double *to = strncmp(word, "rtol=", 5) == 0   ? &rule->rtol
                     : strncmp(word, "atol=", 5) == 0 ? &rule->atol
                                                      : NULL;

        if (!to) {
            call->argv[kept++] = call->argv[i];
            continue;
        }
        if (!rule->close) { /* the other one defaults to 0 */
            *to = 0;
        }
        rule->close = true;
        if (!parse_number(word + 5, to) || !(*to >= 0) || isinf(*to)) {
            return gd_fail(err, GD_EINVAL, "\"%.80s\": a tolerance must be a number, 0 or more",
                           word);
        }
    }
    call->argc = kept;
    return GD_OK;
}

/* The second word is a tolerance unless it names a tensor. */
static int run_compare(struct command_call *call, struct gd_err *err)
{
    struct compare_rule rule = {.rows = ROWS};
    const char *second = NULL;

    if (call->argc > 1 && strcmp(call->argv[0], "loss") == 0) {
        return compare_loss(call, err);
    }
    if (compare_is_of_files(call)) {
        return compare_files(call, err);
    }
    int rc = inspect_take_count(call, "-n", 0, MAX_ROWS, &rule.rows, err);

    rule.equal_nan = inspect_take_flag(call, "-equal-nan");
    rc = rc != GD_OK ? rc : take_rule(call, &rule, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    inspect_join_slices(call);
    if (rc == GD_OK && call->argc > 2) {
        rc = gd_fail(err, GD_EUSAGE, "compare: specify two tensors, or one and a tolerance");
    }
    if (rc == GD_OK && call->argc < 1) {
        rc = gd_fail(err, GD_EUSAGE, "compare: specify a tensor");
    }
    if (rc == GD_OK && call->argc == 2 && !parse_number(call->argv[1], &rule.tolerance)) {
        second = call->argv[1];
    }
    if (rc == GD_OK && !(rule.tolerance >= 0 && rule.tolerance <= 1)) {
        rc = gd_fail(err, GD_EINVAL,
                     "a tolerance is a fraction of the largest change, from 0 to 1, not %s",
                     call->argv[1]);
    }
    if (rc == GD_OK && rule.close && call->argc == 2 && !second) {
        rc = gd_fail(err, GD_EUSAGE, "compare: specify either a tolerance or rtol and atol");
    }
    if (rc == GD_OK && second && !rule.close) {
        rule.close = true; /* numpy's defaults */
        rule.rtol = 1e-5;
        rule.atol = 1e-8;
    }
    return rc == GD_OK ? compare_two(call, call->argv[0], second, &rule, err) : rc;
}

const struct command cmd_compare = {
    .name = "compare",
    .group = "data",
    .usage = "compare TENSOR [TOLERANCE | OTHER] [rtol=X] [atol=X] [-equal-nan] [-n ROWS]\n"
             "compare A B [--as VIEW] [--map FILE] [--profile cross|strict|numpy]",
    .summary = "Compare tensors, checkpoints, directories, dumps or runs",
    .help =
        "With one tensor, compare it with its value of the previous step. Changes up to\n"
        "TOLERANCE (0 to 1) of the largest change count as none; the default is 0.\n"
        "With two tensors, or with rtol= or atol=, elements differ when\n"
        "|a - b| > atol + rtol * |b|; the defaults for two tensors are rtol=1e-5 and\n"
        "atol=1e-8. NaN differs from everything, or with -equal-nan, from everything but NaN.\n"
        "The elements that differ most are shown: 10, or -n ROWS. Slices and printed values\n"
        "($1) can be compared too.\n"
        "\n"
        "A and B can also be tensor files (.npy, .npz, .safetensors, .pt, .pth, .ckpt), one\n"
        "tensor in a file (FILE:NAME), directories of such files, dumps, or sessions (@1, @2: a\n"
        "dump or a stopped training). B is the reference. Tensors are matched by the map given\n"
        "with --map, by name, by the rules between PyTorch and MindSpore, by values, and by\n"
        "order and shape; --match name|rules|values|order says which is the last method to\n"
        "try. Each pair has a verdict: SAME, PASS (all close), WARN (99.9 % close), FAIL,\n"
        "NONFINITE, SHAPE, MISSING-A, MISSING-B, UNREADABLE. Tolerances depend on the data\n"
        "types and on --profile cross (default; frameworks and devices may differ), strict or\n"
        "numpy; rtol= and atol= override them, --tol PATTERN=RTOL,ATOL for matching names.\n"
        "--as troubleshooter, msprobe or allclose shows the columns of those tools, computed as\n"
        "they do. More options: --only-differing, --limit N, --sort worst|name|order,\n"
        "--on PATTERN, --step N, --steps OF-A,OF-B, --rank N, --csv FILE. `compare @1 prev` (or\n"
        "@1:prev) compares a session or dump with its previous step; a live training needs\n"
        "`set keep-previous`.\n"
        "For two tensors, the elements that differ most are listed too, unless --limit is\n"
        "given. gradb --batch exits with status 6 when something differs.\n"
        "\n"
        "`compare loss LOG [LOG]` compares the losses that training scripts printed: lines with\n"
        "a number after \"loss\" (or the word given by --tag), matched by step, or by epoch and\n"
        "step, when these are printed; overflows are compared too. It also reads the lines of\n"
        "MindSpore's LossMonitor.",
    .examples = "compare model/head/bias\n"
                "compare model/head/bias 0.1\n"
                "compare model/head/bias[:4] rtol=1e-3\n"
                "compare model/head/bias[:2] $1\n"
                "compare $1 $2 rtol=0 atol=1e-6 -n 3\n"
                "compare torch.pth mindspore.ckpt\n"
                "compare @1 prev --csv step.csv\n"
                "compare loss gpu.log npu.log rtol=1e-2\n"
                "compare gpu_dump/ npu_dump/ --as msprobe --csv result.csv\n"
                "compare @1 reference.safetensors --on fc1 --profile strict",
    .args = {ARG_SIDE},
    .run = run_compare,
};
