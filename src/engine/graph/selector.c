// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/selector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/glob.h"
#include "engine/graph/part.h"
#include "engine/graph/selector_impl.h"

struct picked {
    struct gd_graph *graph;
    unsigned char *bits;
    bool value;             /* what a match sets: true, or false for an except term */
    bool compiled;          /* the term may mean compiled nodes */
    const char *activation; /* TERM_ACTIVATION: a glob for the type */
    enum gd_selector_extent extent;
    enum selector_word word; /* TERM_WORD */
};

static int pick_node(void *ctx, gd_node_id node)
{
    struct picked *picked = ctx;
    unsigned char bit = (unsigned char)(1U << (node % 8));
    struct gd_node_info info;

    if (!picked->compiled && gd_graph_node(picked->graph, node, &info) &&
        info.kind == GD_NODE_COMPILED) {
        return 0;
    }
    if (picked->value) {
        picked->bits[node / 8] |= bit;
    } else {
        picked->bits[node / 8] &= (unsigned char)~bit;
    }
    return 0;
}

static const char *leaf_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? slash + 1 : name;
}

/* Everything in the scope and below it, without recursion: the tree may be deep. */
static void pick_whole_scope(struct picked *picked, gd_scope_id top)
{
    struct gd_scope_info info;
    gd_scope_id scope = top;

    while (gd_graph_scope(picked->graph, scope, &info)) {
        gd_node_id node = info.first_node;

        while (node != GD_NO_NODE) {
            pick_node(picked, node);
            node = gd_graph_next_in_scope(picked->graph, node);
        }
        if (info.first_child != GD_NO_SCOPE) {
            scope = info.first_child;
            continue;
        }
        while (scope != top && info.next == GD_NO_SCOPE) {
            scope = info.parent;
            gd_graph_scope(picked->graph, scope, &info);
        }
        if (scope == top) {
            return;
        }
        scope = info.next;
    }
}

static void pick_scope(struct picked *picked, gd_scope_id scope, enum gd_selector_extent extent)
{
    gd_node_id node = extent == GD_EXTENT_WHOLE
                          ? GD_NO_NODE
                          : gd_graph_module_end(picked->graph, scope, extent == GD_EXTENT_LAST);

    if (extent == GD_EXTENT_WHOLE) {
        pick_whole_scope(picked, scope);
    } else if (node != GD_NO_NODE) {
        pick_node(picked, node);
    }
}

struct glob_search {
    struct picked *picked;
    const char *pattern;
    bool leaf_too;
};

static bool glob_fits(const void *pattern, const char *name)
{
    return gd_glob_match(pattern, name, false);
}

/* A pattern with dots is written as PyTorch spells names: "h.*.weight" means "model/h/0/weight". */
static bool is_dotted(const char *pattern)
{
    return strchr(pattern, '.') && !strchr(pattern, '/');
}

static void put_dots(const char *text, char *ret, size_t size)
{
    size_t len = strlen(text);

    len = len < size ? len : size - 1;
    for (size_t i = 0; i < len; i++) {
        ret[i] = text[i] == '/' ? '.' : text[i];
    }
    ret[len] = '\0';
}

/* The whole name, or of the model and its gradients the end of one. */
static bool dotted_matches(const char *pattern, const struct gd_graph *graph, gd_node_id node)
{
    char name[1024];

    put_dots(gd_graph_name(graph, node), name, sizeof(name));
    if (gd_glob_match(pattern, name, false)) {
        return true;
    }
    const char *end = gd_graph_part(graph, node) <= GD_PART_GRADIENT ? strchr(name, '.') : NULL;
    for (; end; end = strchr(end + 1, '.')) {
        if (gd_glob_match(pattern, end + 1, false)) {
            return true;
        }
    }
    return false;
}

static bool glob_matches(const char *pattern, bool leaf_too, const struct gd_graph *graph,
                         gd_node_id node)
{
    return gd_graph_any_name(graph, node, glob_fits, pattern) ||
           (leaf_too && gd_glob_match(pattern, leaf_of(gd_graph_name(graph, node)), false)) ||
           (is_dotted(pattern) && dotted_matches(pattern, graph, node));
}

