// SPDX-License-Identifier: MIT
/*
 * Metrics as expressions, "update s += sum(abs(outputs - labels)), n += count(labels) result s /
 * n":
 *
 *   updates = NAME "+=" compare { "," NAME "+=" compare }
 *   compare = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]          1 or 0
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/") unary }
 *   unary   = ["-"] atom
 *   atom    = NUMBER | "outputs" | "labels" | NAME | "(" compare ")" | FUNCTION "(" compare ")"
 *
 * In an update, outputs and labels are tensors, element by element; FUNCTION is abs, sqrt, log, exp
 * or square, and sum, mean, count, min or max, which make a number of a tensor. argmax(outputs) and
 * argmax(labels) have one element per sample. In the result, NAME is what an update has summed.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_impl.h"

#define MAX_NODES 256
#define MAX_DEPTH 64
#define MAX_SUMS  8
#define NAME      32

enum op {
    OP_NUMBER,
    OP_OUTPUTS,
    OP_LABELS,
    OP_SUM_OF, /* leaves */
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_NEGATE,
    OP_ABS,
    OP_SQRT,
    OP_LOG,
    OP_EXP,
    OP_SQUARE,
    OP_SUM,
    OP_MEAN,
    OP_COUNT,
    OP_MIN,
    OP_MAX,
    OP_ARGMAX
};

struct node {
    enum op op;
    double number;
    int sum;         /* of OP_SUM_OF */
    int left, right; /* -1: none */
};

struct metric_program {
    struct node node[MAX_NODES];
    int count;
    char name[MAX_SUMS][NAME];
    int update[MAX_SUMS];
    double sum[MAX_SUMS];
    int sums, result;
};

struct vector { /* `of` is malloc'd; alone: a number, which fits anything */
    double *of;
    int64_t count;
    bool alone;
};

/* ---- parsing --------------------------------------------------------------------------------- */

struct parser {
    struct metric_program *program;
    const char *text, *at;
    bool in_result;
    int depth;
    struct gd_err *err;
};

static int fail_at(struct parser *p, const char *what)
{
    gd_fail(p->err, GD_EINVAL, "%s at '%.40s' in '%.200s'", what, *p->at ? p->at : "the end",
            p->text);
    return -1;
}

static bool take_word(struct parser *p, const char *word)
{
    p->at += strspn(p->at, " \t");
    size_t len = strlen(word);
    if (strncmp(p->at, word, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

static int new_node(struct parser *p, enum op op, int left, int right)
{
    struct metric_program *program = p->program;
    if (program->count == MAX_NODES) {
        return fail_at(p, "the expression is too long");
    }
    program->node[program->count] = (struct node){.op = op, .left = left, .right = right};
    return program->count++;
}

static int parse_compare(struct parser *p);

static int parse_call(struct parser *p, const char *name)
{
    static const struct {
        const char *name;
        enum op op;
    } functions[] = {{"abs", OP_ABS}, {"sqrt", OP_SQRT},     {"log", OP_LOG},      {"exp", OP_EXP},
                     {"sum", OP_SUM}, {"mean", OP_MEAN},     {"count", OP_COUNT},  {"min", OP_MIN},
                     {"max", OP_MAX}, {"argmax", OP_ARGMAX}, {"square", OP_SQUARE}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, name) == 0) {
            int inside = parse_compare(p);
            if (inside < 0) {
                return -1;
            }
            enum op op = p->program->node[inside].op;
            if (functions[i].op == OP_ARGMAX && op != OP_OUTPUTS && op != OP_LABELS) {
                return fail_at(p, "argmax takes outputs or labels");
            }
            return take_word(p, ")") ? new_node(p, functions[i].op, inside, -1)
                                     : fail_at(p, "a ) is missing");
        }
    }
    return fail_at(p,
                   "the functions are abs, sqrt, square, log, exp, sum, mean, count, min, max and "
                   "argmax: no such function");
}

static int parse_name(struct parser *p)
{
    char name[NAME] = "";
    size_t len = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (len + 1 == sizeof(name)) {
            return fail_at(p, "the name is too long");
        }
        name[len++] = *p->at++;
    }
    if (take_word(p, "(")) {
        return parse_call(p, name);
    }
    if (!p->in_result && strcmp(name, "outputs") == 0) {
        return new_node(p, OP_OUTPUTS, -1, -1);
    }
    if (!p->in_result && strcmp(name, "labels") == 0) {
        return new_node(p, OP_LABELS, -1, -1);
    }
    for (int i = 0; p->in_result && i < p->program->sums; i++) {
        if (strcmp(p->program->name[i], name) == 0) {
            int made = new_node(p, OP_SUM_OF, -1, -1);
            if (made >= 0) {
                p->program->node[made].sum = i;
            }
            return made;
        }
    }
    return fail_at(p, p->in_result ? "the result is made of the sums of the update: unknown name"
                                   : "an update is made of outputs and labels: unknown name");
}

