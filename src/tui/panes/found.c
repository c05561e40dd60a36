// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/found.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/regex_size.h"

#define WORD_BITS   64
#define MAX_REGEXES 4    /* of one filter */
#define PART        1000 /* nodes matched per call */

struct tui_found {
    const struct gd_graph *graph;
    uint64_t *bits; /* the matching nodes */
    uint32_t node_limit;
    uint32_t *below; /* matches below each scope */
    uint32_t scope_limit;
    uint32_t count;
    regex_t regex[MAX_REGEXES]; /* that names must match as well */
    int regexes;
    gd_node_id next; /* the first node not examined yet */
};

static size_t words_of(uint32_t nodes)
{
    return (size_t)nodes / WORD_BITS + 1;
}

uint32_t tui_found_count(const struct tui_found *found)
{
    return found->count;
}

bool tui_found_node(const struct tui_found *found, gd_node_id node)
{
    return node < found->node_limit && (found->bits[node / WORD_BITS] >> (node % WORD_BITS) & 1);
}

uint32_t tui_found_below(const struct tui_found *found, gd_scope_id scope)
{
    return scope < found->scope_limit ? found->below[scope] : 0;
}

void tui_found_free(struct tui_found *found)
{
    if (found) {
        for (int i = 0; i < found->regexes; i++) {
            regfree(&found->regex[i]);
        }
        free(found->bits);
        free(found->below);
        free(found);
    }
}

/* ---- making the set ------------------------------------------------------------------------ */

struct marking {
    uint64_t *bits;
    uint32_t limit;
};

static int mark_node(void *ctx, gd_node_id node)
{
    struct marking *marking = ctx;

    if (node < marking->limit) {
        marking->bits[node / WORD_BITS] |= (uint64_t)1 << (node % WORD_BITS);
    }
    return 0;
}

/* Marks the nodes of every type, or of every subgraph, whose name contains `part`. There are few of
 * them, and a node refers to the name by the same pointer each time, which is compared first. */
static void mark_named(const struct gd_graph *graph, bool types, const char *part,
                       struct marking *marking)
{
    struct gd_node_info info;
    const char *last = NULL;
    bool fits = false;

    for (gd_node_id n = 0; n < marking->limit; n++) {
        if (!gd_graph_node(graph, n, &info)) {
            continue;
        }
        const char *name = types ? info.type : gd_graph_subgraph_name(graph, info.subgraph);
        if (name != last) {
            last = name;
            fits = strcasestr(name, part) != NULL;
        }
        if (fits) {
            mark_node(marking, n);
        }
    }
}

/* By a prefix of the kind's name, or its plural. */
static int mark_kinds(const struct gd_graph *graph, const char *text, struct marking *marking,
                      struct gd_err *err)
{
    size_t len = strlen(text);
    int kinds = 0;

    if (len > 1 && (text[len - 1] == 's' || text[len - 1] == 'S')) {
        len--;
    }
    for (int k = GD_NODE_OTHER; k < GD_NODE_KIND_COUNT; k++) {
        const char *name = gd_node_kind_name((enum gd_node_kind)k);
        if (strncasecmp(name, text, len) == 0) {
            kinds++;
            int rc = gd_graph_search_kind(graph, (enum gd_node_kind)k, mark_node, marking);
            if (rc != GD_OK) {
                return gd_fail(err, rc, "out of memory for a search");
            }
        }
    }
    return kinds > 0
               ? GD_OK
               : gd_fail(err, GD_EINVAL,
                         "unknown kind \"%.20s\"; kinds: weight, gradient, activation, parameter, "
                         "constant, other, compiled",
                         text);
}

static int mark_word(const struct gd_graph *graph, const char *word, struct marking *marking,
                     struct gd_err *err)
{
    int rc = GD_OK;

    if (strncasecmp(word, "kind:", 5) == 0) {
        return mark_kinds(graph, word + 5, marking, err);
    }
    if (strncasecmp(word, "type:", 5) == 0) {
        mark_named(graph, true, word + 5, marking);
    } else if (strncasecmp(word, "graph:", 6) == 0) {
        mark_named(graph, false, word + 6, marking);
    } else {
        rc = gd_graph_search_name(graph, word, mark_node, marking);
    }
    return rc == GD_OK ? GD_OK : gd_fail(err, rc, "out of memory for a search");
}

/* Counts the matches directly in each scope, then adds them to the enclosing scopes, which were
 * created earlier and therefore have smaller numbers. */
static void count_below(struct tui_found *found)
{
    struct gd_node_info info;
    struct gd_scope_info scope;

    for (size_t w = 0; w < words_of(found->node_limit); w++) {
        for (uint64_t rest = found->bits[w]; rest != 0; rest &= rest - 1) {
            gd_node_id node = (gd_node_id)(w * WORD_BITS) + (gd_node_id)__builtin_ctzll(rest);
            if (gd_graph_node(found->graph, node, &info) && info.scope < found->scope_limit) {
                found->below[info.scope]++;
                found->count++;
            }
        }
    }
    for (gd_scope_id s = found->scope_limit; s-- > 1;) {
        if (found->below[s] > 0 && gd_graph_scope(found->graph, s, &scope) && scope.parent < s) {
            found->below[scope.parent] += found->below[s];
        }
    }
}

