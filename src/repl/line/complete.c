// SPDX-License-Identifier: GPL-3.0-or-later
/* Tab completion: candidates from the tables, the graph and the file system. */
#include "repl/line/complete.h"
#include "base/grow.h"
#include "engine/ranks.h"
#include "engine/utf8.h"
#include "engine/watch/watchpoint.h"
#include "repl/commands/screen/panes.h"
#include "repl/core/settings_table.h"
#include "repl/line/complete_agent.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_WORDS 20000

/* Names with control characters or bidirectional marks are not offered: a pattern can select
 * them. */
static void add_word(struct completion *c, const char *text, size_t len)
{
    char **more = c->count < MAX_WORDS /* with room for a NULL at the end */
                      ? gd_grow(c->words, c->count + 1, &c->room, sizeof(*more))
                      : NULL;
    if (!more) {
        return;
    }
    c->words = more;
    c->words[c->count] = gd_utf8_is_safe_text(text, len) ? strndup(text, len) : NULL;
    c->count += c->words[c->count] != NULL ? 1 : 0;
}

void complete_if(struct completion *c, const char *text)
{
    if (strncmp(text, c->word, c->len) == 0) {
        add_word(c, text, strlen(text));
    }
}

static void add_number(struct completion *c, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    complete_if(c, text);
}

/* Adds each word of a blank-separated list. */
void complete_list(struct completion *c, const char *list)
{
    for (const char *p = list; *p != '\0';) {
        size_t len = strcspn(p, " ");
        if (len >= c->len && strncmp(p, c->word, c->len) == 0) {
            add_word(c, p, len);
        }
        p += len + (p[len] == ' ' ? 1 : 0);
    }
}

static void add_panes(struct completion *c)
{
    for (int i = 0; pane_names[i]; i++) {
        complete_if(c, pane_names[i]);
    }
}

void complete_at(struct completion *c, size_t start)
{
    c->start = start;
    c->word = c->line + start;
    c->len = strlen(c->word);
}

/* ---- names of the graph ---- */

static struct gd_graph *graph_of(struct completion *c)
{
    struct gd_session *session = c->repl->debugger->current;
    return session ? session->graph : NULL;
}

/* Length of the word up to its last slash, inclusive. */
static size_t dir_of_word(const struct completion *c)
{
    size_t dir = c->len;
    while (dir > 0 && c->word[dir - 1] != '/') {
        dir--;
    }
    return dir;
}

/* Adds a scope by its last component, after what was typed: its path may start with a graph's
 * name. */
static void add_scope(struct completion *c, size_t dir, const char *leaf)
{
    bool dots = c->repl->debugger->settings.name_style && dir == 0;
    size_t len = dir + strlen(leaf);
    char *path = malloc(len + 2);

    if (path) {
        memcpy(path, c->word, dir);
        memcpy(path + dir, leaf, len - dir);
        memcpy(path + len, dots ? "." : "/", 2);
        complete_if(c, path);
    }
    free(path);
}

static bool add_name(const void *ctx, const char *name)
{
    struct completion *const *c = ctx;
    complete_if(*c, name);
    return false;
}

/* Adds the nodes of a scope under both of their names, unless several graphs have that name. */
static void add_nodes_of(struct completion *c, struct gd_graph *graph, gd_scope_id scope)
{
    struct gd_scope_info info;
    gd_node_id first = gd_graph_scope(graph, scope, &info) ? info.first_node : GD_NO_NODE;

    for (gd_node_id node = first; node != GD_NO_NODE && c->count < MAX_WORDS;
         node = gd_graph_next_in_scope(graph, node)) {
        struct gd_node_info at;

        if (gd_graph_node(graph, node, &at) && at.name != at.own_name) {
            complete_if(c, at.name);
        } else {
            gd_graph_any_name(graph, node, add_name, &c);
        }
    }
}

typedef void (*scope_fn)(struct completion *c, struct gd_graph *graph, gd_scope_id scope);