static int match_glob(void *ctx, gd_node_id node)
{
    const struct glob_search *search = ctx;

    if (glob_matches(search->pattern, search->leaf_too, search->picked->graph, node)) {
        pick_node(search->picked, node);
    }
    return 0;
}

/* Letters that every match must contain: the longest run before the first set. A dot may stand for
 * a slash. */
static void literal_of(const char *pattern, char *ret, size_t size)
{
    const char *best = pattern;
    size_t best_len = 0;

    for (const char *at = pattern; *at && *at != '[';) {
        size_t len = strcspn(at, "*?[.\\");

        if (len > best_len) {
            best = at;
            best_len = len;
        }
        at += len;
        at += *at && *at != '[';
    }
    best_len = best_len < size ? best_len : 0;
    memcpy(ret, best, best_len);
    ret[best_len] = '\0';
}

/* The literal bytes of a regular expression from `at` on. */
static size_t plain_run(const char *at)
{
    size_t len = strcspn(at, ".^$*+?{}[]\\");

    return len > 0 && at[len] != '\0' && strchr("*?{", at[len]) ? len - 1 : len;
}

/* Like literal_of, for a regular expression; "" if it has alternatives or groups. */
static void literal_of_regex(const char *pattern, char *ret, size_t size)
{
    size_t best_len = 0;

    ret[0] = '\0';
    for (const char *at = strpbrk(pattern, "|()") ? "" : pattern; *at && *at != '[';) {
        size_t len = plain_run(at);

        if (len > best_len && len < size) {
            best_len = len;
            memcpy(ret, at, len);
            ret[len] = '\0';
        }
        at += len;
        if (*at == '{') {
            at += strcspn(at, "}");
        } else if (*at == '\\' && at[1]) {
            at++;
        }
        at += *at && *at != '[';
    }
}

/* The graph finds a literal in all names far faster than it can match each. */
static void pick_glob(struct picked *picked, const char *pattern)
{
    struct glob_search search = {picked, pattern, strchr(pattern, '/') == NULL};
    char literal[128];

    literal_of(pattern, literal, sizeof(literal));
    if (gd_graph_is_qualified(picked->graph)) {
        literal[0] = '\0'; /* it may be in the graph's name */
    }
    gd_graph_search_name(picked->graph, literal, match_glob, &search);
}

static bool regex_fits(const void *regex, const char *name)
{
    return regexec(regex, name, 0, NULL, 0) == 0;
}

static void pick_regex(struct picked *picked, const regex_t *regex)
{
    for (gd_node_id i = 0; i < gd_graph_node_limit(picked->graph); i++) {
        if (gd_graph_any_name(picked->graph, i, regex_fits, regex)) {
            pick_node(picked, i);
        }
    }
}

static int pick_type(struct picked *picked, const char *pattern)
{
    uint32_t count;
    const struct gd_type_count *types = gd_graph_types(picked->graph, &count);
    int rc = 0;

    if (!gd_glob_is_pattern(pattern)) {
        return gd_graph_search_type(picked->graph, pattern, pick_node, picked);
    }
    for (uint32_t i = 0; rc == GD_OK && i < count; i++) {
        if (gd_glob_match(pattern, types[i].type, true)) {
            rc = gd_graph_search_type(picked->graph, types[i].type, pick_node, picked);
        }
    }
    return rc;
}

static bool is_activation(const struct gd_node_info *info, const char *pattern)
{
    return info->kind == GD_NODE_ACTIVATION && gd_glob_match(pattern, info->type, true);
}

static int pick_activation(void *ctx, gd_node_id node)
{
    struct picked *picked = ctx;
    struct gd_node_info info;

    if (gd_graph_node(picked->graph, node, &info) && is_activation(&info, picked->activation)) {
        pick_node(picked, node);
    }
    return 0;
}

static int pick_kinds(struct picked *picked, unsigned kinds)
{
    int rc = 0;

    for (unsigned kind = 0; rc == GD_OK && kind < GD_NODE_KIND_COUNT; kind++) {
        if (kinds & (1U << kind)) {
            rc = gd_graph_search_kind(picked->graph, (enum gd_node_kind)kind, pick_node, picked);
        }
    }
    return rc;
}

