// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/keys.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "repl/commands/screen/panes.h"
#include "repl/core/command.h"
#include "tui/draw.h"

#define CTRL(c)   ((c)&0x1f)
#define C_X       CTRL('x')
#define ESCAPE    0x1b
#define BIT(pane) (1u << (pane))
#define CONSOLE   BIT(TUI_CONSOLE)
#define ALL       ((1u << TUI_PANE_COUNT) - 1)
#define LISTS     (ALL & ~CONSOLE)
#define TREE      BIT(TUI_TREE)
#define NODE      BIT(TUI_NODE)
#define TENSOR    BIT(TUI_TENSOR)
#define WATCH     BIT(TUI_WATCH)
#define HITS      BIT(TUI_HITS)
#define HISTORY   BIT(TUI_HISTORY)
#define PICTURE   BIT(TUI_PICTURE)
#define TEXTS     (TENSOR | BIT(TUI_HISTORY) | BIT(TUI_LOG)) /* panes without rows to open */
#define MODES     (HITS | TENSOR | BIT(TUI_STACK) | BIT(TUI_HISTORY) | PICTURE)
#define BREAKS    (TREE | NODE | TENSOR | PICTURE) /* about one node */

/* prefix, key, name, panes, single, request, command, help, brief, question */
const struct tui_key tui_keys[] = {
    {C_X, 'o', "C-x o", ALL, false, TUI_OTHER_PANE, NULL, "next pane", "pane"},
    {0, '\t', "Tab", LISTS, false, TUI_OTHER_PANE, NULL, "", ""},
    {C_X, 'p', "C-x p", ALL, false, TUI_OTHER_PANE_BACK, NULL, "previous pane", ""},
    {0, DRAW_KEY_BACKTAB, "S-Tab", LISTS, false, TUI_OTHER_PANE_BACK, NULL, "", ""},
    {0, ':', ":", LISTS, false, TUI_PROMPT, NULL, "prompt (any unknown key does the same)", ""},
    {C_X, '1', "C-x 1", ALL, false, TUI_ONE_PANE, NULL, "this pane alone, or all panes again",
     "alone"},
    {C_X, '2', "C-x 2", ALL, false, TUI_TWO_PANES, NULL, "next layout", "layout"},
    {C_X, 's', "C-x s", ALL, false, TUI_SINGLE_KEY, NULL, "single-key mode on or off",
     "single keys"},
    {C_X, 'a', "C-x a", ALL, false, TUI_PLAIN, NULL, "plain prompt, and back", "plain prompt"},
    {C_X, CTRL('a'), "C-x C-a", ALL, false, TUI_PLAIN, NULL, "", ""},
    {C_X, 'd', "C-x d", ALL, false, TUI_COMMAND, "disconnect",
     "give the terminal back; gradb keeps running", "leave"},
    {0, CTRL('l'), "C-l", ALL, false, TUI_REDRAW, NULL, "redraw the screen", ""},
    {0, '?', "?", LISTS, false, TUI_HELP, NULL, "show or hide this list", ""},
    {0, DRAW_KEY_F1, "F1", ALL, false, TUI_HELP, NULL, "", ""},

    {0, DRAW_KEY_UP, "Up", LISTS, false, TUI_UP, NULL, "one line up", ""},
    {0, 'k', "k", LISTS, false, TUI_UP, NULL, "", ""},
    {0, DRAW_KEY_DOWN, "Down", LISTS, false, TUI_DOWN, NULL, "one line down", ""},
    {0, 'j', "j", LISTS, false, TUI_DOWN, NULL, "", ""},
    {0, DRAW_KEY_LEFT, "Left", LISTS & ~TREE, false, TUI_LEFT, NULL, "one column left", ""},
    {0, 'h', "h", TENSOR, false, TUI_LEFT, NULL, "", ""},
    {0, DRAW_KEY_RIGHT, "Right", LISTS & ~TREE, false, TUI_RIGHT, NULL, "one column right", ""},
    {0, DRAW_KEY_PAGE_UP, "PgUp", ALL, false, TUI_PAGE_UP, NULL, "one page up", ""},
    {0, CTRL('b'), "C-b", LISTS, false, TUI_PAGE_UP, NULL, "", ""},
    {0, DRAW_KEY_PAGE_DOWN, "PgDn", ALL, false, TUI_PAGE_DOWN, NULL, "one page down", ""},
    {0, CTRL('f'), "C-f", LISTS, false, TUI_PAGE_DOWN, NULL, "", ""},
    {0, CTRL('u'), "C-u", LISTS, false, TUI_HALF_UP, NULL, "half a page up", ""},
    {0, CTRL('d'), "C-d", LISTS, false, TUI_HALF_DOWN, NULL, "half a page down", ""},
    {0, 'g', "g", LISTS, false, TUI_TOP, NULL, "first line", ""},
    {0, DRAW_KEY_HOME, "Home", LISTS & ~TENSOR, false, TUI_TOP, NULL, "", ""},
    {0, 'G', "G", LISTS, false, TUI_BOTTOM, NULL, "last line", ""},
    {0, DRAW_KEY_END, "End", LISTS & ~TENSOR, false, TUI_BOTTOM, NULL, "", ""},
    {0, DRAW_KEY_HOME, "Home", TENSOR, false, TUI_ROW_START, NULL, "first column", ""},
    {0, DRAW_KEY_END, "End", TENSOR, false, TUI_ROW_END, NULL, "last column", ""},
    {0, '\r', "Enter", LISTS & ~TEXTS, false, TUI_OPEN, NULL, "open, jump to, follow", "open"},
    {0, ' ', "Space", HITS, false, TUI_MARK, NULL, "open or fold", "fold"},
    {0, ' ', "Space", TREE, false, TUI_MARK, NULL, "tick it for the watchpoint form", "tick"},
    {0, '\r', "Enter", HISTORY, false, TUI_OPEN, NULL, "the chart alone, or with the list", ""},
    {0, ' ', "Space", HISTORY, false, TUI_MARK, NULL, "keep the curve in the chart, or not",
     "keep"},
    {0, '+', "+", HISTORY, false, TUI_ZOOM_IN, NULL, "fewer steps, around the cursor", "zoom"},
    {0, '-', "-", HISTORY, false, TUI_ZOOM_OUT, NULL, "more steps", ""},
    {0, 'L', "L", HISTORY, false, TUI_LOG_SCALE, NULL, "logarithmic scale, or linear", "log"},
    {0, 'S', "S", HISTORY, false, TUI_SMOOTH, NULL, "smooth more, or not at all", "smooth"},
    {0, '=', "=", TREE, false, TUI_FILTER, NULL, "filter by name, type or graph", "filter"},
    {0, 'T', "T", TREE, false, TUI_TYPES, NULL, "choose a type from a list", "types"},
    {0, '/', "/", LISTS, false, TUI_SEARCH, NULL, "search", "search"},
    {0, 'n', "n", LISTS, false, TUI_NEXT_MATCH, NULL, "next match", "next"},
    {0, 'N', "N", LISTS, false, TUI_PREVIOUS_MATCH, NULL, "previous match", ""},
    {0, 'm', "m", MODES, false, TUI_MODE, NULL, "show another aspect of it", "mode"},
    {0, 'M', "M", TENSOR, false, TUI_LOOK, NULL, "numbers or heat map", "heat"},
    {0, '[', "[", TENSOR, false, TUI_INDEX_BACK, NULL, "previous index on the hidden axes", ""},
    {0, ']', "]", TENSOR, false, TUI_INDEX_NEXT, NULL, "next index on the hidden axes", "index"},
    {0, 'y', "y", TENSOR, false, TUI_AXIS_ROWS, NULL, "use another axis for the rows", "rows"},
    {0, 'x', "x", TENSOR, false, TUI_AXIS_COLS, NULL, "use another axis for the columns",
     "columns"},
    {0, CTRL('o'), "C-o", NODE, false, TUI_RETURN, NULL,
     "back to where Enter was pressed; also Backspace", "back"},
    {0, DRAW_KEY_RIGHT, "Right", TREE, false, TUI_UNFOLD, NULL, "open a scope", ""},
    {0, '+', "+", TREE | PICTURE, false, TUI_UNFOLD, NULL, "", ""},
    {0, DRAW_KEY_LEFT, "Left", TREE, false, TUI_FOLD, NULL,
     "fold a scope, or go to the enclosing one", ""},
    {0, '-', "-", TREE | PICTURE, false, TUI_FOLD, NULL, "", ""},
    {0, 'q', "q", LISTS, false, TUI_BACK, NULL, "one level back", ""},
    {0, ESCAPE, "Esc", LISTS, false, TUI_BACK, NULL, "", ""},

    {0, 't', "t", LISTS & ~TENSOR, false, TUI_COMMAND, "tensor %t", "show its tensor as a grid",
     "tensor"},
    {0, '1', "1", PICTURE, false, TUI_COMMAND, "picture -d 1", "draw its neighbours", ""},
    {0, '2', "2", PICTURE, false, TUI_COMMAND, "picture -d 2", "draw two edges away from it",
     "further"},
    {0, '3', "3", PICTURE, false, TUI_COMMAND, "picture -d 3", "draw three edges away", ""},
    {0, 'P', "P", LISTS, false, TUI_COMMAND, "picture %n", "draw what is around it", "picture"},
    {0, 'H', "H", LISTS, false, TUI_COMMAND, "plot --histogram %t",
     "draw how its elements were distributed, step by step", ""},
    {0, 'p', "p", LISTS, false, TUI_COMMAND, "print %t", "print its value", "print"},
    {0, 'i', "i", LISTS, false, TUI_COMMAND, "info node %n", "show everything known about it",
     "info"},
    {0, 'w', "w", LISTS & ~HITS, false, TUI_COMMAND, "why %t",
     "explain where a bad value came from", "why"},
    {0, 'w', "w", HITS, false, TUI_COMMAND, "why hit %h", "explain where the bad value came from",
     "why"},
    {0, 'l', "l", LISTS & ~TENSOR, false, TUI_COMMAND, "list %n", "show the source around it",
     "list"},
    {0, 'l', "l", TENSOR, false, TUI_RIGHT, NULL, "one column right", ""},
    {0, 'S', "S", LISTS & ~HISTORY, false, TUI_COMMAND, "save %t", "save its tensor to a .npy file",
     "save"},
    {0, '<', "<", LISTS, false, TUI_COMMAND, "inputs %n", "list its inputs", "inputs"},
    {0, '>', ">", LISTS, false, TUI_COMMAND, "outputs %n", "list what uses its output", "outputs"},

    {0, 'q', "q", ALL, true, TUI_SINGLE_KEY, NULL, "leave single-key mode", "ends"},
    {0, ':', ":", CONSOLE, true, TUI_PROMPT, NULL, "prompt (leaves single-key mode)", ""},
    {0, '?', "?", CONSOLE, true, TUI_HELP, NULL, "show or hide this list", ""},
    {0, 's', "s", ALL, true, TUI_COMMAND, "step", "run to the end of the next training step",
     "step"},
    {0, 'n', "n", ALL, true, TUI_COMMAND, "next", "run to the next node", "next"},
    {0, 'f', "f", ALL, true, TUI_COMMAND, "finish phase", "run to the end of the phase", "finish"},
    {0, 'C', "C", ALL, true, TUI_COMMAND, "continue", "continue the training", "continue"},
    {0, 'c', "c", ALL, true, TUI_COMMAND, "continue", "the same, after a confirmation", "",
     "Continue the training?"},
    {0, 'b', "b", LISTS, true, TUI_COMMAND, "break %n", "stop at the selected node", "break"},
    {0, 'd', "d", BREAKS, true, TUI_COMMAND, "delete %b", "delete its breakpoint", "delete"},
    {0, 'd', "d", WATCH, true, TUI_COMMAND, "delete %w", "delete the watchpoint", "delete"},
    {0, 'a', "a", WATCH | TREE, true, TUI_NEW, NULL,
     "add a watchpoint, in the graph of what is ticked", "add"},
    {0, 'e', "e", WATCH, true, TUI_EDIT, NULL, "edit the watchpoint", "edit"},
    {0, ' ', "Space", WATCH, true, TUI_MARK, NULL, "enable or disable the watchpoint", "on/off"},
    {0, 'U', "U", LISTS, true, TUI_COMMAND, "run-to %n", "run until the selected node has run",
     "run-to"},
    {0, 'u', "u", ALL, true, TUI_COMMAND, "up", "caller's frame", ""},
    {0, 'd', "d", ALL & ~(BREAKS | WATCH), true, TUI_COMMAND, "down", "callee's frame", ""},
    {0, 'v', "v", ALL, true, TUI_COMMAND, "inputs", "list the node's inputs", ""},
    {0, 'w', "w", ALL, true, TUI_COMMAND, "backtrace", "show where the node was created", ""},
    {0, 'r', "r", ALL, true, TUI_COMMAND, "run", "start the program again", "",
     "Start the program again?"},
    {0, 'K', "K", ALL, true, TUI_COMMAND, "kill", "end the training process", ""},
    {0, 0, NULL, 0, false, TUI_NOTHING, NULL, NULL, NULL},
};