static void add_scopes_of(struct completion *c, struct gd_graph *graph, gd_scope_id scope)
{
    struct gd_scope_info info, child;

    if (!gd_graph_scope(graph, scope, &info)) {
        return;
    }
    for (gd_scope_id s = info.first_child; c->count < MAX_WORDS && gd_graph_scope(graph, s, &child);
         s = child.next) {
        add_scope(c, dir_of_word(c), child.leaf);
    }
}

/* Adds the content of the scope that the word names up to its last slash, in every graph that has
 * it. For a word without a slash, also the top level of each graph. */
static void add_below(struct completion *c, struct gd_graph *graph, scope_fn fn)
{
    struct gd_scope_info root, top;
    size_t dir = dir_of_word(c);
    uint32_t subgraph = 0;
    gd_scope_id scope;

    while ((scope = gd_graph_next_scope(graph, c->word, dir, &subgraph)) != GD_NO_SCOPE) {
        fn(c, graph, scope);
    }
    if (dir > 0 || !gd_graph_is_qualified(graph) || !gd_graph_scope(graph, 0, &root)) {
        return;
    }
    for (gd_scope_id s = root.first_child; gd_graph_scope(graph, s, &top); s = top.next) {
        fn(c, graph, s);
    }
}

static int add_leaf(void *ctx, gd_node_id node)
{
    struct completion *c = ctx;
    const char *name = gd_graph_name(graph_of(c), node);
    const char *leaf = strrchr(name, '/');

    if (leaf) {
        complete_if(c, leaf + 1);
    }
    return c->count >= 2000;
}

/* After a node's name and a colon: its slots, and inputs where a dump has them. */
static void add_slots(struct completion *c)
{
    const struct gd_graph *graph = graph_of(c);
    const char *colon = memrchr(c->word, ':', c->len);
    struct gd_node_info info;

    if (!graph || !colon) {
        return;
    }
    gd_node_id node = gd_graph_lookup(graph, c->word, (size_t)(colon - c->word));
    if (!gd_graph_node(graph, node, &info) || info.input_slots == 0) {
        return;
    }
    for (uint32_t slot = 0; slot < info.output_count; slot++) {
        struct gd_buf text = GD_BUF_INIT(1 << 14);
        char name[16];

        gd_graph_slot_name(graph, node, slot, name);
        gd_buf_printf(&text, "%s:%s", info.name, name);
        complete_if(c, gd_buf_text(&text));
        gd_buf_deinit(&text);
    }
}

/* Scopes (modules) by their last component, and by their class. */
static void add_modules(struct completion *c, const struct gd_graph *graph)
{
    struct gd_scope_info info;

    for (gd_scope_id s = 1; s < gd_graph_scope_limit(graph) && c->count < MAX_WORDS; s++) {
        if (gd_graph_scope(graph, s, &info)) {
            complete_if(c, info.leaf);
            complete_if(c, info.class[0] ? info.class : info.leaf);
        }
    }
}

