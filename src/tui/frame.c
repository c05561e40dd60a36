// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Decides when a picture is drawn, and handles resizing, Ctrl-Z and coming back. A key is answered
 * immediately by a picture; everything else at most ten times a second, twice on a slow terminal. A
 * terminal that accepts nothing is not waited for: the training continues.
 */
#include "tui/tui_impl.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "repl/core/repl.h"

#define FRAME_SECONDS 0.1  /* between two pictures that no key asked for */
#define SLOW_FRAME    0.5  /* the same on a slow terminal */
#define SLOW_SENDING  0.05 /* a terminal is slow if sending a picture took this long */
#define SLOW_SECONDS  3.0  /* it counts as slow for this long */
#define RETRY_SECONDS 0.05

/* Earlier output is still being sent. */
static bool is_behind(void)
{
    int waiting = 0;
    return ioctl(STDOUT_FILENO, TIOCOUTQ, &waiting) == 0 && waiting > 0;
}

static void draw_now(struct tui *tui)
{
    double begin = ev_time();

    tui->dirty = false;
    tui->dirty_now = false;
    tui_draw_all(tui);
    tui->drawn_at = ev_time();
    if (tui->drawn_at - begin > SLOW_SENDING) {
        tui->slow_until = tui->drawn_at + SLOW_SECONDS;
    }
}

static void draw_later(struct tui *tui, double seconds)
{
    if (!ev_is_active(&tui->draw_timer)) {
        ev_timer_set(&tui->draw_timer, seconds, 0.);
        ev_timer_start(tui->loop, &tui->draw_timer);
    }
}

/* Before the loop sleeps. */
static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct tui *tui = prepare->data;

    (void)loop;
    (void)events;
    if (tui_progress_moves(tui) || tui_status_moves(tui)) {
        tui_changed(tui);
    }
    double now = ev_time();
    if (!draw_send(tui->draw)) { /* the previous picture is still being sent */
        tui->slow_until = now + SLOW_SECONDS;
        draw_later(tui, RETRY_SECONDS);
        return;
    }
    if (!tui->dirty) {
        return;
    }
    double since = now - tui->drawn_at;
    if (!tui->dirty_now && is_behind()) {
        tui->slow_until = now + SLOW_SECONDS;
    }
    double least = now < tui->slow_until && tui->slow_until < now + 2 * SLOW_SECONDS
                       ? SLOW_FRAME
                       : FRAME_SECONDS;
    if (tui->dirty_now || since >= least || since < 0) {
        draw_now(tui);
    } else {
        draw_later(tui, least - since);
    }
}

static void on_draw_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events; /* waking the loop is enough: on_prepare draws */
}

void tui_take_size(struct tui *tui)
{
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    repl_set_width(tui->repl, cols);
    bool small = rows < TUI_MIN_ROWS || cols < TUI_MIN_COLS;
    if (small && !tui->small) {
        tui->focus_of = tui->focus;
        tui->focus = TUI_CONSOLE;
    } else if (!small && tui->small) {
        tui->focus = tui->focus_of;
    }
    tui->small = small;
    tui->single_key = tui->single_key && !small; /* there is no status line to show that it is on */
    tui_redraw(tui);
}

static void on_winch(struct ev_loop *loop, ev_signal *signal, int events)
{
    struct tui *tui = signal->data;

    (void)loop;
    (void)events;
    draw_resize(tui->draw);
    draw_forget(tui->draw);
    tui_take_size(tui);
}

/* The program that had the terminal in the meantime may have changed it. */
static void come_back(struct tui *tui)
{
    draw_leave(tui->draw);
    draw_enter(tui->draw);
    tui_take_size(tui);
}

static void on_suspend(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct tui *tui = watcher->data;

    (void)events;
    ev_signal_stop(loop, watcher); /* restores the default action of the signal */
    draw_leave(tui->draw);
    raise(SIGTSTP);
    ev_signal_start(loop, watcher);
    come_back(tui);
}

/* The process was stopped by something other than Ctrl-Z. */
static void on_resume(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop;
    (void)events;
    come_back(watcher->data);
}

void tui_frames_init(struct tui *tui)
{
    ev_signal_init(&tui->winch, on_winch, SIGWINCH);
    ev_signal_init(&tui->suspend, on_suspend, SIGTSTP);
    ev_signal_init(&tui->resume, on_resume, SIGCONT);
    ev_prepare_init(&tui->prepare, on_prepare);
    ev_timer_init(&tui->draw_timer, on_draw_timer, FRAME_SECONDS, 0.);
    tui->winch.data = tui->suspend.data = tui->resume.data = tui;
    tui->prepare.data = tui->draw_timer.data = tui;
}

void tui_frames_take_signals(struct tui *tui)
{
    ev_signal_start(tui->loop, &tui->winch);
    ev_signal_start(tui->loop, &tui->suspend);
    ev_signal_start(tui->loop, &tui->resume);
}

void tui_frames_start(struct tui *tui)
{
    tui_frames_take_signals(tui);
    ev_prepare_start(tui->loop, &tui->prepare);
}

void tui_frames_stop(struct tui *tui)
{
    ev_signal_stop(tui->loop, &tui->winch);
    ev_signal_stop(tui->loop, &tui->suspend);
    ev_signal_stop(tui->loop, &tui->resume);
    ev_prepare_stop(tui->loop, &tui->prepare);
    ev_timer_stop(tui->loop, &tui->draw_timer);
}
