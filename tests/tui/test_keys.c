// SPDX-License-Identifier: GPL-3.0-or-later
/* Every key of the table is explained, found, and runs a command that exists. */
#include "../unit.h"
#include "repl/core/command.h"
#include "tui/keys.h"

static void keys_are_found(void **state)
{
    for (const struct tui_key *k = tui_keys; k->name; k++) {
        assert_int_not_equal(k->panes, 0);
        for (unsigned pane = 0; pane < TUI_PANE_COUNT; pane++) {
            const struct tui_key *found =
                tui_key_find(k->prefix, k->key, (enum tui_pane_id)pane, k->single);
            if ((k->panes & 1u << pane) != 0) {
                assert_ptr_equal(found, k); /* and no other entry hides it */
            }
        }
        assert_true(k->prefix == 0 || tui_key_is_prefix(k->prefix));
    }
}

static void keys_are_explained(void **state)
{
    const struct tui_key *before = NULL;
    for (const struct tui_key *k = tui_keys; k->name; before = k++) {
        if (k->help[0] != '\0') {
            continue;
        }
        assert_non_null(before); /* it says the same as the one above */
        assert_int_equal(k->request, before->request);
    }
}

static void commands_exist(void **state)
{
    for (const struct tui_key *k = tui_keys; k->name; k++) {
        if (!k->command) {
            assert_int_not_equal(k->request, TUI_COMMAND);
            continue;
        }
        const struct command *command;
        struct gd_err err;
        if (command_find(NULL, k->command, strcspn(k->command, " "), &command, &err) != GD_OK) {
            fail_msg("%s runs \"%s\": %s", k->name, k->command, err.text);
        }
    }
}

/* Outside of single-key mode a character resumes, ends and changes nothing. */
static void characters_only_show(void **state)
{
    for (const struct tui_key *k = tui_keys; k->name; k++) {
        if (k->command && k->prefix == 0 && !k->single && !tui_key_only_shows(k->command)) {
            fail_msg("%s runs \"%s\"", k->name, k->command);
        }
        if (!k->single) {
            assert_int_not_equal(k->request, TUI_NEW);
            assert_int_not_equal(k->request, TUI_EDIT);
        }
    }
    assert_ok(tui_key_bind("W", TUI_TREE, "watch NAN on %n", NULL));
    assert_null(tui_key_find(0, 'W', TUI_TREE, false));
    assert_non_null(tui_key_find(0, 'W', TUI_TREE, true));
    assert_ok(tui_key_bind("Z", TUI_TREE, "print %t", NULL));
    assert_non_null(tui_key_find(0, 'Z', TUI_TREE, false));
}

/* What is typed at the prompt goes to the prompt: the console takes no plain characters. */
static void console_leaves_text_alone(void **state)
{
    for (int key = 0x20; key < 0x7f; key++) {
        assert_null(tui_key_find(0, key, TUI_CONSOLE, false));
    }
    assert_null(tui_key_find(0, '\t', TUI_CONSOLE, false)); /* completion */
    assert_null(tui_key_find(0, '\r', TUI_CONSOLE, false));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_are_found),       cmocka_unit_test(keys_are_explained),
    cmocka_unit_test(commands_exist),       cmocka_unit_test(console_leaves_text_alone),
    cmocka_unit_test(characters_only_show),
};

RUN_TESTS()
