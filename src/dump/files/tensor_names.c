// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/files/tensor_names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Words that are followed by a step, the most certain first; a number after "epoch" only if there
 * is nothing else. */
static const char *const words[] = {"global_step", "steps",      "step", "iteration",
                                    "iter",        "checkpoint", "ckpt", "epoch"};

static bool is_separator(char c)
{
    return c == '-' || c == '_' || c == '=' || c == '.';
}

/* The length of the digits at p, up to `end`; 0: none, or too many. */
static size_t read_number(const char *p, const char *end, int64_t *ret)
{
    int64_t value = 0;
    size_t n = 0;

    for (; p + n < end && isdigit((unsigned char)p[n]); n++) {
        if (n == 15) {
            return 0;
        }
        value = value * 10 + (p[n] - '0');
    }
    *ret = value;
    return n;
}

/* Matches the word at p and the number after it; the length of both, or 0. */
static size_t read_word(const char *p, const char *end, const char *word, int64_t *ret)
{
    size_t len = strlen(word), n;

    if ((size_t)(end - p) <= len || strncasecmp(p, word, len) != 0) {
        return 0;
    }
    len += is_separator(p[len]) ? 1 : 0;
    n = read_number(p + len, end, ret);
    return n ? len + n : 0;
}

void gd_path_directory(const char *text, struct gd_path_facts *facts, struct gd_buf *name)
{
    const char *end = text + strlen(text);
    int64_t number;

    if (!facts->has_rank &&
        (read_word(text, end, "rank", &number) == strlen(text) ||
         read_word(text, end, "device", &number) == strlen(text)) &&
        number < 1 << 20) {
        facts->has_rank = true;
        facts->rank = (int)number;
        return;
    }
    if (!facts->has_step && read_number(text, end, &number) == strlen(text) && *text) {
        facts->has_step = true;
        facts->step = number;
        return;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !facts->has_step; i++) {
        if (read_word(text, end, words[i], &number) == strlen(text)) {
            facts->has_step = true;
            facts->step = number;
            return;
        }
    }
    gd_buf_printf(name, "%s%s", name->len ? "/" : "", text);
}

/* Finds a word with a number in the name, at the beginning or after a separator. */
static bool find_word(const char *base, size_t len, const char **at, size_t *size, int64_t *step)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (size_t k = 0; k < len; k++) {
            if (k > 0 && !is_separator(base[k - 1])) {
                continue;
            }
            *size = read_word(base + k, base + len, words[i], step);
            if (*size && (k + *size == len || is_separator(base[k + *size]))) {
                *at = base + k;
                return true;
            }
        }
    }
    return false;
}

/* The ending "-2_1875" of MindSpore's checkpoints. */
static size_t find_epoch(const char *base, size_t len, struct gd_path_facts *facts)
{
    const char *end = base + len;
    size_t at = len, n;

    while (at > 0 && (isdigit((unsigned char)base[at - 1]) || base[at - 1] == '_')) {
        at--;
    }
    if (at == 0 || base[at - 1] != '-') {
        return 0;
    }
    n = read_number(base + at, end, &facts->epoch);
    if (n == 0 || base[at + n] != '_' ||
        read_number(base + at + n + 1, end, &facts->step) + n + 1 != len - at ||
        at + n + 1 == len) {
        return 0;
    }
    facts->has_epoch = facts->has_step = true;
    return len - at + 1;
}

/* Joins two parts of the name with one separator. */
static void add_pieces(const char *a, size_t a_len, const char *b, size_t b_len,
                       struct gd_buf *name)
{
    while (a_len && is_separator(a[a_len - 1])) {
        a_len--;
    }
    while (b_len && is_separator(*b)) {
        b++;
        b_len--;
    }
    if (name->len && a_len + b_len) {
        gd_buf_putc(name, '/');
    }
    gd_buf_add(name, a, a_len);
    if (a_len && b_len) {
        gd_buf_putc(name, '_');
    }
    gd_buf_add(name, b, b_len);
}

void gd_path_file(const char *base, size_t len, const char *extension, struct gd_path_facts *facts,
                  struct gd_buf *name)
{
    const char *at = base + len;
    size_t size = 0;
    int64_t step;

    if (!facts->has_step && strcmp(extension, ".ckpt") == 0) {
        size = find_epoch(base, len, facts);
        at = base + len - size;
    }
    if (!facts->has_step && find_word(base, len, &at, &size, &step)) {
        facts->has_step = true;
        facts->step = step;
    }
    if (size == 0) {
        at = base + len;
    }
    add_pieces(base, (size_t)(at - base), at + size, (size_t)(base + len - at) - size, name);
}

void gd_node_name_of(const char *name, struct gd_buf *out)
{
    for (const char *p = name; *p; p++) {
        bool inside =
            p > name && p[1] && p[-1] != '.' && p[-1] != '/' && p[1] != '.' && p[1] != '/';

        gd_buf_putc(out, *p == '.' && inside ? '/' : *p);
    }
}
