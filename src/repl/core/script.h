// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Lines that gradb keeps: bodies (`commands`, `define`, `document`) while they are typed, the
 * commands of a stop, user commands and aliases. Lists own their lines. One thread.
 */
#ifndef GD_REPL_SCRIPT_H
#define GD_REPL_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct repl;

struct repl_lines { /* a list of owned lines */
    char **line;
    size_t count;
    size_t room;
};

enum repl_body_kind { BODY_NONE = 0, BODY_COMMANDS, BODY_DEFINE, BODY_DOCUMENT, BODY_INTERACT };
/* One line of `interact`, in which `lines` are those of a statement that is not complete yet. */
typedef int (*repl_interact_fn)(struct repl *repl, const char *line, struct gd_err *err);

struct repl_body { /* lines being collected until `end` */
    enum repl_body_kind kind;
    char name[64];             /* of the user command */
    int first, last;           /* breakpoint numbers */
    int nested;                /* bodies that are open inside it */
    repl_interact_fn interact; /* BODY_INTERACT: takes the lines at once */
    struct repl_lines lines;
};

struct user_command {
    struct user_command *next;
    char *name;
    char *help; /* NULL until documented */
    struct repl_lines lines;
};

struct user_alias {
    struct user_alias *next;
    char *name;
    char *text; /* what it stands for */
};

struct stop_commands { /* what `commands` and `enable count` attached to breakpoint N */
    struct stop_commands *next;
    int number;
    struct repl_lines lines;
    uint64_t count; /* stops until it is disabled (`enable once`); 0: none */
};

/* The REPL's lines. */
struct repl_script {
    char *repeat;            /* the line that an empty line runs; NULL: none */
    const char *source_path; /* of the file being read; NULL: none */
    int source_line;
    struct repl_body body;
    struct user_command *user_commands;
    struct user_alias *aliases;
    struct stop_commands *stop_commands;
    int user_depth;    /* nesting of user commands */
    size_t user_lines; /* lines that they ran in all */
};

int repl_lines_add(struct repl_lines *lines, const char *text);
void repl_lines_clear(struct repl_lines *lines);

int repl_body_open(struct repl *repl, enum repl_body_kind kind, const char *name, int first,
                   int last, struct gd_err *err);
int repl_body_feed(struct repl *repl, const char *line, struct gd_err *err);
/* The command whose body is open; "" if none is. */
const char *repl_body_name(const struct repl *repl);
void repl_body_drop(struct repl *repl);
/* Opens `interact`: until it ends, fn gets each line. */
int repl_body_interact(struct repl *repl, repl_interact_fn fn, struct gd_err *err);
/* Ctrl-C at the prompt: drops an open body, of `interact` only the statement. */
void repl_body_interrupt(struct repl *repl);
struct user_command *repl_user_command(struct repl *repl, const char *name, bool prefix);
struct user_alias *repl_alias(struct repl *repl, const char *name);
const struct repl_lines *repl_commands_of(struct repl *repl, int number);
int repl_set_stop_count(struct repl *repl, int number, uint64_t count);
uint64_t repl_stop_count(struct repl *repl, int number); /* 0: none */
bool repl_count_stop(struct repl *repl, int number); /* true: that was the last stop of its count */
void repl_forget_number(struct repl *repl, int number);
void repl_script_free(struct repl *repl);

#endif
