// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A pane: a table of operations, of which most may be NULL. To add one:
 *   1. write panes/pane_NAME.c and list it in panes/meson.build;
 *   2. declare its operations below and list them in pane.c;
 *   3. add its id to keys.h, its name at the same place in repl/commands/screen/panes.c, and to the
 *      help of `focus` and docs/screen.md;
 *   4. in keys.c, name it in TEXTS if it has no rows to open, in MODES or BREAKS if it has those
 *      keys, and add rows for keys of its own;
 *   5. give it a place in a layout (layout.c), unless `focus` is to be the only way to it;
 *   6. test it in tests/tui/panes; tests/golden/err-focus lists the panes.
 *
 * A pane that is a list sets .rows, and its state begins with the struct tui_list (or .list finds
 * it); searching, clicking and moving then work by default.
 */
#ifndef GD_TUI_PANE_H
#define GD_TUI_PANE_H

#include "engine/debugger.h"
#include "tui/draw.h"
#include "tui/keys.h"
#include "tui/list.h"

struct tui;

struct tui_pane_ops {
    size_t state_size; /* of the pane's state, zeroed at first: tui_state(); 0: none */
    void (*init)(struct tui *tui, void *state);
    void (*release)(struct tui *tui, void *state); /* frees what the state owns */
    void (*event)(struct tui *tui, const struct gd_event *event);
    /* Called before every picture that shows the pane: follows the session and requests what is
     * missing. Must be cheap. */
    void (*update)(struct tui *tui);
    void (*draw)(struct tui *tui, const struct draw_rect *rect, bool focused);
    void (*title)(struct tui *tui, char *out, size_t size);
    const struct tui_list_ops *rows;           /* of a list pane */
    struct tui_list *(*list)(struct tui *tui); /* the list, unless its state begins with it */
    void (*request)(struct tui *tui, enum tui_request request);
    enum tui_search (*search)(struct tui *tui);
    /* Gets every key before the key table while the pane has the focus; true: taken (a search is
     * typed). */
    bool (*key)(struct tui *tui, int key);
    /* The argument of a key's command: 'n', 't', 'b', 'w', 'h' (keys.h); false: none. */
    bool (*word)(struct tui *tui, char which, struct gd_buf *out);
    /* A click (set mouse on), relative to the pane's upper left corner below the title: moves the
     * cursor there. true: it was already there, so that another click opens what is there. */
    bool (*click)(struct tui *tui, int row, int col);
};

extern const struct tui_pane_ops tui_tree_pane, tui_node_pane, tui_console_pane, tui_watch_pane,
    tui_hits_pane, tui_stack_pane, tui_source_pane, tui_tensor_pane, tui_history_pane, tui_log_pane,
    tui_picture_pane;

/* GD_ENOMEM, with nothing created. */
int tui_panes_create(struct tui *tui, struct gd_err *err);
void tui_panes_destroy(struct tui *tui);
void tui_panes_event(struct tui *tui, const struct gd_event *event);
void tui_pane_update(struct tui *tui, enum tui_pane_id pane);
void tui_pane_draw(struct tui *tui, enum tui_pane_id pane, const struct draw_rect *rect);
void tui_pane_title(struct tui *tui, enum tui_pane_id pane, char *out, size_t size);
void tui_pane_request(struct tui *tui, enum tui_pane_id pane, enum tui_request request);
enum tui_search tui_pane_search(struct tui *tui, enum tui_pane_id pane);
bool tui_pane_key(struct tui *tui, enum tui_pane_id pane, int key);
bool tui_pane_click(struct tui *tui, enum tui_pane_id pane, int row, int col);

/* Expands the command of a key in the focused pane; false when something that it names does not
 * exist. */
bool tui_fill_command(struct tui *tui, const char *pattern, struct gd_buf *out);
/* Whether everything that the key's command names exists; true for keys without a command. */
bool tui_key_works(struct tui *tui, const struct tui_key *key);

#endif
