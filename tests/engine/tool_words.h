// SPDX-License-Identifier: GPL-3.0-or-later
/* The commands of engine_tool and condition_tool: one a line, their fields separated by blanks. */
#ifndef TESTS_ENGINE_TOOL_WORDS_H
#define TESTS_ENGINE_TOOL_WORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"

/* A command need not have fields. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The next line of the standard input without its newline; false: there is none. */
static inline bool read_line(char **line, size_t *cap)
{
    ssize_t len = getline(line, cap, stdin);

    if (len > 0 && (*line)[len - 1] == '\n') {
        (*line)[len - 1] = '\0';
    }
    return len > 0;
}

/* Cuts a field off the line. NULL: there is none left. */
static inline char *next_word(char **line)
{
    /* A slice contains blanks: a field that starts with [ ends after its ]. */
    char *start = *line, *end = start;

    if (!start) {
        return NULL;
    }
    if (*start == '[') {
        end = strchr(start, ']');
    }
    end = end ? strchr(end, ' ') : NULL;
    if (end) {
        *end++ = '\0';
    }
    *line = end;
    return start;
}

struct tool_command {
    const char *name;
    int (*run)(char *line, struct gd_err *err);
};

static inline int run_command(const struct tool_command *commands, size_t count, char *line,
                              struct gd_err *err)
{
    const char *name = next_word(&line);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run(line, err);
        }
    }
    return gd_fail(err, GD_EUSAGE, "no such command: %s", name);
}

/* 2,3,4 or, for a scalar, -. */
static inline bool parse_dims(const char *text, struct gd_shape *shape)
{
    shape->rank = 0;
    if (strcmp(text, "-") == 0) {
        return true;
    }
    for (char *end; shape->rank < GD_MAX_RANK; text = end + 1) {
        shape->dim[shape->rank++] = strtoll(text, &end, 10);
        if (*end != ',') {
            return *end == '\0';
        }
    }
    return false;
}

#endif
