// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Pasted text: a terminal sends it between two marks. readline's own function blocks until the
 * second one, and the training process would wait.
 */
#include "repl/line/line.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#define MOST_PASTED ((size_t)1 << 20) /* bytes; the rest is dropped */

static struct {
    bool goes_on; /* input is pasted text, not keys */
    struct gd_buf text;
    size_t matched; /* bytes matched of the mark that ends it */
} paste;

bool line_is_pasting(void)
{
    return paste.goes_on;
}

void line_paste_stop(void)
{
    gd_buf_deinit(&paste.text);
    paste.goes_on = false;
    paste.matched = 0;
}

void line_redisplay(void)
{
    line_mend();
    rl_redisplay();
}

void line_paste_begin(void)
{
    if (rl_redisplay_function == line_redisplay) { /* at the prompt, not in panes */
        line_paste_stop();
        gd_buf_init(&paste.text, MOST_PASTED);
        paste.goes_on = true;
    }
}

/* Inserts the text at the cursor; nothing in it acts as a key. */
static void insert_text(void)
{
    char *text = gd_buf_take(&paste.text);

    line_paste_stop();
    if (!text) {
        return;
    }
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '\r' ? '\n' : *p;
    }
    rl_insert_text(text);
    line_redisplay();
    free(text);
}

/* Takes a byte. A possible start of the end mark is kept out of the text until it is certain. */
static bool is_end(char byte)
{
    static const char end[] = "\033[201~";

    if (byte != end[paste.matched]) {
        gd_buf_add(&paste.text, end, paste.matched);
        paste.matched = 0;
    }
    if (byte == end[paste.matched]) {
        paste.matched++;
    } else {
        gd_buf_add(&paste.text, &byte, 1);
    }
    return end[paste.matched] == '\0';
}

/* One byte at a time: readline reads what follows the paste. */
void line_paste_read(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    while (paste.goes_on && poll(&input, 1, 0) == 1) {
        if (read(STDIN_FILENO, &byte, 1) != 1) {
            line_paste_stop(); /* readline sees the end of input too */
        } else if (is_end(byte)) {
            insert_text();
        }
    }
}
