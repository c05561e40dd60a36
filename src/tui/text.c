// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "engine/utf8.h"
#include "tui/draw.h"

#define BARS_LEAST 8 /* of a histogram */

size_t tui_glyph(const char *text, bool utf8, struct tui_glyph *ret)
{
    uint32_t code = 0;
    size_t len = gd_utf8_decode(text, &code);

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
    if (width < 0 || gd_utf8_is_unsafe(code)) {
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

/* The length in bytes of the histogram bars that begin here, including their edges; 0: none. */
static size_t bars_at(const char *text)
{
    size_t len = 1;

    while (text[0] == '|' && text[len] != '\0' &&
           ((unsigned char)text[len] >= 0x80 || strchr(" .:-=+*%#", text[len]))) {
        len++;
    }
    return len > BARS_LEAST && text[len] == '|' ? len + 1 : 0;
}

size_t tui_text_wrap(const char *text, int columns, bool utf8)
{
    size_t len = tui_text_fit(text, columns, utf8);
    size_t blank = 0, scope = 0;

    for (size_t i = 0; text[len] != '\0' && (i < len || (i == len && text[i] == ' ')); i++) {
        size_t bars = bars_at(text + i);
        if (text[i] == ' ' && i > len / 4) {
            blank = i;
        } else if (text[i] == '/' && i > len / 4) {
            scope = i + 1;
        }
        i += bars > 0 ? bars - 1 : 0;
    }
    return blank > 0 ? blank : scope > 0 && scope <= len && text[len] != ' ' ? scope : len;
}

size_t tui_text_next(const char *text, int columns, bool utf8, size_t *row)
{
    *row = tui_text_wrap(text, columns, utf8);
    return *row > 0 ? *row + strspn(text + *row, " ") : strlen(text);
}

void tui_text_erase_last(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80) {
        len--;
    }
    text[len > 0 ? len - 1 : 0] = '\0';
}

bool tui_text_key(char *text, size_t size, int key)
{
    size_t len = strlen(text);

    if (key == DRAW_KEY_BACKSPACE || key == 0x7f || key == 8) {
        tui_text_erase_last(text);
        return true;
    }
    if (key < ' ' || key > '~' || len + 1 >= size) {
        return false;
    }
    text[len] = (char)key;
    text[len + 1] = '\0';
    return true;
}

const char *tui_text_fit_name(const char *name, int columns, bool utf8, char *room, size_t size)
{
    const char *dots = utf8 ? "\u2026" : "...";
    int left = columns - (utf8 ? 1 : 3);
    const char *tail = name;

    if (tui_text_width(name, strlen(name), utf8) <= columns) {
        return name;
    }
    while (*tail != '\0' && tui_text_width(tail, strlen(tail), utf8) > left) {
        struct tui_glyph glyph;
        const char *slash = strchr(tail + 1, '/');
        tail = slash ? slash : tail + tui_glyph(tail, utf8, &glyph);
    }
    snprintf(room, size, "%s%s", dots, tail);
    return room;
}
