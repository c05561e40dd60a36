// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/guard.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Everything here is static memory, because signal handlers use it. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT, SIGTERM, SIGHUP};
#define FATAL_COUNT (sizeof(fatal) / sizeof(*fatal))

/* bracketed paste, which readline switches on */
static const char prompt_restore[] = "\033[?2004l";

static struct {
    struct termios termios;
    bool have_termios;
    bool installed;
    bool at_prompt; /* between tui_guard_begin and tui_guard_end */
    char restore[256];
    size_t restore_len;
    struct sigaction before[FATAL_COUNT];
} guard;

static void restore_and_raise(int number)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (guard.restore_len > 0 && poll(&out, 1, 0) == 1) { /* a write could block forever */
        ssize_t written = write(STDOUT_FILENO, guard.restore, guard.restore_len);
        (void)written; /* nothing can be done about it here */
    }
    if (guard.have_termios) {
        tcsetattr(STDIN_FILENO, TCSANOW, &guard.termios);
    }
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        if (fatal[i] == number) {
            sigaction(number, &guard.before[i], NULL);
        }
    }
    raise(number); /* delivered to the previous handler once this one returns */
}

void tui_guard_save(void)
{
    guard.have_termios = tcgetattr(STDIN_FILENO, &guard.termios) == 0;
    if (guard.installed) {
        return;
    }
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        sigaction(fatal[i], NULL, &guard.before[i]);
    }
}

/* A fault ends the program whatever its handler does; the others may have a handler that exits
 * cleanly. */
static bool is_fault(int number)
{
    return number != SIGTERM && number != SIGHUP && number != SIGQUIT;
}

static void install_handlers(void)
{
    for (size_t i = 0; i < FATAL_COUNT && !guard.installed; i++) {
        struct sigaction action = {.sa_handler = restore_and_raise};
        sigfillset(&action.sa_mask);
        if (is_fault(fatal[i]) || guard.before[i].sa_handler == SIG_DFL) {
            sigaction(fatal[i], &action, NULL);
        }
    }
    guard.installed = true;
}

void tui_guard_arm(const char *restore)
{
    size_t len = strlen(restore);
    guard.restore_len = len < sizeof(guard.restore) ? len : sizeof(guard.restore);
    memcpy(guard.restore, restore, guard.restore_len);
    install_handlers();
}

void tui_guard_disarm(void)
{
    if (guard.at_prompt) {
        tui_guard_arm(prompt_restore);
        return;
    }
    for (size_t i = 0; i < FATAL_COUNT && guard.installed; i++) {
        sigaction(fatal[i], &guard.before[i], NULL);
    }
    guard.installed = false;
    guard.restore_len = 0;
}

void tui_guard_begin(void)
{
    tui_guard_save();
    guard.at_prompt = true;
    tui_guard_arm(prompt_restore);
}

void tui_guard_end(void)
{
    guard.at_prompt = false;
    tui_guard_disarm();
}