static bool has_class(const struct gd_graph *graph, const char *class)
{
    struct gd_scope_info info;
    bool found = false;

    for (gd_scope_id i = 1; !found && gd_graph_scope(graph, i, &info); i++) {
        found = info.total_count && strcmp(info.class, class) == 0;
    }
    return found;
}

/* A module whose operators are not known has no first one. */
static bool has_extent(const struct picked *picked, gd_scope_id scope)
{
    return picked->extent == GD_EXTENT_WHOLE ||
           gd_graph_module_end(picked->graph, scope, false) != GD_NO_NODE;
}

/* The scopes of that path: of every subgraph that has it. */
static bool pick_scopes(struct picked *picked, const char *path, size_t len)
{
    enum gd_selector_extent extent =
        len > 0 && path[len - 1] == '/' ? GD_EXTENT_WHOLE : picked->extent;
    uint32_t subgraph = 0;
    gd_scope_id scope;
    bool any = false;

    while ((scope = gd_graph_next_scope(picked->graph, path, len, &subgraph)) != GD_NO_SCOPE) {
        /* The name of the only graph is not that of a module: it may be a function's, "main". */
        if (scope != 0 || extent == GD_EXTENT_WHOLE) {
            pick_scope(picked, scope, extent);
            any = true;
        }
    }
    return any;
}

static int pick_meant(void *ctx, gd_node_id node)
{
    struct picked *picked = ctx;
    struct gd_node_info info;

    return gd_graph_node(picked->graph, node, &info) &&
                   selector_word_means(picked->word, picked->graph, node, &info)
               ? pick_node(picked, node)
               : 0;
}

/* A node or a scope that has exactly that name is meant instead. */
static int pick_word(struct picked *picked, const struct term *term)
{
    size_t len = strlen(term->text);
    gd_node_id node = gd_graph_lookup(picked->graph, term->text, len);

    if (node != GD_NO_NODE) {
        return pick_node(picked, node);
    }
    if (pick_scopes(picked, term->text, len)) {
        return GD_OK;
    }
    picked->word = term->word;
    return gd_graph_search_name(picked->graph, "", pick_meant, picked);
}

/* The modules of that class in the part of the training that comes first. */
static bool pick_class(struct picked *picked, const char *class)
{
    struct gd_scope_info info;
    enum gd_part best = GD_PART_COMPILED;

    for (gd_scope_id i = 1; gd_graph_scope(picked->graph, i, &info); i++) {
        enum gd_part part = gd_graph_part_of_scope(picked->graph, i);
        bool fits = info.total_count && part < best && strcmp(info.class, class) == 0;
        best = fits && has_extent(picked, i) ? part : best;
    }
    for (gd_scope_id i = 1; best != GD_PART_COMPILED && gd_graph_scope(picked->graph, i, &info);
         i++) {
        if (info.total_count && strcmp(info.class, class) == 0 &&
            gd_graph_part_of_scope(picked->graph, i) == best) {
            pick_scope(picked, i, picked->extent);
        }
    }
    return best != GD_PART_COMPILED || has_class(picked->graph, class);
}

static bool has_scope(const struct gd_graph *graph, const char *path, size_t len)
{
    uint32_t subgraph = 0;

    return gd_graph_next_scope(graph, path, len, &subgraph) != GD_NO_SCOPE;
}

/* The end of a name waits for a node that runs. */
static bool is_ending_of_compiled(const struct gd_graph *graph, gd_node_id node, const char *text)
{
    struct gd_node_info info;

    return gd_graph_node(graph, node, &info) && info.kind == GD_NODE_COMPILED &&
           strcmp(info.name, text) != 0 && strcmp(info.wire_name, text) != 0;
}

/* The scope that the text ends, which is meant before a node outside the forward pass. `rc`: of the
 * search for the node. */
