// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/kernel_choice.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/regex_size.h"

#define MAX_TEXT ((size_t)4096)
#define ASCII    128

enum kind { A_NAME, A_TYPE, AN_EXPRESSION };

struct gd_kernel_choice {
    enum kind kind;
    char *text;
    regex_t regex; /* of an expression */
};

/* ---- ECMAScript to POSIX expressions --------------------------------------------------------- */

struct translation {
    const char *at;
    struct gd_buf out;
    bool may_repeat; /* the previous item can be repeated */
    bool repeated;   /* it was repeated: a '?' now means lazy */
    int depth;       /* of nested groups */
    struct gd_err *err;
};

static int fail_expression(struct translation *t, const char *what)
{
    return gd_fail(t->err, GD_EINVAL, "%s", what);
}

/* \n and the like; 0: not one. */
static char control_char(char letter)
{
    static const char letters[] = "tnrfv", controls[] = "\t\n\r\f\v";
    const char *at = letter ? strchr(letters, letter) : NULL;

    return at ? controls[at - letters] : '\0';
}

/* \d, \w, \s */
static bool add_class(bool set[ASCII], char letter)
{
    for (int c = 1; c < ASCII; c++) {
        set[c] = set[c] || (letter == 'd' && isdigit(c)) || (letter == 's' && isspace(c)) ||
                 (letter == 'w' && (isalnum(c) || c == '_'));
    }
    return letter == 'd' || letter == 'w' || letter == 's';
}

/* "[:alpha:]", starting at its second byte. */
static int add_named(struct translation *t, bool set[ASCII])
{
    static const struct {
        const char *name;
        int (*has)(int c);
    } classes[] = {{":alpha:]", isalpha}, {":digit:]", isdigit}, {":alnum:]", isalnum},
                   {":upper:]", isupper}, {":lower:]", islower}, {":space:]", isspace},
                   {":punct:]", ispunct}};

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        size_t len = strlen(classes[i].name);
        if (strncmp(t->at, classes[i].name, len) != 0) {
            continue;
        }
        for (int c = 1; c < ASCII; c++) {
            set[c] = set[c] || classes[i].has(c);
        }
        t->at += len;
        return GD_OK;
    }
    return fail_expression(t, "[: must be followed by a known class");
}

/* One character of a set; *ret is -1 for a whole class, which was added already. */
static int take_member(struct translation *t, bool set[ASCII], int *ret)
{
    char c = *t->at++;

    *ret = -1;
    if (c == '[' && *t->at == ':') {
        return add_named(t, set);
    }
    if (c == '\\') {
        c = *t->at;
        t->at += c != '\0';
        if (add_class(set, c)) {
            return GD_OK;
        }
        if (control_char(c)) {
            c = control_char(c);
        } else if (c == '\0' || isalnum((unsigned char)c)) {
            return fail_expression(t,
                                   "a \\ in [] must be followed by d, w, s or a punctuation mark");
        }
    }
    *ret = (unsigned char)c;
    return (unsigned char)c < ASCII ? GD_OK
                                    : fail_expression(t, "[] may only contain ASCII characters");
}

static int take_members(struct translation *t, bool set[ASCII])
{
    int first, last, rc = GD_OK;

    while (rc == GD_OK && *t->at != ']') {
        if (*t->at == '\0') {
            return fail_expression(t, "a ] is missing");
        }
        rc = take_member(t, set, &first);
        last = first;
        if (rc == GD_OK && first >= 0 && t->at[0] == '-' && t->at[1] != ']' && t->at[1] != '\0') {
            t->at++;
            rc = take_member(t, set, &last);
            if (rc == GD_OK && last < first) {
                rc = fail_expression(t, "a range in [] is in reverse order");
            }
        }
        for (int c = first; rc == GD_OK && c >= 0 && c <= last; c++) {
            set[c] = true;
        }
    }
    return rc;
}

