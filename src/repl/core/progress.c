// SPDX-License-Identifier: GPL-3.0-or-later
/* The progress of long work, on one line below a waiting command, on a terminal without panes. */
#include "engine/progress.h"
#include "repl/core/repl_impl.h"
#include "repl/out/tty_out.h"

#include <string.h>
#include <unistd.h>

#define PATIENCE 0.5 /* seconds; shorter work is not shown */
#define REFRESH  0.2

static bool may_show(const struct repl *repl)
{
    return repl->busy.waiting && repl->options.interactive && !repl->options.json &&
           !repl->front.lend && isatty(STDERR_FILENO) && tty_out_waiting() == 0;
}

double repl_progress_patience(struct repl *repl, double seconds)
{
    struct gd_progress_info info;
    bool soon = may_show(repl) && gd_progress_current(repl->debugger, &info);

    return soon && (seconds < 0 || seconds > REFRESH) ? REFRESH : seconds;
}

void repl_progress_show(struct repl *repl)
{
    struct gd_progress_info info;
    char text[512];
    double now = repl_now(repl);
    int cols = (repl->options.width > 0 ? repl->options.width : 80) - 1;

    if (!may_show(repl) || !gd_progress_current(repl->debugger, &info) || info.seconds < PATIENCE) {
        repl_progress_clear(repl);
        return;
    }
    if (repl->busy.progress_shown && now >= repl->busy.progress_at &&
        now < repl->busy.progress_at + REFRESH) {
        return;
    }
    repl_progress_clear(repl);
    gd_progress_text(&info, cols, repl->options.utf8, text, sizeof(text));
    struct gd_buf row = GD_BUF_INIT(1 << 16);
    gd_buf_putc(&row, '\r');
    out_add_safe(&row, text, repl_is_utf8(repl));
    tty_out_write(STDERR_FILENO, gd_buf_text(&row), row.len);
    gd_buf_deinit(&row);
    repl->busy.progress_shown = true;
    repl->busy.progress_at = now;
}

void repl_progress_clear(struct repl *repl)
{
    int cols = (repl->options.width > 0 ? repl->options.width : 80) - 1;

    if (repl->busy.progress_shown) {
        struct gd_buf row = GD_BUF_INIT(4096);
        gd_buf_putc(&row, '\r');
        gd_buf_fill(&row, ' ', (size_t)cols);
        gd_buf_putc(&row, '\r');
        tty_out_write(STDERR_FILENO, gd_buf_text(&row), row.len);
        gd_buf_deinit(&row);
        repl->busy.progress_shown = false;
    }
}
