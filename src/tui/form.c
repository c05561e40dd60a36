// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/form.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/text.h"
#include "tui/tui_impl.h"

#define ESCAPE           0x1b
#define FORM_COLS        80
#define MAX_FIELDS       32
#define LABEL_COLS(cols) ((cols) >= 60 ? 26 : (cols)*2 / 5)
#define BORDER_ROWS      4 /* title, hint, error, blank */
#define ENTER_TEXT       "Enter runs it"
#define ESCAPE_TEXT      "Esc leaves"
#define KEYS_TEXT        ENTER_TEXT ", " ESCAPE_TEXT "; Up, Down: other fields"

struct tui_form {
    const struct form_ops *ops;
    void *ctx;
    struct form_field field[MAX_FIELDS];
    size_t count, cursor;
    char fault[256]; /* the error; "": none */
    size_t fault_field;
};

int tui_form_open(struct tui *tui, const struct form_ops *ops, void *ctx, struct gd_err *err)
{
    struct tui_form *form = calloc(1, sizeof(*form));

    if (!form) {
        ops->destroy(ctx);
        return gd_fail(err, GD_ENOMEM, "out of memory for a form");
    }
    tui_form_close(tui);
    form->ops = ops;
    form->ctx = ctx;
    int rc = ops->changed(ctx, form, 0);
    if (rc != GD_OK) {
        ops->destroy(ctx);
        free(form);
        return gd_fail(err, rc, "out of memory for a form");
    }
    tui->form = form;
    tui_changed(tui);
    return GD_OK;
}

void tui_form_close(struct tui *tui)
{
    if (tui->form) {
        tui->form->ops->destroy(tui->form->ctx);
        free(tui->form);
        tui->form = NULL;
    }
}

void tui_form_clear(struct tui_form *form)
{
    form->count = 0;
}

void tui_form_add(struct tui_form *form, const struct form_field *field)
{
    if (form->count < MAX_FIELDS) {
        form->field[form->count++] = *field;
    }
}

size_t tui_form_count(const struct tui_form *form)
{
    return form->count;
}

struct form_field *tui_form_field(struct tui_form *form, size_t index)
{
    return index < form->count ? &form->field[index] : NULL;
}

/* ---- drawing ---- */

/* The index of the current choice; *ret is the number of choices. */
static int current_choice(const struct form_field *field, int *ret)
{
    int at = 0;

    for (*ret = 0; field->choices[*ret]; (*ret)++) {
        at = strcmp(field->choices[*ret], field->text) == 0 ? *ret : at;
    }
    return at;
}

/* The selected choice, and its position among all of them. */
static void draw_choice(struct tui *tui, const struct form_field *field, int row, int col, int cols,
                        bool here)
{
    int count, at = current_choice(field, &count);
    char text[FORM_TEXT + 8];

    snprintf(text, sizeof(text), here ? "< %s >" : "  %s", field->text);
    int used = draw_text(tui->draw, row, col, cols, here ? DRAW_REVERSE : DRAW_PLAIN, text);
    snprintf(text, sizeof(text), "%d of %d", at + 1, count);
    if (here && used + 2 < cols) {
        draw_text(tui->draw, row, col + used + 2, cols - used - 2, DRAW_DIM, text);
    }
}

static void draw_field(struct tui *tui, size_t index, int row, int col, int cols)
{
    const struct tui_form *form = tui->form;
    const struct form_field *field = &form->field[index];
    bool here = index == form->cursor;
    int label = LABEL_COLS(cols);
    int room = cols - label - 1;

    bool wrong = form->fault[0] != '\0' && index == form->fault_field;
    draw_text(tui->draw, row, col, label - 1,
              wrong  ? DRAW_ERROR
              : here ? DRAW_BOLD
                     : DRAW_PLAIN,
              field->label);
    if (wrong) { /* not by colour alone */
        draw_text(tui->draw, row, col + label - 1, 1, DRAW_ERROR, "!");
    }
    int at = col + label;
    if (field->choices && !field->open) {
        draw_choice(tui, field, row, at, room, here);
        return;
    }
    at += 2; /* below the choices */
    room -= 2;
    const char *text = field->text;
    while (here && tui_text_width(text, strlen(text), tui->utf8) >= room) {
        struct tui_glyph glyph; /* a long text shows its end, where characters are typed */
        text += tui_glyph(text, tui->utf8, &glyph);
    }
    int used = draw_text(tui->draw, row, at, room, DRAW_PLAIN, text);
    if (field->text[0] == '\0') { /* show the accepted values before the field is selected */
        draw_text(tui->draw, row, at, 1, DRAW_DIM, here ? " " : "-");
        if (room > 2 && field->help) {
            size_t fits = tui_text_wrap(field->help, room - 2, tui->utf8);
            draw_text_len(tui->draw, row, at + 2, room - 2, DRAW_DIM, field->help, fits);
        }
    }
    if (here) {
        draw_cursor(tui->draw, row, at + (used < room ? used : room - 1));
    }
}

