// SPDX-License-Identifier: GPL-3.0-or-later
#include "resident/resident_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS      2000 /* for the shell to take its terminal back */
#define LOOK_NANOS 1000000

/* In a child: once the shell has seen us stop, its terminal is its own. */
static void wake_behind_shell(int tty, pid_t group, pid_t parent)
{
    const struct timespec pause = {.tv_nsec = LOOK_NANOS};

    for (int i = 0; i < LOOKS && tcgetpgrp(tty) == group; i++) {
        nanosleep(&pause, NULL);
    }
    kill(parent, SIGCONT);
    _exit(0);
}

/* What Ctrl-Z and bg do. A shell without job control does not mind; a leader has no shell. */
static void become_job(int tty)
{
    pid_t self = getpid();
    pid_t group = getpgrp();

    if (getsid(0) == self || tcgetpgrp(tty) != group) {
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        wake_behind_shell(tty, group, self);
    } else if (child > 0) {
        raise(SIGSTOP);
        /* Dead and not waited for it would still hold our group, and no session could begin. */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}

/* The leader of a group cannot begin a session: a child lends its group for a moment. */
static void leave_group(void)
{
    pid_t child = fork();

    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    if (child > 0) {
        setpgid(child, child);
        if (setpgid(0, child) == 0) {
            setsid();
        }
        kill(child, SIGKILL); /* the loop reaps it */
    }
}

void resident_leave_shell(void)
{
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (tty < 0) {
        return; /* no terminal controls us */
    }
    become_job(tty);
    if (setsid() < 0) {
        if (getsid(0) == getpid()) {
            ioctl(tty, TIOCNOTTY); /* its SIGHUP comes to us, too, and finds nothing to do */
        } else {
            leave_group();
        }
    }
    close(tty);
}
