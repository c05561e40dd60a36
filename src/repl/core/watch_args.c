// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/watch_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "engine/graph/selector.h"
#include "repl/core/command.h"

#define MAX_STEPS 1000000 /* of -for */

struct scan {
    struct gd_arena *arena;
    struct gd_cursor in;
    size_t closed; /* offset after the last closing bracket */
    size_t column; /* where the text starts in the line */
    struct gd_err *err;
};

/* Reports `what` at an offset, with the column in the line as typed. */
static int fail_at(const struct scan *scan, size_t at, int code, const char *what)
{
    gd_fail(scan->err, code, "%s (column %zu)", what, scan->column + at + 1);
    if (scan->err) {
        scan->err->offset = at;
    }
    return code;
}

static int no_memory(const struct scan *scan)
{
    return gd_fail_nomem(scan->err);
}

/* End of the word at `at`. Blanks inside quotes and brackets belong to it; an unclosed bracket or
 * quote is an ordinary character. */
static size_t word_end(const struct scan *scan, size_t at)
{
    const char *text = scan->in.text;
    size_t depth = 0;
    for (; text[at] != '\0'; at++) {
        char c = text[at];
        const char *close = c == '"' || c == '\'' ? strchr(text + at + 1, c) : NULL;
        if (close) {
            at = (size_t)(close - text);
        } else if (c == '(' || c == '[') {
            depth++;
        } else if ((c == ')' || c == ']') && depth > 0) {
            depth--;
        } else if (gd_is_blank(c) && (depth == 0 || at >= scan->closed)) {
            break;
        }
    }
    return at;
}

static bool is_word(const struct scan *scan, size_t at, const char *word)
{
    size_t len = strlen(word);
    return strncmp(scan->in.text + at, word, len) == 0 &&
           (gd_is_blank(scan->in.text[at + len]) || scan->in.text[at + len] == '\0');
}

/* The words from scan->in.at up to one of the keywords (NULL: none) or the end, trimmed;
 * scan->in.at moves to the keyword. *from is their offset. */
static const char *take_up_to(struct scan *scan, const char *key, const char *other, size_t *from)
{
    gd_cursor_skip_blanks(&scan->in);
    size_t end = scan->in.at;
    *from = scan->in.at;
    while (scan->in.text[scan->in.at] != '\0' && !is_word(scan, scan->in.at, key) &&
           !(other && is_word(scan, scan->in.at, other))) {
        end = word_end(scan, scan->in.at);
        scan->in.at = end;
        gd_cursor_skip_blanks(&scan->in);
    }
    return gd_arena_strndup(scan->arena, scan->in.text + *from, end - *from);
}

