// SPDX-License-Identifier: GPL-3.0-or-later
/* The list of keys over the panes: keys with the same effect share a row. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>

#include "tui/text.h"

#define NAMES_WIDTH   14
#define HELP_WIDTH    38
#define COMMAND_WIDTH 14

struct row {
    char names[64];
    const char *help;
    char right[160]; /* the command, and the panes */
};
struct list {
    struct tui *tui;
    int rows, cols;
    int at;            /* screen row of the next entry */
    int count;         /* rows so far */
    const char *group; /* of the previous row */
    struct row row;    /* not drawn yet: more key names may follow */
    bool any;
    bool draws; /* false: rows are only counted */
};

static void put_name(struct list *list, enum draw_style style, const char *text)
{
    if (list->draws && list->at >= 1 && list->at < list->rows) {
        draw_text(list->tui->draw, list->at, 0, list->cols, style, text);
    }
    list->at++;
    list->count++;
}

static void flush_row(struct list *list)
{
    char line[400];

    if (list->any) {
        snprintf(line, sizeof(line), "  %-*s %-*s %s", NAMES_WIDTH, list->row.names, HELP_WIDTH,
                 list->row.help, list->row.right);
        put_name(list, DRAW_PLAIN, line);
    }
    list->any = false;
}

static void on_key(void *ctx, const char *group, const struct tui_key *key, const char *help,
                   bool same)
{
    struct list *list = ctx;
    char panes[100];

    if (same && list->any) {
        size_t used = strlen(list->row.names);
        snprintf(list->row.names + used, sizeof(list->row.names) - used, " %s", key->name);
        return;
    }
    flush_row(list);
    if (!list->group || strcmp(list->group, group) != 0) {
        if (list->group) {
            put_name(list, DRAW_PLAIN, "");
        }
        put_name(list, DRAW_BOLD, group);
        list->group = group;
    }
    tui_key_panes(key, panes, sizeof(panes));
    list->any = true;
    list->row.help = help;
    snprintf(list->row.names, sizeof(list->row.names), "%s", key->name);
    bool named = key->command && !tui_key_is_bound(key);
    snprintf(list->row.right, sizeof(list->row.right), "%-*s %s", named ? COMMAND_WIDTH : 0,
             named ? key->command : "", panes);
}

static int go_through(struct list *list)
{
    tui_keys_each(on_key, list);
    flush_row(list);
    return list->count;
}

void tui_help_draw(struct tui *tui, int rows, int cols)
{
    struct list list = {
        .tui = tui, .rows = rows, .cols = cols, .at = 1 - tui->help_first, .draws = true};

    draw_fill(tui->draw, 0, 0, cols, DRAW_REVERSE);
    draw_text(tui->draw, 0, 1, cols - 1, DRAW_REVERSE,
              "Keys: what they do, their command, in which panes (any other key closes the list)");
    int count = go_through(&list);
    if (tui->help_first + rows - 1 < count && rows > 2) {
        draw_fill(tui->draw, rows - 1, 0, cols, DRAW_PLAIN);
        draw_text(tui->draw, rows - 1, 1, cols - 1, DRAW_BOLD, "more: j, Space, PgDn");
    }
}

void tui_help_scroll(struct tui *tui, enum tui_request request)
{
    int rows, cols;
    struct list list = {.tui = tui};

    draw_size(tui->draw, &rows, &cols);
    int page = rows > 4 ? rows - 4 : 1;
    int count = go_through(&list);
    int last = count > rows - 2 ? count - rows + 2 : 0;
    switch (request) {
    case TUI_UP: tui->help_first--; break;
    case TUI_DOWN: tui->help_first++; break;
    case TUI_PAGE_UP: tui->help_first -= page; break;
    case TUI_PAGE_DOWN: tui->help_first += page; break;
    case TUI_HALF_UP: tui->help_first -= page / 2; break;
    case TUI_HALF_DOWN: tui->help_first += page / 2; break;
    case TUI_TOP: tui->help_first = 0; break;
    case TUI_BOTTOM: tui->help_first = last; break;
    default: break;
    }
    tui->help_first = tui->help_first > last ? last : tui->help_first;
    tui->help_first = tui->help_first < 0 ? 0 : tui->help_first;
}
