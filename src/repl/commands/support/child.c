// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs of `shell` and `pipe`: how they start, get the terminal and end. */
#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repl/commands/support/child.h"
#include "repl/core/repl_impl.h"

/* In the child process. */
static void exec_shell(const char *text, int input)
{
    const char *shell = getenv("SHELL");
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
    }
    if (!shell || shell[0] != '/') {
        shell = "/bin/sh";
    }
    if (text[0] == '\0') {
        execl(shell, shell, (char *)NULL);
    } else {
        execl(shell, shell, "-c", text, (char *)NULL);
    }
    _exit(127);
}

struct child {
    ev_child watcher;
    bool ended;
};

static void on_child_end(struct ev_loop *loop, ev_child *watcher, int events)
{
    (void)events;
    ev_child_stop(loop, watcher);
    ((struct child *)watcher->data)->ended = true;
}

/* Runs the loop: a training process that gets no answer for long gives up on its debugger. */
int child_wait(struct repl *repl, pid_t pid)
{
    struct child child = {.ended = false};

    ev_child_init(&child.watcher, on_child_end, pid, 0);
    child.watcher.data = &child;
    ev_child_start(repl->loop, &child.watcher);
    while (!child.ended && !repl->end.quit) {
        repl_pump(repl, -1);
    }
    ev_child_stop(repl->loop, &child.watcher);
    return child.watcher.rstatus;
}

int child_run(const char *text, int input, pid_t *ret, struct gd_err *err)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        exec_shell(text, input);
    }
    if (pid < 0) {
        return gd_fail_errno(err, GD_EIO, "cannot start a shell");
    }
    *ret = pid;
    return GD_OK;
}

int child_lend_terminal(struct repl *repl, sigset_t *mask, struct gd_err *err)
{
    sigset_t block;

    if (!repl_out_wait(repl, 0)) { /* else the child would write before it */
        return gd_fail(err, GD_EINTR, "interrupted before the program was started");
    }
    if (repl->front.lend) {
        repl->front.lend(repl->front.lend_ctx, true);
    }
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigprocmask(SIG_BLOCK, &block, mask);
    return GD_OK;
}

/* Drops a Ctrl-C that was meant for the child. */
void child_take_terminal(struct repl *repl, const sigset_t *mask)
{
    sigset_t interrupt;
    struct timespec now = {0, 0};

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    while (sigtimedwait(&interrupt, NULL, &now) == SIGINT) {
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (repl->front.lend) {
        repl->front.lend(repl->front.lend_ctx, false);
    }
}

void child_result(struct command_call *call, int status)
{
    cJSON *record = out_record(call->out, "shell");
    out_set(record,
            OUT_INT("status", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
}
