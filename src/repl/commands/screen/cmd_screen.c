// SPDX-License-Identifier: GPL-3.0-or-later
/* layout, focus, winheight, refresh, bind: the panes by commands; help keys. */
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"

#include <string.h>
#include <strings.h>

#define MAX_HEIGHT 1000

static int need_screen(struct command_call *call, struct gd_err *err)
{
    return call->repl->screen
               ? GD_OK
               : gd_fail(err, GD_ESTATE, "this program has no panes: nothing to arrange");
}

/* ---- where the panes are ---- */

static int run_layout(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->screen;

    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "layout: one name is enough");
    }
    int rc = need_screen(call, err);
    if (rc == GD_OK && call->argc == 1) {
        return screen->layout(call->repl->screen_ctx, call->argv[0], err);
    }
    if (rc == GD_OK) {
        const char *name = screen->layout_name(call->repl->screen_ctx);
        cJSON_AddStringToObject(out_record(call->out, "layout"), "layout", name);
        out_printf(call->out, "%s\n", name);
    }
    return rc;
}

static int run_focus(struct command_call *call, struct gd_err *err)
{
    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "focus: the name of a pane, next or prev is needed");
    }
    int rc = need_screen(call, err);
    return rc == GD_OK ? call->repl->screen->focus(call->repl->screen_ctx, call->argv[0], err) : rc;
}

/* "12", "+2", "-2", and gdb's words: "console 12", "cmd -2"; "0" or "usual". */
static int run_winheight(struct command_call *call, struct gd_err *err)
{
    const struct repl_screen_ops *screen = call->repl->screen;
    int at = call->argc == 2 && (strcmp(call->argv[0], "console") == 0 ||
                                 strcasecmp(call->argv[0], "cmd") == 0)
                 ? 1
                 : 0;
    int64_t rows = 0;

    if (call->argc != at + 1) {
        return gd_fail(err, GD_EUSAGE, "winheight: how many rows the console is to have");
    }
    int rc = need_screen(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *word = call->argv[at];
    char sign = word[0];
    if (strcmp(word, "usual") == 0) {
        return screen->height(call->repl->screen_ctx, 0, err);
    }
    bool by = sign == '+' || sign == '-';
    if (arg_count(by ? word + 1 : word, 0, MAX_HEIGHT, &rows, NULL) != GD_OK) {
        return gd_fail(err, GD_EINVAL,
                       "\"%.40s\" is no height: a number up to %d, +N, -N or usual is one", word,
                       MAX_HEIGHT);
    }
    if (by) {
        int now = screen->height_now(call->repl->screen_ctx);
        rows = sign == '+' ? now + rows : now - rows;
        rows = rows < 1 ? 1 : rows;
    }
    return screen->height(call->repl->screen_ctx, (int)rows, err);
}

struct graph_wait {
    struct gd_debugger *debugger;
    int number; /* of the session, which may go meanwhile */
    uint64_t generation;
};

static bool graph_came(void *ctx)
{
    const struct graph_wait *wait = ctx;
    const struct gd_session *session = gd_debugger_session(wait->debugger, wait->number);

    return !session || !gd_session_is_live(session) ||
           session->graph_generation != wait->generation;
}

/* Ctrl-C ended the taking in of a graph: once more. */
static int refresh_graph(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session;
    int rc = gd_debugger_need_session(call->debugger, &session, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_session_is_live(session)) {
        return gd_fail(err, GD_ENODATA, "the trainer is gone, and its graphs with it");
    }
    struct graph_wait wait = {call->debugger, session->number, session->graph_generation};
    rc = gd_target_take_graphs(session->target, err);
    if (rc == GD_OK && repl_wait(call->repl, graph_came, &wait, -1) == GD_EINTR) {
        return repl_interrupted(call->repl, "interrupted", err);
    }
    return rc;
}

static int run_refresh(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 1 && strcmp(call->argv[0], "graph") == 0) {
        return refresh_graph(call, err);
    }
    if (call->argc != 0) {
        return gd_fail(err, GD_EUSAGE, "refresh: nothing, or graph");
    }
    int rc = need_screen(call, err);

    if (rc == GD_OK) {
        call->repl->screen->refresh(call->repl->screen_ctx);
    }
    return rc;
}