const char *watch_args_unquote(struct gd_arena *arena, const char *text)
{
    size_t len = strlen(text);
    bool quoted = len >= 2 && (text[0] == '\'' || text[0] == '"') && text[len - 1] == text[0] &&
                  !memchr(text + 1, text[0], len - 2);
    return quoted ? gd_arena_strndup(arena, text + 1, len - 2) : text;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* Converts an error's offset within a part to one within the text. */
static int fail_inside(const struct scan *scan, size_t from, int rc)
{
    if (scan->err) {
        scan->err->offset += from;
    }
    return rc;
}

static int check_expression(const struct scan *scan, const char *text, size_t from)
{
    struct gd_expr *expr = NULL;
    int rc = gd_expr_parse(text, &expr, scan->err);
    if (rc != GD_OK) {
        return fail_inside(scan, from, rc);
    }
    gd_expr_destroy(expr);
    return GD_OK;
}

/* A metric's name may be in double quotes: "train loss" > 3. */
static bool operator_behind_quote(const struct scan *scan)
{
    const char *close = strchr(scan->in.text + scan->in.at + 1, '"');
    const char *next = close ? close + 1 + strspn(close + 1, " \t") : "";
    return *next != '\0' && strchr("<>=!+-*/&|", *next);
}

/* Removes quotes around the whole expression. */
static int take_quoted(struct scan *scan, const char **ret)
{
    size_t from = scan->in.at, len;
    const char *inside_quotes;
    if (!gd_cursor_take_quoted(&scan->in, &inside_quotes, &len)) {
        return fail_at(scan, from, GD_EINVAL, "the quote is not closed");
    }
    *ret = gd_arena_strndup(scan->arena, inside_quotes, len);
    if (!*ret) {
        return no_memory(scan);
    }
    return check_expression(scan, *ret, from + 1);
}

static int take_expression(struct scan *scan, const char **ret)
{
    size_t from;
    gd_cursor_skip_blanks(&scan->in);
    if (scan->in.text[scan->in.at] == '\'' ||
        (scan->in.text[scan->in.at] == '"' && !operator_behind_quote(scan))) {
        return take_quoted(scan, ret);
    }
    *ret = take_up_to(scan, "on", "if", &from);
    return *ret ? check_expression(scan, *ret, from) : no_memory(scan);
}

static int take_where(struct scan *scan, const char **ret)
{
    struct gd_selector *selector = NULL;
    size_t from;
    scan->in.at += 2; /* "on" */
    const char *text = take_up_to(scan, "if", NULL, &from);
    if (!text) {
        return no_memory(scan);
    }
    if (text[0] == '\0') {
        return fail_at(scan, from, GD_EUSAGE, "a selector is missing after \"on\"");
    }
    if (text[0] == '\'') { /* double quotes belong to the selector: a literal name */
        text = watch_args_unquote(scan->arena, text);
        from++;
    }
    int rc = text ? gd_selector_parse(text, &selector, scan->err) : no_memory(scan);
    if (rc != GD_OK) {
        return fail_inside(scan, from, rc);
    }
    gd_selector_destroy(selector);
    *ret = text;
    return GD_OK;
}

static int take_guard(struct scan *scan, const char **ret)
{
    scan->in.at += 2; /* "if" */
    gd_cursor_skip_blanks(&scan->in);
    size_t from = scan->in.at;
    const char *text = gd_arena_strdup(scan->arena, scan->in.text + from);
    const char *bare = text ? watch_args_unquote(scan->arena, text) : NULL;
    if (!bare) {
        return no_memory(scan);
    }
    if (bare[0] == '\0') {
        return fail_at(scan, from, GD_EUSAGE, "an expression is missing after \"if\"");
    }
    scan->in.at += strlen(scan->in.text + from);
    *ret = bare;
    return check_expression(scan, bare, from + (bare != text ? 1 : 0));
}

/* [on SELECTOR] [if EXPR], and nothing else. */
static int take_tail(struct scan *scan, struct watch_args *args)
{
    int rc = GD_OK;
    gd_cursor_skip_blanks(&scan->in);
    if (is_word(scan, scan->in.at, "on")) {
        rc = take_where(scan, &args->where);
    }
    gd_cursor_skip_blanks(&scan->in);
    if (rc == GD_OK && is_word(scan, scan->in.at, "if")) {
        rc = take_guard(scan, &args->guard);
    }
    if (rc == GD_OK && scan->in.text[scan->in.at] != '\0') {
        rc = fail_at(scan, scan->in.at, GD_EUSAGE, "expected \"on SELECTOR\" or \"if EXPR\"");
    }
    return rc;
}

/* ---- parameters ---------------------------------------------------------------------------- */

static int parse_value(const struct scan *scan, size_t from, const char *text,
                       struct gd_condition_value *value)
{
    char *end = NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->type = GD_PARAM_BOOL;
        value->value = *text == 't';
        return GD_OK;
    }
    value->type = GD_PARAM_FLOAT;
    value->value = strtod(text, &end);
    if (end == text || (*end != '\0' && strcmp(end, "%") != 0)) {
        gd_fail(scan->err, GD_EINVAL, "%.60s=%.60s: \"%.60s\" is not a number (column %zu)",
                value->name, text, text, scan->column + from + 1);
        return fail_inside(scan, from, GD_EINVAL);
    }
    return GD_OK;
}