/* Writes the characters that have no special meaning anywhere. */
static bool put_members(struct gd_buf *out, const bool set[ASCII])
{
    bool any = false;

    for (int c = 1; c < ASCII; c++) {
        int last = c;
        if (!set[c] || strchr("]^[-", c)) {
            continue;
        }
        while (isalnum(c) && last + 1 < ASCII && set[last + 1] && isalnum(last + 1)) {
            last++;
        }
        gd_buf_putc(out, (char)c);
        if (last > c) {
            gd_buf_putc(out, '-');
            gd_buf_putc(out, (char)last);
        }
        c = last;
        any = true;
    }
    return any;
}

/* Literal: ']' comes first, '^' not first, '-' last, '[' before those. */
static int put_set(struct translation *t, const bool set[ASCII], bool negated)
{
    struct gd_buf *out = &t->out;

    gd_buf_puts(out, negated ? "[^" : "[");
    if (set[']']) {
        gd_buf_putc(out, ']');
    }
    bool any = put_members(out, set) || set[']'] || set['['];
    if (set['[']) {
        gd_buf_putc(out, '[');
    }
    if (set['^'] && !any && !negated) { /* "[^" would negate */
        gd_buf_puts(out, set['-'] ? "-^]" : "[.^.]]");
        return GD_OK;
    }
    if (set['^']) {
        gd_buf_putc(out, '^');
    }
    if (set['-']) {
        gd_buf_putc(out, '-');
    }
    gd_buf_putc(out, ']');
    return any || set['^'] || set['-'] ? GD_OK : fail_expression(t, "[] is empty");
}

static int take_set(struct translation *t)
{
    bool set[ASCII] = {false};
    bool negated = *++t->at == '^';

    t->at += negated;
    int rc = take_members(t, set);
    if (rc == GD_OK) {
        t->at++;
        rc = put_set(t, set, negated);
    }
    t->may_repeat = true;
    return rc;
}

static int take_escape(struct translation *t)
{
    char c = t->at[1];
    bool set[ASCII] = {false};

    t->at += c ? 2 : 1;
    t->may_repeat = true;
    if (c == 'b' || c == 'B') {
        t->may_repeat = false;
        gd_buf_printf(&t->out, "\\%c", c);
    } else if (c != '\0' && strchr("dDwWsS", c)) {
        add_class(set, (char)tolower(c));
        return put_set(t, set, isupper((unsigned char)c) != 0);
    } else if (control_char(c)) {
        gd_buf_putc(&t->out, control_char(c));
    } else if (c == '\0' || isalnum((unsigned char)c) || (unsigned char)c >= ASCII) {
        return fail_expression(t, c >= '0' && c <= '9' ? "back references are not supported"
                                                       : "this letter after a \\ is not supported");
    } else {
        gd_buf_printf(&t->out, strchr("^.[$()|*+?{\\", c) ? "\\%c" : "%c", c);
    }
    return GD_OK;
}

static int take_repeat(struct translation *t)
{
    char c = *t->at;
    size_t len = c == '{' ? strspn(t->at + 1, "0123456789,") + 2 : 1;

    if (t->repeated && c == '?') {
        t->at++; /* lazy: matches the same names */
        t->repeated = false;
        return GD_OK;
    }
    if (!t->may_repeat) {
        return fail_expression(t, "a repeat must follow something");
    }
    if (c == '{' && (len < 3 || t->at[1] == ',' || t->at[len - 1] != '}')) {
        return fail_expression(t, "{ must be followed by n}, n,} or n,m}");
    }
    gd_buf_add(&t->out, t->at, len);
    t->at += len;
    t->may_repeat = false;
    t->repeated = true;
    return GD_OK;
}

static int take_group(struct translation *t)
{
    if (*t->at == ')') {
        t->may_repeat = true;
        if (--t->depth < 0) {
            return fail_expression(t, "a ) without a (");
        }
        t->at++;
        gd_buf_putc(&t->out, ')');
        return GD_OK;
    }
    t->at++;
    t->depth++;
    t->may_repeat = false;
    gd_buf_putc(&t->out, '(');
    if (t->at[0] == '?' && t->at[1] != ':') {
        return fail_expression(t, "(? must be followed by a :");
    }
    t->at += t->at[0] == '?' ? 2 : 0;
    return GD_OK;
}

