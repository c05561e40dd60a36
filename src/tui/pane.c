// SPDX-License-Identifier: GPL-3.0-or-later
/* The table of panes, and what they do by default. */
#include "tui/pane.h"

#include <stdlib.h>

#include "tui/tui_impl.h"

static const struct tui_pane_ops *const panes[TUI_PANE_COUNT] = {
    [TUI_TREE] = &tui_tree_pane,       [TUI_NODE] = &tui_node_pane,
    [TUI_CONSOLE] = &tui_console_pane, [TUI_TENSOR] = &tui_tensor_pane,
    [TUI_WATCH] = &tui_watch_pane,     [TUI_HITS] = &tui_hits_pane,
    [TUI_HISTORY] = &tui_history_pane, [TUI_LOG] = &tui_log_pane,
    [TUI_PICTURE] = &tui_picture_pane, [TUI_STACK] = &tui_stack_pane,
    [TUI_SOURCE] = &tui_source_pane,
};

/* NULL: the pane is not a list. */
static struct tui_list *find_list(struct tui *tui, enum tui_pane_id pane)
{
    const struct tui_pane_ops *ops = panes[pane];

    return ops->list ? ops->list(tui) : ops->rows ? tui->state[pane] : NULL;
}

void tui_panes_destroy(struct tui *tui)
{
    for (int i = 0; i < TUI_PANE_COUNT; i++) {
        if (panes[i]->release && (tui->state[i] || panes[i]->state_size == 0)) {
            panes[i]->release(tui, tui->state[i]);
        }
        free(tui->state[i]);
        tui->state[i] = NULL;
    }
}

int tui_panes_create(struct tui *tui, struct gd_err *err)
{
    for (int i = 0; i < TUI_PANE_COUNT; i++) {
        if (panes[i]->state_size == 0) {
            continue;
        }
        tui->state[i] = calloc(1, panes[i]->state_size);
        if (!tui->state[i]) {
            tui_panes_destroy(tui);
            return gd_fail(err, GD_ENOMEM, "out of memory for the panes");
        }
        if (panes[i]->init) {
            panes[i]->init(tui, tui->state[i]);
        }
    }
    return GD_OK;
}

void tui_panes_event(struct tui *tui, const struct gd_event *event)
{
    for (int i = 0; i < TUI_PANE_COUNT; i++) {
        if (panes[i]->event) {
            panes[i]->event(tui, event);
        }
    }
}

void tui_pane_update(struct tui *tui, enum tui_pane_id pane)
{
    if (panes[pane]->update) {
        panes[pane]->update(tui);
    }
}

void tui_pane_draw(struct tui *tui, enum tui_pane_id pane, const struct draw_rect *rect)
{
    panes[pane]->draw(tui, rect, tui->focus == pane);
}

void tui_pane_title(struct tui *tui, enum tui_pane_id pane, char *out, size_t size)
{
    panes[pane]->title(tui, out, size);
}

void tui_pane_request(struct tui *tui, enum tui_pane_id pane, enum tui_request request)
{
    panes[pane]->request(tui, request);
}

enum tui_search tui_pane_search(struct tui *tui, enum tui_pane_id pane)
{
    const struct tui_pane_ops *ops = panes[pane];

    return ops->search ? ops->search(tui)
           : ops->rows ? tui_list_search(find_list(tui, pane))
                       : TUI_NO_SEARCH;
}

bool tui_pane_key(struct tui *tui, enum tui_pane_id pane, int key)
{
    const struct tui_pane_ops *ops = panes[pane];

    if (ops->key) {
        return ops->key(tui, key);
    }
    if (!ops->rows) {
        return false;
    }
    tui_pane_update(tui, pane);
    return tui_list_key(tui, find_list(tui, pane), ops->rows, key);
}

static bool find_word(struct tui *tui, enum tui_pane_id pane, char which, struct gd_buf *out)
{
    return panes[pane]->word ? panes[pane]->word(tui, which, out)
                             : tui_common_word(tui, which, out);
}

bool tui_pane_click(struct tui *tui, enum tui_pane_id pane, int row, int col)
{
    const struct tui_pane_ops *ops = panes[pane];

    return ops->click  ? ops->click(tui, row, col)
           : ops->rows ? tui_list_click(find_list(tui, pane), row)
                       : false;
}

bool tui_fill_command(struct tui *tui, const char *pattern, struct gd_buf *out)
{
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p != '%' || p[1] == '\0') {
            gd_buf_putc(out, *p);
            continue;
        }
        p++;
        if (!find_word(tui, tui->focus, *p, out)) {
            return false;
        }
    }
    return true;
}

bool tui_key_works(struct tui *tui, const struct tui_key *key)
{
    struct gd_buf line = GD_BUF_INIT(65536);
    bool works = !key->command || (!tui->executing && tui_fill_command(tui, key->command, &line));

    gd_buf_deinit(&line);
    return works;
}
