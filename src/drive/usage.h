// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a command takes, read from its usage line in the command table: named arguments with a type,
 * from which schemas and command lines are made. Pure; results point into nothing but themselves.
 */
#ifndef GD_DRIVE_USAGE_H
#define GD_DRIVE_USAGE_H

#include <cjson/cJSON.h>

#include "repl/core/command.h"

#define USAGE_ITEMS 24

enum usage_kind {
    USAGE_VALUE,   /* NODE: the value itself */
    USAGE_KEYWORD, /* "on SELECTOR", "-d DEPTH", "--map FILE": the word, then the value */
    USAGE_ASSIGN,  /* "rtol=X" */
    USAGE_FLAG,    /* "-a": the word */
    USAGE_CHOICE,  /* "prev|diff": one of the words */
};

struct usage_item {
    enum usage_kind kind;
    char name[32];     /* of the argument: "selector", "depth", "all" */
    char word[32];     /* "on", "-d", "rtol" */
    char shown[96];    /* as in the usage line: "NODE[:SLOT][SLICE]" */
    char choices[192]; /* "prev|diff" */
    bool required, repeats, number, file;
};

struct usage {
    struct usage_item item[USAGE_ITEMS];
    int count;
};

void usage_read(const struct command *command, struct usage *ret);
/* The properties of a JSON schema; `required` gets the names of those that must be given. */
void usage_add_schema(const struct usage *usage, const struct command *command, cJSON *properties,
                      cJSON *required);
/* Adds the values of `arguments` to the line, in the order of the usage. GD_EINVAL: one has the
 * wrong type, or a required one is missing. */
int usage_add_line(const struct usage *usage, const cJSON *arguments, struct gd_buf *line,
                   struct gd_err *err);
const struct usage_item *usage_find(const struct usage *usage, const char *name);

#endif
