// SPDX-License-Identifier: GPL-3.0-or-later
/* What commands wait for: the loop runs inside them, and Ctrl-C ends the wait. */
#include "repl/core/command.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"
#include "repl/out/tty_out.h"

void repl_pump(struct repl *repl, double max_seconds)
{
    bool before = repl->busy.pumping;

    repl->busy.pumping = true;
    if (!before && repl->front.pause_input) {
        repl->front.pause_input(repl->front.pause_ctx, true);
    }
    repl->debugger->pump(repl->debugger->pump_ctx, max_seconds);
    gd_debugger_reap(repl->debugger);
    if (!before && repl->front.pause_input) {
        repl->front.pause_input(repl->front.pause_ctx, false);
    }
    repl->busy.pumping = before;
}

bool repl_out_wait(struct repl *repl, size_t most)
{
    bool was_waiting = repl->busy.waiting;

    if (tty_out_waiting() <= most) {
        return true;
    }
    repl->busy.waiting = was_waiting || repl->options.interactive; /* Ctrl-C interrupts this */
    while (tty_out_waiting() > most && !repl->debugger->interrupted &&
           repl->end.quit != QUIT_AT_ONCE && !repl->front.left) {
        repl_pump(repl, -1);
    }
    repl->busy.waiting = was_waiting;
    if (tty_out_waiting() > most) {
        tty_out_drop();
        return false;
    }
    return true;
}

int repl_wait(struct repl *repl, bool (*done)(void *ctx), void *ctx, double seconds)
{
    double end = repl_now(repl) + seconds;
    bool was_waiting = repl->busy.waiting;
    int rc = GD_OK;

    repl->busy.waiting = true;
    repl->busy.interrupted_known = false;
    while (!done(ctx)) {
        if (repl_is_interrupted(repl)) {
            repl_clear_interrupt(repl);
            rc = GD_EINTR;
            break;
        }
        double left = end - repl_now(repl);
        if (seconds >= 0 && left <= 0) {
            rc = GD_ETIMEOUT;
            break;
        }
        repl_pump(repl, repl_progress_patience(repl, seconds >= 0 ? left : -1));
        repl_progress_show(repl);
    }
    repl_progress_clear(repl);
    repl->busy.waiting = was_waiting;
    return rc;
}
