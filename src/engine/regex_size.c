// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/regex_size.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT   1024
#define MAX_PARTS  1000
#define MAX_NESTED 12

struct level {           /* of parentheses */
    unsigned long total; /* parts so far */
    unsigned long last;  /* of the last of them: what a repeat copies */
};

static void add_size(struct level *level, unsigned long parts)
{
    level->last = parts;
    level->total += parts;
}

static void repeat_size(struct level *level, unsigned long times)
{
    times = times < 1 ? 1 : times > MAX_PARTS ? MAX_PARTS + 1 : times;
    level->total += level->last * (times - 1);
    level->last *= times;
}

/* Returns the place after a bracket expression whose '[' is at `at`; its first byte may be a
 * ']'. */
static const char *skip_bracket(const char *at)
{
    const char *from = at + 1 + (at[1] == '^');
    const char *end = *from ? strchr(from + 1, ']') : NULL;

    return end ? end + 1 : at + 1;
}

/* Returns the place after a {n,m} whose '{' is at `at`. */
static const char *read_interval(const char *at, struct level *level)
{
    char *end;
    unsigned long low = strtoul(at + 1, &end, 10);
    unsigned long high = low;

    if (*end == ',') {
        high = strtoul(end + 1, &end, 10);
        high = high ? high : low + 1;
    }
    repeat_size(level, high > low ? high : low);
    return *end == '}' ? end + 1 : at + 1;
}

/* Counts what begins at `text`, and returns what follows it. */
static const char *count_part(const char *text, struct level *stack, size_t *depth)
{
    struct level *level = &stack[*depth];

    switch (*text) {
    case '(': stack[++*depth] = (struct level){0}; return text + 1;
    case ')':
        if (*depth > 0) {
            add_size(&stack[--*depth], level->total + 1);
        }
        return text + 1;
    case '[': add_size(level, 1); return skip_bracket(text);
    case '\\': add_size(level, 1); return text + (text[1] ? 2 : 1);
    case '{': return read_interval(text, level);
    case '+': repeat_size(level, 2); return text + 1;
    case '*':
    case '?': level->total++; return text + 1; /* copies nothing */
    default: add_size(level, 1); return text + 1;
    }
}

/* x**, (x*)?: each doubles the time of regcomp() where an anchor comes before it, as glibc goes
 * through all ways to match nothing. Any group may match nothing. */
static bool is_nested(const char *begin, const char *at)
{
    return at > begin && strchr("*?{", *at) && strchr("*?+})", at[-1]);
}

bool gd_regex_is_too_large(const char *text)
{
    struct level stack[MAX_TEXT + 1] = {{0}};
    const char *begin = text;
    size_t depth = 0, nested = 0;

    if (strlen(text) > MAX_TEXT) {
        return true;
    }
    while (*text) {
        nested += is_nested(begin, text);
        text = count_part(text, stack, &depth);
        if (stack[depth].total > MAX_PARTS || nested > MAX_NESTED) {
            return true;
        }
    }
    return false;
}
