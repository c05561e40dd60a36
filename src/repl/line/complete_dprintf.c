// SPDX-License-Identifier: GPL-3.0-or-later
/* Completes the line of dprintf: where, "format", arguments, condition. */
#include <string.h>

#include "repl/line/complete.h"

enum part { WHERE, FORMAT_OR_ARG, ARG, CONDITION, STRING };

/* In which part the line ends, and where the name that is typed there begins. */
static enum part find_part(const char *line, size_t first, size_t *start)
{
    enum part part = WHERE;
    int depth = 0;

    *start = first;
    for (const char *at = line + first; *at; at++) {
        if (*at == '"') {
            at++;
            while (*at && *at != '"') {
                at += *at == '\\' && at[1] ? 2 : 1;
            }
            if (!*at) {
                return STRING;
            }
        } else if (depth == 0 && strncmp(at, " if ", 4) == 0) {
            part = CONDITION;
            at += 3;
            *start = (size_t)(at + 1 - line);
        } else if (part == CONDITION ? strchr(" \t()<>=!&|+-*/", *at) != NULL
                                     : (*at == ',' && depth == 0) || *at == '(' || *at == ' ') {
            part = part != CONDITION && *at == ',' ? (part == WHERE ? FORMAT_OR_ARG : ARG) : part;
            *start = (size_t)(at + 1 - line);
        }
        depth += strchr("([", *at) ? 1 : strchr(")]", *at) && depth > 0 ? -1 : 0;
    }
    return part;
}

void complete_dprintf(struct completion *c, size_t first)
{
    size_t start;
    enum part part = find_part(c->line, first, &start);

    complete_at(c, part == STRING ? strlen(c->line) : start);
    if (part == WHERE) {
        complete_selectors(c);
        complete_list(c, start > first ? "if" : "");
    } else if (part != STRING) {
        complete_figures(c, part == CONDITION ? GD_NEED_RANGE : GD_NEED_MORE);
        complete_list(c, part == CONDITION ? "best( improved( isnan( mean( prev( stall("
                                           : "best( mean( prev( in0 .");
    }
    if (part == FORMAT_OR_ARG || part == ARG) {
        complete_tensors(c);
    }
    if (part == FORMAT_OR_ARG && c->len == 0) {
        complete_if(c, "\"");
    }
}