/* Adds what is in a scope after the first `dir` bytes of the word, whatever these bytes are. */
static void add_members(struct completion *c, struct gd_graph *graph, gd_scope_id scope, size_t dir)
{
    struct gd_scope_info info, child;
    const char end[2] = {c->word[dir - 1], '\0'}; /* as people spell it: '.' or '/' */
    struct gd_buf text = GD_BUF_INIT(1 << 14);

    gd_graph_scope(graph, scope, &info);
    for (gd_scope_id s = info.first_child; c->count < MAX_WORDS && gd_graph_scope(graph, s, &child);
         s = child.next) {
        gd_buf_clear(&text);
        gd_buf_printf(&text, "%.*s%s%s", (int)dir, c->word, child.leaf, end);
        complete_if(c, gd_buf_text(&text));
    }
    for (gd_node_id node = info.first_node; node != GD_NO_NODE && c->count < MAX_WORDS;
         node = gd_graph_next_in_scope(graph, node)) {
        const char *leaf = strrchr(gd_graph_name(graph, node), '/');

        gd_buf_clear(&text);
        gd_buf_printf(&text, "%.*s%s", (int)dir, c->word,
                      leaf ? leaf + 1 : gd_graph_name(graph, node));
        complete_if(c, gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

/* Names with dots, and the ends of names: "transformer.h.0.", "lm_head.weight.g", "attn/". The
 * scope is the longest one that the word names up to a dot or a slash. */
static void add_spelled(struct completion *c, struct gd_graph *graph)
{
    gd_scope_id scope;

    for (size_t dir = c->len; dir > 1 && c->count == 0; dir--) {
        if (c->word[dir - 1] != '.' && c->word[dir - 1] != '/') {
            continue;
        }
        char *path = strndup(c->word, dir - 1);
        if (path && gd_graph_find_scope_end(graph, path, &scope, NULL) == GD_OK) {
            add_members(c, graph, scope, dir);
        }
        free(path);
    }
}

/* Scope by scope. A word without a slash that starts no scope may be the last component of a node
 * or a scope. */
static void add_nodes(struct completion *c)
{
    struct gd_graph *graph = graph_of(c);

    if (!graph || memchr(c->word, '[', c->len)) {
        return;
    }
    add_below(c, graph, add_scopes_of);
    add_below(c, graph, add_nodes_of);
    if (c->count == 0) {
        add_spelled(c, graph);
    }
    if (c->count == 0 && c->len > 0 && !memchr(c->word, '/', c->len)) {
        char *text = strndup(c->word, c->len);
        if (text) {
            gd_graph_search_name(graph, text, add_leaf, c);
        }
        free(text);
        add_modules(c, graph);
    }
}

void complete_tensors(struct completion *c)
{
    add_nodes(c);
    add_slots(c);
}

static void add_types(struct completion *c)
{
    struct gd_graph *graph = graph_of(c);
    uint32_t count = 0;
    const struct gd_type_count *types = graph ? gd_graph_types(graph, &count) : NULL;

    for (uint32_t i = 0; i < count; i++) {
        complete_if(c, types[i].type);
    }
}

static int add_type_of(void *ctx, gd_node_id node)
{
    struct completion *c = ctx;
    struct gd_node_info info;

    if (gd_graph_node(graph_of(c), node, &info) &&
        (c->count == 0 || strcmp(c->words[c->count - 1], info.type) != 0)) {
        complete_if(c, info.type);
    }
    return c->count >= 2000; /* duplicates: each is offered once */
}

void complete_selectors(struct completion *c)
{
    size_t term = c->len; /* a new term starts after ',' and '|' */
    while (term > 0 && c->word[term - 1] != ',' && c->word[term - 1] != '|') {
        term--;
    }
    complete_at(c, c->start + term);
    if (c->len >= 5 && strncmp(c->word, "type:", 5) == 0) {
        complete_at(c, c->start + 5);
        add_types(c);
        return;
    }
    if (c->len >= 12 && strncmp(c->word, "activations:", 12) == 0) {
        complete_at(c, c->start + 12);
        if (graph_of(c)) {
            gd_graph_search_kind(graph_of(c), GD_NODE_ACTIVATION, add_type_of, c);
        }
        return;
    }
    complete_list(c, "weights gradients activations activations: parameters trainable frozen lora "
                     "model outside eval "
                     "all type: at:");
    add_nodes(c);
}

/* ---- other kinds ---- */

static void add_files(struct completion *c)
{
    size_t dir_len = dir_of_word(c);
    char *dir_path = dir_len > 0 ? strndup(c->word, dir_len) : strdup(".");
    DIR *dir = dir_path ? opendir(dir_path) : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct stat info;
        size_t name_len = strlen(entry->d_name);
        if ((entry->d_name[0] == '.' && c->word[dir_len] != '.') ||
            strncmp(entry->d_name, c->word + dir_len, c->len - dir_len) != 0) {
            continue;
        }
        char *path = malloc(dir_len + name_len + 2);
        if (!path) {
            break;
        }
        memcpy(path, c->word, dir_len);
        memcpy(path + dir_len, entry->d_name, name_len + 1);
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            memcpy(path + dir_len + name_len, "/", 2);
        }
        add_word(c, path, strlen(path));
        free(path);
    }
    if (dir) {
        closedir(dir);
    }
    free(dir_path);
}

static void add_watchpoints(struct completion *c)
{
    for (const struct gd_watchpoint *w = c->repl->debugger->watchpoints; w; w = w->next) {
        add_number(c, (uint64_t)w->number);
    }
}

static void add_breakpoints(struct completion *c)
{
    for (const struct gd_breakpoint *b = c->repl->debugger->breakpoints; b; b = b->next) {
        add_number(c, (uint64_t)b->number);
    }
    add_watchpoints(c);
}

static void add_hits(struct completion *c)
{
    const struct gd_session *session = c->repl->debugger->current;

    complete_list(c, "next previous");
    for (size_t i = 0; session && i < session->hit_count && c->count < 2000; i++) {
        add_number(c, session->hits_dropped + i + 1);
    }
}

static void add_ranks(struct completion *c)
{
    const struct gd_session *current = c->repl->debugger->current;
    bool of_job = current && gd_ranks_of(current);
    complete_if(c, "all");
    complete_if(c, "check");
    for (size_t i = 0; i < c->repl->debugger->session_count; i++) {
        const struct gd_session *session = c->repl->debugger->sessions[i];
        add_number(c, (uint64_t)(of_job ? session->peer.rank : session->number));
    }
}

/* Setting names have several words: the name starts at `from`. */
static void add_settings(struct completion *c, size_t from)
{
    const char *typed = c->line + from;
    const struct setting *setting = NULL;
    const char *rest = NULL;
    size_t before = c->start - from; /* the complete words */

    if (setting_find(typed, &setting, &rest, NULL) == GD_OK && rest <= c->word && rest > typed &&
        rest[-1] == ' ') {
        complete_list(c, setting->type == SETTING_BOOL ? "on off"
                         : setting->choices            ? setting->choices
                                                       : "");
        return;
    }
    for (const struct setting *s = settings_table; s->name; s++) {
        if (strncmp(s->name, typed, strlen(typed)) == 0) {
            const char *part = s->name + before;
            add_word(c, part, strcspn(part, " "));
        }
    }
}

static void add_commands(struct completion *c)
{
    for (const struct command *k = command_next(NULL); k; k = command_next(k)) {
        complete_if(c, k->name);
    }
    for (const struct user_command *u = c->repl->script.user_commands; u; u = u->next) {
        complete_if(c, u->name);
    }
    for (const struct user_alias *a = c->repl->script.aliases; a; a = a->next) {
        complete_if(c, a->name);
    }
}

void complete_conditions(struct completion *c)
{
    const struct gd_condition *condition;

    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        complete_if(c, condition->id);
        complete_if(c, condition->abbr);
    }
}

