// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/words/piped.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char blanks[] = " \t";

static bool is_executable(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

bool piped_is_program(const char *word, size_t len)
{
    const char *dirs = getenv("PATH");
    char path[PATH_MAX];

    if (len == 0 || len >= NAME_MAX) {
        return false;
    }
    if (memchr(word, '/', len)) {
        snprintf(path, sizeof(path), "%.*s", (int)len, word);
        return is_executable(path);
    }
    while (dirs && *dirs != '\0') {
        size_t dir = strcspn(dirs, ":");
        int size = snprintf(path, sizeof(path), "%.*s/%.*s", (int)dir, dirs, (int)len, word);
        if (dir > 0 && size > 0 && (size_t)size < sizeof(path) && is_executable(path)) {
            return true;
        }
        dirs += dir + (dirs[dir] == ':' ? 1 : 0);
    }
    return false;
}

/* Length of what begins with a quote, or of a word /regex/; 0: neither, or it does not end. */
static size_t closed_length(const char *p)
{
    for (size_t i = 1; p[i] != '\0'; i++) {
        if (p[i] == '\\' && p[0] != '\'' && p[i + 1] != '\0') {
            i++;
        } else if (p[i] == p[0] && (p[0] != '/' || strchr(" \t,", p[i + 1]))) {
            return i + 1;
        }
    }
    return 0;
}

size_t piped_at(const char *line)
{
    int depth = 0;
    size_t at = 0;

    while (line[at] != '\0') {
        bool begins = at == 0 || strchr(" \t,", line[at - 1]);
        bool groups = line[at] == '"' || line[at] == '\'' || (line[at] == '/' && begins);
        size_t closed = groups ? closed_length(line + at) : 0;
        if (closed > 0) {
            at += closed;
            continue;
        }
        depth += strchr("([{", line[at]) ? 1 : strchr(")]}", line[at]) && depth > 0 ? -1 : 0;
        if (line[at] == '|' && depth == 0 && at > 0 && strchr(blanks, line[at - 1])) {
            const char *program = line + at + 1 + strspn(line + at + 1, blanks);
            if (piped_is_program(program, strcspn(program, " \t;|&<>()"))) {
                return at;
            }
        }
        at++;
    }
    return 0;
}
