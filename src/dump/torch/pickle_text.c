// SPDX-License-Identifier: GPL-3.0-or-later
/* Numbers and strings that older opcodes write as text on a line. */
#include <stdlib.h>
#include <string.h>

#include "dump/torch/pickle_impl.h"
#include "engine/utf8.h"

#define MAX_NUMBER 64 /* digits of a float */

static struct gd_pickle_value *fail_broken(struct pickle_machine *machine, const char *why)
{
    pickle_fail(&machine->input, machine->err, GD_EPROTO, "%s", why);
    return NULL;
}

static struct gd_pickle_value *new_big(struct pickle_machine *machine, const char *text,
                                       uint32_t len)
{
    struct gd_pickle_value *value = pickle_new(machine, GD_PICKLE_BIG);

    if (value) {
        value->text = text;
        value->count = len;
    }
    return value;
}

struct gd_pickle_value *pickle_parse_int(struct pickle_machine *machine, const char *text,
                                         uint32_t len)
{
    uint32_t at = len && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    uint64_t limit = (uint64_t)INT64_MAX + (len && text[0] == '-' ? 1 : 0), number = 0;
    struct gd_pickle_value *value;
    bool fits = true;

    len -= len && text[len - 1] == 'L' ? 1 : 0;
    if (at >= len) {
        return fail_broken(machine, "an integer without digits");
    }
    for (; at < len; at++) {
        uint64_t digit = (uint64_t)(text[at] - '0');

        if (text[at] < '0' || text[at] > '9') {
            return fail_broken(machine, "an integer with other characters than digits");
        }
        fits = fits && number <= (limit - digit) / 10;
        number = fits ? number * 10 + digit : number;
    }
    if (!fits) {
        return new_big(machine, text, len);
    }
    value = pickle_new(machine, GD_PICKLE_INT);
    if (value) {
        value->integer = (int64_t)(text[0] == '-' ? 0 - number : number);
    }
    return value;
}

struct gd_pickle_value *pickle_parse_float(struct pickle_machine *machine, const char *text,
                                           uint32_t len)
{
    char copy[MAX_NUMBER + 1], *end;
    struct gd_pickle_value *value;
    double number;

    if (!len || len > MAX_NUMBER) {
        return fail_broken(machine, "a float that is empty or too long");
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    number = strtod(copy, &end);
    if (end != copy + len) {
        return fail_broken(machine, "an invalid float");
    }
    value = pickle_new(machine, GD_PICKLE_FLOAT);
    if (value) {
        value->real = number;
    }
    return value;
}

/* Parses exactly `count` digits. */
static bool get_digits(const char *text, uint32_t len, unsigned count, unsigned base, uint32_t *ret)
{
    uint32_t code = 0;

    for (unsigned i = 0; i < count; i++) {
        char c = i < len ? text[i] : '\0';
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : base;
        if (digit >= base) {
            return false;
        }
        code = code * base + digit;
    }
    *ret = code;
    return true;
}

/* The character for a backslash and a letter; '\0': none. */
static char simple_escape(char letter)
{
    switch (letter) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case '\\':
    case '\'':
    case '"': return letter;
    default: return '\0';
    }
}

/* Decodes one escape at text[0] == '\\'; returns its length, or 0 if it is none and stays as it
 * is. */
static uint32_t decode_escape(const char *text, uint32_t len, bool quoted, char **out)
{
    char letter = len > 1 ? text[1] : '\0';
    uint32_t code;

    if (!quoted) {
        unsigned digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;

        if (!digits || !get_digits(text + 2, len - 2, digits, 16, &code) || code > 0x10ffff) {
            return 0;
        }
        *out += gd_utf8_encode(code, *out);
        return 2 + digits;
    }
    if (letter == 'x' && get_digits(text + 2, len - 2, 2, 16, &code)) {
        *(*out)++ = (char)code;
        return 4;
    }
    for (unsigned digits = 3; letter >= '0' && letter <= '7' && digits > 0; digits--) {
        if (get_digits(text + 1, len - 1, digits, 8, &code)) {
            *(*out)++ = (char)code;
            return 1 + digits;
        }
    }
    if (simple_escape(letter)) {
        *(*out)++ = simple_escape(letter);
        return 2;
    }
    return 0;
}

struct gd_pickle_value *pickle_parse_text(struct pickle_machine *machine, const char *text,
                                          uint32_t len, bool quoted)
{
    struct gd_pickle_value *value;
    char *copy, *out;

    if (quoted) {
        if (len < 2 || (text[0] != '\'' && text[0] != '"') || text[len - 1] != text[0]) {
            return fail_broken(machine, "a string without quotes");
        }
        text++;
        len -= 2;
    }
    copy = out = pickle_alloc(machine, (size_t)len + 1); /* no escape is shorter than its result */
    value = copy ? pickle_new(machine, GD_PICKLE_TEXT) : NULL;
    if (!value) {
        return NULL;
    }
    for (uint32_t i = 0; i < len;) {
        uint32_t taken = text[i] == '\\' ? decode_escape(text + i, len - i, quoted, &out) : 0;

        if (!taken) {
            *out++ = text[i];
            taken = 1;
        }
        i += taken;
    }
    value->text = copy;
    value->count = (uint32_t)(out - copy);
    return value;
}
