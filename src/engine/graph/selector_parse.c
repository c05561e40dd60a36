// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "engine/glob.h"
#include "engine/graph/selector_impl.h"
#include "engine/regex_size.h"

static const struct {
    const char *word;
    unsigned kinds;
} kind_words[] = {
    {"weights", 1U << GD_NODE_WEIGHT},
    {"gradients", 1U << GD_NODE_GRADIENT},
    {"activations", 1U << GD_NODE_ACTIVATION},
    {"parameters", 1U << GD_NODE_PARAMETER | 1U << GD_NODE_WEIGHT},
};

static void free_term(struct term *term)
{
    if (term->kind == TERM_REGEX && term->text) {
        regfree(&term->regex);
    }
    free(term->text);
    free(term);
}

void gd_selector_destroy(struct gd_selector *selector)
{
    if (!selector) {
        return;
    }
    while (selector->terms) {
        struct term *next = selector->terms->next;

        free_term(selector->terms);
        selector->terms = next;
    }
    free(selector);
}

static int fail_at(const struct gd_cursor *in, size_t at, struct gd_err *err, const char *what)
{
    gd_fail(err, GD_EINVAL, "selector '%.200s': %s at column %zu", in->text, what, at + 1);
    if (err) {
        err->offset = at;
    }
    return GD_EINVAL;
}

static bool ends_term(char c)
{
    return c == '\0' || c == ',' || c == '|' || gd_is_blank(c);
}

/* The raw text of a term at the cursor; *kind says how it was written. */
static int cut_term(struct gd_cursor *in, const char **start, size_t *len, enum term_kind *kind,
                    struct gd_err *err)
{
    const char *text = in->text; /* ends in NUL */
    char quote = text[in->at] == '"' || text[in->at] == '/' ? text[in->at] : '\0';
    size_t from = in->at + (quote != '\0');
    size_t at = from;

    *kind = quote == '"' ? TERM_QUOTED : quote ? TERM_REGEX : TERM_NAME;
    if (!quote) {
        while (!ends_term(text[at])) {
            at++;
        }
    } else {
        while (text[at] && !(text[at] == quote && ends_term(text[at + 1]))) {
            at += text[at] == '\\' && text[at + 1] ? 2 : 1;
        }
        if (!text[at]) {
            return fail_at(in, in->at, err,
                           quote == '/' ? "a /regex/ is not closed" : "a '\"' is not closed");
        }
    }
    if (at == from) {
        return fail_at(in, in->at, err, "a node, a scope, a glob or another term is missing");
    }
    *start = text + from;
    *len = at - from;
    in->at = at + (quote != '\0');
    return GD_OK;
}

static int compile_regex(const struct gd_cursor *in, struct term *term, size_t at,
                         struct gd_err *err)
{
    bool too_large = gd_regex_is_too_large(term->text);
    char what[200] = "the regular expression is too large";
    int rc;

    if (!too_large) {
        rc = regcomp(&term->regex, term->text, REG_EXTENDED | REG_NOSUB);
        if (rc == 0) {
            return GD_OK;
        }
        regerror(rc, &term->regex, what, sizeof(what));
    }
    free(term->text);
    term->text = NULL; /* nothing for regfree */
    return fail_at(in, at, err, what);
}

static void split_source(struct term *term)
{
    char *colon = strrchr(term->text, ':');
    char *end;

    if (!colon || colon == term->text || colon[1] < '0' || colon[1] > '9') {
        return;
    }
    unsigned long line = strtoul(colon + 1, &end, 10);
    if (*end == '\0' && line <= UINT32_MAX) {
        term->line = (uint32_t)line;
        *colon = '\0';
    }
}

bool gd_selector_is_keyword(const char *text)
{
    enum selector_word word;
    bool found = strcmp(text, "all") == 0 || selector_find_word(text, &word);

    for (size_t i = 0; !found && i < sizeof(kind_words) / sizeof(kind_words[0]); i++) {
        found = strcmp(text, kind_words[i].word) == 0;
    }
    return found;
}

