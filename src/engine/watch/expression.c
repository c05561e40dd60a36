// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An expression is kept as a program for a stack: operands first, the operator after them. So
 * evaluating needs neither recursion nor memory, and "a or b or c" is easy to recognize.
 */
#include "engine/watch/expression_impl.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/grow.h"
#include "engine/graph/similar.h"
#include "engine/session.h"

#define TEXT_MAX     4096
#define NAME_LONGEST 63 /* of a metric */

struct parser {
    struct gd_cursor in; /* without trailing blanks */
    int level;           /* nesting depth */
    int waiting;
    struct gd_expr *expr;
    struct gd_err *err;
};

static int parse_or(struct parser *parser);

/* ---- faults -------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int fail_at(const struct parser *parser, size_t at,
                                                         const char *format, ...)
{
    char what[300];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    gd_fail(parser->err, GD_EINVAL, "expression '%.*s%s', column %zu: %s",
            (int)(parser->in.len < 120 ? parser->in.len : 120), parser->in.text,
            parser->in.len > 120 ? "..." : "", at + 1, what);
    if (parser->err) {
        parser->err->offset = at;
    }
    return GD_EINVAL;
}

/* ---- words --------------------------------------------------------------------------------- */

/* A sign, or a whole word. */
static bool take_sign(struct parser *parser, const char *sign)
{
    return sign[0] >= 'a' && sign[0] <= 'z' ? gd_cursor_take_identifier(&parser->in, sign)
                                            : gd_cursor_take(&parser->in, sign);
}

static char peek_char(struct parser *parser)
{
    return gd_cursor_peek(&parser->in);
}

/* ---- the program --------------------------------------------------------------------------- */

static int emit_op(struct parser *parser, struct op op)
{
    struct gd_expr *expr = parser->expr;
    int operands = op.code >= OP_ADD ? 2 : op.code >= OP_NEGATE ? 1 : 0;

    /* -1 is a number, not an operation: comparisons with it are simple ones. */
    if (op.code == OP_NEGATE && expr->op[expr->count - 1].code == OP_NUMBER) {
        expr->op[expr->count - 1].number = -expr->op[expr->count - 1].number;
        return GD_OK;
    }
    parser->waiting += 1 - operands;
    if (parser->waiting > DEPTH_MAX) {
        return fail_at(parser, parser->in.at, "this is nested more than %d levels deep", DEPTH_MAX);
    }
    if (!gd_grow_list(&expr->op, expr->count, &expr->cap, sizeof(*expr->op))) {
        return gd_fail_nomem(parser->err);
    }
    expr->op[expr->count++] = op;
    return GD_OK;
}

static int emit_code(struct parser *parser, enum code code)
{
    return emit_op(parser, (struct op){.code = code});
}

static int emit_name(struct parser *parser, const char *name, size_t len)
{
    char *copy = strndup(name, len);
    if (!copy) {
        return gd_fail_nomem(parser->err);
    }
    int rc = emit_op(parser, (struct op){.code = OP_NAMED, .name = copy});
    if (rc != GD_OK) {
        free(copy);
    }
    return rc;
}

/* ---- atoms --------------------------------------------------------------------------------- */

static int enter_level(struct parser *parser)
{
    if (++parser->level > DEPTH_MAX) {
        return fail_at(parser, parser->in.at, "this is nested more than %d levels deep", DEPTH_MAX);
    }
    return GD_OK;
}

static int close_paren(struct parser *parser, size_t open)
{
    if (take_sign(parser, ")")) {
        return GD_OK;
    }
    return fail_at(parser, open, "this \"(\" is not closed%s",
                   parser->in.at < parser->in.len ? " before what follows" : "");
}

static int parse_number(struct parser *parser)
{
    struct op op = {.code = OP_NUMBER};
    const char *what = gd_cursor_take_number(&parser->in, &op.number);

    return what ? fail_at(parser, parser->in.at, "%s", what) : emit_op(parser, op);
}

