// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The text of the line at the prompt. Where it holds bytes that are no character (pasted from
 * elsewhere, in the history file, in a node's name) some of readline's functions that move by words
 * never end.
 */
#include "repl/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <readline/readline.h>

#include "repl/tty_out.h"

#define CTRL_L ('l' & 0x1f)

void line_mend(void)
{
    mbstate_t state = {0};
    int at = 0;

    while (MB_CUR_MAX > 1 && at < rl_end) {
        size_t len = mbrlen(rl_line_buffer + at, (size_t)(rl_end - at), &state);
        if (len == (size_t)-1 || len == (size_t)-2) {
            rl_line_buffer[at] = '?';
            memset(&state, 0, sizeof(state));
            len = 1;
        }
        at += len > 0 ? (int)len : 1;
    }
}

bool line_answer_redraws(char *answer)
{
    bool redraws = strchr(answer, CTRL_L) != NULL;
    char *to = answer;

    for (const char *from = answer; *from != '\0'; from++) {
        if ((unsigned char)*from >= ' ' && *from != 0x7f) {
            *to++ = *from;
        }
    }
    *to = '\0';
    redraws = redraws && answer[0] == '\0';
    const char *clear = redraws ? rl_get_termcap("cl") : NULL;
    if (clear != NULL) {
        tty_out_puts(STDOUT_FILENO, clear);
    }
    return redraws;
}
