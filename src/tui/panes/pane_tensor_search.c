// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Jumping to an index, and searching for elements: the view is fetched one part at a time in C
 * order until an element matches, all were examined, or the limit is reached after which the user
 * must confirm.
 */
#include "tui/panes/pane_tensor_view.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_ELEMENTS ((int64_t)1 << 18)
#define MAX_LOOKED    ((int64_t)1 << 28)

/* ---- what was typed ---- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static bool take_number(const char *text, double *ret)
{
    char *end;

    text = skip_blanks(text);
    *ret = strtod(text, &end);
    return end != text && *skip_blanks(end) == '\0';
}

static const struct test_word {
    const char *text;
    enum tensor_test test;
} operators[] = {
    {"<=", TEST_LESS_EQUAL}, {">=", TEST_GREATER_EQUAL}, {"==", TEST_EQUAL}, {"!=", TEST_NOT_EQUAL},
    {"<", TEST_LESS},        {">", TEST_GREATER},        {"=", TEST_EQUAL},
};
static const struct test_word words[] = {
    {"nonfinite", TEST_NONFINITE}, {"nan", TEST_NAN},           {"inf", TEST_INF},
    {"zero", TEST_EQUAL},          {"nonzero", TEST_NOT_EQUAL}, {"negative", TEST_LESS},
};

/* "LO..HI" */
static bool take_range(const char *text, struct tensor_condition *ret)
{
    const char *dots = strstr(text, "..");
    char low[64];

    if (!dots || dots == text || (size_t)(dots - text) >= sizeof(low)) {
        return false;
    }
    memcpy(low, text, (size_t)(dots - text));
    low[dots - text] = '\0';
    ret->test = TEST_INSIDE;
    return take_number(low, &ret->value) && take_number(dots + 2, &ret->high);
}

/* The words of the command `find`, comparisons, and ranges. */
static bool take_condition(const char *text, struct tensor_condition *ret)
{
    *ret = (struct tensor_condition){.value = 0};
    text = skip_blanks(text);
    snprintf(ret->text, sizeof(ret->text), "%.63s", text);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i].text) == 0) {
            ret->test = words[i].test;
            return true;
        }
    }
    if (strncmp(text, "abs", 3) == 0) {
        ret->magnitude = true;
        text = skip_blanks(text + 3);
    }
    if (take_range(text, ret)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        size_t len = strlen(operators[i].text);
        if (strncmp(text, operators[i].text, len) == 0) {
            ret->test = operators[i].test;
            return take_number(text + len, &ret->value);
        }
    }
    return false;
}

/* "3,17" or "[3, -1]": one number per axis of the view. */
static bool take_index(struct tensor_pane *pane, const char *text)
{
    int64_t index[GD_MAX_RANK] = {0};
    int rank = 0;

    text = skip_blanks(text);
    text = skip_blanks(text + (*text == '[' || *text == '(' ? 1 : 0));
    while (isdigit((unsigned char)*text) || *text == '-') {
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (end == text || errno != 0 || rank == GD_MAX_RANK) {
            return false;
        }
        index[rank++] = value;
        text = skip_blanks(end);
        text = skip_blanks(text + (*text == ',' ? 1 : 0));
    }
    if (rank == 0 || (*text != '\0' && *text != ']' && *text != ')')) {
        return false;
    }
    if (rank != pane->shape.rank) {
        snprintf(pane->message, sizeof(pane->message), "%d %s, but there %s %d %s", rank,
                 rank == 1 ? "index" : "indices", pane->shape.rank == 1 ? "is" : "are",
                 pane->shape.rank, pane->shape.rank == 1 ? "axis" : "axes");
        return true;
    }
    for (int i = 0; i < rank; i++) {
        int64_t dim = pane->shape.dim[i];
        int64_t at = index[i] < 0 ? index[i] + dim : index[i];
        if (at < 0 || at >= dim) {
            snprintf(pane->message, sizeof(pane->message),
                     dim > 0 ? "index %lld is out of bounds for axis %d with size %lld: 0 to %lld"
                             : "index %lld is out of bounds for axis %d with size %lld",
                     (long long)index[i], i, (long long)dim, (long long)dim - 1);
            return true;
        }
        index[i] = at;
    }
    memcpy(pane->at, index, sizeof(pane->at));
    return true;
}

bool tensor_go(struct tensor_pane *pane, const char *text)
{
    tensor_search_stop(pane, "");
    pane->message[0] = '\0';
    return pane->has_view && take_index(pane, text) && pane->message[0] == '\0';
}

bool tensor_find(struct tensor_pane *pane, const char *text)
{
    struct tensor_condition condition;

    tensor_search_stop(pane, "");
    if (!take_condition(text, &condition)) {
        return false;
    }
    pane->condition = condition;
    tensor_search_start(pane, false);
    return true;
}

