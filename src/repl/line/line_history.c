// SPDX-License-Identifier: GPL-3.0-or-later
/* The typed lines: readline's list, its file, and the REPL's own list. */
#include "repl/core/repl_impl.h"
#include "repl/line/line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>
#include <readline/readline.h>

/* $XDG_STATE_HOME/gradb/history; creates its directories. False: there is no home directory. */
static bool history_path(char *out, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int len;

    if (state && state[0] == '/') {
        len = snprintf(out, size, "%s", state);
    } else if (home && home[0] == '/') {
        len = snprintf(out, size, "%s/.local/state", home);
    } else {
        return false;
    }
    if (len < 0 || (size_t)len + sizeof("/gradb/history") > size) {
        return false;
    }
    snprintf(out + len, size - (size_t)len, "/gradb/history");
    for (char *p = out + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(out, 0700);
            *p = '/';
        }
    }
    return true;
}

void line_history_load(struct repl *repl)
{
    char path[4096];

    using_history();
    rl_clear_history(); /* panes and prompt may alternate */
    stifle_history(repl->debugger->settings.history_size);
    if (history_path(path, sizeof(path))) {
        read_history(path);
    }
}

void line_history_save(struct repl *repl)
{
    char path[4096];

    stifle_history(repl->debugger->settings.history_size);
    if (history_path(path, sizeof(path))) {
        mode_t before = umask(077); /* commands may contain private names */
        write_history(path);
        chmod(path, 0600);
        umask(before);
    }
}

void line_remember(struct repl *repl, const char *text)
{
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;

    if (text[strspn(text, " \t")] == '\0') {
        return;
    }
    if (repl->options.interactive && (!last || strcmp(last->line, text) != 0)) {
        add_history(text);
    }
    if (repl->history.count >= 10000) {
        repl_lines_clear(&repl->history);
    }
    repl_lines_add(&repl->history, text);
}