/* ---- names ---- */

static const struct {
    const char *name;
    int key;
} named[] = {
    {"Up", DRAW_KEY_UP},
    {"Down", DRAW_KEY_DOWN},
    {"Left", DRAW_KEY_LEFT},
    {"Right", DRAW_KEY_RIGHT},
    {"Home", DRAW_KEY_HOME},
    {"End", DRAW_KEY_END},
    {"PgUp", DRAW_KEY_PAGE_UP},
    {"PgDn", DRAW_KEY_PAGE_DOWN},
    {"Del", DRAW_KEY_DELETE},
    {"Backspace", DRAW_KEY_BACKSPACE},
    {"S-Tab", DRAW_KEY_BACKTAB},
    {"Tab", '\t'},
    {"Enter", '\r'},
    {"Space", ' '},
    {"Esc", ESCAPE},
};

/* A key without a prefix; -1: unknown. */
static int parse_one(const char *name)
{
    mbstate_t state = {0};
    wchar_t wide;
    char *end;

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        if (strcasecmp(named[i].name, name) == 0) {
            return named[i].key;
        }
    }
    if ((name[0] == 'F' || name[0] == 'f') && name[1] != '\0') {
        long number = strtol(name + 1, &end, 10);
        return *end == '\0' && number >= 1 && number <= 12 ? DRAW_KEY_F1 + (int)number - 1 : -1;
    }
    if (strncasecmp(name, "C-", 2) == 0) {
        bool letter = name[2] != '\0' && name[3] == '\0' && name[2] >= '@' && name[2] <= '~';
        return letter ? CTRL(name[2]) : -1;
    }
    size_t len = mbrtowc(&wide, name, strlen(name), &state);
    return len > 0 && len < (size_t)-2 && name[len] == '\0' && wide >= L' ' ? (int)wide : -1;
}

