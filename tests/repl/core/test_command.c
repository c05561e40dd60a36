// SPDX-License-Identifier: GPL-3.0-or-later
/* The tables themselves, and how a word finds its command. */
#include <ctype.h>

#include "repl/core/command.h"
#include "repl/words/foreign.h"
#include "unit.h"

static const struct command *find_command(const char *word)
{
    const struct command *command = NULL;

    assert_ok(command_find(NULL, word, strlen(word), &command, NULL));
    return command;
}

static void short_forms_are_gdbs(void **state)
{
    static const char *const pairs[][2] = {
        {"r", "run"},          {"c", "continue"},      {"s", "step"},          {"n", "next"},
        {"u", "run-to"},       {"until", "run-to"},    {"advance", "run-to"},  {"fin", "finish"},
        {"b", "break"},        {"tb", "tbreak"},       {"d", "delete"},        {"dis", "disable"},
        {"en", "enable"},      {"i", "info"},          {"p", "print"},         {"l", "list"},
        {"bt", "backtrace"},   {"where", "backtrace"}, {"q", "quit"},          {"h", "help"},
        {"k", "kill"},         {"!", "shell"},         {"|", "pipe"},          {"ign", "ignore"},
        {"cond", "condition"}, {"nh", "next-hit"},     {"ph", "previous-hit"}, {"wa", "watch"},
        {"tw", "twatch"},      {"rec", "recommend"},   {"fs", "focus"},        {"wh", "winheight"},
        {"lay", "layout"},     {"ref", "refresh"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const struct command *command = NULL;
        struct gd_err err;
        int rc = command_find(NULL, pairs[i][0], strlen(pairs[i][0]), &command, &err);
        assert_ok(rc);
        assert_string_equal(command->name, pairs[i][1]);
    }
}

static void every_name_finds_its_command(void **state)
{
    int count = 0;

    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        assert_ptr_equal(find_command(c->name), c);
        count++;
    }
    assert_true(count >= 40);
}

static void aliases_belong_to_one_command(void **state)
{
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        for (const char *p = c->aliases; p && *p != '\0';) {
            char word[64];
            size_t len = strcspn(p, " ");
            assert_true(len > 0 &&
                        len < sizeof(word)); /* one blank between them, none at the end */
            memcpy(word, p, len);
            word[len] = '\0';
            assert_ptr_equal(find_command(word), c);
            p += len + (p[len] == ' ' ? 1 : 0);
        }
    }
}

static void check_texts(const struct command *c, bool is_sub)
{
    static const char groups[] = " running breakpoints data graph status files screen support ";
    char group[64];

    assert_non_null(c->run);
    assert_non_null(c->usage);
    assert_non_null(c->summary);
    assert_true(isupper((unsigned char)c->summary[0]));
    assert_true(strlen(c->summary) < 100);
    assert_int_not_equal(c->summary[strlen(c->summary) - 1], '.');
    if (!is_sub) {
        assert_true(c->help || c->examples);
        assert_ptr_equal(strstr(c->usage, c->name), c->usage);
        assert_non_null(c->group);
        assert_true(strlen(c->group) < 50);
        group[0] = ' ';
        memcpy(group + 1, c->group, strlen(c->group) + 1);
        memcpy(group + 1 + strlen(c->group), " ", 2);
        assert_contains(groups, group);
    }
}

static void every_command_explains_itself(void **state)
{
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        check_texts(c, false);
        for (const struct command *s = c->sub; s && s->name; s++) {
            check_texts(s, true);
        }
    }
}

static void an_ambiguous_prefix_lists_the_candidates(void **state)
{
    const struct command *command = NULL;
    struct gd_err err = {.code = GD_OK};

    assert_int_equal(command_find(NULL, "de", 2, &command, &err), GD_EAMBIGUOUS);
    assert_contains(err.text, "define");
    assert_contains(err.text, "delete");
    assert_null(command);
}

static void a_wrong_name_gets_a_hint(void **state)
{
    const struct command *command = NULL;
    struct gd_err err = {.code = GD_OK};

    assert_int_equal(command_find(NULL, "contineu", 8, &command, &err), GD_ENOTFOUND);
    assert_contains(err.text, "\"continue\"");
    assert_int_equal(command_find(NULL, "scalrs", 6, &command, &err), GD_ENOTFOUND);
    assert_contains(err.text, "\"info scalars\"");
    assert_int_equal(command_find(NULL, "recomend-on", 9, &command, &err), GD_ENOTFOUND);
    assert_contains(err.text, "\"recommend\"");
    assert_int_equal(command_find(NULL, "max-tensr", 9, &command, &err), GD_ENOTFOUND);
    assert_contains(err.text, "\"set max-tensor\"");
    assert_int_equal(command_find(find_command("info")->sub, "pip", 3, &command, &err),
                     GD_ENOTFOUND);
    assert_contains(err.text, "there is no \"info pip\"; did you mean \"pipe\"");
    assert_int_equal(command_find(NULL, "zzzzzz", 6, &command, &err), GD_ENOTFOUND);
    assert_contains(err.text, "help");
    assert_int_equal(command_find(NULL, "", 0, &command, &err), GD_ENOTFOUND);
}

static void sub_tables_are_searched_alone(void **state)
{
    const struct command *info = find_command("info");
    const struct command *sub = NULL;
    struct gd_err err = {.code = GD_OK};

    assert_ok(command_find(info->sub, "graph", 5, &sub, &err));
    assert_string_equal(sub->name, "graph");
    assert_int_equal(command_find(info->sub, "continue", 8, &sub, &err), GD_ENOTFOUND);
}

static void words_of_other_tools_lead_somewhere(void **state)
{
    for (const struct foreign *f = foreign_rows; f->words; f++) {
        const struct command *command = NULL, *sub = NULL;
        const char *rest = NULL, *second;

        assert_ptr_equal(foreign_find(f->words, &rest), f);
        assert_true(!f->line == !!f->hint);
        if (!strchr(f->words, ' ') && /* no row hides behind a command */
            command_find(NULL, f->words, strlen(f->words), &command, NULL) == GD_OK) {
            assert_false(command_is_named(command, f->words));
        }
        if (!f->line) {
            continue;
        }
        size_t len = strcspn(f->line, " ");
        assert_ok(command_find(NULL, f->line, len, &command, NULL));
        second = f->line + len + (f->line[len] == ' ' ? 1 : 0);
        if (command->sub && *second != '\0') {
            assert_ok(command_find(command->sub, second, strlen(second), &sub, NULL));
        }
    }
}

static void the_longest_words_win(void **state)
{
    const char *rest = NULL;

    assert_string_equal(foreign_find("breakpoint set --name  fc2", &rest)->line, "break");
    assert_string_equal(rest, "fc2");
    assert_null(foreign_find("breakpoint set --name fc2", &rest)->hint);
    assert_non_null(foreign_find("breakpoint set -x", &rest)->hint);
    assert_null(foreign_find("thread 2", &rest));
    assert_null(foreign_find("runner", &rest));
    assert_null(foreign_find("", &rest));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_forms_are_gdbs),
    cmocka_unit_test(every_name_finds_its_command),
    cmocka_unit_test(aliases_belong_to_one_command),
    cmocka_unit_test(every_command_explains_itself),
    cmocka_unit_test(an_ambiguous_prefix_lists_the_candidates),
    cmocka_unit_test(a_wrong_name_gets_a_hint),
    cmocka_unit_test(sub_tables_are_searched_alone),
    cmocka_unit_test(words_of_other_tools_lead_somewhere),
    cmocka_unit_test(the_longest_words_win),
};

RUN_TESTS()
