// SPDX-License-Identifier: GPL-3.0-or-later
/* What the stack pane provides to the source pane. */
#ifndef GD_TUI_PANE_STACK_H
#define GD_TUI_PANE_STACK_H

#include "tui/panes/lines.h"

struct tui;

struct tui_place {
    const char *file;
    const char *code; /* as sent by the training process; "": unknown */
    uint32_t line;
};

/* The place that the source pane shows: the selected frame of the current node, or the line under
 * the cursor in the list of lines. false: none. */
bool tui_stack_place(struct tui *tui, struct tui_place *ret);
/* The lines that created nodes, as far as counted. */
const struct tui_lines *tui_stack_lines(struct tui *tui);
/* Lists the nodes created in a line in the stack pane, and moves the focus there. */
void tui_stack_show_nodes(struct tui *tui, const char *file, uint32_t line);

#endif