/* The literal words of the usage: "enable disable" of "tui [enable | disable]". */
static void add_choices(struct completion *c, const struct command *command)
{
    static const char gaps[] = " []|";

    for (const char *p = command->usage + strlen(command->name); *p != '\0';) {
        p += strspn(p, gaps);
        size_t len = strcspn(p, gaps);
        bool typed = len > 1 && strspn(p, "abcdefghijklmnopqrstuvwxyz-") >= len;
        if (typed && len >= c->len && strncmp(p, c->word, c->len) == 0) {
            add_word(c, p, len);
        }
        p += len;
    }
}

static void add_key(void *ctx, const struct repl_key *key)
{
    struct completion *c = ctx;

    if (!strchr(key->name, ' ') && strlen(key->name) > 1) {
        complete_if(c, key->name);
    }
}

static void add_keys(struct completion *c)
{
    char name[8];

    if (c->repl->front.screen) {
        c->repl->front.screen->keys(c->repl->front.screen_ctx, add_key, c);
    }
    complete_list(c, "C-x -p");
    for (int i = 1; i <= 12; i++) {
        snprintf(name, sizeof(name), "F%d", i);
        complete_if(c, name);
    }
}

/* ---- where the cursor is ---- */

static size_t skip_blanks(const char *line, size_t at)
{
    return at + strspn(line + at, " \t");
}