static int parse_key(const char *name, int *prefix, int *key, struct gd_err *err)
{
    bool prefixed = strncasecmp(name, "C-x ", 4) == 0;

    *prefix = prefixed ? C_X : 0;
    *key = parse_one(prefixed ? name + 4 : name);
    if (*key < 0 || (!prefixed && *key == C_X)) {
        return gd_fail(err, GD_EINVAL,
                       "\"%.40s\" is not a key: write a character, F5, C-t, Enter or PgUp, or one "
                       "of them after \"C-x \"",
                       name);
    }
    return GD_OK;
}

/* ---- bound keys ---- */

#define MAX_BOUND 256

struct bound {
    struct tui_key key;
    char name[24];
    char *command;
};
static struct bound bound[MAX_BOUND];
static int bound_count;

bool tui_key_is_bound(const struct tui_key *key)
{
    for (int i = 0; i < bound_count; i++) {
        if (key == &bound[i].key) {
            return true;
        }
    }
    return false;
}

static const struct tui_key *find_bound(int prefix, int key, enum tui_pane_id pane, bool single)
{
    for (int i = bound_count; i-- > 0;) {
        const struct tui_key *k = &bound[i].key;
        if (k->prefix == prefix && k->key == key && (single || !k->single) &&
            (k->panes & BIT(pane)) != 0) {
            return k;
        }
    }
    return NULL;
}

