// SPDX-License-Identifier: GPL-3.0-or-later
/* What the pane of stacks and source lines tells the pane of the source. */
#ifndef GD_TUI_PANE_STACK_H
#define GD_TUI_PANE_STACK_H

#include "tui/panes/lines.h"

struct tui;

struct tui_place {
    const char *file;
    const char *code; /* as the trainer sent it; "" unknown */
    uint32_t line;
};

/* Where the source pane stands: the selected frame of the current node, or the line that the cursor
 * is on in the list of lines. false: there is none. */
bool tui_stack_place(struct tui *tui, struct tui_place *ret);
/* The lines that made nodes, as far as they are counted. */
const struct tui_lines *tui_stack_lines(struct tui *tui);
/* The nodes made in a line, in the stack pane, which gets the focus. */
void tui_stack_show_nodes(struct tui *tui, const char *file, uint32_t line);

#endif
