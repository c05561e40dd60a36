// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A form over the panes: one field per line (text, a choice, or a switch), and a hint that says
 * what the field accepts. Enter on the last field builds a command line and runs it as if typed;
 * Escape leaves. Errors are shown below the field.
 */
#ifndef GD_TUI_FORM_H
#define GD_TUI_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct tui;
struct tui_form;

#define FORM_TEXT 1024

struct form_field {
    const char *label;
    const char *help;           /* "0 to 100, default 100"; NULL none */
    const char *const *choices; /* NULL: text; otherwise Left and Right select one */
    bool open;                  /* choices are suggestions: any other text may be typed */
    char text[FORM_TEXT];       /* the value */
};

struct form_ops {
    const char *title;
    /* A field changed (for example the condition): the callee may rebuild the fields. */
    int (*changed)(void *ctx, struct tui_form *form, size_t field);
    /* Validates after each key: GD_EINVAL with err->text for the field in *field. NULL: only the
     * command line is validated. */
    int (*check)(void *ctx, struct tui_form *form, size_t *field, struct gd_err *err);
    /* Builds the command line; GD_EINVAL with err->text for the field in *field. */
    int (*command)(void *ctx, struct tui_form *form, struct gd_buf *out, size_t *field,
                   struct gd_err *err);
    void (*destroy)(void *ctx);
};

/* Opens the form over the panes and takes ownership of ctx. One form at a time. GD_ENOMEM. */
int tui_form_open(struct tui *tui, const struct form_ops *ops, void *ctx, struct gd_err *err);
void tui_form_close(struct tui *tui);
void tui_form_draw(struct tui *tui);
void tui_form_key(struct tui *tui, int key); /* gets every key while the form is open */
/* A click moves to a field; a click on the current field selects its next choice; a click on Enter
 * or Esc in the bottom line does that. The wheel moves between fields. */
struct draw_mouse;
void tui_form_mouse(struct tui *tui, const struct draw_mouse *mouse);
void tui_form_clear(struct tui_form *form);                               /* removes all fields */
void tui_form_add(struct tui_form *form, const struct form_field *field); /* at most 32 */
size_t tui_form_count(const struct tui_form *form);
struct form_field *tui_form_field(struct tui_form *form, size_t index);

/* pane_watch_form.c: opens the form for a new watchpoint (number 0) or an existing one; the console
 * says why it cannot. */
void tui_watch_form(struct tui *tui, int number);

#endif
