// SPDX-License-Identifier: GPL-3.0-or-later
/* Command lines waiting to run, and the words that keys put into them. tui.c runs them. */
#include <string.h>

#include "tui/tui_impl.h"

void *tui_state(struct tui *tui, enum tui_pane_id pane)
{
    return tui->state[pane];
}

void tui_changed(struct tui *tui)
{
    tui->dirty = true;
}

void tui_redraw(struct tui *tui)
{
    tui->dirty = tui->dirty_now = true;
}

void tui_run_due(struct tui *tui, const struct tui_line_due *due)
{
    char *text = tui->queue_count < TUI_MAX_QUEUE ? strdup(due->text) : NULL;
    if (text) {
        tui->queue[tui->queue_count] = *due;
        tui->queue[tui->queue_count++].text = text;
    }
}

void tui_run_line(struct tui *tui, const char *line)
{
    tui_run_due(
        tui, &(struct tui_line_due){.text = (char *)line, .keyboard = tui->focus != TUI_CONSOLE});
}

void tui_run_typed(struct tui *tui, const char *line)
{
    tui_run_due(tui, &(struct tui_line_due){.text = (char *)line, .typed = true});
}

void tui_add_name(struct gd_buf *out, const char *name)
{
    if (name[strcspn(name, " \t\"'\\&>|")] == '\0') {
        gd_buf_puts(out, name);
    } else {
        gd_buf_put_quoted(out, name);
    }
}

gd_node_id tui_node(struct tui *tui, struct gd_session **session)
{
    *session = tui->debugger->current;
    return *session ? (*session)->current : GD_NO_NODE;
}

bool tui_node_word(struct tui *tui, struct gd_session *session, gd_node_id node, char which,
                   struct gd_buf *out)
{
    if (!session || node == GD_NO_NODE) {
        return false;
    }
    if (which == 'n' || which == 't') {
        tui_add_name(out, gd_graph_name(session->graph, node));
        return true;
    }
    const struct gd_breakpoint *at =
        which == 'b' ? gd_debugger_breakpoint_at(tui->debugger, session, node) : NULL;
    if (at) {
        gd_buf_printf(out, "%d", at->number);
    }
    return at != NULL;
}

bool tui_common_word(struct tui *tui, char which, struct gd_buf *out)
{
    struct gd_session *session;
    gd_node_id node = tui_node(tui, &session);

    return tui_node_word(tui, session, node, which, out);
}