/* ---- keys ---- */

struct key_list {
    struct command_call *call;
    cJSON *list;
    const char *group; /* of the row before */
    bool bound;        /* those alone */
    int count;
};

static void key_json(struct key_list *keys, const struct repl_key *key)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "key", key->name);
    cJSON_AddStringToObject(object, "panes", key->panes);
    cJSON_AddStringToObject(object, "command", key->command);
    if (!keys->bound) {
        cJSON_AddStringToObject(object, "group", key->group);
        cJSON_AddStringToObject(object, "help", key->help);
        cJSON_AddBoolToObject(object, "bound", key->bound);
    }
    cJSON_AddItemToArray(keys->list, object);
    keys->count++;
}

static void on_bound_key(void *ctx, const struct repl_key *key)
{
    struct key_list *keys = ctx;
    struct command_call *call = keys->call;

    if (key->bound) {
        out_printf(call->out, "  %-8s %-18s %s\n", out_safe(call, key->name), key->panes,
                   key->command[0] != '\0' ? out_safe(call, key->command) : "-");
        key_json(keys, key);
    }
}

static void on_key(void *ctx, const struct repl_key *key)
{
    struct key_list *keys = ctx;
    struct command_call *call = keys->call;
    char what[256];

    if (!keys->group || strcmp(keys->group, key->group) != 0) {
        out_printf(call->out, "%s%s:\n", keys->group ? "\n" : "", key->group);
        keys->group = key->group;
    }
    if (key->same) {
        snprintf(what, sizeof(what), "the same");
    } else if (key->command[0] != '\0' && !key->bound) {
        snprintf(what, sizeof(what), "%s (%s)", key->help, key->command);
    } else {
        snprintf(what, sizeof(what), "%s", key->help);
    }
    out_printf(call->out, "  %-8s %-48s %s\n", out_safe(call, key->name), out_safe(call, what),
               key->panes);
    key_json(keys, key);
}

