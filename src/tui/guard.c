// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/guard.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* A signal handler reaches nothing but static memory. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT, SIGTERM, SIGHUP};
#define FATAL_COUNT (sizeof(fatal) / sizeof(*fatal))

static struct {
    struct termios termios;
    bool have_termios;
    char restore[256];
    size_t restore_len;
    struct sigaction before[FATAL_COUNT];
} guard;

static void restore_and_raise(int number)
{
    if (guard.restore_len > 0) {
        ssize_t written = write(STDOUT_FILENO, guard.restore, guard.restore_len);
        (void)written; /* there is nobody left to tell */
    }
    if (guard.have_termios) {
        tcsetattr(STDIN_FILENO, TCSANOW, &guard.termios);
    }
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (fatal[i] == number) {
            sigaction(number, &guard.before[i], NULL);
        }
    }
    raise(number); /* blocked until this handler returns, then it goes to who had it before */
}

void tui_guard_save(void)
{
    guard.have_termios = tcgetattr(STDIN_FILENO, &guard.termios) == 0;
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        sigaction(fatal[i], NULL, &guard.before[i]);
    }
}

/* Faults end the program whoever handles them; the others may have an owner who ends it in order.
 */
static bool is_fault(int number)
{
    return number != SIGTERM && number != SIGHUP && number != SIGQUIT;
}

void tui_guard_arm(const char *restore)
{
    size_t len = strlen(restore);
    guard.restore_len = len < sizeof(guard.restore) ? len : sizeof(guard.restore);
    memcpy(guard.restore, restore, guard.restore_len);
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        struct sigaction action = {.sa_handler = restore_and_raise};
        sigfillset(&action.sa_mask);
        if (is_fault(fatal[i]) || guard.before[i].sa_handler == SIG_DFL) {
            sigaction(fatal[i], &action, NULL);
        }
    }
}

void tui_guard_disarm(void)
{
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        sigaction(fatal[i], &guard.before[i], NULL);
    }
    guard.restore_len = 0;
}
