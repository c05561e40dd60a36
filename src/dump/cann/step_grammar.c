// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/step_grammar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct parse {
    const char *text, *at;
    const struct gd_step_rules *rules;
    struct gd_err *err;
    size_t cap; /* of the list of ranges */
};

static int fail_syntax(struct parse *parse, const char *at, const char *what)
{
    int rc = gd_fail(parse->err, GD_EINVAL,
                     "\"%.100s\" is not a list of steps: %s at character %zu; write \"0|3-5|10\"%s",
                     parse->text, what, (size_t)(at - parse->text) + 1,
                     parse->rules->all_allowed ? " or \"all\"" : "");

    if (parse->err) {
        parse->err->offset = (size_t)(at - parse->text);
    }
    return rc;
}

static void skip_blanks(struct parse *parse)
{
    while (parse->rules->blanks && (*parse->at == ' ' || *parse->at == '\t')) {
        parse->at++;
    }
}

static int take_number(struct parse *parse, int64_t *ret)
{
    const char *start;
    int64_t value = 0;

    skip_blanks(parse);
    start = parse->at;
    for (; *parse->at >= '0' && *parse->at <= '9'; parse->at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *parse->at - '0', &value)) {
            return fail_syntax(parse, start, "number too large");
        }
    }
    if (parse->at == start) {
        return fail_syntax(parse, start, "expected a number");
    }
    skip_blanks(parse);
    *ret = value;
    return GD_OK;
}

static int take_range(struct parse *parse, struct gd_step_range *range)
{
    const char *start = parse->at;
    int rc = take_number(parse, &range->first);

    range->last = range->first;
    if (rc == GD_OK && *parse->at == '-') {
        parse->at++;
        rc = take_number(parse, &range->last);
        if (rc == GD_OK && (range->last < range->first ||
                            (parse->rules->strictly_greater && range->last == range->first))) {
            rc = fail_syntax(parse, start,
                             parse->rules->strictly_greater
                                 ? "the end of a range must be greater than its beginning"
                                 : "a range ends before it begins");
        }
    }
    return rc;
}

static int add_range(struct parse *parse, struct gd_steps *steps)
{
    uint32_t max = parse->rules->max_groups;

    if (max && steps->count == max) {
        return gd_fail(parse->err, GD_ELIMIT, "\"%.100s\" has more than %u groups of steps",
                       parse->text, max);
    }
    if (!gd_grow_list(&steps->range, steps->count, &parse->cap, sizeof(*steps->range))) {
        return gd_fail_nomem(parse->err);
    }
    return take_range(parse, &steps->range[steps->count++]);
}

int gd_steps_parse(const char *text, const struct gd_step_rules *rules, struct gd_steps *ret,
                   struct gd_err *err)
{
    struct parse parse = {text, text, rules, err};
    struct gd_steps steps = {.all = false};
    int rc = GD_OK;

    if (rules->all_allowed && strcmp(text, "all") == 0) {
        *ret = (struct gd_steps){.all = true};
        return GD_OK;
    }
    do {
        rc = add_range(&parse, &steps);
    } while (rc == GD_OK && *parse.at == '|' && parse.at++);
    if (rc == GD_OK && *parse.at != '\0') {
        rc = fail_syntax(&parse, parse.at, "expected a digit, '-' or '|'");
    }
    if (rc != GD_OK) {
        gd_steps_clear(&steps);
        return rc;
    }
    *ret = steps;
    return GD_OK;
}

void gd_steps_clear(struct gd_steps *steps)
{
    free(steps->range);
    *steps = (struct gd_steps){.all = false};
}

bool gd_steps_have(const struct gd_steps *steps, int64_t step)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        if (step >= steps->range[i].first && step <= steps->range[i].last) {
            return true;
        }
    }
    return steps->all;
}

void gd_steps_text(const struct gd_steps *steps, struct gd_buf *out)
{
    if (steps->all) {
        gd_buf_puts(out, "all");
    }
    for (uint32_t i = 0; i < steps->count; i++) {
        const struct gd_step_range *range = &steps->range[i];

        gd_buf_printf(out, "%s%" PRId64, i ? "|" : "", range->first);
        if (range->last != range->first) {
            gd_buf_printf(out, "-%" PRId64, range->last);
        }
    }
}
