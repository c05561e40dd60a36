// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The list of types that takes the place of the tree while "type:" and less than a whole type is
 * typed in the filter: Up and Down choose one, Enter filters by it, Tab completes it.
 */
#include "tui/panes/pane_tree_impl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What is typed of the type; NULL: the filter's last word is something else. */
static const char *typed_type(const struct tree_pane *pane)
{
    const char *text = pane->filter.text, *blank = strrchr(text, ' ');
    const char *word = blank ? blank + 1 : text;

    return pane->filter.typing && strncasecmp(word, "type:", 5) == 0 ? word + 5 : NULL;
}

/* The index-th type that contains the text; NULL: there are fewer. *exact: one is the text. */
static const struct gd_type_count *find_type(const struct tree_pane *pane, const char *text,
                                             int index, bool *exact)
{
    uint32_t count = 0;
    const struct gd_type_count *types = gd_graph_types(pane->session->graph, &count);
    const struct gd_type_count *ret = NULL;

    *exact = false;
    for (uint32_t i = 0; i < count; i++) {
        *exact = *exact || strcasecmp(types[i].type, text) == 0;
        if (strcasestr(types[i].type, text) && index-- == 0) {
            ret = &types[i];
        }
    }
    return ret;
}

bool tree_types_shown(const struct tree_pane *pane)
{
    const char *text = typed_type(pane);
    bool exact = false;

    return text && pane->session && pane->session->graph && find_type(pane, text, 0, &exact) &&
           !exact;
}

void tree_types_draw(struct tui *tui, const struct draw_rect *rect)
{
    struct tree_pane *pane = &tui->tree;
    const struct gd_type_count *type;
    const char *text = typed_type(pane);
    int first = pane->type >= rect->rows ? pane->type - rect->rows + 1 : 0;
    char line[160];
    bool exact;

    for (int i = 0; i < rect->rows && (type = find_type(pane, text, first + i, &exact)); i++) {
        bool here = first + i == pane->type;
        if (here) {
            draw_fill(tui->draw, rect->row + i, rect->col, rect->cols, DRAW_REVERSE);
        }
        snprintf(line, sizeof(line), "%7u  %.120s", type->count, type->type);
        draw_text(tui->draw, rect->row + i, rect->col, rect->cols, here ? DRAW_REVERSE : DRAW_PLAIN,
                  line);
    }
}

/* Replaces what is typed of the type by the whole of it. */
static bool complete_type(struct tree_pane *pane, int index)
{
    const char *text = typed_type(pane);
    size_t at = (size_t)(text - pane->filter.text);
    bool exact;
    const struct gd_type_count *type = find_type(pane, text, index, &exact);

    if (!type || at + strlen(type->type) >= sizeof(pane->filter.text)) {
        return false;
    }
    snprintf(pane->filter.text + at, sizeof(pane->filter.text) - at, "%s", type->type);
    pane->filter.stale = true;
    pane->type = -1;
    return true;
}

bool tree_types_key(struct tui *tui, int key)
{
    struct tree_pane *pane = &tui->tree;
    const char *text = typed_type(pane);
    bool exact;

    switch (key) {
    case DRAW_KEY_UP: pane->type -= pane->type > 0 ? 1 : 0; return true;
    case DRAW_KEY_DOWN:
        pane->type += find_type(pane, text, pane->type + 1, &exact) ? 1 : 0;
        return true;
    case '\t': complete_type(pane, pane->type >= 0 ? pane->type : 0); return true;
    case '\r':
    case '\n':
        if (pane->type < 0 || !complete_type(pane, pane->type)) {
            return false;
        }
        tree_find_apply(tui);
        pane->filter.typing = false;
        return true;
    default: return false;
    }
}
