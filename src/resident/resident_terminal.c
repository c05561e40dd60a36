// SPDX-License-Identifier: GPL-3.0-or-later
/* Releasing the session's terminal and adopting another one. */
#include "resident/resident_impl.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repl/out/tty_out.h"
#include "resident/resident_shell.h"

static void redirect_to_null(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < RESIDENT_FDS && null >= 0; fd++) {
        dup2(null, fd);
    }
    if (null >= RESIDENT_FDS) {
        close(null);
    }
}

/* Message for the terminal that is released; "" if it is gone. */
static void explain_release(const struct resident *resident, char *text, size_t size)
{
    text[0] = '\0';
    if (resident->next_owner) {
        snprintf(text, size,
                 "[taken over by %s, process %ld; to take it back: gradb attach --take %s]",
                 resident->next_hello.terminal, resident->next_owner->pid, resident->name);
    } else if (resident->asked) {
        snprintf(text, size, "[disconnected; to return: gradb attach %s]", resident->name);
    }
}

void resident_release_terminal(struct resident *resident)
{
    char text[256];

    explain_release(resident, text, sizeof(text));
    if (resident->owner) {
        resident_send(resident->owner, RESIDENT_RELEASED, text, strlen(text));
        resident_drop_peer(resident->owner);
    } else if (text[0] != '\0') {
        tty_out_puts(STDOUT_FILENO, text);
        tty_out_puts(STDOUT_FILENO, "\n");
    }
    tty_out_end(0);
    redirect_to_null();
    resident_leave_shell();
    resident->terminal[0] = '\0';
    resident->suspended = false;
}

void resident_hangup(struct resident *resident)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (resident->waiting || repl_has_left(resident->repl)) {
        return;
    }
    if (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) {
        redirect_to_null(); /* writing to the terminal would block */
    }
    repl_leave(resident->repl);
}

static void set_or_unset(const char *name, const char *value)
{
    if (value[0] != '\0') {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

/* Of a locale that is not installed here, only the encoding is used. */
static void adopt_locale(const char *name)
{
    if (!setlocale(LC_CTYPE, name)) {
        bool utf8 = strstr(name, "UTF-8") || strstr(name, "utf8");
        name = utf8 && setlocale(LC_CTYPE, "C.UTF-8") ? "C.UTF-8" : "C";
        setlocale(LC_CTYPE, name);
    }
    setenv("LC_ALL", name, 1);
}

void resident_adopt_terminal(struct resident *resident)
{
    const struct resident_hello *hello = &resident->next_hello;

    for (int fd = 0; fd < RESIDENT_FDS; fd++) {
        dup2(resident->next[fd], fd);
    }
    tty_out_begin(resident->loop);
    set_or_unset("TERM", hello->term);
    set_or_unset("COLORTERM", hello->colorterm);
    set_or_unset("NO_COLOR", hello->no_color);
    unsetenv("LINES"); /* of the previous terminal */
    unsetenv("COLUMNS");
    adopt_locale(hello->locale);
    snprintf(resident->terminal, sizeof(resident->terminal), "%s",
             hello->terminal[0] != '\0' ? hello->terminal : "another terminal");
    resident->owner = resident->next_owner;
    resident->owner->role = PEER_OWNER;
    resident_drop_next(resident);
    resident->fresh = true;
    resident_send(resident->owner, RESIDENT_OK, resident->name, strlen(resident->name));
}