static int parse_atom(struct parser *p)
{
    char *end;
    if (take_word(p, "(")) {
        int inside = parse_compare(p);
        return inside < 0 || take_word(p, ")") ? inside : fail_at(p, "a ) is missing");
    }
    if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        return parse_name(p);
    }
    double number = isdigit((unsigned char)*p->at) || *p->at == '.' ? strtod(p->at, &end) : NAN;
    if (isnan(number) || end == p->at) {
        return fail_at(p, "a number or a name is missing");
    }
    p->at = end;
    int made = new_node(p, OP_NUMBER, -1, -1);
    if (made >= 0) {
        p->program->node[made].number = number;
    }
    return made;
}

static int parse_unary(struct parser *p)
{
    if (take_word(p, "-")) {
        int inside = parse_atom(p);
        return inside < 0 ? inside : new_node(p, OP_NEGATE, inside, -1);
    }
    return parse_atom(p);
}

static int parse_product(struct parser *p)
{
    int left = parse_unary(p);
    while (left >= 0) {
        enum op op = take_word(p, "*") ? OP_MULTIPLY : take_word(p, "/") ? OP_DIVIDE : OP_NUMBER;
        if (op == OP_NUMBER) {
            break;
        }
        int right = parse_unary(p);
        left = right < 0 ? -1 : new_node(p, op, left, right);
    }
    return left;
}

static int parse_sum(struct parser *p)
{
    int left = parse_product(p);
    while (left >= 0) {
        enum op op = take_word(p, "+") ? OP_ADD : take_word(p, "-") ? OP_SUBTRACT : OP_NUMBER;
        if (op == OP_NUMBER) {
            break;
        }
        int right = parse_product(p);
        left = right < 0 ? -1 : new_node(p, op, left, right);
    }
    return left;
}

static int parse_compare(struct parser *p)
{
    if (++p->depth > MAX_DEPTH) {
        return fail_at(p, "too many levels");
    }
    int left = parse_sum(p);
    enum op op = take_word(p, "<=")   ? OP_LE
                 : take_word(p, ">=") ? OP_GE
                 : take_word(p, "==") ? OP_EQ
                 : take_word(p, "!=") ? OP_NE
                 : take_word(p, "<")  ? OP_LT
                 : take_word(p, ">")  ? OP_GT
                                      : OP_NUMBER;
    if (left >= 0 && op != OP_NUMBER) {
        int right = parse_sum(p);
        left = right < 0 ? -1 : new_node(p, op, left, right);
    }
    p->depth--;
    return left;
}

static int parse_update(struct parser *p)
{
    struct metric_program *program = p->program;
    size_t len = 0;
    p->at += strspn(p->at, " \t");
    if (program->sums == MAX_SUMS) {
        return fail_at(p, "too many sums");
    }
    char *name = program->name[program->sums];
    while ((isalnum((unsigned char)*p->at) || *p->at == '_') && len + 1 < NAME) {
        name[len++] = *p->at++;
    }
    name[len] = '\0';
    if (!isalpha((unsigned char)name[0]) || !take_word(p, "+=")) {
        return fail_at(p, "an update is NAME += EXPR: it is wrong");
    }
    program->update[program->sums] = parse_compare(p);
    return program->update[program->sums++];
}