/* A word's meaning: a keyword, type:, at:, or else a name. */
static void classify_word(struct term *term)
{
    size_t prefix = 0;

    if (strcmp(term->text, "all") == 0) {
        term->kind = TERM_ALL;
        return;
    }
    for (size_t i = 0; i < sizeof(kind_words) / sizeof(kind_words[0]); i++) {
        if (strcmp(term->text, kind_words[i].word) == 0) {
            term->kind = TERM_KINDS;
            term->kinds = kind_words[i].kinds;
            return;
        }
    }
    if (selector_find_word(term->text, &term->word)) {
        term->kind = TERM_WORD;
    } else if (strncmp(term->text, "type:", 5) == 0) {
        term->kind = TERM_TYPE;
        prefix = 5;
    } else if (strncmp(term->text, "activations:", 12) == 0) {
        term->kind = TERM_ACTIVATION;
        prefix = 12;
    } else if (strncmp(term->text, "at:", 3) == 0) {
        term->kind = TERM_SOURCE;
        prefix = 3;
    }
    memmove(term->text, term->text + prefix, strlen(term->text + prefix) + 1);
    if (term->kind == TERM_SOURCE) {
        split_source(term);
    }
}

static int parse_term(struct gd_cursor *in, bool except, struct term **ret, struct gd_err *err)
{
    struct term *term = calloc(1, sizeof(*term));
    size_t at = in->at;
    const char *start;
    size_t len;
    bool place = strncmp(in->text + at, "at:\"", 4) == 0; /* a path with blanks or commas */

    if (!term) {
        return gd_fail_nomem(err);
    }
    term->except = except;
    in->at += place ? 3 : 0;
    int rc = cut_term(in, &start, &len, &term->kind, err);
    if (rc == GD_OK && asprintf(&term->text, "%s%.*s", place ? "at:" : "", (int)len, start) < 0) {
        term->text = NULL;
        rc = gd_fail_nomem(err);
    }
    term->kind = place ? TERM_NAME : term->kind;
    if (rc == GD_OK && term->kind == TERM_REGEX) {
        rc = compile_regex(in, term, at, err);
    } else if (rc == GD_OK && term->kind == TERM_NAME) {
        classify_word(term);
        if (!term->text[0]) {
            rc = fail_at(in, at, err,
                         term->kind == TERM_TYPE ? "type: needs an operator type"
                         : term->kind == TERM_ACTIVATION
                             ? "activations: needs a function, as in activations:relu"
                             : "at: needs FILE or FILE:LINE");
        }
    }
    if (rc != GD_OK) {
        free_term(term);
        return rc;
    }
    *ret = term;
    return GD_OK;
}

/* That word, before a blank or the end. */
static bool take_word(struct gd_cursor *in, const char *word)
{
    size_t at = in->at;

    if (gd_cursor_take(in, word) && (gd_is_blank(gd_cursor_char(in)) || !gd_cursor_char(in))) {
        return true;
    }
    in->at = at;
    return false;
}

static int parse_terms(struct gd_cursor *in, struct term **end, struct gd_err *err)
{
    bool except = false;

    for (;;) {
        gd_cursor_skip_blanks(in);
        int rc = parse_term(in, except, end, err);
        if (rc != GD_OK) {
            return rc;
        }
        end = &(*end)->next;
        if (gd_cursor_peek(in) == '\0') {
            return GD_OK;
        }
        if (gd_cursor_take(in, ",") || gd_cursor_take(in, "|")) {
            continue;
        }
        if (!take_word(in, except ? "with" : "except")) {
            return fail_at(in, in->at, err,
                           except ? "',' or 'with' is missing" : "',' or 'except' is missing");
        }
        except = !except;
    }
}

int gd_selector_parse(const char *text, struct gd_selector **ret, struct gd_err *err)
{
    struct gd_selector *selector = calloc(1, sizeof(*selector));
    struct gd_cursor in = {.text = text, .len = strlen(text)};

    if (!selector) {
        return gd_fail_nomem(err);
    }
    int rc = parse_terms(&in, &selector->terms, err);
    if (rc != GD_OK) {
        gd_selector_destroy(selector);
        return rc;
    }
    *ret = selector;
    return GD_OK;
}

void gd_selector_set_extent(struct gd_selector *selector, enum gd_selector_extent extent)
{
    selector->extent = extent;
}

bool gd_selector_has_except(const struct gd_selector *selector)
{
    for (const struct term *term = selector->terms; term; term = term->next) {
        if (term->except) {
            return true;
        }
    }
    return false;
}

bool gd_selector_ends_in_except(const struct gd_selector *selector)
{
    const struct term *term = selector->terms;

    while (term && term->next) {
        term = term->next;
    }
    return term && term->except;
}

bool gd_selector_has_name(const struct gd_selector *selector)
{
    for (const struct term *term = selector->terms; term; term = term->next) {
        if (!term->except && (term->kind == TERM_QUOTED ||
                              (term->kind == TERM_NAME &&
                               (!gd_glob_is_pattern(term->text) || !strpbrk(term->text, "*?"))))) {
            return true;
        }
    }
    return false;
}
