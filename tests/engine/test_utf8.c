// SPDX-License-Identifier: GPL-3.0-or-later
/* UTF-8: every code point there and back, and what is none. */
#include "../unit.h"
#include "engine/utf8.h"

static size_t encode_utf8(uint32_t code, char out[5])
{
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = len; i-- > 1; code >>= 6) {
        out[i] = (char)(unsigned char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(unsigned char)(lead[len] | code);
    out[len] = '\0';
    return len;
}

static void every_code_point_is_read(void **state)
{
    char text[5];
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        uint32_t got = 0xffffffff;
        size_t len = encode_utf8(code, text);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        if (gd_utf8_decode(text, &got) != (surrogate ? 0 : len) ||
            got != (surrogate ? 0xffffffff : code)) {
            fail_msg("U+%04X is read as U+%04X", code, got);
        }
    }
}

static void what_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xc3",
                                      "\xe2\x82",
                                      "\xf0\x9f\x98",
                                      "\xc3(",
                                      "\xe2(\xa1",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80",
                                      "\xff",
                                      "\xf0\x80\x80\x80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint32_t got = 7;
        assert_int_equal(gd_utf8_decode(bad[i], &got), 0);
        assert_int_equal(got, 7);
    }
}

static void marks_that_reorder(void **state)
{
    assert_true(gd_utf8_reorders(0x202e));
    assert_true(gd_utf8_reorders(0x2066));
    assert_true(gd_utf8_reorders(0xfeff));
    assert_false(gd_utf8_reorders('a'));
    assert_false(gd_utf8_reorders(0x2588));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_point_is_read),
    cmocka_unit_test(what_is_none_is_refused),
    cmocka_unit_test(marks_that_reorder),
};

RUN_TESTS()
