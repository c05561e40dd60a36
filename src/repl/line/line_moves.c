// SPDX-License-Identifier: GPL-3.0-or-later
/* Moves through the history at the readline prompt: see line_moves.h. */
#include "repl/line/line_moves.h"

#include "repl/line/line.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/history.h>

/* ---- kept lines ---- */

struct kept {
    int position;
    char *text;
    UNDO_LIST *undo; /* owned */
};

static struct kept *all_kept;
static size_t kept_count;

static struct kept *find_kept(int position)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (all_kept[i].position == position) {
            return &all_kept[i];
        }
    }
    return NULL;
}

/* readline can only free its own list. */
static void free_undo(UNDO_LIST *undo)
{
    UNDO_LIST *shown = rl_undo_list;

    rl_undo_list = undo;
    rl_free_undo_list();
    rl_undo_list = shown;
}

/* The line as it was run; the new line is empty. NULL: no such line. */
static const char *text_as_run(int position)
{
    HIST_ENTRY *entry;

    if (position == history_length) {
        return "";
    }
    entry = position >= 0 ? history_get(history_base + position) : NULL;
    return entry ? entry->line : NULL;
}

const char *line_text_at(int position)
{
    const struct kept *kept = find_kept(position);

    return kept ? kept->text : text_as_run(position);
}

/* Out of memory: only the changes are lost. */
static void add_kept(int position, UNDO_LIST *undo)
{
    char *text = strdup(rl_line_buffer);
    struct kept *more = text ? realloc(all_kept, (kept_count + 1) * sizeof(*more)) : NULL;

    if (!more) {
        free(text);
        free_undo(undo);
        return;
    }
    all_kept = more;
    all_kept[kept_count++] = (struct kept){.position = position, .text = text, .undo = undo};
}

static void drop_kept(struct kept *kept)
{
    free(kept->text);
    *kept = all_kept[--kept_count];
}

void line_keep(void)
{
    int position = where_history();
    const char *run = text_as_run(position);
    UNDO_LIST *undo = rl_undo_list;

    rl_undo_list = NULL;
    if (undo || !run || strcmp(run, rl_line_buffer) != 0) {
        add_kept(position, undo);
    }
}

void line_show(int position)
{
    struct kept *kept = find_kept(position);
    const char *text = line_text_at(position);

    history_set_pos(position);
    rl_replace_line(text ? text : "", 0);
    rl_undo_list = NULL;
    if (kept) {
        rl_undo_list = kept->undo;
        drop_kept(kept);
    }
    rl_point = rl_end;
    rl_mark = 0;
}

void line_moves_forget(void)
{
    while (kept_count > 0) {
        free_undo(all_kept[0].undo);
        drop_kept(&all_kept[0]);
    }
    free(all_kept);
    all_kept = NULL;
}

/* ---- the keys ---- */

static bool is_on(const char *variable)
{
    const char *value = rl_variable_value(variable);

    return value && strcmp(value, "on") == 0;
}

static void go_to(int position)
{
    int point = rl_point;
    bool at_end = rl_point == rl_end;

    line_keep();
    line_show(position);
    if (is_on("history-preserve-point") && !at_end) {
        rl_point = point < rl_end ? point : rl_end;
    } else if (rl_editing_mode == 0 && rl_get_keymap() != vi_insertion_keymap) {
        rl_point = 0; /* vi's commands */
    }
}

void line_move(int count)
{
    int here = where_history();
    int down = history_length - here;

    count = count > here ? here : count;
    count = count < -down ? -down : count;
    if (count == 0) {
        rl_ding();
    } else {
        go_to(here - count);
    }
}

static int previous_key(int count, int key)
{
    (void)key;
    if (count != 0) {
        line_move(count);
    }
    return 0;
}

static int next_key(int count, int key)
{
    return previous_key(-count, key);
}

static int first_key(int count, int key)
{
    (void)count;
    return previous_key(INT_MAX, key);
}

static int last_key(int count, int key)
{
    (void)count;
    if (where_history() != history_length) {
        return previous_key(INT_MIN, key);
    }
    return 0;
}

/* Shows the line with that number, counted from the end if negative; without a number the first. */
static int fetch_key(int count, int key)
{
    int wanted = count > 0 ? count - history_base : where_history() + count;

    if (!rl_explicit_arg) {
        return first_key(1, key);
    }
    if (count == 0 || wanted < 0 || wanted >= history_length) {
        rl_ding();
    } else if (wanted != where_history()) {
        go_to(wanted);
    }
    return 0;
}

/* ---- run the line, and show the next one ---- */

static int next_number; /* of the line for the next prompt; 0: none */

static int run_and_next_key(int count, int key)
{
    next_number = rl_explicit_arg && count > 0 ? count : history_base + where_history() + 1;
    return rl_newline(1, key);
}

int line_moves_begin(void)
{
    int wanted = next_number - history_base;

    line_search_end(false);
    line_moves_forget();
    if (next_number > 0 && wanted >= 0 && wanted < history_length) {
        go_to(wanted);
    }
    next_number = 0;
    return 0;
}

static int bell_key(int count, int key)
{
    (void)count;
    (void)key;
    rl_ding();
    return 0;
}

rl_command_func_t *line_moves_instead(rl_command_func_t *theirs)
{
    const struct line_key all[] = {
        {rl_get_previous_history, previous_key},
        {rl_get_next_history, next_key},
        {rl_beginning_of_history, first_key},
        {rl_end_of_history, last_key},
        {rl_vi_fetch_history, fetch_key},
        {rl_named_function("fetch-history"), fetch_key},
        {rl_named_function("operate-and-get-next"), run_and_next_key},
        {rl_arrow_keys, bell_key}, /* reads the rest of a sequence that has its own bindings */
    };

    return line_key_find(all, sizeof(all) / sizeof(all[0]), theirs);
}