static int take_one(struct translation *t)
{
    bool repeats = *t->at == '*' || *t->at == '+' || *t->at == '?' || *t->at == '{';

    if (repeats) {
        return take_repeat(t);
    }
    t->repeated = false;
    switch (*t->at) {
    case '\\': return take_escape(t);
    case '[': return take_set(t);
    case '(':
    case ')': return take_group(t);
    default:
        t->may_repeat = !strchr("^$|", *t->at);
        gd_buf_putc(&t->out, *t->at++);
        return GD_OK;
    }
}

static int compile_regex(const char *text, regex_t *ret, struct gd_err *err)
{
    struct translation t = {.at = text, .err = err};
    char why[128];
    int rc = GD_OK;

    gd_buf_init(&t.out, MAX_TEXT);
    gd_buf_puts(&t.out, "^(");
    while (rc == GD_OK && *t.at) {
        rc = take_one(&t);
    }
    gd_buf_puts(&t.out, ")$");
    if (rc == GD_OK && t.depth > 0) {
        rc = fail_expression(&t, "a ( without a )");
    } else if (rc == GD_OK && (t.out.failed || gd_regex_is_too_large(gd_buf_text(&t.out)))) {
        rc = fail_expression(&t, "it is too large");
    } else if (rc == GD_OK) {
        int code = regcomp(ret, gd_buf_text(&t.out), REG_EXTENDED | REG_NOSUB);
        if (code) {
            regerror(code, ret, why, sizeof(why));
            rc = fail_expression(&t, why);
        }
    }
    gd_buf_deinit(&t.out);
    return rc;
}

/* ---- choices --------------------------------------------------------------------------------- */

/* The expression in name-regex(EXPRESSION), to be freed; NULL: no such form. */
static char *expression_of(const char *text)
{
    static const char head[] = "name-regex(";
    size_t len = strlen(text), skip = sizeof(head) - 1;

    return strncmp(text, head, skip) == 0 && text[len - 1] == ')'
               ? strndup(text + skip, len - skip - 1)
               : NULL;
}

int gd_kernel_choice_parse(const char *text, struct gd_kernel_choice **ret, struct gd_err *err)
{
    struct gd_kernel_choice *choice = calloc(1, sizeof(*choice));
    char *expression = NULL;
    int rc = GD_OK;

    *ret = NULL;
    if (!choice || !(choice->text = strdup(text))) {
        free(choice);
        return gd_fail_nomem(err);
    }
    expression = expression_of(text);
    if (expression) {
        rc = compile_regex(expression, &choice->regex, err);
        choice->kind = rc == GD_OK ? AN_EXPRESSION : A_NAME;
        free(expression);
    } else {
        choice->kind = !strchr(text, '/') && !strstr(text, "-op") ? A_TYPE : A_NAME;
    }
    if (rc != GD_OK) {
        gd_kernel_choice_free(choice);
        return rc;
    }
    *ret = choice;
    return GD_OK;
}

void gd_kernel_choice_free(struct gd_kernel_choice *choice)
{
    if (!choice) {
        return;
    }
    if (choice->kind == AN_EXPRESSION) {
        regfree(&choice->regex);
    }
    free(choice->text);
    free(choice);
}

const char *gd_kernel_choice_text(const struct gd_kernel_choice *choice)
{
    return choice->text;
}

bool gd_kernel_choice_has(const struct gd_kernel_choice *choice, const char *name, const char *type)
{
    const char *slash = strrchr(name, '/');

    switch (choice->kind) {
    case AN_EXPRESSION: return regexec(&choice->regex, name, 0, NULL, 0) == 0;
    case A_TYPE:
        if (strcasestr(type, choice->text) || strcasestr(slash ? slash + 1 : name, choice->text)) {
            return true;
        }
        break;
    default: break;
    }
    return strcmp(choice->text, name) == 0;
}