static struct tui_found *found_new(const struct gd_graph *graph)
{
    struct tui_found *found = calloc(1, sizeof(*found));
    struct gd_graph_counts counts;
    struct gd_scope_info info;

    if (!found) {
        return NULL;
    }
    gd_graph_counts(graph, &counts);
    found->graph = graph;
    found->node_limit = gd_graph_node_limit(graph);
    found->scope_limit = counts.scopes + 1;
    while (gd_graph_scope(graph, found->scope_limit, &info)) { /* empty scopes keep their numbers */
        found->scope_limit++;
    }
    found->bits = calloc(words_of(found->node_limit), sizeof(*found->bits));
    found->below = calloc(found->scope_limit, sizeof(*found->below));
    if (!found->bits || !found->below) {
        tui_found_free(found);
        return NULL;
    }
    return found;
}

/* Keeps only the nodes that match this word as well. */
static int narrow_to_word(struct tui_found *found, const char *word, bool first, struct gd_err *err)
{
    size_t words = words_of(found->node_limit);
    struct marking marking = {calloc(words, sizeof(uint64_t)), found->node_limit};

    if (!marking.bits) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a search");
    }
    int rc = mark_word(found->graph, word, &marking, err);
    for (size_t w = 0; rc == GD_OK && w < words; w++) {
        found->bits[w] = first ? marking.bits[w] : found->bits[w] & marking.bits[w];
    }
    free(marking.bits);
    return rc;
}

static int finish_set(struct tui_found *found, int rc, struct tui_found **ret)
{
    if (rc != GD_OK) {
        tui_found_free(found);
        return rc;
    }
    if (found->regexes == 0) {
        count_below(found);
    }
    *ret = found;
    return GD_OK;
}

/* ---- regular expressions ------------------------------------------------------------------- */

/* "/text/"; the second slash may be missing while the user types. */
static int add_regex(struct tui_found *found, const char *word, struct gd_err *err)
{
    char text[256], what[80];
    size_t len = strlen(word + 1);

    len -= len > 0 && word[len] == '/' ? 1 : 0;
    if (found->regexes == MAX_REGEXES || len >= sizeof(text)) {
        return gd_fail(err, GD_EINVAL, "at most %d regular expressions of %zu bytes", MAX_REGEXES,
                       sizeof(text) - 1);
    }
    memcpy(text, word + 1, len);
    text[len] = '\0';
    if (gd_regex_is_too_large(text)) {
        return gd_fail(err, GD_EINVAL, "this regular expression is too large");
    }
    regex_t *regex = &found->regex[found->regexes];
    int rc = regcomp(regex, text, REG_EXTENDED | REG_NOSUB | REG_ICASE);
    if (rc != 0) {
        regerror(rc, regex, what, sizeof(what));
        return gd_fail(err, GD_EINVAL, "not a regular expression: %s", what);
    }
    found->regexes++;
    return GD_OK;
}

static bool matches_regexes(const struct tui_found *found, const char *name)
{
    for (int i = 0; i < found->regexes; i++) {
        if (regexec(&found->regex[i], name, 0, NULL, 0) != 0) {
            return false;
        }
    }
    return true;
}

bool tui_found_work(struct tui_found *found)
{
    int matched = 0;

    if (found->regexes == 0) {
        return false;
    }
    for (; found->next < found->node_limit && matched < PART; found->next++) {
        uint64_t *word = &found->bits[found->next / WORD_BITS];
        uint64_t bit = (uint64_t)1 << (found->next % WORD_BITS);
        if ((*word & bit) == 0) {
            continue;
        }
        matched++;
        *word &=
            matches_regexes(found, gd_graph_name(found->graph, found->next)) ? ~(uint64_t)0 : ~bit;
    }
    if (found->next < found->node_limit) {
        return true;
    }
    for (; found->regexes > 0; found->regexes--) {
        regfree(&found->regex[found->regexes - 1]);
    }
    count_below(found);
    return false;
}

/* ---- what the words say -------------------------------------------------------------------- */

int tui_found_words(const struct gd_graph *graph, const char *words, const struct tui_found *within,
                    struct tui_found **ret, struct gd_err *err)
{
    struct tui_found *found = found_new(graph);
    char *copy = strdup(words);
    bool first = true;
    char *rest = NULL;
    int rc = GD_OK;

    if (!found || !copy) {
        tui_found_free(found);
        free(copy);
        return gd_fail(err, GD_ENOMEM, "out of memory for a search");
    }
    for (char *word = strtok_r(copy, " \t", &rest); word && rc == GD_OK;
         word = strtok_r(NULL, " \t", &rest)) {
        if (word[0] == '/') {
            rc = add_regex(found, word, err);
            continue;
        }
        rc = narrow_to_word(found, word, first, err);
        first = false;
    }
    if (rc == GD_OK && first) { /* no words: everything matches */
        rc = narrow_to_word(found, "", true, err);
    }
    for (size_t w = 0; rc == GD_OK && within && w < words_of(found->node_limit); w++) {
        found->bits[w] &= w < words_of(within->node_limit) ? within->bits[w] : 0;
    }
    free(copy);
    return finish_set(found, rc, ret);
}

