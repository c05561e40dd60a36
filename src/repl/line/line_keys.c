// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Readline keys that may abort an action. To abort, readline jumps to its caller's stack frame;
 * after keys were pushed back (by a search that ended, or a keyboard macro) that frame may have
 * returned, and the jump corrupts memory. The functions here replace those that would jump: they
 * check first, or abort without a jump. Keys that move through the history are in line_moves.c and
 * line_search.c.
 */
#include "repl/line/line.h"

#include "repl/line/line_moves.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <readline/readline.h>

static int stop_key(int count, int key)
{
    (void)count;
    (void)key;
    rl_ding();
    rl_clear_message();
    rl_clear_pending_input();
    rl_deactivate_mark();
    rl_numeric_arg = 1;
    rl_explicit_arg = 0;
    rl_last_func = NULL;
    return 0;
}

/* ---- keyboard macros ---- */

static bool has_macro; /* readline has a keyboard macro */

static int macro_begin_key(int count, int key)
{
    if (RL_ISSTATE(RL_STATE_MACRODEF)) {
        return stop_key(count, key);
    }
    rl_explicit_arg = 0; /* with one, readline would continue the last macro */
    return rl_start_kbd_macro(1, key);
}

static int macro_end_key(int count, int key)
{
    if (!RL_ISSTATE(RL_STATE_MACRODEF)) {
        return stop_key(count, key);
    }
    has_macro = true;
    return rl_end_kbd_macro(1, key);
}

static int macro_call_key(int count, int key)
{
    if (!has_macro || RL_ISSTATE(RL_STATE_MACRODEF | RL_STATE_MACROINPUT)) {
        return stop_key(count, key);
    }
    return rl_call_last_kbd_macro(count, key);
}

/* ---- cut text ---- */

/* Cuts an empty text, so that there is always something to yank. Called on an empty line. */
static void cut_nothing(void)
{
    static bool done;

    if (!done && rl_end == 0) {
        rl_kill_text(0, 1);
        rl_free_undo_list();
        done = true;
    }
}

/* Replaces the yanked text by an older one; readline's own compares with its own functions. */
static int yank_pop_key(int count, int key)
{
    if (rl_last_func != rl_yank && rl_last_func != yank_pop_key) {
        return stop_key(count, key);
    }
    rl_last_func = rl_yank;
    return rl_yank_pop(count, key);
}

static int vi_yank_pop_key(int count, int key)
{
    rl_command_func_t *pop = rl_named_function("vi-yank-pop");

    if (!pop || (rl_last_func != rl_vi_put && rl_last_func != vi_yank_pop_key)) {
        return stop_key(count, key);
    }
    rl_last_func = rl_vi_put;
    return pop(count, key);
}

/* ---- the bindings ---- */

rl_command_func_t *line_key_find(const struct line_key *all, size_t count,
                                 rl_command_func_t *theirs)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].theirs && all[i].theirs == theirs) {
            return all[i].ours;
        }
    }
    return NULL;
}

static int read_again_key(int count, int key)
{
    int rc = rl_re_read_init_file(count, key);
    line_keys_take();
    return rc;
}

static int paste_key(int count, int key)
{
    (void)count;
    (void)key;
    line_paste_begin();
    return 0;
}

static rl_command_func_t *instead_of(rl_command_func_t *function)
{
    const struct line_key all[] = {
        {rl_abort, stop_key},
        {rl_start_kbd_macro, macro_begin_key},
        {rl_end_kbd_macro, macro_end_key},
        {rl_call_last_kbd_macro, macro_call_key},
        {rl_yank_pop, yank_pop_key},
        {rl_named_function("vi-yank-pop"), vi_yank_pop_key},
        {rl_named_function("execute-named-command"), stop_key}, /* calls any function by name */
        {rl_re_read_init_file, read_again_key},
        {rl_bracketed_paste_begin, paste_key},
    };

    rl_command_func_t *ours = line_key_find(all, sizeof(all) / sizeof(all[0]), function);
    ours = ours ? ours : line_moves_instead(function);
    ours = ours ? ours : line_search_instead(function);
    return ours ? ours : function;
}

/* falls_back: readline tries a shorter sequence when this one is unbound, like vi's Escape before
 * any key. It aborts only where it cannot. */
static void take_map(Keymap map, bool falls_back)
{
    falls_back = falls_back || map[ANYOTHERKEY].function;
    for (int key = 0; key <= ANYOTHERKEY; key++) {
        if (!map[key].function) {
            if (key != ANYOTHERKEY && !falls_back) {
                map[key].type = ISFUNC;
                map[key].function = stop_key;
            }
        } else if (map[key].type == ISKMAP) {
            take_map((Keymap)map[key].function, falls_back); /* readline stores maps like this */
        } else if (map[key].type == ISFUNC) {
            map[key].function = instead_of(map[key].function);
        }
    }
}

void line_keys_take(void)
{
    rl_initialize(); /* binds the user's keys now */
    rl_startup_hook = line_moves_begin;
    take_map(emacs_standard_keymap, false);
    take_map(vi_insertion_keymap, false);
    take_map(vi_movement_keymap, false);
    take_map(rl_get_keymap(), false); /* the user's inputrc may select another */
    cut_nothing();
}