/* A binding of the same key in the same panes: a new command replaces it. */
static struct bound *same_bound(const struct tui_key *key)
{
    for (int i = 0; i < bound_count; i++) {
        const struct tui_key *k = &bound[i].key;
        if (k->prefix == key->prefix && k->key == key->key && k->panes == key->panes) {
            return &bound[i];
        }
    }
    return NULL;
}

bool tui_key_only_shows(const char *line)
{
    static const char *const groups[] = {"data", "graph", "status", "screen"};
    const struct command *command = NULL;
    struct gd_err err;

    if (command_find(NULL, line, strcspn(line, " /"), &command, &err) != GD_OK) {
        return false; /* a user-defined command: it may do anything */
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        if (strcmp(command->group, groups[i]) == 0) {
            return true;
        }
    }
    return command->flags & CMD_SHOWS;
}

int tui_key_bind(const char *name, enum tui_pane_id pane, const char *command, struct gd_err *err)
{
    struct bound new = {.key = {.help = "user binding", .brief = ""}};
    int rc = parse_key(name, &new.key.prefix, &new.key.key, err);

    if (rc != GD_OK) {
        return rc;
    }
    bool typed = new.key.prefix == 0 && new.key.key < DRAW_KEY_F1; /* the prompt needs it */
    new.key.panes = pane != TUI_PANE_COUNT ? BIT(pane) : typed ? LISTS : ALL;
    if (bound_count == MAX_BOUND && !same_bound(&new.key)) {
        return gd_fail(err, GD_ELIMIT, "%d keys are bound already, which is the limit", MAX_BOUND);
    }
    if (pane == TUI_CONSOLE && new.key.prefix == 0 && new.key.key >= ' ' &&
        new.key.key < 0x110000) {
        return gd_fail(err, GD_EINVAL,
                       "\"%s\" is typed at the prompt of the console; bind \"C-x %s\" instead",
                       name, name);
    }
    bool printable = new.key.key >= ' ' && new.key.key < DRAW_KEY_UP;
    new.key.single = printable &&new.key.prefix == 0 && command && !tui_key_only_shows(command);
    new.key.request = command ? TUI_COMMAND : TUI_NOTHING;
    new.command = command ? strdup(command) : NULL;
    if (command && !new.command) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a key");
    }
    struct bound *at = same_bound(&new.key);
    if (!at) {
        at = &bound[bound_count++];
    }
    free(at->command);
    *at = new;
    snprintf(at->name, sizeof(at->name), "%s", name);
    at->key.name = at->name;
    at->key.command = at->command;
    return GD_OK;
}

