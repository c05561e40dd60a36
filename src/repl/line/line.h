// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The readline prompt of repl_run_prompt: what others may do with it. One thread.
 */
#ifndef GD_REPL_LINE_H
#define GD_REPL_LINE_H

#include "base/buf.h"
#include "repl/core/repl.h"

#define LINE_REDRAW "\f" /* C-l */

/* Ctrl-C while nothing waits: clears the typed line and drops an open body. Called from the
 * loop. */
void line_interrupt(struct repl *repl);

/* Ends repl_run_prompt but not the session. Called from a readline key. */
void line_leave(struct repl *repl);

/* Before a prompt: replaces the keys that make readline jump out of its caller (line_keys.c). */
void line_keys_take(void);
/* After each key: replaces invalid bytes in the line by question marks (line_text.c). */
void line_mend(void);
/* While on, C-l ends an answer like Enter, when the terminal itself edits the line. */
void line_redraw_key(bool on);
/* The first complete line typed ahead, including a C-l that ended it; NULL: none. */
char *line_take(struct gd_buf *ahead, const char *ends);
/* Removes control characters from an answer. True: it had a C-l, and the screen was cleared. */
bool line_answer_redraws(char *answer);
/* Called from a readline key: the terminal sends pasted text until its end mark (line_paste.c). */
void line_paste_begin(void);
bool line_is_pasting(void);
void line_paste_read(void); /* reads what there is of it; inserts it at its end */
void line_paste_stop(void); /* drops it */
/* For rl_redisplay_function: line_mend first. */
void line_redisplay(void);
/* Ends readline's prompt and everything in progress there: a search, a count, a changed history
 * line. */
void line_put_away(void);

/* line_history.c; also for panes, which show readline's line themselves. */
void line_history_load(struct repl *repl); /* fills readline's list from the file */
void line_history_save(struct repl *repl);
/* adds to readline's list and the REPL's */
void line_remember(struct repl *repl, const char *text);
/* For rl_attempted_completion_function. */
char **line_complete(struct repl *repl, int start, int end);

/* Prints readline's matches[1] to matches[count] in columns: at most that many rows, plus one that
 * says how many are left out. */
typedef void (*line_row_fn)(void *ctx, const char *row);
void line_match_rows(char **matches, int count, int cols, int most_rows, line_row_fn fn, void *ctx);

#endif
