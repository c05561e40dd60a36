// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the readline prompt of repl_run_prompt offers to who owns the signals.
 */
#ifndef GD_REPL_LINE_H
#define GD_REPL_LINE_H

#include "base/buf.h"
#include "repl/core/repl.h"

#define LINE_REDRAW "\f" /* C-l */

/* Ctrl-C while nothing waits: clears the line being typed and drops an open body. From the loop. */
void line_interrupt(struct repl *repl);

/* Whether the prompt is there with nothing typed; asking there whether to set the recommended
 * watchpoints, if that is open. From the loop. */
bool line_is_idle(const struct repl *repl);
void line_offer(struct repl *repl);

/* Ends repl_run_prompt without ending the session. From a key of readline's. */
void line_leave(struct repl *repl);

/* Before a prompt: no key makes readline jump out of what is under way (line_keys.c). */
void line_keys_take(void);
/* After each key: what is no character in the line becomes a question mark (line_text.c). */
void line_mend(void);
/* The terminal edits an answer itself: C-l ends one at once while it is on, as Enter does. */
void line_redraw_key(bool on);
/* The first of the lines that were typed, with a C-l that ended it; NULL: none has ended. */
char *line_take(struct gd_buf *ahead, const char *ends);
/* Takes control characters out of an answer. True: a C-l was in it, and cleared the screen. */
bool line_answer_redraws(char *answer);
/* From a key of readline's: what the terminal sends is pasted text, until it says otherwise. */
void line_paste_begin(void);
/* Ends readline's prompt with all that was under way at it: a search, a count, a line of the
 * history that was changed. The next prompt begins with nothing. */
void line_put_away(void);

/* line_history.c; also for a front end that shows readline's line itself (the panes). */
void line_history_load(struct repl *repl); /* readline's list from the file */
void line_history_save(struct repl *repl);
void line_remember(struct repl *repl, const char *text); /* in readline's list and the REPL's own */
/* What a rl_attempted_completion_function returns. */
char **line_complete(struct repl *repl, int start, int end);

/* What readline's completion found, matches[1] to matches[count], in rows of columns: at most so
 * many rows, and one more that tells how many are left out. */
typedef void (*line_row_fn)(void *ctx, const char *row);
void line_match_rows(char **matches, int count, int cols, int most_rows, line_row_fn fn, void *ctx);

#endif
