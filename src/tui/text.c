// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* Bytes of the character at p, 0 when it is not UTF-8. Reads no byte after a NUL. */
static size_t decode(const unsigned char *p, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (len == 0 || p[0] > 0xf4) {
        return 0;
    }
    uint32_t value = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        value = value << 6 | (p[i] & 0x3fu);
    }
    if (value < smallest[len] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return 0;
    }
    *code = value;
    return len;
}

/* Marks that turn the direction of what follows: a name could be made to look like another. */
static bool turns_text(uint32_t code)
{
    return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

size_t tui_glyph(const char *text, bool utf8, struct tui_glyph *ret)
{
    uint32_t code = 0;
    size_t len = decode((const unsigned char *)text, &code);

    if (len == 0 || code < 0x20 || code == 0x7f) {
        unsigned byte = (unsigned char)*text;
        if (byte == '\t') {
            ret->width = snprintf(ret->text, sizeof(ret->text), "    ");
        } else {
            ret->width = snprintf(ret->text, sizeof(ret->text), "\\x%02x", byte);
        }
        return 1;
    }
    if (len > 1 && !utf8) {
        ret->width = snprintf(ret->text, sizeof(ret->text), "?");
        return len;
    }
    int width = len == 1 ? 1 : wcwidth((wchar_t)code);
    if (width < 0 || turns_text(code)) {
        ret->width = snprintf(ret->text, sizeof(ret->text), "\\u{%x}", code);
        return len;
    }
    memcpy(ret->text, text, len);
    ret->text[len] = '\0';
    ret->width = width;
    return len;
}

int tui_text_width(const char *text, size_t len, bool utf8)
{
    int width = 0;

    for (size_t at = 0; at < len && text[at] != '\0';) {
        struct tui_glyph glyph;
        at += tui_glyph(text + at, utf8, &glyph);
        width += glyph.width;
    }
    return width;
}

size_t tui_text_fit(const char *text, int columns, bool utf8)
{
    size_t at = 0;
    int width = 0;

    while (text[at] != '\0') {
        struct tui_glyph glyph;
        size_t len = tui_glyph(text + at, utf8, &glyph);
        width += glyph.width;
        if (width > columns) {
            break;
        }
        at += len;
    }
    return at;
}
