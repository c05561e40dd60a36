// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/layout.h"

#include <stdio.h>
#include <string.h>

#define FULL_ROWS 24 /* with fewer, one pane at a time */
#define FULL_COLS 80
#define WIDE_ROWS 43 /* from here on, more panes */
#define WIDE_COLS 132
#define LOW_COLS  150 /* from here on, a low screen shows its panes side by side */
#define PANE_COLS 50  /* least columns of each, if every pane has its own */

#define NONE     TUI_PANE_COUNT
#define MAX_SIDE 3

/* Two columns of panes, left and right, and the console below them. NONE ends a column. */
struct arrangement {
    enum tui_pane_id left[MAX_SIDE], right[MAX_SIDE];
    int left_percent; /* of the columns */
};
static const struct {
    const char *name;
    struct arrangement usual, wide;
} layouts[LAYOUT_COUNT] = {
    [LAYOUT_GRAPH] = {"graph",
                      {{TUI_TREE, NONE, NONE}, {TUI_NODE, NONE, NONE}, 45},
                      {{TUI_TREE, NONE, NONE}, {TUI_NODE, TUI_HITS, NONE}, 45}},
    [LAYOUT_TENSOR] = {"tensor",
                       {{TUI_TENSOR, NONE, NONE}, {NONE, NONE, NONE}, 100},
                       {{TUI_TENSOR, NONE, NONE}, {TUI_NODE, TUI_HISTORY, NONE}, 65}},
    [LAYOUT_WATCH] = {"watch",
                      {{TUI_WATCH, NONE, NONE}, {TUI_HITS, NONE, NONE}, 50},
                      {{TUI_WATCH, TUI_HISTORY, NONE}, {TUI_HITS, NONE, NONE}, 50}},
    [LAYOUT_STACK] = {"stack",
                      {{TUI_STACK, NONE, NONE}, {TUI_SOURCE, NONE, NONE}, 48},
                      {{TUI_STACK, TUI_NODE, NONE}, {TUI_SOURCE, NONE, NONE}, 42}},
    [LAYOUT_SPLIT] = {"split",
                      {{TUI_TREE, TUI_WATCH, NONE}, {TUI_NODE, TUI_HITS, NONE}, 45},
                      {{TUI_TREE, TUI_WATCH, TUI_LOG}, {TUI_NODE, TUI_HITS, TUI_HISTORY}, 45}},
    [LAYOUT_PICTURE] = {"picture",
                        {{TUI_PICTURE, NONE, NONE}, {NONE, NONE, NONE}, 100},
                        {{TUI_PICTURE, NONE, NONE}, {TUI_NODE, TUI_HITS, NONE}, 65}},
};

const char *layout_name(enum tui_layout layout)
{
    return layouts[layout].name;
}

int layout_find(const char *name, enum tui_layout *ret, struct gd_err *err)
{
    char all[96] = "";
    size_t used = 0;
    int found = -1;

    for (int i = 0; i < LAYOUT_COUNT; i++) {
        if (name[0] != '\0' && strncmp(layouts[i].name, name, strlen(name)) == 0) {
            found = found < 0 || strcmp(layouts[i].name, name) == 0 ? i : LAYOUT_COUNT;
        }
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "",
                                 layouts[i].name);
    }
    if (found < 0 || found == LAYOUT_COUNT) {
        return gd_fail(err, GD_ENOTFOUND, "\"%.40s\" is not a layout; layouts are %s", name, all);
    }
    *ret = (enum tui_layout)found;
    return GD_OK;
}

static bool has_pane(const enum tui_pane_id *panes, enum tui_pane_id pane)
{
    for (int i = 0; i < MAX_SIDE && panes[i] != NONE; i++) {
        if (panes[i] == pane) {
            return true;
        }
    }
    return false;
}

/* The focused pane is always shown: if the layout lacks it, it takes the last place. */
static void make_room(struct arrangement *a, enum tui_pane_id focus)
{
    if (focus == TUI_CONSOLE || has_pane(a->left, focus) || has_pane(a->right, focus)) {
        return;
    }
    enum tui_pane_id *side = a->right[0] != NONE ? a->right : a->left;
    int last = 0;
    while (last + 1 < MAX_SIDE && side[last + 1] != NONE) {
        last++;
    }
    side[last] = focus;
}