/* PARAM=VALUE words up to `on`, `if` or the end. */
static int take_values(struct scan *scan, bool edit, struct watch_args *args)
{
    for (gd_cursor_skip_blanks(&scan->in); scan->in.text[scan->in.at] != '\0';
         gd_cursor_skip_blanks(&scan->in)) {
        size_t from = scan->in.at;
        size_t end = word_end(scan, from);
        if (is_word(scan, from, "on") || is_word(scan, from, "if")) {
            break;
        }
        char *word = gd_arena_strndup(scan->arena, scan->in.text + from, end - from);
        char *equals = word ? strchr(word, '=') : NULL;
        if (!word) {
            return no_memory(scan);
        }
        if (!equals || equals == word) {
            gd_fail(scan->err, GD_EUSAGE,
                    "\"%.60s\" is not PARAM=VALUE, \"on SELECTOR\" or \"if EXPR\" (column %zu)",
                    word, scan->column + from + 1);
            return fail_inside(scan, from, GD_EUSAGE);
        }
        if (args->value_count == GD_MAX_CONDITION_PARAMS) {
            return fail_at(scan, from, GD_EINVAL, "too many parameters");
        }
        struct gd_condition_value *value = &args->values[args->value_count];
        *equals = '\0';
        value->name = word;
        bool off = edit && strcmp(equals + 1, "off") == 0;
        int rc = off ? GD_OK : parse_value(scan, from, equals + 1, value);
        if (rc != GD_OK) {
            return rc;
        }
        args->off |= off ? 1u << args->value_count : 0;
        args->value_count++;
        scan->in.at = end;
    }
    return GD_OK;
}

/* ---- the head ------------------------------------------------------------------------------ */

/* -for N: how many steps in a row. */
static int take_steps(struct scan *scan, struct watch_args *args)
{
    int64_t steps;
    scan->in.at = word_end(scan, scan->in.at);
    gd_cursor_skip_blanks(&scan->in);
    size_t end = word_end(scan, scan->in.at);
    const char *word =
        gd_arena_strndup(scan->arena, scan->in.text + scan->in.at, end - scan->in.at);
    if (!word) {
        return no_memory(scan);
    }
    if (arg_count(word, 1, MAX_STEPS, &steps, NULL) != GD_OK) {
        return fail_at(scan, scan->in.at, GD_EINVAL, "-for takes a number of steps, 1 to 1000000");
    }
    args->steps = (uint32_t)steps;
    scan->in.at = end;
    return GD_OK;
}

static int take_options(struct scan *scan, struct watch_args *args)
{
    for (gd_cursor_skip_blanks(&scan->in); scan->in.text[scan->in.at] == '-';
         gd_cursor_skip_blanks(&scan->in)) {
        if (is_word(scan, scan->in.at, "-exact")) {
            args->when = GD_WHEN_EXACT;
        } else if (is_word(scan, scan->in.at, "-step")) {
            args->when = GD_WHEN_STEP_END;
        } else if (is_word(scan, scan->in.at, "-for")) {
            int rc = take_steps(scan, args);
            if (rc != GD_OK) {
                return rc;
            }
            continue;
        } else {
            break; /* an expression may start with a minus */
        }
        scan->in.at = word_end(scan, scan->in.at);
    }
    return GD_OK;
}

/* The condition named by the word at scan->in.at; NULL: none, and err lists the conditions.
 * *operand: what follows makes the word part of an expression. */
static const struct gd_condition *condition_here(struct scan *scan, size_t *end, bool *operand)
{
    const struct gd_condition *found = NULL;
    *end = scan->in.at + strcspn(scan->in.text + scan->in.at, " \t");
    char *word = gd_arena_strndup(scan->arena, scan->in.text + scan->in.at, *end - scan->in.at);
    const char *next = scan->in.text + *end + strspn(scan->in.text + *end, " \t");
    if (!word || gd_condition_find(word, &found, scan->err) != GD_OK) {
        return NULL;
    }
    *operand = strncmp(next, "==", 2) == 0 || (*next != '\0' && strchr("<>!&|+*/", *next));
    return found;
}

