// SPDX-License-Identifier: GPL-3.0-or-later
#include "../unit.h"
#include "engine/stack.h"

static const struct {
    const char *text;
    const char *file;
    uint32_t line;
    const char *code;
    bool is_title;
} cases[] = {
    {"      # In file /a/b.py(12)/x = y/", "/a/b.py", 12, "x = y", false},
    {"      # In file /a/b.py:12/x = y/", "/a/b.py", 12, "x = y", false},
    {"      #  - In file /a/b.py:12/x = y/", "/a/b.py", 12, "x = y", false},
    {"      #    In file /a/b.py:12/x = y/", "/a/b.py", 12, "x = y", false},
    {"# In file b.py(3)/    return a / b(4)/c/", "b.py", 3, "return a / b(4)/c", false},
    {"# In file b.py:3/d[1:2]/e = {5:6}/", "b.py", 3, "d[1:2]/e = {5:6}", false},
    {"# In file /x(1)/y:2/net.py(9)/f(x)/", "/x(1)/y:2/net.py", 9, "f(x)", false},
    {"# In file C:/w/net.py:9/f/", "C:/w/net.py", 9, "f", false},
    {"# In file /src/op.cc:77/g(1)/h/", "/src/op.cc", 77, "g(1)/h", false},
    {"# In file /bin/tool(5)/g/", "/bin/tool", 5, "g", false},
    {"# In file b.py:4", "b.py", 4, "", false},
    {"# In file b.py(4)//", "b.py", 4, "", false},
    {"# In file b.py(4)/a\r", "b.py", 4, "a", false},
    {"# In file b.py:99999999999999999999/a/", "b.py", 0, "a", false},
    {"# In file nowhere", "", 0, "In file nowhere", false},
    {"# In file (3)/x/", "", 0, "In file (3)/x/", false},
    {"# Corresponding forward node candidate:", "", 0,
     "Corresponding forward node candidate:", true},
    {"      # Corresponding code candidate:", "", 0, "Corresponding code candidate:", true},
    {"anything else", "", 0, "anything else", false},
    {"# - dash", "", 0, "- dash", false},
};

static void test_lines(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_arena arena;
        struct gd_frame *frames;
        uint32_t count;

        gd_arena_init(&arena, 0);
        assert_ok(gd_stack_parse(cases[i].text, strlen(cases[i].text), &arena, &frames, &count));
        assert_int_equal(count, 1);
        assert_string_equal(frames[0].file, cases[i].file);
        assert_int_equal(frames[0].line, cases[i].line);
        assert_string_equal(frames[0].code, cases[i].code);
        assert_string_equal(frames[0].function, "");
        assert_int_equal(frames[0].is_title, cases[i].is_title);
        gd_arena_deinit(&arena);
    }
}

static void test_several(void **state)
{
    static const char text[] = "      # In file a.py(1)/one/\n"
                               "\n"
                               "      #\n"
                               "      # Corresponding forward node candidate:\n"
                               "      #  - In file b.py(2)/two/\n"
                               "      #    In file c.py(3)/three/";
    struct gd_arena arena;
    struct gd_frame *frames;
    uint32_t count;

    gd_arena_init(&arena, 0);
    assert_ok(gd_stack_parse(text, strlen(text), &arena, &frames, &count));
    assert_int_equal(count, 4);
    assert_string_equal(frames[0].file, "a.py");
    assert_true(frames[1].is_title);
    assert_string_equal(frames[3].code, "three");
    assert_ok(gd_stack_parse("", 0, &arena, &frames, &count));
    assert_int_equal(count, 0);
    gd_arena_deinit(&arena);
}

static void test_no_memory(void **state)
{
    static const char text[] = "# In file a.py(1)/one/\n# In file b.py(2)/two/\n";
    struct gd_arena arena;
    struct gd_frame *frames = NULL;
    uint32_t count = 77;

    gd_arena_init(&arena, 1);
    assert_int_equal(gd_stack_parse(text, strlen(text), &arena, &frames, &count), GD_ENOMEM);
    assert_null(frames);
    assert_int_equal(count, 77);
    gd_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines),
    cmocka_unit_test(test_several),
    cmocka_unit_test(test_no_memory),
};

RUN_TESTS()
