// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Moves through the former lines at the readline prompt, and searches in them.
 *
 * readline has both, but there the list of changes that undo works back belongs to several at once:
 * the line under the cursor, an entry of the history and the line that readline saved when the
 * first move left it. Each of them frees it, and which of them share it depends on the keys typed
 * before: M-p on a line that was changed, vi's / after the arrow keys, C-r on a former line, and
 * the same list is freed twice. So none of readline's functions that move is ever called. Those
 * here keep to one rule: a list of changes has one owner, which is readline's rl_undo_list for the
 * line that is shown and a kept line (line_keep) for one that was left. readline's entries never
 * have one, and its saved line is never made.
 *
 * For the user it is the same, with one exception: changes to a former line stay while the prompt
 * does, with all their undo, and are forgotten when a line is run. The history tells what was run.
 */
#ifndef GD_REPL_LINE_MOVES_H
#define GD_REPL_LINE_MOVES_H

#include <stdbool.h>

#include <readline/readline.h>

/* Ours in the place of one of readline's; NULL where there is none. */
rl_command_func_t *line_moves_instead(rl_command_func_t *theirs);
rl_command_func_t *line_search_instead(rl_command_func_t *theirs);

/* Positions are readline's where_history(): 0 is the oldest line, history_length the new one. */

/* The line that is shown is kept with its changes; rl_undo_list is empty then. */
void line_keep(void);
/* Shows a line, after line_keep: as it was kept, or as it was run. rl_point is at its end. */
void line_show(int position);
/* What line_show would show, after line_keep. Until the next call of one of these. */
const char *line_text_at(int position);
/* As many lines up (down when negative) as there are; the bell when it is none. */
void line_move(int count);
/* The prompt ends: nothing is kept. A search under way must have been ended. */
void line_moves_forget(void);
/* readline's rl_startup_hook: a new line begins, with nothing kept. */
int line_moves_begin(void);

/* Ends a search that is under way: at what it found, or where it began. */
void line_search_end(bool at_found);

#endif