/* Whether the head looks like an expression although its first word is not a condition: errors are
 * then about the expression. */
static bool meant_as_expression(const struct scan *scan)
{
    struct scan ahead = *scan;
    size_t from;
    const char *head = take_up_to(&ahead, "on", "if", &from);
    if (!head || strpbrk(head, "<>|&(") || strstr(head, "==") || strstr(head, "!=") ||
        strchr("'\"!-.0123456789", head[0])) {
        return true;
    }
    size_t len = strcspn(head, " \t+-*/=");
    char *name = gd_arena_strndup(scan->arena, head, len);
    return !name || gd_statistic_find(name, NULL) != GD_STAT_NONE;
}

static int take_head(struct scan *scan, struct watch_args *args)
{
    size_t end;
    bool operand = false;
    gd_cursor_skip_blanks(&scan->in);
    if (scan->in.text[scan->in.at] == '\0' || is_word(scan, scan->in.at, "on") ||
        is_word(scan, scan->in.at, "if")) {
        return fail_at(scan, scan->in.at, GD_EUSAGE,
                       "name a condition (see \"info conditions\") or write an expression");
    }
    args->has_head = true;
    const struct gd_condition *condition = condition_here(scan, &end, &operand);
    if (condition && !operand) {
        args->condition = condition;
        scan->in.at = end;
        return take_values(scan, false, args);
    }
    if (operand || meant_as_expression(scan)) {
        return take_expression(scan, &args->expression);
    }
    return fail_inside(scan, scan->in.at, GD_ENOTFOUND);
}

static struct scan scan_of(struct gd_arena *arena, const char *text, size_t column,
                           struct gd_err *err)
{
    struct scan scan = {
        .arena = arena, .in = {.text = text, .len = strlen(text)}, .column = column, .err = err};
    for (size_t i = 0; text[i] != '\0'; i++) {
        scan.closed = text[i] == ')' || text[i] == ']' ? i + 1 : scan.closed;
    }
    return scan;
}

int watch_args_parse(struct gd_arena *arena, const char *text, size_t column,
                     struct watch_args *ret, struct gd_err *err)
{
    struct gd_err ignored;
    struct scan scan = scan_of(arena, text, column, err ? err : &ignored);
    *ret = (struct watch_args){.when = GD_WHEN_AUTO};
    int rc = take_options(&scan, ret);
    rc = rc == GD_OK ? take_head(&scan, ret) : rc;
    return rc == GD_OK ? take_tail(&scan, ret) : rc;
}

int watch_args_parse_edit(struct gd_arena *arena, const char *text, size_t column,
                          const struct gd_condition *condition, struct watch_args *ret,
                          struct gd_err *err)
{
    struct gd_err ignored;
    struct scan scan = scan_of(arena, text, column, err ? err : &ignored);
    int rc = GD_OK;
    *ret = (struct watch_args){.when = GD_WHEN_AUTO, .condition = condition};
    gd_cursor_skip_blanks(&scan.in);
    bool tail = is_word(&scan, scan.in.at, "on") || is_word(&scan, scan.in.at, "if");
    if (text[scan.in.at] == '\0') {
        return fail_at(&scan, scan.in.at, GD_EUSAGE,
                       "nothing to change: give parameters, \"on\", \"if\", \"add\" or \"remove\"");
    }
    ret->has_head = !tail;
    if (!tail && condition) {
        rc = take_values(&scan, true, ret);
    } else if (!tail) {
        rc = meant_as_expression(&scan)
                 ? take_expression(&scan, &ret->expression)
                 : fail_at(&scan, scan.in.at, GD_EUSAGE,
                           "expected an expression, \"on\", \"if\", \"add\" or \"remove\"");
    }
    return rc == GD_OK ? take_tail(&scan, ret) : rc;
}