static int add_side(const enum tui_pane_id *panes, const struct draw_rect *room,
                    struct layout_place *ret)
{
    int count = 0;

    while (count < MAX_SIDE && panes[count] != NONE) {
        count++;
    }
    for (int i = 0, row = room->row; i < count; i++) {
        int rows = (room->row + room->rows - row) / (count - i);
        ret[i] = (struct layout_place){panes[i], {row, room->col, rows, room->cols}};
        row += rows;
    }
    return count;
}

bool layout_is_one(const struct layout_wish *wish, int rows, int cols)
{
    return wish->one || cols < FULL_COLS || (rows + 1 < FULL_ROWS && cols < LOW_COLS);
}

/* The pane alone; with the prompt below it while the keyboard is there. */
static int one_place(const struct layout_wish *wish, int rows, int cols, struct layout_place *ret)
{
    bool both = wish->typing && wish->pane != TUI_CONSOLE;
    int lower = !both ? 0 : wish->console_rows > 0 ? wish->console_rows + 1 : rows / 4 + 1;

    lower = both && lower < 2 ? 2 : lower > rows - 4 ? rows - 4 : lower;
    ret[0] = (struct layout_place){wish->pane, {0, 0, rows - lower, cols}};
    ret[1] = (struct layout_place){TUI_CONSOLE, {rows - lower, 0, lower, cols}};
    return both ? 2 : 1;
}

/* On a low, wide screen: each pane beside the others, or else each side, and the console. */
static int low_places(const struct arrangement *a, int rows, int cols,
                      struct layout_place ret[LAYOUT_MAX_PLACES])
{
    struct draw_rect all = {0, 0, rows, cols};
    int left = add_side(a->left, &all, ret), count = left + add_side(a->right, &all, ret + left);
    bool own = cols / (count + 1) >= PANE_COLS;
    int columns = 1 + (own ? count : count > left ? 2 : 1);

    for (int i = 0; i <= count; i++) {
        int column = i == count ? columns - 1 : own ? i : i >= left;
        int from = cols * column / columns, to = cols * (column + 1) / columns;
        struct draw_rect *rect = &ret[i].rect;
        if (own || i == count) {
            *rect = all;
        }
        rect->col = from + (column > 0 ? 1 : 0); /* the line between columns */
        rect->cols = to - rect->col;
    }
    ret[count].pane = TUI_CONSOLE;
    return count + 1;
}

int layout_places(const struct layout_wish *wish, int rows, int cols,
                  struct layout_place ret[LAYOUT_MAX_PLACES])
{
    bool wide = rows + 1 >= WIDE_ROWS && cols >= WIDE_COLS;
    struct arrangement a = wide ? layouts[wish->layout].wide : layouts[wish->layout].usual;

    if (layout_is_one(wish, rows, cols)) {
        return one_place(wish, rows, cols, ret);
    }
    make_room(&a, wish->pane);
    if (rows + 1 < FULL_ROWS) {
        return low_places(&a, rows, cols, ret);
    }
    int lower =
        wish->console_rows > 0 ? wish->console_rows + 1 : (rows - 1) / 2 - (wide ? rows / 8 : 0);
    lower = lower < 3 ? 3 : lower > rows - 6 ? rows - 6 : lower;
    int upper = rows - lower;
    int percent = wish->left_percent > 0 ? wish->left_percent : a.left_percent;
    int left = a.right[0] == NONE ? cols : cols * percent / 100;
    struct draw_rect room = {0, 0, upper, left};
    int count = add_side(a.left, &room, ret);
    if (left < cols) {
        room = (struct draw_rect){0, left + 1, upper, cols - left - 1};
        count += add_side(a.right, &room, ret + count);
    }
    ret[count++] = (struct layout_place){TUI_CONSOLE, {upper, 0, lower, cols}};
    return count;
}

int layout_order(enum tui_layout layout, enum tui_pane_id pane, int rows, int cols,
                 struct layout_place ret[LAYOUT_MAX_PLACES])
{
    struct layout_wish wish = {.layout = layout, .pane = pane};

    rows = rows + 1 < FULL_ROWS ? FULL_ROWS - 1 : rows;
    cols = cols < FULL_COLS ? FULL_COLS : cols;
    return layout_places(&wish, rows, cols, ret);
}