static int is_over(struct parser *p, int made)
{
    p->at += strspn(p->at, " \t");
    return made >= 0 && *p->at ? fail_at(p, "this does not belong to the expression") : made;
}

int metric_program_create(const struct gd_metric_spec *spec, struct metric_program **ret,
                          struct gd_err *err)
{
    struct metric_program *program = calloc(1, sizeof(*program));
    struct parser p = {program, spec->update, spec->update, false, 0, err};
    if (!program) {
        return gd_fail_nomem(err);
    }
    int made = parse_update(&p);
    while (made >= 0 && take_word(&p, ",")) {
        made = parse_update(&p);
    }
    made = is_over(&p, made);
    if (made >= 0) {
        p = (struct parser){program, spec->result, spec->result, true, 0, err};
        made = program->result = is_over(&p, parse_compare(&p));
    }
    if (made < 0) {
        free(program);
        return GD_EINVAL;
    }
    *ret = program;
    return GD_OK;
}

void metric_program_destroy(struct metric_program *program)
{
    free(program);
}

void metric_program_clear(struct metric_program *program)
{
    memset(program->sum, 0, sizeof(program->sum));
}

size_t metric_program_sums(struct metric_program *program, double **ret)
{
    *ret = program->sum;
    return (size_t)program->sums;
}

/* ---- evaluating ------------------------------------------------------------------------------ */

struct run {
    const struct metric_program *program;
    const struct gd_tensor *outputs, *labels; /* NULL: the result is computed */
    struct gd_err *err;
};

static bool make_vector(int64_t count, bool alone, struct vector *ret)
{
    *ret = (struct vector){.count = count, .alone = alone};
    ret->of = malloc((size_t)(count > 0 ? count : 1) * sizeof(*ret->of));
    return ret->of != NULL;
}

static double apply_one(enum op op, double x)
{
    switch (op) {
    case OP_NEGATE: return -x;
    case OP_ABS: return fabs(x);
    case OP_SQRT: return sqrt(x);
    case OP_LOG: return log(x);
    case OP_SQUARE: return x * x;
    default: return exp(x);
    }
}

static double apply_two(enum op op, double a, double b)
{
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUBTRACT: return a - b;
    case OP_MULTIPLY: return a * b;
    case OP_DIVIDE: return a / b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_EQ: return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
    default: return a < b || a > b || isnan(a) || isnan(b);
    }
}

static double reduce_vector(enum op op, const struct vector *v)
{
    double sum = 0, least = NAN, most = NAN;
    for (int64_t i = 0; i < v->count; i++) {
        sum += v->of[i];
        least = isnan(least) || v->of[i] < least ? v->of[i] : least;
        most = isnan(most) || v->of[i] > most ? v->of[i] : most;
    }
    switch (op) {
    case OP_SUM: return sum;
    case OP_MEAN: return sum / (double)v->count;
    case OP_COUNT: return (double)v->count;
    case OP_MIN: return least;
    default: return most;
    }
}

/* One class per sample, over axis 1. */
static int evaluate_argmax(const struct run *run, const struct gd_tensor *tensor,
                           struct vector *ret)
{
    struct metric_batch b = {.outputs = tensor, .axis = tensor->shape.rank > 1 ? 1 : 0};
    if (tensor->shape.rank == 0 || tensor->shape.dim[b.axis] == 0) {
        return gd_fail(run->err, GD_EINVAL, "argmax needs an axis of classes");
    }
    b.classes = tensor->shape.dim[b.axis];
    b.samples = gd_tensor_count(tensor) / b.classes;
    if (!make_vector(b.samples, false, ret)) {
        return gd_fail_nomem(run->err);
    }
    for (int64_t i = 0; i < b.samples; i++) {
        bool nan;
        ret->of[i] = (double)metric_predicted(&b, i, &nan);
    }
    return GD_OK;
}

