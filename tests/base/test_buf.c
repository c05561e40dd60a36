// SPDX-License-Identifier: GPL-3.0-or-later
#include "../unit.h"
#include "base/buf.h"
#include "base/error.h"

static void appends_add_up(void **state)
{
    struct gd_buf buf = GD_BUF_INIT(1000);

    assert_string_equal(gd_buf_text(&buf), "");
    assert_ok(gd_buf_puts(&buf, "ab"));
    assert_ok(gd_buf_putc(&buf, 'c'));
    assert_ok(gd_buf_add(&buf, "d\0e", 3));
    assert_ok(gd_buf_fill(&buf, '-', 3));
    assert_ok(gd_buf_printf(&buf, "%d/%s", 42, "x"));
    assert_int_equal(buf.len, 13);
    assert_memory_equal(gd_buf_text(&buf), "abcd\0e---42/x", 14);
    gd_buf_deinit(&buf);
    assert_string_equal(gd_buf_text(&buf), "");
}

static void nothing_passes_the_maximum(void **state)
{
    struct gd_buf buf = GD_BUF_INIT(5);

    assert_ok(gd_buf_puts(&buf, "abcd"));
    assert_int_equal(gd_buf_puts(&buf, "ef"), GD_ELIMIT);
    assert_true(buf.failed);
    assert_string_equal(gd_buf_text(&buf), "abcd");
    assert_ok(gd_buf_putc(&buf, 'e'));
    assert_int_equal(gd_buf_putc(&buf, 'f'), GD_ELIMIT);
    assert_int_equal(gd_buf_printf(&buf, "%d", 1), GD_ELIMIT);
    assert_int_equal(gd_buf_fill(&buf, 'x', SIZE_MAX), GD_ELIMIT);
    assert_int_equal(gd_buf_reserve(&buf, SIZE_MAX), GD_ELIMIT);
    assert_string_equal(gd_buf_text(&buf), "abcde");
    gd_buf_clear(&buf);
    assert_false(buf.failed);
    assert_string_equal(gd_buf_text(&buf), "");
    assert_ok(gd_buf_puts(&buf, "12345"));
    gd_buf_deinit(&buf);
}

static void no_limit_is_not_no_check(void **state)
{
    struct gd_buf buf = GD_BUF_INIT(SIZE_MAX);

    assert_int_equal(gd_buf_reserve(&buf, SIZE_MAX), GD_ELIMIT);
    gd_buf_clear(&buf);
    assert_int_equal(gd_buf_reserve(&buf, SIZE_MAX / 4), GD_ENOMEM);
    assert_true(buf.failed);
    gd_buf_clear(&buf);
    for (int i = 0; i < 100000; i++) {
        assert_ok(gd_buf_putc(&buf, (char)('a' + i % 26)));
    }
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(buf.data[i], 'a' + i % 26);
    }
    gd_buf_deinit(&buf);
}

static void take_hands_the_bytes_over(void **state)
{
    struct gd_buf buf;
    char *text;

    gd_buf_init(&buf, 10);
    assert_null(gd_buf_take(&buf));
    gd_buf_puts(&buf, "hello");
    text = gd_buf_take(&buf);
    assert_string_equal(text, "hello");
    free(text);
    assert_int_equal(buf.len, 0);
    gd_buf_puts(&buf, "too long for it");
    assert_null(gd_buf_take(&buf));
    gd_buf_puts(&buf, "again");
    assert_string_equal(gd_buf_text(&buf), "again");
    gd_buf_deinit(&buf);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(appends_add_up),
    cmocka_unit_test(nothing_passes_the_maximum),
    cmocka_unit_test(no_limit_is_not_no_check),
    cmocka_unit_test(take_hands_the_bytes_over),
};

RUN_TESTS()
