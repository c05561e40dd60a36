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

#define LOOKS      2000 /* polls until the shell has its terminal again */
#define LOOK_NANOS 1000000

/* In a child: continues gradb as soon as the shell has noticed the stop and taken its terminal. */
static void continue_after_shell(int tty, pid_t group, pid_t parent)
{
    const struct timespec pause = {.tv_nsec = LOOK_NANOS};

    for (int i = 0; i < LOOKS && tcgetpgrp(tty) == group; i++) {
        nanosleep(&pause, NULL);
    }
    kill(parent, SIGCONT);
    _exit(0);
}

/* As Ctrl-Z and `bg` would. Harmless without job control. */
static void become_job(int tty)
{
    pid_t self = getpid();
    pid_t group = getpgrp();

    if (getsid(0) == self || tcgetpgrp(tty) != group) {
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        continue_after_shell(tty, group, self);
    } else if (child > 0) {
        raise(SIGSTOP);
        /* a zombie would keep our process group alive, and setsid would fail */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}

/* A group leader cannot call setsid: it joins the group of a short-lived child first. */
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
        kill(child, SIGKILL); /* reaped by the loop */
    }
}

void resident_leave_shell(void)
{
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (tty < 0) {
        return; /* no controlling terminal */
    }
    become_job(tty);
    if (setsid() < 0) {
        if (getsid(0) == getpid()) {
            ioctl(tty, TIOCNOTTY); /* also sends us a SIGHUP, which has no effect by now */
        } else {
            leave_group();
        }
    }
    close(tty);
}
