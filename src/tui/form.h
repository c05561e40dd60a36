// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A form over the panes: fields one below another, each a line of text, a choice or a switch, with
 * a text that says what may stand there. Enter on the last line makes a command line of it, which
 * is run as if it had been typed; Escape leaves. What is wrong is said below the field.
 */
#ifndef GD_TUI_FORM_H
#define GD_TUI_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct tui;
struct tui_form;

struct form_field {
    const char *label;
    const char *help;           /* "0 to 100, default 100"; NULL none */
    const char *const *choices; /* NULL: text; else Left and Right go through them */
    bool open;                  /* the choices are offers: any other text may be typed */
    char text[256];             /* the value */
};

struct form_ops {
    const char *title;
    /* A field changed (a condition was chosen): the fields may be made anew. */
    int (*changed)(void *ctx, struct tui_form *form, size_t field);
    /* Whether what is filled in is right, after each key: GD_EINVAL with err->text for the field in
     * *field. NULL: only the command line tells. */
    int (*check)(void *ctx, struct tui_form *form, size_t *field, struct gd_err *err);
    /* The command line; GD_EINVAL with err->text for the field in *field. */
    int (*command)(void *ctx, struct tui_form *form, struct gd_buf *out, size_t *field,
                   struct gd_err *err);
    void (*destroy)(void *ctx);
};

/* Opens over the panes; takes ctx. One at a time. GD_ENOMEM. */
int tui_form_open(struct tui *tui, const struct form_ops *ops, void *ctx, struct gd_err *err);
void tui_form_close(struct tui *tui);
bool tui_form_is_open(const struct tui *tui);
void tui_form_draw(struct tui *tui);
bool tui_form_key(struct tui *tui, int key); /* all keys while it is open */
/* A click goes to a field, on the one that has the cursor to its next choice; on what the foot says
 * of Enter and Esc it does that. The wheel goes through the fields. */
struct draw_mouse;
void tui_form_mouse(struct tui *tui, const struct draw_mouse *mouse);
void tui_form_clear(struct tui_form *form); /* no fields */
int tui_form_add(struct tui_form *form, const struct form_field *field);
size_t tui_form_count(const struct tui_form *form);
struct form_field *tui_form_field(struct tui_form *form, size_t index);

/* pane_watch_form.c: a new watchpoint (number 0) or an existing one. */
int tui_watch_form(struct tui *tui, int number, struct gd_err *err);

#endif