/* "(cur)", "(prev)" or "(cur-prev)"; NULL: none of them comes next. */
static const char *take_of(struct parser *parser)
{
    struct gd_cursor before = parser->in;
    const char *of = NULL;

    if (take_sign(parser, "(")) {
        if (take_sign(parser, "prev")) {
            of = "prev";
        } else if (take_sign(parser, "cur")) {
            of = !take_sign(parser, "-") ? "cur" : take_sign(parser, "prev") ? "cur-prev" : NULL;
        }
    }
    if (of && take_sign(parser, ")")) {
        return of;
    }
    parser->in = before;
    return NULL;
}

static int unknown_of(const struct parser *parser, size_t at, const char *name, const char *of)
{
    char all[200] = "";
    size_t len = 0;

    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        const char *known = gd_statistic_name((enum gd_statistic)i);
        if (strchr(known, '(') && len < sizeof(all)) {
            len += (size_t)snprintf(all + len, sizeof(all) - len, " %s", known);
        }
    }
    return fail_at(parser, at, "there is no %s(%s); compared with the previous step there are%s",
                   name, of, all);
}

static int emit_figure(struct parser *parser, size_t at, enum gd_statistic figure)
{
    if (gd_statistic_needs(figure) & GD_NEED_RANGE) {
        return fail_at(
            parser, at,
            "%s needs a range, which an expression does not have: watch TR, AR or FC for it",
            gd_statistic_name(figure));
    }
    return emit_op(parser, (struct op){.code = OP_FIGURE, .figure = figure});
}

static int unknown_word(const struct parser *parser, size_t at, const char *word)
{
    const char *nearest = NULL;

    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL && !nearest; i++) {
        if (gd_similar_slip(word, gd_statistic_name((enum gd_statistic)i))) {
            nearest = gd_statistic_name((enum gd_statistic)i);
        }
    }
    if (!nearest) {
        return GD_OK;
    }
    return fail_at(parser, at,
                   "there is no statistic \"%s\"; did you mean \"%s\"? Put a metric of that name "
                   "in double quotes",
                   word, nearest);
}

static int parse_arguments(struct parser *parser, enum code code)
{
    size_t open = parser->in.at;
    int rc = enter_level(parser);

    if (rc == GD_OK && take_sign(parser, "(")) {
        rc = parse_or(parser);
    }
    if (rc == GD_OK && code >= OP_ADD) {
        rc = take_sign(parser, ",")
                 ? parse_or(parser)
                 : fail_at(parser, parser->in.at, "min and max take two numbers: min(a, b)");
    }
    if (rc == GD_OK) {
        rc = close_paren(parser, open);
    }
    parser->level--;
    return rc != GD_OK ? rc : emit_code(parser, code);
}

static bool find_function(const char *word, enum code *ret)
{
    static const struct {
        const char *name;
        enum code code;
    } functions[] = {{"abs", OP_ABS}, {"sqrt", OP_SQRT}, {"log", OP_LOG}, {"log10", OP_LOG10},
                     {"exp", OP_EXP}, {"min", OP_MIN},   {"max", OP_MAX}};

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        if (strcmp(functions[i].name, word) == 0) {
            *ret = functions[i].code;
            return true;
        }
    }
    return false;
}

