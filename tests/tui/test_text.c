// SPDX-License-Identifier: GPL-3.0-or-later
/* What may be put on a screen, and how wide it is. */
#include <locale.h>

#include "../unit.h"
#include "tui/text.h"

static const struct {
    const char *text;
    const char *utf8; /* what is drawn, all glyphs together */
    const char *ascii;
    int width; /* with UTF-8 */
} cases[] = {
    {"", "", "", 0},
    {"plain", "plain", "plain", 5},
    {"a\tb", "a    b", "a    b", 6},
    {"\x1b[31mred", "\\x1b[31mred", "\\x1b[31mred", 11},
    {"line\nline", "line\\x0aline", "line\\x0aline", 12},
    {"del\x7f", "del\\x7f", "del\\x7f", 7},
    {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9", "?t?", 3},
    {"\xe5\xb1\x82", "\xe5\xb1\x82", "?", 2},
    {"e\xcc\x81", "e\xcc\x81", "e?", 1},
    {"\xff\xfe", "\\xff\\xfe", "\\xff\\xfe", 8},
    {"\xc3", "\\xc3", "\\xc3", 4}, /* cut off */
    {"\xe5\xb1", "\\xe5\\xb1", "\\xe5\\xb1", 8},
    {"\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf", 8},                /* too long a form */
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", 12}, /* half of a pair */
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80", 16},
    {"\xe2\x80\xaeoff", "\\u{202e}off", "?off", 11}, /* would write backwards */
    {"\xc2\x9b"
     "31m",
     "\\u{9b}31m", "?31m", 9}, /* a control beyond ASCII */
};

static void draw_text(const char *text, bool utf8, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    while (*text != '\0') {
        struct tui_glyph glyph;
        size_t len = tui_glyph(text, utf8, &glyph);
        assert_in_range(len, 1, strlen(text));
        assert_true(used + strlen(glyph.text) < size);
        memcpy(out + used, glyph.text, strlen(glyph.text) + 1);
        used += strlen(glyph.text);
        text += len;
    }
}

static void test_glyphs(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char out[128];
        draw_text(cases[i].text, true, out, sizeof(out));
        assert_string_equal(out, cases[i].utf8);
        draw_text(cases[i].text, false, out, sizeof(out));
        assert_string_equal(out, cases[i].ascii);
        assert_int_equal(tui_text_width(cases[i].text, strlen(cases[i].text), true),
                         cases[i].width);
    }
}

static void test_fitting(void **state)
{
    assert_int_equal(tui_text_fit("abcdef", 3, true), 3);
    assert_int_equal(tui_text_fit("abc", 10, true), 3);
    assert_int_equal(tui_text_fit("abc", 0, true), 0);
    assert_int_equal(tui_text_fit("\xe5\xb1\x82\xe5\xb1\x82", 3, true), 3); /* two columns each */
    assert_int_equal(tui_text_fit("e\xcc\x81x", 1, true), 3); /* the accent goes with its letter */
    assert_int_equal(tui_text_fit("\x1b", 3, true), 0);       /* \x1b needs four columns */
}

static void test_wrapping(void **state)
{
    size_t row;
    assert_int_equal(tui_text_wrap("one two three", 20, true), 13);
    assert_int_equal(tui_text_wrap("one two three", 9, true), 7); /* whole words */
    assert_int_equal(tui_text_wrap("one two three", 7, true), 7);
    assert_int_equal(tui_text_wrap("unbreakable", 5, true), 5);
    assert_int_equal(tui_text_wrap("scope/node-op1", 8, true), 6); /* behind a scope */
    assert_int_equal(tui_text_next("one two three", 9, true, &row), 8);
    assert_int_equal(row, 7);
    /* The blanks of a histogram are bars. */
    assert_int_equal(tui_text_wrap("std=1.5 |.:  #  =|", 15, false), 7);
    assert_int_equal(tui_text_wrap("std=1.5 |.:  #  =| x", 18, false), 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glyphs),
        cmocka_unit_test(test_fitting),
        cmocka_unit_test(test_wrapping),
    };
    if (!setlocale(LC_CTYPE, "C.UTF-8")) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