/* End of the word at `at`. Blanks inside brackets and quotes belong to it. */
static size_t word_end(const char *line, size_t at)
{
    int depth = 0;
    char quote = '\0';

    for (; line[at] != '\0'; at++) {
        char ch = line[at];
        if (quote != '\0') {
            quote = ch == quote ? '\0' : quote;
        } else if (ch == '"' || ch == '\'') {
            quote = ch;
        } else if (ch == '[' || ch == '(') {
            depth++;
        } else if ((ch == ']' || ch == ')') && depth > 0) {
            depth--;
        } else if ((ch == ' ' || ch == '\t') && depth == 0) {
            break;
        }
    }
    return at;
}

static void complete_line(struct completion *c, size_t from);

static enum command_arg kind_of(const struct command *command, int index)
{
    int last = 0;
    while (last + 1 < COMMAND_MAX_ARGS && command->args[last + 1] != ARG_NONE) {
        last++;
    }
    return command->args[index < last ? index : last];
}

static void add_scope_names(struct completion *c)
{
    struct gd_graph *graph = graph_of(c);

    if (graph) {
        add_below(c, graph, add_scopes_of);
    }
}

static void add_agent_commands(struct completion *c)
{
    complete_list(c, agent_command_names(c->repl, c->repl->debugger->current));
}

/* Candidates that depend on nothing but the kind of the argument. */
static void (*const add_kind[])(struct completion *c) = {
    [ARG_SCOPE] = add_scope_names,
    [ARG_SELECTOR] = complete_selectors,
    [ARG_CONDITION] = complete_conditions,
    [ARG_PANE] = add_panes,
    [ARG_WATCHPOINT] = add_watchpoints,
    [ARG_HIT] = add_hits,
    [ARG_FILE] = add_files,
    [ARG_BREAKPOINT] = add_breakpoints,
    [ARG_RANK] = add_ranks,
    [ARG_TYPE] = add_types,
    [ARG_AGENT] = add_agent_commands,
};

/* Argument number `index` of a command. Its arguments start at `first`, this one at `at`. */
static void complete_argument(struct completion *c, const struct command *command, int index,
                              size_t first, size_t at)
{
    enum command_arg kind = kind_of(command, index);

    complete_at(c, at);
    switch (kind) {
    case ARG_NODE:
    case ARG_TENSOR:
    case ARG_SIDE:
        if (c->word[0] == '-') { /* no name starts like this */
            add_choices(c, command);
            break;
        }
        complete_tensors(c);
        if (kind == ARG_SIDE) {
            add_files(c);
        }
        break;
    case ARG_CHOICE: add_choices(c, command); break;
    case ARG_WATCH: complete_watch(c, first); break;
    case ARG_WATCH_EDIT: complete_watch_edit(c, first); break;
    case ARG_DPRINTF: complete_dprintf(c, first); break;
    case ARG_SETTING:
        add_settings(c, first);
        if (c->start == first && strcmp(command->name, "set") == 0) {
            complete_if(c, "lr"); /* which is the training's */
        }
        break;
    default:
        if ((size_t)kind < sizeof(add_kind) / sizeof(add_kind[0]) && add_kind[kind]) {
            add_kind[kind](c);
        }
        break;
    }
    if (kind == ARG_CONDITION && command->args[1] == ARG_WATCH) { /* an expression may replace it */
        complete_figures(c, GD_NEED_RANGE);
    } else if (kind == ARG_PANE) {
        complete_list(c, "next prev");
    }
}