static bool is_keyword(const char *word)
{
    static const char *const keywords[] = {"cur", "prev", "or", "and", "not"};

    for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
        if (strcmp(keywords[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/* A name in double quotes. */
static int take_quoted(struct parser *parser, const char **name, size_t *len)
{
    size_t at = parser->in.at;

    if (!gd_cursor_take_quoted(&parser->in, name, len)) {
        return fail_at(parser, at, "a '\"' is not closed");
    }
    if (!*len || *len > NAME_LONGEST) {
        return fail_at(parser, at, "a name has 1 to %d characters", NAME_LONGEST);
    }
    return GD_OK;
}

/* "grad_norm(NODE)" and "update_ratio(NODE)" are names of metrics, which processes compute when
 * they are asked to: takes the rest after the word, up to its closing bracket. *ret: the whole
 * name's length, from `at`; 0: it is something else. */
static int take_norm(struct parser *parser, size_t at, const char *word, size_t *ret)
{
    int depth = 0;

    *ret = 0;
    if ((strcmp(word, "grad_norm") != 0 && strcmp(word, "update_ratio") != 0) ||
        gd_cursor_char(&parser->in) != '(') {
        return GD_OK;
    }
    for (size_t i = parser->in.at; i < parser->in.len; i++) {
        char c = parser->in.text[i];
        depth += (c == '(') - (c == ')');
        if (isspace((unsigned char)c)) {
            return fail_at(parser, i, "%s takes the name of a parameter, without blanks", word);
        }
        if (depth == 0) {
            parser->in.at = i + 1;
            *ret = parser->in.at - at;
            return *ret <= NAME_LONGEST
                       ? GD_OK
                       : fail_at(parser, at,
                                 "this is longer than %d characters: use the end of the "
                                 "parameter's name",
                                 NAME_LONGEST);
        }
    }
    return fail_at(parser, parser->in.at, "this \"(\" is not closed");
}

/* The metric that a function is of. */
static int take_metric(struct parser *parser, const char *function, char ret[GD_EXPR_NUMBER])
{
    bool quoted = peek_char(parser) == '"'; /* skips blanks */
    const char *name = parser->in.text + parser->in.at;
    size_t len = gd_cursor_identifier(&parser->in);

    if (quoted) {
        int rc = take_quoted(parser, &name, &len);
        if (rc != GD_OK) {
            return rc;
        }
    } else if (!len || len > NAME_LONGEST) {
        return fail_at(parser, parser->in.at, "%s takes the name of a metric: %s", function,
                       expr_function_usage(function));
    } else {
        char word[NAME_LONGEST + 1];
        size_t at = parser->in.at, norm = 0;
        snprintf(word, sizeof(word), "%.*s", (int)len, name);
        parser->in.at += len;
        int rc = take_norm(parser, at, word, &norm);
        if (rc != GD_OK) {
            return rc;
        }
        len = norm > 0 ? norm : len;
    }
    snprintf(ret, GD_EXPR_NUMBER, "%.*s", (int)len, name);
    return GD_OK;
}

static int take_count(struct parser *parser, const char *function, int64_t *ret)
{
    size_t at = parser->in.at;
    double count = 0;

    if (!take_sign(parser, ",") || gd_cursor_take_number(&parser->in, &count) || count < 1 ||
        count > GD_MAX_PAST || count != floor(count)) {
        return fail_at(parser, at, "%s takes a number of reports, 1 to %d: %s", function,
                       GD_MAX_PAST, expr_function_usage(function));
    }
    *ret = (int64_t)count;
    return GD_OK;
}

static int take_direction(struct parser *parser, const char *function, bool *ret)
{
    if (!take_sign(parser, ",")) {
        return GD_OK;
    }
    *ret = take_sign(parser, "min");
    return *ret || take_sign(parser, "max")
               ? GD_OK
               : fail_at(parser, parser->in.at, "what is better is min or max: %s",
                         expr_function_usage(function));
}

/* A function of a metric, after its name. */
static int parse_function(struct parser *parser, const char *word, enum gd_expr_function_kind kind)
{
    struct gd_expr_function function = {.kind = kind};
    char name[EXPR_FUNCTION_TEXT];
    size_t open = parser->in.at;

    take_sign(parser, "(");
    int rc = take_metric(parser, word, function.number);
    function.least = gd_expr_prefers_least(function.number);
    if (rc == GD_OK && (kind == GD_FN_MEAN || kind == GD_FN_STALL)) {
        rc = take_count(parser, word, &function.count);
    }
    if (rc == GD_OK && expr_function_has_direction(kind)) {
        rc = take_direction(parser, word, &function.least);
    }
    if (rc == GD_OK) {
        rc = close_paren(parser, open);
    }
    expr_function_text(&function, name);
    return rc == GD_OK ? emit_name(parser, name, strlen(name)) : rc;
}

/* A word that is not of a value, past or present: a constant or a metric. */
static int parse_plain_word(struct parser *parser, size_t at, const char *word, size_t len)
{
    if (strcmp(word, "infinity") == 0) {
        return emit_op(parser, (struct op){.code = OP_NUMBER, .number = INFINITY});
    }
    if (strcmp(word, "step") == 0) {
        return emit_code(parser, OP_STEP);
    }
    if (is_keyword(word)) {
        return fail_at(parser, at,
                       *word == 'c' || *word == 'p'
                           ? "%s comes after a statistic, as in abs_mean(cur-prev)"
                           : "a statistic or a number is missing before \"%s\"",
                       word);
    }
    int rc = unknown_word(parser, at, word);
    return rc != GD_OK ? rc : emit_name(parser, word, len);
}

static int parse_word(struct parser *parser)
{
    size_t at = parser->in.at, len = gd_cursor_identifier(&parser->in);
    char word[NAME_LONGEST + 1];
    enum code function;

    if (len > NAME_LONGEST) {
        return fail_at(parser, at, "this name is longer than %d characters", NAME_LONGEST);
    }
    memcpy(word, parser->in.text + at, len);
    word[len] = '\0';
    parser->in.at += len;
    const char *of = take_of(parser);
    size_t norm = 0;
    int norm_rc = of ? GD_OK : take_norm(parser, at, word, &norm);
    if (norm_rc != GD_OK || norm > 0) {
        return norm_rc != GD_OK ? norm_rc : emit_name(parser, parser->in.text + at, norm);
    }
    if (of) {
        enum gd_statistic figure = gd_statistic_find(word, of);
        return figure ? emit_figure(parser, at, figure) : unknown_of(parser, at, word, of);
    }
    if (find_function(word, &function) && peek_char(parser) == '(') {
        return parse_arguments(parser, function);
    }
    enum gd_expr_function_kind kind = expr_function_find(word);
    if (kind != GD_FN_KINDS && peek_char(parser) == '(') {
        return parse_function(parser, word, kind);
    }
    enum gd_statistic figure = gd_statistic_find(word, "");
    if (peek_char(parser) == '(') {
        return fail_at(
            parser, parser->in.at,
            figure ? "%s can be of cur, prev or cur-prev only" : "there is no function %s", word);
    }
    if (figure) {
        return emit_figure(parser, at, figure);
    }
    return parse_plain_word(parser, at, word, len);
}

static int parse_atom(struct parser *parser)
{
    char c = peek_char(parser);
    size_t at = parser->in.at;

    if (gd_is_digit(c) || c == '.') {
        return parse_number(parser);
    }
    if (gd_cursor_identifier(&parser->in) > 0) {
        return parse_word(parser);
    }
    if (c == '"') {
        const char *name;
        size_t len;
        int rc = take_quoted(parser, &name, &len);
        return rc == GD_OK ? emit_name(parser, name, len) : rc;
    }
    if (take_sign(parser, "(")) {
        int rc = enter_level(parser);
        if (rc == GD_OK) {
            rc = parse_or(parser);
        }
        parser->level--;
        return rc != GD_OK ? rc : close_paren(parser, at);
    }
    if (c == '\0') {
        return fail_at(parser, at, "a statistic or a number is missing at the end");
    }
    return fail_at(parser, at, "a statistic or a number is missing before '%c'",
                   isprint((unsigned char)c) ? c : '?');
}

/* ---- operators ----------------------------------------------------------------------------- */

static int parse_unary(struct parser *parser)
{
    if (!take_sign(parser, "-")) {
        return parse_atom(parser);
    }
    int rc = enter_level(parser);
    if (rc == GD_OK) {
        rc = parse_unary(parser);
    }
    parser->level--;
    return rc != GD_OK ? rc : emit_code(parser, OP_NEGATE);
}

static int parse_product(struct parser *parser)
{
    int rc = parse_unary(parser);

    while (rc == GD_OK && (peek_char(parser) == '*' || peek_char(parser) == '/')) {
        enum code code = parser->in.text[parser->in.at++] == '*' ? OP_MULTIPLY : OP_DIVIDE;
        rc = parse_unary(parser);
        if (rc == GD_OK) {
            rc = emit_code(parser, code);
        }
    }
    return rc;
}

static int parse_sum(struct parser *parser)
{
    int rc = parse_product(parser);

    while (rc == GD_OK && (peek_char(parser) == '+' || peek_char(parser) == '-')) {
        enum code code = parser->in.text[parser->in.at++] == '+' ? OP_ADD : OP_SUBTRACT;
        rc = parse_product(parser);
        if (rc == GD_OK) {
            rc = emit_code(parser, code);
        }
    }
    return rc;
}

static bool take_comparison(struct parser *parser, enum gd_comparison *ret)
{
    static const struct {
        const char *sign;
        enum gd_comparison compare;
    } signs[] = {{">=", GD_CMP_GE}, {"<=", GD_CMP_LE}, {"==", GD_CMP_EQ},
                 {"!=", GD_CMP_NE}, {">", GD_CMP_GT},  {"<", GD_CMP_LT}};

    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        if (take_sign(parser, signs[i].sign)) {
            *ret = signs[i].compare;
            return true;
        }
    }
    return false;
}

static int parse_compare(struct parser *parser)
{
    enum gd_comparison compare;
    int rc = parse_sum(parser);

    if (rc != GD_OK || !take_comparison(parser, &compare)) {
        return rc;
    }
    rc = parse_sum(parser);
    size_t at = parser->in.at;
    if (rc == GD_OK) {
        rc = emit_op(parser, (struct op){.code = OP_COMPARE, .compare = compare});
    }
    if (rc == GD_OK && take_comparison(parser, &compare)) {
        return fail_at(parser, at, "comparisons cannot be chained: write a < b && b < c");
    }
    return rc;
}

static bool take_not(struct parser *parser)
{
    if (peek_char(parser) == '!' && parser->in.at + 1 < parser->in.len &&
        parser->in.text[parser->in.at + 1] == '=') {
        return false;
    }
    return take_sign(parser, "!") || take_sign(parser, "not");
}

static int parse_not(struct parser *parser)
{
    if (!take_not(parser)) {
        return parse_compare(parser);
    }
    int rc = enter_level(parser);
    if (rc == GD_OK) {
        rc = parse_not(parser);
    }
    parser->level--;
    return rc != GD_OK ? rc : emit_code(parser, OP_NOT);
}

static int parse_and(struct parser *parser)
{
    int rc = parse_not(parser);

    while (rc == GD_OK && (take_sign(parser, "&&") || take_sign(parser, "and"))) {
        rc = parse_not(parser);
        if (rc == GD_OK) {
            rc = emit_code(parser, OP_AND);
        }
    }
    return rc;
}

static int parse_or(struct parser *parser)
{
    int rc = parse_and(parser);

    while (rc == GD_OK && (take_sign(parser, "||") || take_sign(parser, "or"))) {
        rc = parse_and(parser);
        if (rc == GD_OK) {
            rc = emit_code(parser, OP_OR);
        }
    }
    return rc;
}

static int parse_all(struct parser *parser)
{
    int rc = parse_or(parser);
    char c = rc != GD_OK ? '\0' : peek_char(parser);

    if (rc != GD_OK || c == '\0') {
        return rc;
    }
    if (c == '=') {
        return fail_at(parser, parser->in.at, "write == for equal");
    }
    if (c == '&' || c == '|') {
        return fail_at(parser, parser->in.at, "write && for and, || for or");
    }
    if (c == ')') {
        return fail_at(parser, parser->in.at, "this \")\" has no \"(\"");
    }
    return fail_at(parser, parser->in.at, "an operator is missing: && || < <= > >= == != + - * /");
}

int gd_expr_parse(const char *text, struct gd_expr **ret, struct gd_err *err)
{
    struct parser parser = {.in = {.text = text, .len = strlen(text)}, .err = err};
    int rc = GD_OK;

    while (parser.in.len && gd_is_blank(text[parser.in.len - 1])) {
        parser.in.len--;
    }
    gd_cursor_skip_blanks(&parser.in);
    if (parser.in.len - parser.in.at > TEXT_MAX) {
        gd_fail(err, GD_EINVAL, "an expression has at most %d characters, this one %zu", TEXT_MAX,
                parser.in.len - parser.in.at);
        if (err) {
            err->offset = TEXT_MAX;
        }
        return GD_EINVAL;
    }
    struct gd_expr *expr = calloc(1, sizeof(*expr));
    if (expr) {
        expr->text = strndup(text + parser.in.at, parser.in.len - parser.in.at);
    }
    if (!expr || !expr->text) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        parser.expr = expr;
        rc = parse_all(&parser);
    }
    if (rc != GD_OK) {
        gd_expr_destroy(expr);
        return rc;
    }
    *ret = expr;
    return GD_OK;
}

void gd_expr_destroy(struct gd_expr *expr)
{
    if (!expr) {
        return;
    }
    for (size_t i = 0; i < expr->count; i++) {
        if (expr->op[i].code == OP_NAMED) {
            free((char *)expr->op[i].name);
        }
    }
    free(expr->op);
    free(expr->text);
    free(expr);
}

/* ---- what is in it ------------------------------------------------------------------------- */

const char *gd_expr_text(const struct gd_expr *expr)
{
    return expr->text;
}

unsigned gd_expr_needs(const struct gd_expr *expr)
{
    unsigned needs = 0;

    for (size_t i = 0; i < expr->count; i++) {
        if (expr->op[i].code == OP_FIGURE) {
            needs |= gd_statistic_needs(expr->op[i].figure);
        }
    }
    return needs;
}

bool gd_expr_has_statistic(const struct gd_expr *expr)
{
    return gd_expr_figures(expr, NULL, 0) > 0;
}

size_t gd_expr_figures(const struct gd_expr *expr, enum gd_statistic *ret, size_t max)
{
    bool seen[GD_STAT_TOTAL] = {false};
    size_t count = 0;

    for (size_t i = 0; i < expr->count; i++) {
        if (expr->op[i].code != OP_FIGURE || seen[expr->op[i].figure]) {
            continue;
        }
        seen[expr->op[i].figure] = true;
        if (count < max) {
            ret[count] = expr->op[i].figure;
        }
        count++;
    }
    return count;
}

size_t gd_expr_names(const struct gd_expr *expr, const char **ret, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < expr->count; i++) {
        bool again = expr->op[i].code != OP_NAMED;
        for (size_t j = 0; j < i && !again; j++) {
            again = expr->op[j].code == OP_NAMED && strcmp(expr->op[j].name, expr->op[i].name) == 0;
        }
        if (again) {
            continue;
        }
        if (count < max) {
            ret[count] = expr->op[i].name;
        }
        count++;
    }
    return count;
}

/* x < 5 is 5 > x */
static enum gd_comparison turn_comparison(enum gd_comparison compare)
{
    switch (compare) {
    case GD_CMP_GT: return GD_CMP_LT;
    case GD_CMP_GE: return GD_CMP_LE;
    case GD_CMP_LT: return GD_CMP_GT;
    case GD_CMP_LE: return GD_CMP_GE;
    default: return compare;
    }
}

/* The comparison at `i`, if there is one: returns its length. A statistic alone is compared with
 * 0. */
static size_t comparison_at(const struct gd_expr *expr, size_t i, struct gd_comparison_of *ret)
{
    const struct op *op = &expr->op[i];
    size_t left = expr->count - i;
    bool compared = left >= 3 && op[2].code == OP_COMPARE;

    if (compared && op[0].code == OP_FIGURE && op[1].code == OP_NUMBER) {
        *ret = (struct gd_comparison_of){op[0].figure, op[2].compare, op[1].number};
        return 3;
    }
    if (compared && op[0].code == OP_NUMBER && op[1].code == OP_FIGURE) {
        *ret =
            (struct gd_comparison_of){op[1].figure, turn_comparison(op[2].compare), op[0].number};
        return 3;
    }
    if (op[0].code == OP_FIGURE &&
        (left == 1 || op[1].code == OP_OR || op[1].code == OP_FIGURE || op[1].code == OP_NUMBER)) {
        *ret = (struct gd_comparison_of){op[0].figure, GD_CMP_NE, 0};
        return 1;
    }
    return 0;
}

size_t gd_expr_simple(const struct gd_expr *expr, struct gd_comparison_of *ret, size_t max)
{
    size_t count = 0;

    for (size_t i = 0, used; i < expr->count; i += used) {
        struct gd_comparison_of found;
        used = 1;
        if (expr->op[i].code == OP_OR) {
            continue;
        }
        used = comparison_at(expr, i, &found);
        if (!used || count == max) {
            return 0;
        }
        ret[count++] = found;
    }
    return count;
}