void tensor_typed(struct tensor_pane *pane, const char *text)
{
    tensor_search_stop(pane, "");
    if (*skip_blanks(text) == '\0') {
        memset(&pane->condition, 0, sizeof(pane->condition));
    } else if (tensor_find(pane, text)) {
        return;
    } else if (!pane->has_view || !take_index(pane, text)) {
        snprintf(pane->message, sizeof(pane->message),
                 "\"%.30s\" is neither an index (3,17) nor a condition (>1e3, abs>2, 1..2, nan)",
                 text);
    }
}

/* ---- searching ---- */

static const char *condition_text(const struct tensor_pane *pane)
{
    return pane->condition.text[0] != '\0' ? pane->condition.text : "nonfinite";
}

static void drop_parts(struct tensor_search *search)
{
    for (int iter = 0; iter < 2; iter++) {
        gd_tensor_unref(search->part[iter]);
        search->part[iter] = NULL;
    }
}

void tensor_search_stop(struct tensor_pane *pane, const char *why)
{
    if (pane->search.running || why[0] != '\0') {
        snprintf(pane->message, sizeof(pane->message), "%.159s", why);
    }
    pane->search.running = false;
    drop_parts(&pane->search);
}

/* Whether the statistics of the whole value already exclude a match. */
static bool known_to_be_none(const struct tensor_pane *pane)
{
    const struct tensor_figures *figures = tensor_shown(pane);
    const struct gd_stats *stats = &figures->stats;
    bool no_nan = stats->nan == 0 && !(stats->unknown & GD_UNKNOWN_NAN);
    bool no_inf = stats->pos_inf + stats->neg_inf == 0 && !(stats->unknown & GD_UNKNOWN_INF);

    if (!figures->has_stats || pane->which == TENSOR_DIFFERENCE) {
        return false;
    }
    switch (pane->condition.test) {
    case TEST_NONFINITE: return no_nan && no_inf;
    case TEST_NAN: return no_nan;
    case TEST_INF: return no_inf;
    default: return false;
    }
}

/* The part that contains element `flat`: leading indices, one range, all of the remaining axes. */
static void part_of(struct tensor_pane *pane, int64_t flat, int64_t *lo, int64_t *n)
{
    struct tensor_search *search = &pane->search;
    int64_t behind = 1;
    int axis = pane->shape.rank - 1;

    while (axis > 0 && behind * pane->shape.dim[axis] <= PART_ELEMENTS) {
        behind *= pane->shape.dim[axis--];
    }
    tensor_index_of(pane, flat, lo);
    for (int i = 0; i < pane->shape.rank; i++) {
        n[i] = i < axis ? -1 : pane->shape.dim[i];
        lo[i] = i > axis ? 0 : lo[i];
    }
    search->count = 1;
    if (pane->shape.rank > 0) {
        int64_t size = PART_ELEMENTS / behind > 0 ? PART_ELEMENTS / behind : 1;
        lo[axis] -= lo[axis] % size;
        int64_t rest = pane->shape.dim[axis] - lo[axis];
        n[axis] = rest < size ? rest : size;
        search->count = n[axis] * behind;
    }
    search->at = tensor_flat_of(pane, lo);
}

static void ask_part_of(struct tensor_pane *pane, int64_t flat)
{
    int64_t lo[GD_MAX_RANK], n[GD_MAX_RANK];
    struct gd_slice slice;
    uint64_t serial = pane->serial;

    part_of(pane, flat, lo, n);
    tensor_compose(pane, lo, n, &slice);
    pane->search.waiting = true;
    for (enum gd_iter iter = GD_CURRENT; iter <= GD_PREVIOUS; iter++) {
        if (pane->search.running && serial == pane->serial && tensor_needs(pane, iter)) {
            tensor_ask_part(pane, iter, &slice);
        }
    }
}

/* The next element to examine: after (or before) the part, wrapping around. */
static int64_t next_place(const struct tensor_pane *pane)
{
    const struct tensor_search *search = &pane->search;
    int64_t count = tensor_count(pane);

    if (search->back) {
        return (search->at + count - 1) % count;
    }
    return (search->at + search->count) % count;
}

void tensor_search_start(struct tensor_pane *pane, bool back)
{
    int64_t count = tensor_count(pane);

    tensor_search_stop(pane, "");
    pane->message[0] = '\0';
    if (count == 0 || !tensor_can_ask(pane)) {
        snprintf(pane->message, sizeof(pane->message), "%s",
                 count == 0 ? "there are no elements to search" : "the training is running");
        return;
    }
    if (known_to_be_none(pane)) {
        snprintf(pane->message, sizeof(pane->message), "no element is %.60s", condition_text(pane));
        return;
    }
    int64_t here = tensor_flat_of(pane, pane->at);
    pane->search = (struct tensor_search){.running = true, .back = back};
    pane->search.from = back ? (here + count - 1) % count : (here + 1) % count;
    ask_part_of(pane, pane->search.from);
}

