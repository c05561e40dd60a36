// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The text of the line at the prompt. With invalid bytes in it (pasted, from the history file, or a
 * node's name) some of readline's word functions never return.
 */
#include "repl/line/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <readline/readline.h>

#include "repl/out/tty_out.h"

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

void line_redraw_key(bool on)
{
    static cc_t was;
    struct termios now;

    if (tcgetattr(STDIN_FILENO, &now) == 0) {
        was = on ? now.c_cc[VEOL] : was;
        now.c_cc[VEOL] = on ? (cc_t)LINE_REDRAW[0] : was;
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
}

char *line_take(struct gd_buf *ahead, const char *ends)
{
    size_t len = strcspn(gd_buf_text(ahead), ends);

    if (len >= ahead->len) {
        return NULL;
    }
    char *text = strndup(gd_buf_text(ahead), len + (ahead->data[len] == LINE_REDRAW[0]));
    memmove(ahead->data, ahead->data + len + 1, ahead->len - len); /* including the NUL */
    ahead->len -= len + 1;
    return text;
}

bool line_answer_redraws(char *answer)
{
    bool redraws = strstr(answer, LINE_REDRAW) != NULL;
    char *to = answer;

    for (const char *from = answer; *from != '\0'; from++) {
        if ((unsigned char)*from >= ' ' && *from != 0x7f) {
            *to++ = *from;
        }
    }
    *to = '\0';
    if (redraws) {
        const char *clear = rl_get_termcap("cl");
        tty_out_puts(STDOUT_FILENO, clear ? clear : "\n");
    }
    return redraws;
}