static int pick_scope_end(struct picked *picked, const struct term *term, bool scope_only, int rc,
                          gd_node_id node, struct gd_err *err)
{
    struct gd_scope_info info;
    struct gd_err why;
    gd_scope_id scope = GD_NO_SCOPE;

    if (rc != GD_OK && !scope_only && pick_class(picked, term->text)) {
        return GD_OK;
    }
    if (rc == GD_EAMBIGUOUS) {
        return rc;
    }
    int found = gd_graph_find_scope_end(picked->graph, term->text, &scope, &why);
    if (rc == GD_OK &&
        (found != GD_OK || !gd_graph_scope(picked->graph, scope, &info) ||
         gd_graph_part_of_scope(picked->graph, scope) >= gd_graph_part(picked->graph, node))) {
        return pick_node(picked, node);
    }
    if (found == GD_OK) {
        pick_scope(picked, scope, scope_only ? GD_EXTENT_WHOLE : picked->extent);
        return GD_OK;
    }
    if (found == GD_EAMBIGUOUS) {
        return gd_fail(err, found, "%s", why.text);
    }
    return scope_only ? gd_fail(err, GD_ENOTFOUND, "there is no scope '%.200s'", term->text) : rc;
}

/* It is not a pattern but "layers[0].weight", or "layers[0]". */
static bool is_indexed(const struct gd_graph *graph, const char *text)
{
    gd_node_id node;
    gd_scope_id scope;

    return gd_graph_find(graph, text, &node, NULL) == GD_OK ||
           gd_graph_find_scope_end(graph, text, &scope, NULL) == GD_OK;
}

static int pick_name(struct picked *picked, const struct term *term, struct gd_err *err)
{
    size_t len = strlen(term->text);
    bool scope_only = len > 1 && term->text[len - 1] == '/';
    gd_node_id node = gd_graph_lookup(picked->graph, term->text, len);

    if (node != GD_NO_NODE && !scope_only) {
        return pick_node(picked, node);
    }
    if (pick_scopes(picked, term->text, len)) {
        return GD_OK;
    }
    bool pattern = term->kind == TERM_NAME && gd_glob_is_pattern(term->text);
    if (pattern && (strpbrk(term->text, "*?") || !is_indexed(picked->graph, term->text))) {
        pick_glob(picked, term->text);
        return GD_OK;
    }
    struct gd_err missing = {.code = GD_OK}; /* it may still be a scope or a class */
    int rc = scope_only ? GD_ENOTFOUND
                        : gd_graph_find(picked->graph, term->text, &node, err ? &missing : NULL);
    if (rc == GD_OK && is_ending_of_compiled(picked->graph, node, term->text)) {
        rc = gd_fail(&missing, GD_ENOTFOUND, "there is no node '%.150s'", term->text);
    }
    if (rc == GD_OK && gd_graph_part(picked->graph, node) <= GD_PART_OUTSIDE) {
        return pick_node(picked, node);
    }
    rc = pick_scope_end(picked, term, scope_only, rc, node, err);
    return rc != GD_OK && rc == missing.code && !scope_only ? gd_fail(err, rc, "%s", missing.text)
                                                            : rc;
}

bool gd_selector_has_all(const struct gd_selector *selector)
{
    const struct term *term = selector->terms;

    while (term && (term->except || term->kind != TERM_ALL)) {
        term = term->next;
    }
    return term != NULL;
}

/* Of a name or a glob. */
static void part_of_name(const struct term *term, char *ret, size_t size)
{
    const char *text = term->text + (term->text[0] == '/');

    if (strchr(text, '.') || (term->kind == TERM_NAME && gd_glob_is_pattern(text))) {
        literal_of(text, ret, size);
    } else {
        snprintf(ret, size, "%s", strlen(text) < size ? text : "");
    }
}

/* Of a module that has not run: the names of its operators do not tell. */
static bool may_be_class(const struct gd_graph *graph, const char *text)
{
    return (text[0] >= 'A' && text[0] <= 'Z' && !strpbrk(text, "./-*?[")) || has_class(graph, text);
}

