// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/parse.h"
#include "unit.h"

static struct gd_arena arena;
static struct gd_err err;

static int set_up(void **state)
{
    gd_arena_init(&arena, 0);
    err = (struct gd_err){.code = GD_OK};
    return 0;
}

static int tear_down(void **state)
{
    gd_arena_deinit(&arena);
    return 0;
}

static void line_is(const char *text, const char *name, const char *format, const char *rest)
{
    struct parsed_line line;
    assert_ok(parse_line(text, &arena, &line, &err));
    assert_string_equal(line.name, name);
    assert_string_equal(line.format, format);
    assert_string_equal(line.rest, rest);
}

static void lines_come_apart(void **state)
{
    line_is("", "", "", "");
    line_is("   \t", "", "", "");
    line_is("# a comment", "", "", "");
    line_is("  # another", "", "", "");
    line_is("step", "step", "", "");
    line_is("  step 3  ", "step", "", "3");
    line_is("print/f x[0]", "print", "f", "x[0]");
    line_is("x/8f .", "x", "8f", ".");
    line_is("run-to a/b", "run-to", "", "a/b");
    line_is("!ls -l", "!", "", "ls -l");
    line_is("| info nodes | wc", "|", "", "info nodes | wc");
    line_is("/conv.*weight/", "/", "", "/conv.*weight/");
    line_is("print(x)", "print", "", "(x)");
    line_is("p $", "p", "", "$");
    line_is("? step", "?", "", "step");
    line_is("echo # no comment here", "echo", "", "# no comment here");
}

static void bad_lines_are_refused(void **state)
{
    struct parsed_line line;
    char *text = malloc(PARSE_MAX_LINE + 3);

    assert_non_null(text);
    memset(text, 'x', PARSE_MAX_LINE + 1);
    text[PARSE_MAX_LINE + 1] = '\0';
    assert_int_equal(parse_line(text, &arena, &line, &err), GD_ELIMIT);
    text[PARSE_MAX_LINE] = '\0';
    assert_ok(parse_line(text, &arena, &line, &err));
    free(text);
    assert_int_equal(parse_line("(x)", &arena, &line, &err), GD_EINVAL);
    assert_int_equal(parse_line("\"x\"", &arena, &line, &err), GD_EINVAL);
}

static void args_are(const char *text, int count, ...)
{
    struct parsed_args args;
    va_list words;

    assert_ok(parse_args(text, &arena, &args, &err));
    assert_int_equal(args.argc, count);
    assert_null(args.argv[count]);
    va_start(words, count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(args.argv[i], va_arg(words, const char *));
    }
    va_end(words);
}

static void words_are_split(void **state)
{
    args_are("", 0);
    args_are("a b\tc", 3, "a", "b", "c");
    args_are("conv1.weight[0, :, 1:3] next", 2, "conv1.weight[0, :, 1:3]", "next");
    args_are("'one word' \"two \\\"words\\\"\" x", 3, "one word", "two \"words\"", "x");
    args_are("a\"b c\"d", 1, "ab cd");
    args_are("f(a, {b c}) g", 2, "f(a, {b c})", "g");
    args_are("a[b c", 2, "a[b", "c"); /* no partner: an ordinary letter */
    args_are("a]b c", 2, "a]b", "c");
    args_are("[a (b] c", 2, "[a (b]", "c"); /* an opener inside that is never closed */
    args_are("\"\" x", 2, "", "x");
}

static void redirection_is_taken_out(void **state)
{
    struct parsed_args args;

    assert_ok(parse_args("graph > out.txt", &arena, &args, &err));
    assert_string_equal(args.file, "out.txt");
    assert_false(args.append);
    assert_string_equal(args.line, "graph");
    assert_int_equal(args.argc, 1);
    assert_ok(parse_args("a b >>'o p'", &arena, &args, &err));
    assert_string_equal(args.file, "o p");
    assert_true(args.append);
    assert_string_equal(args.line, "a b");
    assert_ok(parse_args("\">\" x", &arena, &args, &err));
    assert_null(args.file);
    assert_int_equal(args.argc, 2);
    assert_ok(parse_args("a>b", &arena, &args, &err));
    assert_null(args.file);
    assert_int_equal(parse_args("a >", &arena, &args, &err), GD_EINVAL);
    assert_int_equal(parse_args("a > b c", &arena, &args, &err), GD_EINVAL);
}

static void background_is_taken_out(void **state)
{
    struct parsed_args args;

    assert_ok(parse_args("3 &", &arena, &args, &err));
    assert_true(args.background);
    assert_string_equal(args.line, "3");
    assert_ok(parse_args("&", &arena, &args, &err));
    assert_true(args.background);
    assert_int_equal(args.argc, 0);
    assert_ok(parse_args("\"&\"", &arena, &args, &err));
    assert_false(args.background);
    assert_string_equal(args.argv[0], "&");
}

static void what_follows_the_first_word(void **state)
{
    struct parsed_args args;

    assert_ok(parse_args("graph  a b", &arena, &args, &err));
    assert_string_equal(args.after_first, "a b");
    assert_ok(parse_args("graph > f", &arena, &args, &err));
    assert_string_equal(args.after_first, "");
}

static void unclosed_quotes_are_refused(void **state)
{
    struct parsed_args args;

    assert_int_equal(parse_args("a \"b", &arena, &args, &err), GD_EINVAL);
    assert_contains(err.text, "not closed");
    assert_int_equal(parse_args("'", &arena, &args, &err), GD_EINVAL);
    assert_int_equal(parse_args("a > 'f", &arena, &args, &err), GD_EINVAL);
}

static void brackets_alone_cost_little(void **state)
{
    struct parsed_args args;
    char *text = malloc(PARSE_MAX_LINE);

    assert_non_null(text);
    memset(text, '[', PARSE_MAX_LINE - 1);
    memset(text + PARSE_MAX_LINE / 2, ')', PARSE_MAX_LINE / 2 - 1);
    text[PARSE_MAX_LINE - 1] = '\0';
    assert_ok(parse_args(text, &arena, &args, &err));
    assert_int_equal(args.argc, 1);
    free(text);
}

static void too_many_words_are_refused(void **state)
{
    struct parsed_args args;
    char *text = malloc(20001);

    assert_non_null(text);
    for (int i = 0; i < 20000; i += 2) {
        memcpy(text + i, "a ", 2);
    }
    text[20000] = '\0';
    assert_int_equal(parse_args(text, &arena, &args, &err), GD_ELIMIT);
    free(text);
}

static void program_words_know_only_quotes(void **state)
{
    int argc = 0;
    char **argv = NULL;

    assert_ok(parse_words("-- prog [a b] > f &", &arena, &argc, &argv, &err));
    assert_int_equal(argc, 7);
    assert_string_equal(argv[2], "[a");
    assert_string_equal(argv[4], ">");
    assert_string_equal(argv[6], "&");
    assert_ok(parse_words("'a b' \"c\\\\d\"", &arena, &argc, &argv, &err));
    assert_int_equal(argc, 2);
    assert_string_equal(argv[1], "c\\d");
}

static const struct CMUnitTest tests[] = {
    TEST(lines_come_apart),
    TEST(bad_lines_are_refused),
    TEST(words_are_split),
    TEST(redirection_is_taken_out),
    TEST(background_is_taken_out),
    TEST(what_follows_the_first_word),
    TEST(unclosed_quotes_are_refused),
    TEST(brackets_alone_cost_little),
    TEST(too_many_words_are_refused),
    TEST(program_words_know_only_quotes),
};

RUN_TESTS()
