// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/words/suggest.h"

#include <string.h>

#include "engine/graph/similar.h"
#include "repl/core/repl_impl.h"
#include "repl/core/settings_table.h"
#include "repl/words/piped.h"

#define LEAST_ALIAS 3 /* letters of an alias that is compared */

struct search {
    const char *word;
    size_t len, best; /* best: 0 the same, 1 it begins the name, then one more than the distance */
    char *ret;
};

static void try_name(struct search *search, const char *before, const char *name, size_t len,
                     const char *meant)
{
    bool same = len == search->len && strncasecmp(name, search->word, len) == 0;
    size_t far =
        same ? 0 : gd_similar_suggestion(search->word, search->len, name, len, search->best) + 1;

    if (far < search->best) {
        search->best = far;
        snprintf(search->ret, SUGGEST_MAX, "%s%s", before, meant);
    }
}

static void try_command(struct search *search, const char *before, const struct command *command)
{
    const char *alias = command->aliases;

    try_name(search, before, command->name, strlen(command->name), command->name);
    while (alias && *alias != '\0') {
        size_t len = strcspn(alias, " ");
        if (len >= LEAST_ALIAS) {
            try_name(search, before, alias, len, command->name);
        }
        alias += len + (alias[len] == ' ' ? 1 : 0);
    }
}

static void try_table(struct search *search, const char *before, const struct command *table)
{
    for (const struct command *sub = table; sub && sub->name; sub++) {
        try_command(search, before, sub);
    }
}

const char *suggest_parent(const struct command *table)
{
    const struct command *parent = command_next(NULL);

    while (parent && parent->sub != table) {
        parent = command_next(parent);
    }
    return parent ? parent->name : "";
}

bool suggest_name(const struct command *table, const char *word, size_t len, char ret[SUGGEST_MAX])
{
    struct search search = {.word = word, .len = len, .best = len >= 4 ? 4 : 3, .ret = ret};

    ret[0] = '\0';
    if (table) {
        char before[SUGGEST_MAX];
        snprintf(before, sizeof(before), "%s ", suggest_parent(table));
        try_table(&search, before, table);
    }
    if (ret[0] != '\0') { /* `info taget` is rather `info target` than a command */
        return true;
    }
    for (const struct command *c = command_next(NULL); c; c = command_next(c)) {
        try_command(&search, "", c);
    }
    if (len < 4 && search.best > 2) { /* there are many short words */
        search.best = 2;
    }
    for (const struct command *c = command_next(NULL); c && !table; c = command_next(c)) {
        if (strcmp(c->name, "info") == 0) {
            try_table(&search, "info ", c->sub);
        }
    }
    for (const struct setting *s = settings_table; s->name && !table; s++) {
        try_name(&search, "set ", s->name, strlen(s->name), s->name);
    }
    return ret[0] != '\0';
}

bool suggest_thing(const struct repl *repl, const char *word, char ret[SUGGEST_MAX])
{
    const struct gd_session *session = repl->debugger->current;
    gd_node_id node;
    int rc = session ? gd_graph_find(session->graph, word, &node, NULL) : GD_ENOTFOUND;

    if ((session && gd_session_scalar(session, word)) || rc == GD_OK || rc == GD_EAMBIGUOUS) {
        snprintf(ret, SUGGEST_MAX, "print %.100s", word);
        return true;
    }
    if (session && gd_graph_find_scope(session->graph, word, strlen(word)) != GD_NO_SCOPE) {
        snprintf(ret, SUGGEST_MAX, "info scopes %.100s", word);
        return true;
    }
    if (!repl->options.sealed && piped_is_program(word, strlen(word))) {
        snprintf(ret, SUGGEST_MAX, "shell %.100s", word);
        return true;
    }
    return false;
}