static int list_keys(struct command_call *call, bool bound, struct gd_err *err)
{
    int rc = need_screen(call, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct key_list keys = {.call = call, .bound = bound};
    cJSON *record = out_record(call->out, bound ? "bindings" : "keys");
    keys.list = cJSON_AddArrayToObject(record, bound ? "bindings" : "keys");
    call->repl->screen->keys(call->repl->screen_ctx, bound ? on_bound_key : on_key, &keys);
    if (keys.count == 0) {
        out_printf(call->out, "No key is bound; \"help keys\" lists what keys do.\n");
    }
    return GD_OK;
}

int cmd_help_keys(struct command_call *call, struct gd_err *err)
{
    return list_keys(call, false, err);
}

/* The next word of a line, in quotes or not; "" at the end. Moves *line behind it and the blanks.
 */
static void take_word(const char **line, char *word, size_t size)
{
    const char *p = *line;
    char quote = *p == '"' || *p == '\'' ? *p : '\0';
    size_t used = 0;

    quote = quote != '\0' && p[1] != '\0' && p[1] != ' ' ? quote : '\0';
    p += quote != '\0' ? 1 : 0;
    while (*p != '\0' && (quote != '\0' ? *p != quote : *p != ' ' && *p != '\t')) {
        if (used + 1 < size) {
            word[used++] = *p;
        }
        p++;
    }
    word[used] = '\0';
    p += quote != '\0' && *p == quote ? 1 : 0;
    *line = p + strspn(p, " \t");
}

static int run_bind(struct command_call *call, struct gd_err *err)
{
    char pane[24] = "", key[40] = "", second[24];
    const char *rest = call->line;

    if (rest[0] == '\0') {
        return list_keys(call, true, err);
    }
    take_word(&rest, key, sizeof(key));
    if (strcmp(key, "-p") == 0) {
        take_word(&rest, pane, sizeof(pane));
        take_word(&rest, key, sizeof(key));
    }
    if (strcasecmp(key, "C-x") == 0) {
        take_word(&rest, second, sizeof(second));
        snprintf(key, sizeof(key), "C-x %s", second);
    }
    if (key[0] == '\0' || rest[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "bind: a key, and the command that it runs, are needed");
    }
    int rc = need_screen(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    return call->repl->screen->bind(call->repl->screen_ctx, pane[0] != '\0' ? pane : NULL, key,
                                    strcmp(rest, "-") == 0 ? NULL : rest, err);
}

const struct command cmd_screen_table[] = {
    {.name = "layout",
     .group = "screen",
     .usage = "layout [graph | tensor | watch | stack | split]",
     .summary = "Choose which panes are on the screen",
     .help =
         "graph: the graph and a node; tensor: a value as a grid; watch: watchpoints and hits;\n"
         "stack: source lines and stacks; split: the graph, a node, watchpoints and hits. The\n"
         "console is part of each. Large screens show more. Before the panes are open it is\n"
         "the layout that they open with. Without a name: print the current one. What you type\n"
         "next still goes to the prompt.\n"
         "Examples:\n"
         "  layout watch\n"
         "  layout",
     .args = {ARG_CHOICE},
     .run = run_layout},
    {.name = "focus",
     .aliases = "fs",
     .group = "screen",
     .usage = "focus PANE | next | prev",
     .summary = "Show a pane, which C-x o then goes to",
     .help =
         "The panes: graph, node, console, watch, hits, stack, source, tensor, history, log.\n"
         "One that the layout lacks takes the place of another. What you type next still goes to\n"
         "the prompt: C-x o takes the keyboard to the pane, \":\" brings it back. Bound to a key,\n"
         "the command takes it there at once.\n"
         "Examples:\n"
         "  focus graph\n"
         "  focus next",
     .args = {ARG_PANE},
     .run = run_focus},
    {.name = "winheight",
     .aliases = "wh",
     .group = "screen",
     .usage = "winheight [+|-]N | usual",
     .summary = "Set how many rows the console has",
     .help = "+ and - change it by so many rows.\n"
             "Examples:\n"
             "  winheight 8\n"
             "  winheight +2\n"
             "  winheight usual",
     .args = {ARG_CHOICE},
     .run = run_winheight},
    {.name = "refresh",
     .group = "screen",
     .usage = "refresh [graph]",
     .summary = "Draw the whole screen again",
     .help = "For a terminal that something else has written to; C-l does the same.\n"
             "With `graph`: takes in the graph whose taking in was interrupted by Ctrl-C.\n"
             "Examples:\n"
             "  refresh\n"
             "  refresh graph",
     .args = {ARG_CHOICE},
     .run = run_refresh},
    {.name = "bind",
     .group = "screen",
     .usage = "bind [[-p PANE] KEY COMMAND | -]",
     .summary = "Let a key of the panes run a command",
     .help =
         "In all panes, or in the one after -p; a key that the prompt takes, in all but the\n"
         "console. KEY is a character, F5, C-t, Enter, PgUp, Space or one of them after \"C-x "
         "\".\n"
         "A character whose command may resume or change something needs single-key mode, C-x s.\n"
         "In the command %n stands for the selected node, %t for its tensor, %b, %w and %h for\n"
         "the number of its breakpoint, its watchpoint and its hit. \"-\" instead of a command:\n"
         "the key does nothing. Without anything the keys that were bound are listed; \"help\n"
         "keys\" lists all. Its place is the file gradbrc.\n"
         "Examples:\n"
         "  bind F5 continue\n"
         "  bind C-x t layout tensor\n"
         "  bind -p graph W watch NAN on %n\n"
         "  bind",
     .args = {ARG_KEY},
     .flags = CMD_RAW,
     .run = run_bind},
    {.name = NULL},
};
