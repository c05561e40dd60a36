// SPDX-License-Identifier: GPL-3.0-or-later
/* Rows of the tree that the user ticked: the form of a watchpoint fills them in. */
#include "tui/panes/pane_tree_impl.h"

#include <stdio.h>
#include <string.h>

static uint32_t id_of(const struct tui_tree_row *row)
{
    return row->is_scope ? row->scope : row->node;
}

/* Its index; `ticks`: it is not ticked. */
static size_t find_tick(const struct tree_pane *pane, const struct tui_tree_row *row)
{
    size_t i = 0;

    while (i < pane->ticks &&
           (pane->tick[i].is_scope != row->is_scope || pane->tick[i].id != id_of(row))) {
        i++;
    }
    return i;
}

bool tree_is_ticked(const struct tree_pane *pane, const struct tui_tree_row *row)
{
    return find_tick(pane, row) < pane->ticks;
}

size_t tree_tick_count(struct tui *tui)
{
    return tui->tree.ticks;
}

void tree_ticks_clear(struct tui *tui)
{
    tui->tree.ticks = 0;
    tui_changed(tui);
}

static void put_selector(const char *name, bool is_scope, struct gd_buf *out)
{
    bool plain = name[0] != '/' && name[strcspn(name, " \t,|*?[]:\"'")] == '\0';

    gd_buf_printf(out, is_scope ? "%s/" : plain ? "%s" : "\"%s\"", name);
}

void tree_selector_of_node(const struct gd_session *session, gd_node_id node, struct gd_buf *out)
{
    const char *name = node != GD_NO_NODE ? gd_graph_name(session->graph, node) : "";

    if (name[0] != '\0' && !strchr(name, '"')) {
        put_selector(name, false, out);
    }
}

static void put_row(const struct tree_pane *pane, bool is_scope, uint32_t id, struct gd_buf *out)
{
    struct gd_scope_info scope;

    if (out->len > 0) {
        gd_buf_puts(out, ", ");
    }
    if (!is_scope) {
        tree_selector_of_node(pane->session, id, out);
    } else if (gd_graph_scope(pane->session->graph, id, &scope)) {
        put_selector(scope.name, true, out);
    }
}

/* Whether the selector of all ticks still fits into the field of the form. */
static bool fits_form(const struct tree_pane *pane)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);

    for (size_t i = 0; i < pane->ticks; i++) {
        put_row(pane, pane->tick[i].is_scope, pane->tick[i].id, &text);
    }
    bool fits = text.len < FORM_TEXT;
    gd_buf_deinit(&text);
    return fits;
}

void tree_tick(struct tui *tui, const struct tui_tree_row *row)
{
    struct tree_pane *pane = &tui->tree;
    size_t at = find_tick(pane, row);
    char text[120];

    if (at < pane->ticks) {
        pane->ticks--;
        memmove(&pane->tick[at], &pane->tick[at + 1], (pane->ticks - at) * sizeof(pane->tick[0]));
        return;
    }
    if (pane->ticks < TREE_MAX_TICKS) {
        pane->tick[pane->ticks++] = (struct tree_tick){row->is_scope, id_of(row)};
        if (fits_form(pane)) {
            return;
        }
        pane->ticks--;
    }
    snprintf(text, sizeof(text),
             "error: no more than %zu rows can be ticked; tick their scope instead", pane->ticks);
    tui_console_add(tui, DRAW_ERROR, text, strlen(text));
}

bool tree_ticks_selector(struct tui *tui, struct gd_buf *out)
{
    struct tree_pane *pane = &tui->tree;
    struct tui_tree_row row;

    for (size_t i = 0; i < pane->ticks; i++) {
        put_row(pane, pane->tick[i].is_scope, pane->tick[i].id, out);
    }
    if (pane->ticks == 0 && tui->focus == TUI_TREE && tui_cursor_row(tui, &row)) {
        put_row(pane, row.is_scope, id_of(&row), out);
    }
    return out->len > 0;
}