void gd_selector_parts(const struct gd_selector *selector, struct gd_graph *graph,
                       gd_selector_part_fn fn, void *ctx)
{
    char part[256];

    for (const struct term *term = selector->terms; term; term = term->next) {
        bool is_name = term->kind == TERM_NAME || term->kind == TERM_QUOTED;
        bool never_runs = (term->kind == TERM_KINDS && term->kinds == 1U << GD_NODE_WEIGHT) ||
                          (term->kind == TERM_WORD && term->word <= WORD_FROZEN);

        if (term->except || never_runs ||
            (is_name && gd_graph_lookup(graph, term->text, strlen(term->text)) != GD_NO_NODE)) {
            continue;
        }
        part[0] = '\0';
        if (is_name && !may_be_class(graph, term->text)) {
            part_of_name(term, part, sizeof(part));
        } else if (term->kind == TERM_REGEX) {
            literal_of_regex(term->text, part, sizeof(part));
        }
        fn(ctx, part, is_name);
    }
}

/* A name, or a pattern that begins with their scope. */
static bool may_be_compiled(const struct term *term)
{
    return term->kind == TERM_QUOTED ||
           (term->kind == TERM_NAME &&
            (!gd_glob_is_pattern(term->text) ||
             strncmp(term->text, GD_COMPILED_SCOPE, strlen(GD_COMPILED_SCOPE)) == 0));
}

static int pick_term(struct picked *picked, const struct term *term, struct gd_err *err)
{
    int rc = GD_OK;

    picked->value = !term->except;
    picked->compiled = may_be_compiled(term);
    switch (term->kind) {
    case TERM_NAME:
    case TERM_QUOTED: return pick_name(picked, term, err);
    case TERM_REGEX: pick_regex(picked, &term->regex); break;
    case TERM_ALL: rc = gd_graph_search_name(picked->graph, "", pick_node, picked); break;
    case TERM_KINDS: rc = pick_kinds(picked, term->kinds); break;
    case TERM_WORD: rc = pick_word(picked, term); break;
    case TERM_TYPE: rc = pick_type(picked, term->text); break;
    case TERM_ACTIVATION:
        picked->activation = term->text;
        rc = gd_graph_search_kind(picked->graph, GD_NODE_ACTIVATION, pick_activation, picked);
        break;
    case TERM_SOURCE:
        rc = gd_graph_search_source(picked->graph, term->text, term->line, pick_node, picked);
        break;
    }
    return rc != GD_OK ? gd_fail(err, rc, "out of memory while searching the graph") : GD_OK;
}

static bool term_goes_by_node(const struct term *term, const struct gd_graph *graph)
{
    size_t len = strlen(term->text ? term->text : "");

    switch (term->kind) {
    case TERM_NAME: /* a pattern, unless something has exactly that name, or "layers[0].fc" */
        return gd_glob_is_pattern(term->text) &&
               (strpbrk(term->text, "*?") || !strchr(term->text, ']')) &&
               gd_graph_lookup(graph, term->text, len) == GD_NO_NODE &&
               !has_scope(graph, term->text, len);
    case TERM_QUOTED: return false;
    case TERM_WORD:
        return gd_graph_lookup(graph, term->text, len) == GD_NO_NODE &&
               !has_scope(graph, term->text, len);
    case TERM_SOURCE:
    case TERM_REGEX:
    case TERM_KINDS:
    case TERM_ALL:
    case TERM_TYPE:
    case TERM_ACTIVATION: break;
    }
    return true;
}

static bool term_matches(const struct term *term, struct gd_graph *graph, gd_node_id node,
                         const struct gd_node_info *info)
{
    if (info->kind == GD_NODE_COMPILED && !may_be_compiled(term)) {
        return false;
    }
    switch (term->kind) {
    case TERM_NAME: return glob_matches(term->text, strchr(term->text, '/') == NULL, graph, node);
    case TERM_REGEX: return gd_graph_any_name(graph, node, regex_fits, &term->regex);
    case TERM_KINDS: return term->kinds & (1U << info->kind);
    case TERM_WORD: return selector_word_means(term->word, graph, node, info);
    case TERM_ALL: return true;
    case TERM_TYPE:
        return gd_glob_is_pattern(term->text) ? gd_glob_match(term->text, info->type, true)
                                              : strcasecmp(term->text, info->type) == 0;
    case TERM_ACTIVATION: return is_activation(info, term->text);
    case TERM_SOURCE: return gd_graph_is_at(graph, node, term->text, term->line);
    case TERM_QUOTED: break;
    }
    return false;
}