static int evaluate_leaf(const struct run *run, const struct node *node, struct vector *ret)
{
    const struct gd_tensor *tensor = node->op == OP_OUTPUTS  ? run->outputs
                                     : node->op == OP_LABELS ? run->labels
                                                             : NULL;
    if (!make_vector(tensor ? gd_tensor_count(tensor) : 1, !tensor, ret)) {
        return gd_fail_nomem(run->err);
    }
    ret->of[0] = node->op == OP_SUM_OF ? run->program->sum[node->sum] : node->number;
    for (int64_t i = 0; tensor && i < ret->count; i++) {
        ret->of[i] = gd_tensor_get(tensor, i);
    }
    return GD_OK;
}

static int evaluate_node(const struct run *run, int at, struct vector *ret);

static int evaluate_two(const struct run *run, const struct node *node, struct vector *ret)
{
    struct vector a = {NULL, 0, false}, b = {NULL, 0, false};
    int rc = evaluate_node(run, node->left, &a);
    rc = rc != GD_OK ? rc : evaluate_node(run, node->right, &b);
    if (rc == GD_OK && !a.alone && !b.alone && a.count != b.count) {
        rc = gd_fail(run->err, GD_EINVAL, "an expression combines %lld elements with %lld",
                     (long long)a.count, (long long)b.count);
    }
    bool alone = a.alone && b.alone;
    if (rc == GD_OK && !make_vector(a.alone ? b.count : a.count, alone, ret)) {
        rc = gd_fail_nomem(run->err);
    }
    for (int64_t i = 0; rc == GD_OK && i < ret->count; i++) {
        ret->of[i] = apply_two(node->op, a.of[a.alone ? 0 : i], b.of[b.alone ? 0 : i]);
    }
    free(a.of);
    free(b.of);
    return rc;
}

static int evaluate_node(const struct run *run, int at, struct vector *ret)
{
    const struct node *node = &run->program->node[at];
    if (node->op <= OP_SUM_OF) {
        return evaluate_leaf(run, node, ret);
    }
    if (node->op == OP_ARGMAX) {
        bool outputs = run->program->node[node->left].op == OP_OUTPUTS;
        return evaluate_argmax(run, outputs ? run->outputs : run->labels, ret);
    }
    if (node->right >= 0) {
        return evaluate_two(run, node, ret);
    }
    int rc = evaluate_node(run, node->left, ret);
    if (rc == GD_OK && node->op >= OP_SUM) {
        ret->of[0] = reduce_vector(node->op, ret);
        ret->count = 1;
        ret->alone = true;
    }
    for (int64_t i = 0; rc == GD_OK && node->op < OP_SUM && i < ret->count; i++) {
        ret->of[i] = apply_one(node->op, ret->of[i]);
    }
    return rc;
}

int metric_program_update(struct metric_program *program, const struct gd_tensor *outputs,
                          const struct gd_tensor *labels, struct gd_err *err)
{
    struct run run = {program, outputs, labels, err};
    double more[MAX_SUMS];
    for (int i = 0; i < program->sums; i++) {
        struct vector v = {NULL, 0, false};
        int rc = evaluate_node(&run, program->update[i], &v);
        if (rc == GD_OK && !v.alone) {
            rc = gd_fail(err, GD_EINVAL, "%s += needs a number: put sum(...) around its expression",
                         program->name[i]);
        }
        more[i] = rc == GD_OK ? v.of[0] : 0;
        free(v.of);
        if (rc != GD_OK) {
            return rc;
        }
    }
    for (int i = 0; i < program->sums; i++) {
        program->sum[i] += more[i];
    }
    return GD_OK;
}

double metric_program_result(const struct metric_program *program)
{
    struct run run = {program, NULL, NULL, NULL};
    struct vector v = {NULL, 0, false};
    double result = evaluate_node(&run, program->result, &v) == GD_OK ? v.of[0] : NAN;
    free(v.of);
    return result;
}