/* The error, otherwise what the field accepts. */
static void draw_foot(struct tui *tui, int row, int col, int cols)
{
    const struct tui_form *form = tui->form;
    const struct form_field *field = &form->field[form->cursor];

    if (form->fault[0] != '\0') {
        draw_text(tui->draw, row, col, cols, DRAW_ERROR, form->fault);
    } else if (field->help) {
        draw_text(tui->draw, row, col, cols, DRAW_DIM, field->help);
    }
    draw_text(tui->draw, row + 1, col, cols, DRAW_DIM,
              field->choices ? KEYS_TEXT "; Left, Right: choices" : KEYS_TEXT);
}

struct form_place { /* on the screen */
    int row, col, wide;
    int shown; /* number of fields; 0: no room */
    int first; /* the topmost of them */
};

static struct form_place place_of(const struct tui *tui)
{
    const struct tui_form *form = tui->form;
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    int room = rows - 1 - BORDER_ROWS;
    int shown = (int)form->count < room ? (int)form->count : room;
    shown = shown > 0 ? shown : 0;
    int wide = cols < FORM_COLS ? cols : FORM_COLS;
    return (struct form_place){
        .row = (rows - 1 - shown - BORDER_ROWS) / 2,
        .col = (cols - wide) / 2,
        .wide = wide,
        .shown = shown,
        .first = (int)form->cursor < shown ? 0 : (int)form->cursor - shown + 1,
    };
}

void tui_form_draw(struct tui *tui)
{
    struct form_place at = place_of(tui);
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    if (at.shown < 1) {
        return;
    }
    for (int i = 0; i < at.shown + BORDER_ROWS; i++) {
        draw_fill(tui->draw, at.row + i, at.col, at.wide, DRAW_PLAIN);
    }
    draw_hline(tui->draw, at.row, at.col, at.wide);
    draw_text(tui->draw, at.row, at.col + 2, at.wide - 4, DRAW_REVERSE, tui->form->ops->title);
    for (int i = 0; i < at.shown; i++) {
        draw_field(tui, (size_t)(at.first + i), at.row + 1 + i, at.col + 2, at.wide - 4);
    }
    draw_foot(tui, at.row + 1 + at.shown, at.col + 2, at.wide - 4);
    draw_hline(tui->draw, at.row + BORDER_ROWS - 1 + at.shown, at.col, at.wide);
    if (at.wide < cols) {
        draw_vline(tui->draw, at.row + 1, at.col, at.shown + BORDER_ROWS - 2);
        draw_vline(tui->draw, at.row + 1, at.col + at.wide - 1, at.shown + BORDER_ROWS - 2);
    }
}

/* ---- keys ---- */

/* Validates after every key; a missing value is an error only at Enter. */
static void check_fields(struct tui_form *form)
{
    struct gd_err err = {.code = GD_OK};
    size_t field = form->cursor;

    if (form->ops->check && form->ops->check(form->ctx, form, &field, &err) != GD_OK &&
        field < form->count &&
        form->field[field].text[strspn(form->field[field].text, " \t")] != '\0') {
        snprintf(form->fault, sizeof(form->fault), "%.255s", err.text);
        form->fault_field = field;
    }
}

static void field_changed(struct tui_form *form)
{
    form->fault[0] = '\0';
    if (form->ops->changed(form->ctx, form, form->cursor) != GD_OK) {
        snprintf(form->fault, sizeof(form->fault), "out of memory");
    }
    form->cursor = form->cursor < form->count ? form->cursor : form->count - 1;
    if (form->fault[0] == '\0') {
        check_fields(form);
    }
}