/* ---- looking up ---- */

static const struct tui_key *find_listed(int prefix, int key, enum tui_pane_id pane, bool single)
{
    for (const struct tui_key *k = tui_keys; k->name; k++) {
        if (k->prefix == prefix && k->key == key && k->single == single &&
            (k->panes & BIT(pane)) != 0) {
            return k;
        }
    }
    return NULL;
}

const struct tui_key *tui_key_find(int prefix, int key, enum tui_pane_id pane, bool single)
{
    const struct tui_key *found = single ? find_listed(prefix, key, pane, true) : NULL;

    if (!found) {
        found = find_bound(prefix, key, pane, single);
    }
    return found ? found : find_listed(prefix, key, pane, false);
}

bool tui_key_is_prefix(int key)
{
    return key == C_X;
}

/* ---- panes by name ---- */

int tui_pane_find(const char *name, enum tui_pane_id *ret, struct gd_err *err)
{
    char all[128] = "";
    size_t used = 0;

    for (int i = 0; i < TUI_PANE_COUNT; i++) {
        if (strcmp(pane_names[i], name) == 0) {
            *ret = (enum tui_pane_id)i;
            return GD_OK;
        }
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "",
                                 pane_names[i]);
    }
    return gd_fail(err, GD_ENOTFOUND, "\"%.40s\" is not a pane; panes are %s", name, all);
}