bool gd_selector_matches(const struct gd_selector *selector, struct gd_graph *graph,
                         gd_node_id node)
{
    struct gd_node_info info;
    bool matches = false;

    if (!gd_graph_node(graph, node, &info)) {
        return false;
    }
    for (const struct term *term = selector->terms; term; term = term->next) {
        if (term->except == matches && term_matches(term, graph, node, &info)) {
            matches = !term->except;
        }
    }
    return matches;
}

/* Whether a name may mean it, or a scope of that name that contains it. */
static bool holds_part(const void *part, const char *name)
{
    return gd_graph_name_holds(name, part);
}

/* Whether the scope or one above it is a module of that class. */
static bool is_in_class(const struct gd_graph *graph, gd_scope_id scope, const char *class)
{
    struct gd_scope_info info;
    bool found = false;

    while (!found && gd_graph_scope(graph, scope, &info)) {
        found = strcmp(info.class, class) == 0;
        scope = info.parent;
    }
    return found;
}

static bool may_be_named(const struct term *term, const struct gd_graph *graph, gd_node_id node,
                         const struct gd_node_info *info)
{
    char part[256];

    part_of_name(term, part, sizeof(part));
    if (is_in_class(graph, info->scope, term->text)) {
        return true;
    }
    return gd_graph_any_name(graph, node, holds_part, part) || holds_part(part, info->wire_name);
}

bool gd_selector_takes_alone(const struct gd_selector *selector, struct gd_graph *graph,
                             gd_node_id node, bool resolved)
{
    bool all_found = true, selected = false;
    struct gd_node_info info;

    if (!gd_graph_node(graph, node, &info)) {
        return true;
    }
    for (const struct term *term = selector->terms; term; term = term->next) {
        size_t len = strlen(term->text ? term->text : "");

        if (term_goes_by_node(term, graph)) {
            selected = selected || (!term->except && term_matches(term, graph, node, &info));
        } else if (may_be_named(term, graph, node, &info)) {
            return false;
        } else if (!resolved && gd_graph_lookup(graph, term->text, len) == GD_NO_NODE &&
                   !has_scope(graph, term->text, len)) {
            all_found = false; /* nothing was selected before it, or the name is its ending */
        }
    }
    return all_found || !selected;
}

static int gather_nodes(const struct picked *picked, uint32_t limit, gd_node_id **ret,
                        size_t *count, struct gd_err *err)
{
    size_t n = 0, total = 0;

    for (uint32_t i = 0; i <= limit / 8; i++) {
        total += (size_t)__builtin_popcount(picked->bits[i]);
    }
    if (total == 0) {
        *ret = NULL;
        *count = 0;
        return GD_OK;
    }
    gd_node_id *nodes = malloc(total * sizeof(*nodes));
    if (!nodes) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu nodes", total);
    }
    for (uint32_t byte = 0; byte <= limit / 8; byte++) {
        for (uint32_t bit = 0; picked->bits[byte] >> bit; bit++) {
            if (picked->bits[byte] & (1U << bit)) {
                nodes[n++] = byte * 8 + bit;
            }
        }
    }
    *ret = nodes;
    *count = n;
    return GD_OK;
}

int gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                        gd_node_id **ret, size_t *count, struct gd_err *err)
{
    uint32_t limit = gd_graph_node_limit(graph);
    struct picked picked = {
        .graph = graph, .bits = calloc((size_t)limit / 8 + 1, 1), .extent = selector->extent};
    int rc = GD_OK;

    if (!picked.bits) {
        return gd_fail_nomem(err);
    }
    for (const struct term *term = selector->terms; rc == GD_OK && term; term = term->next) {
        rc = pick_term(&picked, term, err);
    }
    if (rc == GD_OK) {
        rc = gather_nodes(&picked, limit, ret, count, err);
    }
    free(picked.bits);
    return rc;
}
