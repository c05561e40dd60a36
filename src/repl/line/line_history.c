// SPDX-License-Identifier: GPL-3.0-or-later
/* The typed lines: readline's list, its file, and the REPL's own list. */
#include "engine/state_dir.h"
#include "repl/core/repl_impl.h"
#include "repl/line/line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>
#include <readline/readline.h>

#define FILE_NAME "/history"

/* False: there is no state directory. */
static bool history_path(char *out, size_t size)
{
    if (gd_state_directory(out, size - sizeof(FILE_NAME), NULL) != GD_OK) {
        return false;
    }
    snprintf(out + strlen(out), sizeof(FILE_NAME), FILE_NAME);
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
