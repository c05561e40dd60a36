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
#include <wchar.h>

#include <readline/readline.h>

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
