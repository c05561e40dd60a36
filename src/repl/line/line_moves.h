// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Moves through the history at the readline prompt, and searches it.
 *
 * readline has both, but shares its undo lists: the line under the cursor, a history entry and the
 * line saved by the first move may own the same list. Which of them share it depends on the keys
 * typed before; after M-p on a changed line, vi's / after the arrow keys, or C-r on a history line,
 * the list is freed twice. So none of readline's own moves is called. The functions here follow one
 * rule: an undo list has one owner. It is rl_undo_list for the line shown, and a kept line
 * (line_keep) for a line that was left. readline's entries have none, and its saved line is never
 * created.
 *
 * The user sees one difference: changes to a history line last, with their undo, until a line is
 * run. The history then shows what was run.
 */
#ifndef GD_REPL_LINE_MOVES_H
#define GD_REPL_LINE_MOVES_H

#include <stdbool.h>
#include <stddef.h>

#include <readline/readline.h>

/* A readline function and its replacement. */
struct line_key {
    rl_command_func_t *theirs; /* NULL: this readline has none */
    rl_command_func_t *ours;
};
rl_command_func_t *line_key_find(const struct line_key *all, size_t count,
                                 rl_command_func_t *theirs);
/* Our replacement for a readline function; NULL: none. */
rl_command_func_t *line_moves_instead(rl_command_func_t *theirs);
rl_command_func_t *line_search_instead(rl_command_func_t *theirs);

/* Positions are readline's where_history(): 0 is the oldest line, history_length the new one. */

/* Keeps the shown line with its changes; rl_undo_list is empty afterwards. */
void line_keep(void);
/* After line_keep: shows a line as it was kept or run. rl_point is at its end. */
void line_show(int position);
/* After line_keep: what line_show would show. Valid until the next call of these functions. */
const char *line_text_at(int position);
/* Moves up by count lines (down if negative), as far as possible; rings the bell if it cannot
 * move. */
void line_move(int count);
/* The prompt ends: forgets the kept lines. A search must have ended. */
void line_moves_forget(void);
/* For rl_startup_hook: a new line begins. */
int line_moves_begin(void);

/* Ends a search: at the match, or where it began. */
void line_search_end(bool at_found);

#endif