static void choose_next(struct tui_form *form, int by)
{
    struct form_field *field = &form->field[form->cursor];
    int count, at = current_choice(field, &count);

    if (count > 0) {
        snprintf(field->text, sizeof(field->text), "%s", field->choices[(at + by + count) % count]);
        field_changed(form);
    }
}

/* The next choice that begins with the letter. */
static void choose_letter(struct tui_form *form, int key)
{
    struct form_field *field = &form->field[form->cursor];
    int count, at = current_choice(field, &count);

    for (int i = 1; i <= count; i++) {
        const char *choice = field->choices[(at + i) % count];
        if (tolower((unsigned char)choice[0]) == key) {
            snprintf(field->text, sizeof(field->text), "%s", choice);
            field_changed(form);
            return;
        }
    }
}

static void type_key(struct tui_form *form, int key)
{
    struct form_field *field = &form->field[form->cursor];

    if (field->choices && !field->open) {
        if (key == ' ') {
            choose_next(form, 1);
        } else if (key > ' ' && key < 0x7f) {
            choose_letter(form, tolower(key));
        }
        return;
    }
    if (key == ('u' & 0x1f)) {
        field->text[0] = '\0';
        field_changed(form);
    } else if (tui_text_key(field->text, sizeof(field->text), key)) {
        field_changed(form);
    }
}

static void submit_form(struct tui *tui)
{
    struct tui_form *form = tui->form;
    struct gd_buf line = GD_BUF_INIT(1 << 16);
    struct gd_err err = {.code = GD_OK};
    size_t field = form->cursor;

    if (form->ops->command(form->ctx, form, &line, &field, &err) != GD_OK) {
        snprintf(form->fault, sizeof(form->fault), "%.255s", err.text);
        form->cursor = field < form->count ? field : form->cursor;
        form->fault_field = form->cursor;
    } else {
        tui_run_line(tui, gd_buf_text(&line));
        tui_form_close(tui);
    }
    gd_buf_deinit(&line);
}

void tui_form_key(struct tui *tui, int key)
{
    struct tui_form *form = tui->form;

    bool choice = form->field[form->cursor].choices != NULL;
    if (key == ESCAPE) {
        tui_form_close(tui);
    } else if (key == '\r' || key == '\n') {
        submit_form(tui);
    } else if (key == DRAW_KEY_UP || key == DRAW_KEY_BACKTAB) {
        form->cursor = (form->cursor + form->count - 1) % form->count;
    } else if (key == DRAW_KEY_DOWN || key == '\t') {
        form->cursor = (form->cursor + 1) % form->count;
    } else if (choice && (key == DRAW_KEY_LEFT || key == DRAW_KEY_RIGHT)) {
        choose_next(form, key == DRAW_KEY_LEFT ? -1 : 1);
    } else {
        type_key(form, key);
    }
    tui_changed(tui);
}

/* ---- the mouse ---- */

static void click_field(struct tui *tui, int index)
{
    struct tui_form *form = tui->form;

    if (form->cursor != (size_t)index) {
        form->cursor = (size_t)index;
    } else if (form->field[index].choices) {
        choose_next(form, 1);
    }
}

/* col is relative to the start of the bottom line's text. */
static void click_foot(struct tui *tui, int col)
{
    int escape = (int)sizeof(ENTER_TEXT ", ") - 1;

    if (col >= 0 && col < (int)sizeof(ENTER_TEXT) - 1) {
        submit_form(tui);
    } else if (col >= escape && col < escape + (int)sizeof(ESCAPE_TEXT) - 1) {
        tui_form_close(tui);
    }
}

void tui_form_mouse(struct tui *tui, const struct draw_mouse *mouse)
{
    struct form_place at = place_of(tui);
    int row = mouse->row - at.row - 1;

    if (mouse->button != DRAW_MOUSE_CLICK) {
        tui_form_key(tui, mouse->button == DRAW_MOUSE_UP ? DRAW_KEY_UP : DRAW_KEY_DOWN);
    } else if (mouse->col >= at.col && mouse->col < at.col + at.wide) {
        if (row >= 0 && row < at.shown) {
            click_field(tui, at.first + row);
        } else if (at.shown > 0 && row == at.shown + 1) {
            click_foot(tui, mouse->col - at.col - 2);
        }
    }
    tui_changed(tui);
}