/* ---- what lists of keys say ---- */

/* In display order. */
enum key_group { SCREEN, MOVING, SEARCHING, IN_PANE, COMMANDS, SINGLE, GROUP_COUNT };
static const char *const group_names[GROUP_COUNT] = {
    [MOVING] = "Moving",     [SEARCHING] = "Searching", [IN_PANE] = "In a pane",
    [COMMANDS] = "Commands", [SCREEN] = "The screen",   [SINGLE] = "Single-key mode, after C-x s",
};

static enum key_group group_of(const struct tui_key *key)
{
    if (key->single) {
        return SINGLE;
    }
    switch (key->request) {
    case TUI_COMMAND: return COMMANDS;
    case TUI_NEXT_MATCH:
    case TUI_PREVIOUS_MATCH:
    case TUI_SEARCH:
    case TUI_TYPES:
    case TUI_FILTER: return SEARCHING;
    case TUI_FOLD:
    case TUI_UNFOLD:
    case TUI_OPEN:
    case TUI_RETURN:
    case TUI_MARK:
    case TUI_BACK:
    case TUI_NEW:
    case TUI_EDIT:
    case TUI_LOOK:
    case TUI_INDEX_BACK:
    case TUI_INDEX_NEXT:
    case TUI_AXIS_ROWS:
    case TUI_AXIS_COLS:
    case TUI_ZOOM_IN:
    case TUI_ZOOM_OUT:
    case TUI_LOG_SCALE:
    case TUI_SMOOTH:
    case TUI_MODE: return IN_PANE;
    case TUI_ROW_START:
    case TUI_ROW_END: return MOVING;
    default: return key->request >= TUI_UP && key->request <= TUI_BOTTOM ? MOVING : SCREEN;
    }
}

void tui_keys_each(tui_key_fn fn, void *ctx)
{
    for (int group = 0; group < GROUP_COUNT; group++) {
        const char *help = "";
        for (const struct tui_key *key = tui_keys; key->name; key++) {
            bool same = key->help[0] == '\0';
            help = same ? help : key->help;
            if ((int)group_of(key) == group) {
                fn(ctx, group_names[group], key, help, same);
            }
        }
    }
    for (int i = 0; i < bound_count; i++) {
        const char *command = bound[i].command;
        fn(ctx, "User bindings", &bound[i].key, command ? command : "nothing", false);
    }
}

void tui_key_panes(const struct tui_key *key, char *out, size_t size)
{
    unsigned among = (key->panes & CONSOLE) != 0 ? ALL : LISTS;
    unsigned without = among & ~key->panes;
    bool but = __builtin_popcount(without) <= 3; /* shorter than naming the others */
    unsigned listed = but ? without : key->panes;
    size_t used = 0;

    out[0] = '\0';
    if (but) {
        used = (size_t)snprintf(out, size, "%s%s", among == ALL ? "all" : "lists",
                                without != 0 ? " but" : "");
    }
    for (int i = 0; i < TUI_PANE_COUNT && used < size; i++) {
        if ((listed & BIT(i)) != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? " " : "",
                                     pane_names[i]);
        }
    }
}
