// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/utf8.h"

size_t gd_utf8_decode(const char *text, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text;
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
    *ret = value;
    return len;
}

size_t gd_utf8_encode(uint32_t code, char *ret)
{
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = len; i > 1; i--, code >>= 6) {
        ret[i - 1] = (char)(0x80 | (code & 0x3f));
    }
    ret[0] = (char)(lead[len] | code);
    return len;
}

bool gd_utf8_reorders(uint32_t code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

bool gd_utf8_is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || gd_utf8_reorders(code);
}

bool gd_utf8_is_safe_text(const char *text, size_t len)
{
    for (const char *end = text + len; text < end && *text != '\0';) {
        uint32_t code = 0;
        size_t bytes = gd_utf8_decode(text, &code);
        if (bytes == 0 || gd_utf8_is_unsafe(code)) {
            return false;
        }
        text += bytes;
    }
    return true;
}

void gd_utf8_add_json(struct gd_buf *out, const char *json)
{
    while (*json != '\0') {
        uint32_t code = 0;
        size_t len = gd_utf8_decode(json, &code);
        if (len == 0) {
            gd_buf_puts(out, "\xef\xbf\xbd");
        } else if (gd_utf8_is_unsafe(code)) { /* only strings can contain one */
            gd_buf_printf(out, "\\u%04x", code);
        } else {
            gd_buf_add(out, json, len);
        }
        json += len > 0 ? len : 1;
    }
}
