// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>

#include "../unit.h"
#include "base/error.h"

static void a_failure_has_code_and_sentence(void **state)
{
    struct gd_err err;

    assert_int_equal(gd_fail(&err, GD_ENOTFOUND, "no node %s", "a/b"), GD_ENOTFOUND);
    assert_int_equal(err.code, GD_ENOTFOUND);
    assert_int_equal(err.offset, 0);
    assert_string_equal(err.text, "no node a/b");
}

static void err_may_be_null(void **state)
{
    assert_int_equal(gd_fail(NULL, GD_EINVAL, "%d", 1), GD_EINVAL);
    assert_int_equal(gd_fail_errno(NULL, GD_EIO, "%d", 1), GD_EIO);
}

static void errno_is_kept_and_spelled_out(void **state)
{
    struct gd_err err;

    errno = ENOENT;
    assert_int_equal(gd_fail_errno(&err, GD_EIO, "cannot open %s", "x"), GD_EIO);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(err.text, "cannot open x: No such file or directory");
}

static void a_message_is_one_line(void **state)
{
    struct gd_err err;

    gd_fail(&err, GD_EINVAL, "no such \"%s\"", "a\nb\tc\x1b[31m");
    assert_string_equal(err.text, "no such \"a b c [31m\"");
}

static void a_long_message_is_cut(void **state)
{
    struct gd_err err;
    char text[2 * GD_ERR_TEXT_MAX];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    gd_fail(&err, GD_EINVAL, "%s", text);
    assert_int_equal(strlen(err.text), GD_ERR_TEXT_MAX - 1);
    errno = EPERM;
    gd_fail_errno(&err, GD_EIO, "%s", text);
    assert_int_equal(strlen(err.text), GD_ERR_TEXT_MAX - 1);
}

static void a_message_can_wrap_itself(void **state)
{
    struct gd_err err;

    gd_fail(&err, GD_EINVAL, "inner");
    gd_fail(&err, GD_EPROTO, "outer: %s", err.text);
    assert_string_equal(err.text, "outer: inner");
}

static void every_code_has_a_name_of_its_own(void **state)
{
    for (int a = GD_EUSAGE; a <= GD_OK; a++) {
        assert_string_not_equal(gd_status_name(a), "unknown");
        for (int b = a + 1; b <= GD_OK; b++) {
            assert_string_not_equal(gd_status_name(a), gd_status_name(b));
        }
    }
    assert_string_equal(gd_status_name(GD_ENOTFOUND), "not_found");
    assert_string_equal(gd_status_name(GD_ESTATE), "state");
    assert_string_equal(gd_status_name(GD_ENODATA), "no_data");
    assert_string_equal(gd_status_name(GD_EUSAGE), "usage");
    assert_string_equal(gd_status_name(GD_EUSAGE - 1), "unknown");
    assert_string_equal(gd_status_name(1), "unknown");
    assert_string_equal(gd_status_name(INT32_MIN), "unknown");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_failure_has_code_and_sentence),
    cmocka_unit_test(err_may_be_null),
    cmocka_unit_test(errno_is_kept_and_spelled_out),
    cmocka_unit_test(a_message_is_one_line),
    cmocka_unit_test(a_long_message_is_cut),
    cmocka_unit_test(a_message_can_wrap_itself),
    cmocka_unit_test(every_code_has_a_name_of_its_own),
};

RUN_TESTS()