/* ---- the next one -------------------------------------------------------------------------- */

static gd_node_id first_from(const struct tui_found *found, gd_node_id node)
{
    while (node != GD_NO_NODE && !tui_found_node(found, node)) {
        node = gd_graph_next_in_scope(found->graph, node);
    }
    return node;
}

/* The last match among the nodes directly in a scope, before `end`. */
static gd_node_id last_before(const struct tui_found *found, gd_node_id node, gd_node_id end)
{
    gd_node_id last = GD_NO_NODE;

    for (; node != GD_NO_NODE && node != end; node = gd_graph_next_in_scope(found->graph, node)) {
        last = tui_found_node(found, node) ? node : last;
    }
    return last;
}

static gd_scope_id first_scope_from(const struct tui_found *found, gd_scope_id scope)
{
    struct gd_scope_info info;

    while (gd_graph_scope(found->graph, scope, &info) && tui_found_below(found, scope) == 0) {
        scope = info.next;
    }
    return scope;
}

static gd_scope_id last_scope_before(const struct tui_found *found, gd_scope_id scope,
                                     gd_scope_id end)
{
    struct gd_scope_info info;
    gd_scope_id last = GD_NO_SCOPE;

    for (; scope != end && gd_graph_scope(found->graph, scope, &info); scope = info.next) {
        last = tui_found_below(found, scope) > 0 ? scope : last;
    }
    return last;
}

static gd_node_id first_in(const struct tui_found *found, gd_scope_id scope)
{
    struct gd_scope_info info;

    while (tui_found_below(found, scope) > 0 && gd_graph_scope(found->graph, scope, &info)) {
        gd_scope_id child = first_scope_from(found, info.first_child);
        if (child == GD_NO_SCOPE) {
            return first_from(found, info.first_node);
        }
        scope = child;
    }
    return GD_NO_NODE;
}

static gd_node_id last_in(const struct tui_found *found, gd_scope_id scope)
{
    struct gd_scope_info info;

    while (tui_found_below(found, scope) > 0 && gd_graph_scope(found->graph, scope, &info)) {
        gd_node_id node = last_before(found, info.first_node, GD_NO_NODE);
        if (node != GD_NO_NODE) {
            return node;
        }
        scope = last_scope_before(found, info.first_child, GD_NO_SCOPE);
    }
    return GD_NO_NODE;
}

/* The next match after everything below `scope`. */
static gd_node_id next_after(const struct tui_found *found, gd_scope_id scope)
{
    struct gd_scope_info info;

    while (scope != 0 && gd_graph_scope(found->graph, scope, &info)) {
        gd_scope_id next = first_scope_from(found, info.next);
        if (next != GD_NO_SCOPE) {
            return first_in(found, next);
        }
        scope = info.parent;
        if (gd_graph_scope(found->graph, scope, &info)) {
            gd_node_id node = first_from(found, info.first_node);
            if (node != GD_NO_NODE) {
                return node;
            }
        }
    }
    return first_in(found, 0);
}

gd_node_id tui_found_next(const struct tui_found *found, gd_scope_id scope, gd_node_id node)
{
    struct gd_node_info info;

    if (node == GD_NO_NODE) {
        gd_node_id first = first_in(found, scope);
        return first != GD_NO_NODE ? first : next_after(found, scope);
    }
    if (!gd_graph_node(found->graph, node, &info)) {
        return first_in(found, 0);
    }
    gd_node_id next = first_from(found, gd_graph_next_in_scope(found->graph, node));
    return next != GD_NO_NODE ? next : next_after(found, info.scope);
}

gd_node_id tui_found_previous(const struct tui_found *found, gd_scope_id scope, gd_node_id node)
{
    struct gd_node_info info;
    struct gd_scope_info in;
    gd_scope_id last;

    if (node != GD_NO_NODE && gd_graph_node(found->graph, node, &info) &&
        gd_graph_scope(found->graph, info.scope, &in)) {
        gd_node_id before = last_before(found, in.first_node, node);
        if (before != GD_NO_NODE) {
            return before;
        }
        last = last_scope_before(found, in.first_child, GD_NO_SCOPE);
        if (last != GD_NO_SCOPE) {
            return last_in(found, last);
        }
        scope = info.scope;
    }
    while (scope != 0 && gd_graph_scope(found->graph, scope, &in)) {
        struct gd_scope_info parent;
        if (!gd_graph_scope(found->graph, in.parent, &parent)) {
            break;
        }
        last = last_scope_before(found, parent.first_child, scope);
        if (last != GD_NO_SCOPE) {
            return last_in(found, last);
        }
        scope = in.parent;
    }
    return last_in(found, 0);
}
