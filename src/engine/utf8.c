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
    return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}