/* bind: an optional "-p PANE", a key with an optional "C-x" before it, and a command. */
static void complete_bind(struct completion *c, size_t at)
{
    bool pane = false; /* after -p */
    bool option = true;

    for (;;) {
        size_t end = word_end(c->line, at);
        size_t len = end - at;
        const char *word = c->line + at;
        if (c->line[end] == '\0') {
            complete_at(c, at);
            if (pane) {
                add_panes(c);
            } else {
                add_keys(c);
            }
            return;
        }
        at = skip_blanks(c->line, end);
        if (pane) {
            pane = false;
        } else if (option && len == 2 && memcmp(word, "-p", 2) == 0) {
            pane = true;
        } else if (len != 3 || strncasecmp(word, "C-x", 3) != 0) {
            complete_line(c, at);
            return;
        }
        option = false;
    }
}

static void complete_arguments(struct completion *c, const struct command *command, size_t from)
{
    size_t first = skip_blanks(c->line, from);
    size_t at = first;

    if (command->args[0] == ARG_KEY) {
        complete_bind(c, first);
        return;
    }
    for (int index = 0;; index++) {
        if (index < COMMAND_MAX_ARGS && command->args[index] == ARG_COMMAND) {
            complete_line(c, at);
            if (index == 0 && command->args[1] == ARG_CHOICE &&
                c->line[word_end(c->line, at)] == '\0') {
                add_choices(c, command); /* help */
            }
            return;
        }
        size_t end = word_end(c->line, at);
        if (c->line[end] != '\0') {
            const struct command *sub = NULL;
            if (index == 0 && command->sub) {
                if (command_find(command->sub, c->line + at, end - at, &sub, NULL) == GD_OK) {
                    complete_arguments(c, sub, end);
                }
                return;
            }
            at = skip_blanks(c->line, end);
            continue;
        }
        if (index == 0 && command->sub) {
            complete_at(c, at);
            for (const struct command *s = command->sub; s->name; s++) {
                complete_if(c, s->name);
            }
            return;
        }
        bool setting = command->args[0] == ARG_SETTING;
        complete_argument(c, command, setting ? 0 : index, first, at);
        return;
    }
}

static void complete_line(struct completion *c, size_t from)
{
    size_t at = skip_blanks(c->line, from);
    size_t end = at;
    const struct command *command = NULL;

    if (c->line[at] == '!' || c->line[at] == '|') {
        end = at + 1;
    } else {
        while (c->line[end] != '\0' && !strchr(" \t/", c->line[end])) {
            end++;
        }
    }
    if (c->line[end] == '\0') {
        complete_at(c, at);
        add_commands(c);
        return;
    }
    if (command_find(NULL, c->line + at, end - at, &command, NULL) != GD_OK) {
        char *name = strndup(c->line + at, end - at);
        const struct user_alias *alias = name ? repl_alias(c->repl, name) : NULL;
        size_t len = alias ? strcspn(alias->text, " \t/") : 0;
        bool known = alias && command_find(NULL, alias->text, len, &command, NULL) == GD_OK;
        free(name);
        if (!known) {
            return;
        }
    }
    if (c->line[end] == '/') { /* print/f */
        end += strcspn(c->line + end, " \t");
        if (c->line[end] == '\0') {
            return;
        }
    }
    complete_arguments(c, command, end);
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **repl_complete(struct repl *repl, const char *line, size_t point, size_t *start)
{
    char *typed = strndup(line, point);
    struct completion c = {.repl = repl, .line = typed};

    if (!typed || repl->script.body.kind == BODY_INTERACT) { /* Python is completed by nobody */
        free(typed);
        return NULL;
    }
    complete_at(&c, strlen(typed));
    complete_line(&c, 0);
    *start = c.start;
    if (c.count > 1) {
        qsort(c.words, c.count, sizeof(*c.words), compare_words);
    }
    size_t kept = 0;
    for (size_t i = 0; i < c.count; i++) {
        if (kept > 0 && strcmp(c.words[kept - 1], c.words[i]) == 0) {
            free(c.words[i]);
        } else {
            c.words[kept++] = c.words[i];
        }
    }
    if (kept > 0) {
        c.words[kept] = NULL; /* add() leaves room for it */
    } else {
        free(c.words);
        c.words = NULL;
    }
    free(typed);
    return c.words;
}