/* The first match in the part, starting at its element `first`; -1: none. */
static int64_t match_in_part(const struct tensor_pane *pane, int64_t first)
{
    const struct tensor_search *search = &pane->search;
    const struct gd_tensor *shown = search->part[tensor_iter(pane)];
    const struct gd_tensor *less =
        pane->which == TENSOR_DIFFERENCE ? search->part[GD_PREVIOUS] : NULL;
    size_t size = gd_dtype_size(shown->dtype);
    struct tensor_cell cell = {.state = TENSOR_HERE, .dtype = shown->dtype};

    for (int64_t i = first; i >= 0 && i < search->count; i += search->back ? -1 : 1) {
        cell.p = shown->data + (size_t)i * size;
        cell.less = less ? less->data + (size_t)i * size : NULL;
        if (tensor_matches(&pane->condition, &cell)) {
            return i;
        }
    }
    return -1;
}

static bool parts_are_whole(const struct tensor_pane *pane)
{
    const struct gd_tensor *const *part = (const struct gd_tensor *const *)pane->search.part;
    enum gd_dtype dtype = GD_DT_NONE;

    for (enum gd_iter iter = GD_CURRENT; iter <= GD_PREVIOUS; iter++) {
        if (!tensor_needs(pane, iter)) {
            continue;
        }
        if (gd_tensor_count(part[iter]) != pane->search.count ||
            (dtype != GD_DT_NONE && part[iter]->dtype != dtype)) {
            return false;
        }
        dtype = part[iter]->dtype;
    }
    return true;
}

static void look_at_part(struct tensor_pane *pane)
{
    struct tensor_search *search = &pane->search;
    int64_t count = tensor_count(pane);
    char text[160];

    if (!parts_are_whole(pane)) {
        tensor_search_stop(pane, "the training process sent another shape than announced");
        return;
    }
    /* The search begins in the middle of its first part, and examines that part again at the end,
     * after all the others, for its remaining half. */
    bool inside = search->looked == 0;
    int64_t edge = search->back ? search->count - 1 : 0;
    int64_t match = match_in_part(pane, inside ? search->from - search->at : edge);
    search->looked += search->count;
    if (match >= 0) {
        tensor_index_of(pane, search->at + match, pane->at);
        bool around =
            search->back ? search->at + match > search->from : search->at + match < search->from;
        snprintf(text, sizeof(text), "found %.60s%s", condition_text(pane),
                 !around        ? ""
                 : search->back ? ", continued from the end"
                                : ", continued from the start");
        tensor_search_stop(pane, text);
    } else if (search->looked >= count + (inside ? 1 : search->count)) {
        snprintf(text, sizeof(text), "no element is %.60s", condition_text(pane));
        tensor_search_stop(pane, text);
    } else if (search->looked >= MAX_LOOKED) {
        tensor_index_of(pane, next_place(pane), pane->at);
        snprintf(text, sizeof(text), "%.60s: none in %lld elements; search again to continue",
                 condition_text(pane), (long long)search->looked);
        tensor_search_stop(pane, text);
    } else {
        drop_parts(search);
        search->waiting = false;
        pane->tui->dirty_now = true; /* request the next part before the next picture */
        snprintf(pane->message, sizeof(pane->message), "%.60s: %lld%% searched; Esc stops",
                 condition_text(pane), (long long)(search->looked * 100 / (count + 1)));
    }
}

void tensor_search_part(struct tensor_pane *pane, enum gd_iter iter, struct gd_tensor *tensor,
                        const char *why)
{
    struct tensor_search *search = &pane->search;

    if (!search->running) {
        return;
    }
    if (!tensor) {
        tensor_search_stop(pane, why ? why : "no value arrived");
        return;
    }
    search->part[iter] = gd_tensor_ref(tensor);
    for (enum gd_iter i = GD_CURRENT; i <= GD_PREVIOUS; i++) {
        if (tensor_needs(pane, i) && !search->part[i]) {
            return;
        }
    }
    look_at_part(pane);
}

/* Not called from the answer's callback: immediate answers would recurse without limit. */
void tensor_search_step(struct tensor_pane *pane)
{
    struct tensor_search *search = &pane->search;

    if (search->running && !search->waiting) {
        if (tensor_can_ask(pane)) {
            ask_part_of(pane, next_place(pane));
        } else {
            tensor_search_stop(pane, "the search ended because the training resumed");
        }
    }
}
